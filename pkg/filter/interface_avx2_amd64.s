//go:build !noasm

#include "textflag.h"

DATA absBits<>+0(SB)/4, $0x7fffffff
GLOBL absBits<>(SB), RODATA|NOPTR, $4
DATA infBits<>+0(SB)/4, $0x7f800000
GLOBL infBits<>(SB), RODATA|NOPTR, $4

// one tap for 8 A-lines
#define TAP(off, sum, tmp) \
	VMOVUPS off(R10), tmp       \
	VSUBPS off(R11), tmp, tmp   \
	VMULPS Y12, tmp, tmp        \
	VADDPS tmp, sum, sum

// the running maximum of 8 A-lines
#define TAKE(off, sum) \
	VMOVUPS off(DI), Y8         \
	VMOVUPS off(DX), Y9         \
	VCMPPS $0x1e, Y8, sum, Y10  \
	VBLENDVPS Y10, sum, Y8, Y8  \
	VBLENDVPS Y10, Y13, Y9, Y9  \
	VMOVUPS Y8, off(DI)         \
	VMOVUPS Y9, off(DX)

#define ROWS \
	MOVQ offsets+32(FP), R8     \
	MOVQ weights+40(FP), R9     \
	MOVQ taps+48(FP), AX

#define PLANES \
	MOVQ (R8), R10              \
	MOVQ 8(R8), R11             \
	LEAQ (SI)(R10*4), R10       \
	LEAQ (SI)(R11*4), R11       \
	VBROADCASTSS (R9), Y12

#define NEXT \
	ADDQ $16, R8                \
	ADDQ $4, R9                 \
	DECQ AX

// func magnitudesAVX2(v *float32, n int, clip float32)
TEXT ·magnitudesAVX2(SB), NOSPLIT, $0-20
	MOVQ v+0(FP), DI
	MOVQ n+8(FP), CX
	VBROADCASTSS clip+16(FP), Y7
	VBROADCASTSS absBits<>(SB), Y8
	VBROADCASTSS infBits<>(SB), Y9
loop:
	VANDPS (DI), Y8, Y0
	VPCMPGTD Y0, Y9, Y1
	VANDPS Y1, Y0, Y0
	VMINPS Y7, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// func steepestAVX2(best *float32, arg *int32, ring *float32, n int, offsets *int64, weights *float32, taps int, z int32)
TEXT ·steepestAVX2(SB), NOSPLIT, $0-60
	MOVQ best+0(FP), DI
	MOVQ arg+8(FP), DX
	MOVQ ring+16(FP), SI
	MOVQ n+24(FP), CX
	VBROADCASTSS z+56(FP), Y13
	CMPQ CX, $32
	JB narrow
wide:
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	ROWS
wideTap:
	PLANES
	TAP(0, Y0, Y4)
	TAP(32, Y1, Y5)
	TAP(64, Y2, Y6)
	TAP(96, Y3, Y7)
	NEXT
	JNZ wideTap
	TAKE(0, Y0)
	TAKE(32, Y1)
	TAKE(64, Y2)
	TAKE(96, Y3)
	ADDQ $128, DI
	ADDQ $128, DX
	ADDQ $128, SI
	SUBQ $32, CX
	CMPQ CX, $32
	JAE wide
narrow:
	TESTQ CX, CX
	JZ done
	VXORPS Y0, Y0, Y0
	ROWS
narrowTap:
	PLANES
	TAP(0, Y0, Y4)
	NEXT
	JNZ narrowTap
	TAKE(0, Y0)
	ADDQ $32, DI
	ADDQ $32, DX
	ADDQ $32, SI
	SUBQ $8, CX
	JMP narrow
done:
	VZEROUPPER
	RET
