//go:build !noasm

#include "textflag.h"

// See step. Products are rounded before they are added, as in the scalar twin.
//
// DI u, SI image, DX weight, R8 p, R9 q, R10 excess, R11 pull or 0, CX bytes, AX bytes done.
// Y15 mu, Y14 a, Y13 b, Y12 sign bits, Y11 and Y10 sum of excess, Y9 of squares, Y8 of d·q.

// func stepAVX2(u, image, weight, p, q *float32, n int, mu, a, b float32, excess, pull *float64, s *sums)
TEXT ·stepAVX2(SB), NOSPLIT, $0-88
	MOVQ u+0(FP), DI
	MOVQ image+8(FP), SI
	MOVQ weight+16(FP), DX
	MOVQ p+24(FP), R8
	MOVQ q+32(FP), R9
	MOVQ n+40(FP), CX
	VBROADCASTSS mu+48(FP), Y15
	VBROADCASTSS a+52(FP), Y14
	VBROADCASTSS b+56(FP), Y13
	MOVQ excess+64(FP), R10
	MOVQ pull+72(FP), R11
	MOVQ s+80(FP), BX
	SHLQ $2, CX
	XORQ AX, AX
	VPCMPEQD Y12, Y12, Y12
	VPSLLD $31, Y12, Y12
	VXORPS Y11, Y11, Y11
	VXORPS Y10, Y10, Y10
	VXORPS Y9, Y9, Y9
	VXORPS Y8, Y8, Y8

loop:
	// the next image: pieces of u and W follow each other, those of images come once an image
	PREFETCHT0 4096(DI)(AX*1)
	PREFETCHT0 4096(DX)(AX*1)
	PREFETCHT0 65536(SI)(AX*1)
	VMOVUPS (DX)(AX*1), Y0      // W
	VXORPS Y12, Y0, Y1          // −W
	VMOVUPS (DI)(AX*1), Y2
	VMINPS Y0, Y2, Y2
	VMAXPS Y1, Y2, Y2
	VMULPS (R8)(AX*1), Y14, Y3
	VADDPS Y3, Y2, Y2           // Y
	VMULPS (SI)(AX*1), Y15, Y3
	VMOVUPS (R9)(AX*1), Y4      // q
	VMULPS Y4, Y13, Y5
	VSUBPS Y5, Y3, Y3
	VADDPS Y3, Y2, Y3           // u
	VMOVUPS Y3, (DI)(AX*1)
	VMINPS Y0, Y3, Y5
	VMAXPS Y1, Y5, Y5           // clip(u)
	VSUBPS Y3, Y5, Y6           // excess
	VSUBPS Y2, Y5, Y7           // d
	VMULPS Y7, Y7, Y2
	VADDPS Y2, Y9, Y9
	VMULPS Y4, Y7, Y2
	VADDPS Y2, Y8, Y8
	VCVTPS2PD X6, Y2
	VEXTRACTF128 $1, Y6, X3
	VCVTPS2PD X3, Y3
	VADDPD Y2, Y11, Y11
	VADDPD Y3, Y10, Y10
	VADDPD (R10)(AX*2), Y2, Y2
	VADDPD 32(R10)(AX*2), Y3, Y3
	VMOVUPD Y2, (R10)(AX*2)
	VMOVUPD Y3, 32(R10)(AX*2)
	TESTQ R11, R11
	JZ next
	VMULPS Y13, Y7, Y7
	VCVTPS2PD X7, Y2
	VEXTRACTF128 $1, Y7, X3
	VCVTPS2PD X3, Y3
	VADDPD (R11)(AX*2), Y2, Y2
	VADDPD 32(R11)(AX*2), Y3, Y3
	VMOVUPD Y2, (R11)(AX*2)
	VMOVUPD Y3, 32(R11)(AX*2)
next:
	ADDQ $32, AX
	CMPQ AX, CX
	JLT loop

	VMOVUPD Y11, (BX)
	VMOVUPD Y10, 32(BX)
	VMOVUPS Y9, 64(BX)
	VMOVUPS Y8, 96(BX)
	VZEROUPPER
	RET
