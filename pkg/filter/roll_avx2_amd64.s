//go:build !noasm

#include "textflag.h"

DATA rollOne<>+0(SB)/4, $0x3f800000
GLOBL rollOne<>(SB), RODATA|NOPTR, $4

// Y0 the plane, Y1 the next, Y6 = t, Y7 = 1 − t
#define BEGIN \
	MOVQ dst+0(FP), DI        \
	MOVQ src+8(FP), SI        \
	MOVQ t+16(FP), DX         \
	MOVQ planes+24(FP), CX    \
	MOVQ stride+32(FP), R8    \
	VMOVUPS (DX), Y6          \
	VBROADCASTSS rollOne<>(SB), Y7 \
	VSUBPS Y6, Y7, Y7         \
	VMOVUPS (SI), Y0

#define STEP \
	ADDQ R8, SI               \
	VMOVUPS (SI), Y1          \
	VMULPS Y0, Y7, Y2         \
	VMULPS Y1, Y6, Y3         \
	VADDPS Y3, Y2, Y2         \
	VMOVAPS Y1, Y0

// func rollAVX2(dst, src, t *float32, planes, stride int)
TEXT ·rollAVX2(SB), NOSPLIT, $0-40
	BEGIN
loop:
	STEP
	VMOVUPS Y2, (DI)
	ADDQ R8, DI
	DECQ CX
	JNZ loop
	VZEROUPPER
	RET

// func rollMaskedAVX2(dst, src, t *float32, planes, stride int, offsets *int32, offset int32)
TEXT ·rollMaskedAVX2(SB), NOSPLIT, $0-52
	BEGIN
	MOVQ offsets+40(FP), DX
	VBROADCASTSS offset+48(FP), Y4
	VPCMPEQD (DX), Y4, Y4
loop:
	STEP
	VMOVUPS (DI), Y5
	VBLENDVPS Y4, Y2, Y5, Y5
	VMOVUPS Y5, (DI)
	ADDQ R8, DI
	DECQ CX
	JNZ loop
	VZEROUPPER
	RET
