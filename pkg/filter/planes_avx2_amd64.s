//go:build !noasm

#include "textflag.h"

DATA planeExponent<>+0(SB)/4, $0x7f800000
GLOBL planeExponent<>(SB), RODATA|NOPTR, $4

// sums the eight counters of Y9 into AX
#define SUMCOUNTS \
	VEXTRACTI128 $1, Y9, X0 \
	VPMOVZXDQ X9, Y1        \
	VPMOVZXDQ X0, Y2        \
	VPADDQ Y1, Y2, Y1       \
	VEXTRACTI128 $1, Y1, X0 \
	VPADDQ X0, X1, X1       \
	VPSHUFD $0x4e, X1, X0   \
	VPADDQ X0, X1, X1       \
	VMOVQ X1, AX

// func windowAVX2(src *float32, n int, low, high float32) (done int, below int64)
TEXT ·windowAVX2(SB), NOSPLIT, $0-40
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSS low+16(FP), Y6
	VBROADCASTSS high+20(FP), Y7
	VPXOR Y9, Y9, Y9
	XORQ DX, DX
windowLoop:
	VMOVUPS (SI)(DX*4), Y0
	VMOVUPS 32(SI)(DX*4), Y1
	VCMPPS $0x11, Y6, Y0, Y2 // below
	VCMPPS $0x11, Y6, Y1, Y3
	VCMPPS $0x12, Y7, Y0, Y4 // not above
	VCMPPS $0x12, Y7, Y1, Y5
	VANDNPS Y4, Y2, Y4
	VANDNPS Y5, Y3, Y5
	VORPS Y4, Y5, Y4
	VPTEST Y4, Y4
	JNZ windowEnd
	VPSUBD Y2, Y9, Y9
	VPSUBD Y3, Y9, Y9
	ADDQ $16, DX
	CMPQ DX, CX
	JLT windowLoop
windowEnd:
	SUMCOUNTS
	MOVQ DX, done+24(FP)
	MOVQ AX, below+32(FP)
	VZEROUPPER
	RET

// func addClippedAVX2(acc *float64, src *float32, n, planes, stride int, clip float32) (nonFinite int64)
TEXT ·addClippedAVX2(SB), NOSPLIT, $0-56
	MOVQ acc+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ planes+24(FP), DX
	MOVQ stride+32(FP), R8
	VBROADCASTSS clip+40(FP), Y7
	VBROADCASTSS planeExponent<>(SB), Y8
	VPXOR Y9, Y9, Y9
addBlock:
	VMOVUPD (DI), Y4
	VMOVUPD 32(DI), Y5
	MOVQ SI, R9
	MOVQ DX, R10
addPlane:
	VMOVUPS (R9), Y0
	VPAND Y0, Y8, Y1
	VPCMPEQD Y8, Y1, Y1
	VPSUBD Y1, Y9, Y9
	VMINPS Y0, Y7, Y0
	VCVTPS2PD X0, Y1
	VEXTRACTF128 $1, Y0, X2
	VCVTPS2PD X2, Y2
	VADDPD Y1, Y4, Y4
	VADDPD Y2, Y5, Y5
	ADDQ R8, R9
	DECQ R10
	JNZ addPlane
	VMOVUPD Y4, (DI)
	VMOVUPD Y5, 32(DI)
	ADDQ $64, DI
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ addBlock
	SUMCOUNTS
	MOVQ AX, nonFinite+48(FP)
	VZEROUPPER
	RET

// func dividePlaneAVX2(v *float32, n int, by float64)
TEXT ·dividePlaneAVX2(SB), NOSPLIT, $0-24
	MOVQ v+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSD by+16(FP), Y7
divideLoop:
	VCVTPS2PD (SI), Y0
	VCVTPS2PD 16(SI), Y1
	VDIVPD Y7, Y0, Y0
	VDIVPD Y7, Y1, Y1
	VCVTPD2PSY Y0, X0
	VCVTPD2PSY Y1, X1
	VMOVUPS X0, (SI)
	VMOVUPS X1, 16(SI)
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ divideLoop
	VZEROUPPER
	RET

// func scalePlaneAVX2(v *float32, n int, low, high, divisor float32)
TEXT ·scalePlaneAVX2(SB), NOSPLIT, $0-28
	MOVQ v+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSS low+16(FP), Y5
	VBROADCASTSS high+20(FP), Y6
	VBROADCASTSS divisor+24(FP), Y7
scaleLoop:
	VMOVUPS (SI), Y0
	VMINPS Y0, Y6, Y0 // NaN in the last operand stays
	VMAXPS Y0, Y5, Y0
	VSUBPS Y5, Y0, Y0
	VDIVPS Y7, Y0, Y0
	VMOVUPS Y0, (SI)
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ scaleLoop
	VZEROUPPER
	RET

// func addFourAVX2(sums *[4]float64, src *float32, n int)
TEXT ·addFourAVX2(SB), NOSPLIT, $0-24
	MOVQ sums+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVUPD (DI), Y4
fourLoop:
	VCVTPS2PD (SI), Y0
	VADDPD Y0, Y4, Y4
	ADDQ $16, SI
	SUBQ $4, CX
	JNZ fourLoop
	VMOVUPD Y4, (DI)
	VZEROUPPER
	RET
