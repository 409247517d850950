//go:build !noasm

#include "textflag.h"

// Running sums, 16 bytes at a time: each element is added to those one, two, four and eight strides behind it in the vector, which makes
// the sums within it, then the sums at the end of the vector before are added. All moves within a vector are shuffles by masks of the
// caller, so that one loop does for every stride.
//
// masks: byte order, 1, 2, 4 and 8 strides, end of the vector to the front.

#define SUMS(NAME, ADD) \
TEXT NAME(SB), NOSPLIT, $0-40 \
	MOVQ dst+0(FP), DI \
	MOVQ src+8(FP), SI \
	MOVQ n+16(FP), CX \
	MOVQ masks+24(FP), DX \
	MOVQ carry+32(FP), BX \
	VMOVDQU (DX), X8 \
	VMOVDQU 16(DX), X9 \
	VMOVDQU 32(DX), X10 \
	VMOVDQU 48(DX), X11 \
	VMOVDQU 64(DX), X12 \
	VMOVDQU 80(DX), X13 \
	VMOVDQU (BX), X7 \
loop: \
	VMOVDQU (SI), X0 \
	VPSHUFB X8, X0, X0 \
	VPSHUFB X9, X0, X1 \
	ADD X1, X0, X0 \
	VPSHUFB X10, X0, X1 \
	ADD X1, X0, X0 \
	VPSHUFB X11, X0, X1 \
	ADD X1, X0, X0 \
	VPSHUFB X12, X0, X1 \
	ADD X1, X0, X0 \
	ADD X7, X0, X0 \
	VMOVDQU X0, (DI) \
	VPSHUFB X13, X0, X7 \
	ADDQ $16, SI \
	ADDQ $16, DI \
	SUBQ $16, CX \
	JNZ loop \
	VMOVDQU X7, (BX) \
	RET

// func sums8(dst, src *byte, n int, masks *sumMasks, carry *[16]byte)
SUMS(·sums8, VPADDB)

// func sums16(dst, src *byte, n int, masks *sumMasks, carry *[16]byte)
SUMS(·sums16, VPADDW)

// func sums32(dst, src *byte, n int, masks *sumMasks, carry *[16]byte)
SUMS(·sums32, VPADDD)

// func sums64(dst, src *byte, n int, masks *sumMasks, carry *[16]byte)
SUMS(·sums64, VPADDQ)
