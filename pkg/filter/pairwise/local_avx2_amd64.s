//go:build !noasm

#include "textflag.h"

// See [slide] and [subtractMeans]. Each does what its scalar twin does, in the same order.

// func slideAVX2(dst *float32, sums *float64, in, out *float32, n int)
// DI dst, SI sums, DX in, R8 out, CX bytes of dst, AX bytes done.
TEXT ·slideAVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ sums+8(FP), SI
	MOVQ in+16(FP), DX
	MOVQ out+24(FP), R8
	MOVQ n+32(FP), CX
	SHLQ $2, CX
	XORQ AX, AX
slide:
	VCVTPS2PD (DX)(AX*1), Y0
	VCVTPS2PD 16(DX)(AX*1), Y1
	VCVTPS2PD (R8)(AX*1), Y2
	VCVTPS2PD 16(R8)(AX*1), Y3
	VADDPD (SI)(AX*2), Y0, Y0
	VADDPD 32(SI)(AX*2), Y1, Y1
	VSUBPD Y2, Y0, Y0
	VSUBPD Y3, Y1, Y1
	VMOVUPD Y0, (SI)(AX*2)
	VMOVUPD Y1, 32(SI)(AX*2)
	VCVTPD2PSY Y0, X0
	VCVTPD2PSY Y1, X1
	VMOVUPS X0, (DI)(AX*1)
	VMOVUPS X1, 16(DI)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT slide
	VZEROUPPER
	RET

// func subtractMeansAVX2(v, sum, count, known *float32, n int, none float32)
// DI v, SI sum, DX count, R8 known, CX bytes, AX bytes done, Y15 NaN, Y14 0.
TEXT ·subtractMeansAVX2(SB), NOSPLIT, $0-44
	MOVQ v+0(FP), DI
	MOVQ sum+8(FP), SI
	MOVQ count+16(FP), DX
	MOVQ known+24(FP), R8
	MOVQ n+32(FP), CX
	VBROADCASTSS none+40(FP), Y15
	VXORPS Y14, Y14, Y14
	SHLQ $2, CX
	XORQ AX, AX
means:
	VMOVUPS (SI)(AX*1), Y0
	VDIVPS (DX)(AX*1), Y0, Y0
	VMOVUPS (DI)(AX*1), Y1
	VSUBPS Y0, Y1, Y1
	VCMPPS $0, (R8)(AX*1), Y14, Y2 // 0: does not count
	VBLENDVPS Y2, Y15, Y1, Y1
	VMOVUPS Y1, (DI)(AX*1)
	ADDQ $32, AX
	CMPQ AX, CX
	JLT means
	VZEROUPPER
	RET
