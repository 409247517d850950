//go:build !noasm

#include "textflag.h"

// A network of comparators on rows of unsigned values, 64 bytes of all rows at a time.
//
// DI rows, SI distance of rows in bytes, CX bytes left, DX comparators, R8 their number.

#define NETWORK(MIN, MAX) \
	MOVQ rows+0(FP), DI    \
	MOVQ stride+8(FP), SI  \
	MOVQ n+16(FP), CX      \
block:                    \
	MOVQ pairs+24(FP), DX  \
	MOVQ count+32(FP), R8  \
pair:                     \
	MOVL (DX), AX          \
	MOVL 4(DX), BX         \
	IMULQ SI, AX           \
	IMULQ SI, BX           \
	VMOVDQU (DI)(AX*1), Y0   \
	VMOVDQU 32(DI)(AX*1), Y1 \
	VMOVDQU (DI)(BX*1), Y2   \
	VMOVDQU 32(DI)(BX*1), Y3 \
	MIN Y0, Y2, Y4         \
	MIN Y1, Y3, Y5         \
	MAX Y0, Y2, Y2         \
	MAX Y1, Y3, Y3         \
	VMOVDQU Y4, (DI)(AX*1)   \
	VMOVDQU Y5, 32(DI)(AX*1) \
	VMOVDQU Y2, (DI)(BX*1)   \
	VMOVDQU Y3, 32(DI)(BX*1) \
	ADDQ $8, DX            \
	DECQ R8                \
	JNZ pair               \
	ADDQ $64, DI           \
	SUBQ $64, CX           \
	JGT block              \
	VZEROUPPER             \
	RET

// func network8AVX2(rows *uint8, stride, n int, pairs *[2]uint32, count int)
TEXT ·network8AVX2(SB), NOSPLIT, $0-40
	NETWORK(VPMINUB, VPMAXUB)

// func network16AVX2(rows *uint16, stride, n int, pairs *[2]uint32, count int)
TEXT ·network16AVX2(SB), NOSPLIT, $0-40
	NETWORK(VPMINUW, VPMAXUW)

// func network32AVX2(rows *uint32, stride, n int, pairs *[2]uint32, count int)
TEXT ·network32AVX2(SB), NOSPLIT, $0-40
	NETWORK(VPMINUD, VPMAXUD)
