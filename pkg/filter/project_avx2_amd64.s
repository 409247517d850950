//go:build !noasm

#include "textflag.h"

// Sums of planes into float64 accumulators, 16 elements at a time: the
// accumulators stay in registers while the planes pass by in order, so memory
// sees each input once and each accumulator once per call.
//
// Y0–Y3 accumulators, Y4–Y7 converted input, Y8 exponent mask, Y9 counter.

DATA exponent<>+0(SB)/4, $0x7f800000
GLOBL exponent<>(SB), RODATA|NOPTR, $4

#define LOADACC \
	VMOVUPD (DI), Y0   \
	VMOVUPD 32(DI), Y1 \
	VMOVUPD 64(DI), Y2 \
	VMOVUPD 96(DI), Y3

#define STOREACC \
	VMOVUPD Y0, (DI)   \
	VMOVUPD Y1, 32(DI) \
	VMOVUPD Y2, 64(DI) \
	VMOVUPD Y3, 96(DI)

#define ADDACC \
	VADDPD Y4, Y0, Y0 \
	VADDPD Y5, Y1, Y1 \
	VADDPD Y6, Y2, Y2 \
	VADDPD Y7, Y3, Y3

#define PROLOGUE \
	MOVQ acc+0(FP), DI    \
	MOVQ src+8(FP), SI    \
	MOVQ n+16(FP), CX     \
	MOVQ planes+24(FP), DX \
	MOVQ stride+32(FP), R8

// func addPlanesF32AVX2(acc *float64, src *float32, n, planes, stride int) (nonFinite int64)
TEXT ·addPlanesF32AVX2(SB), NOSPLIT, $0-48
	PROLOGUE
	VBROADCASTSS exponent<>(SB), Y8
	VPXOR Y9, Y9, Y9
block:
	LOADACC
	MOVQ SI, R9
	MOVQ DX, R10
plane:
	VMOVUPS (R9), Y10
	VMOVUPS 32(R9), Y11
	VPAND Y8, Y10, Y12
	VPAND Y8, Y11, Y13
	VPCMPEQD Y8, Y12, Y12
	VPCMPEQD Y8, Y13, Y13
	VCVTPS2PD (R9), Y4
	VCVTPS2PD 16(R9), Y5
	VCVTPS2PD 32(R9), Y6
	VCVTPS2PD 48(R9), Y7
	VPADDD Y12, Y13, Y13
	VPSUBD Y13, Y9, Y9
	ADDACC
	ADDQ R8, R9
	DECQ R10
	JNZ plane
	STOREACC
	ADDQ $128, DI
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ block
	VEXTRACTI128 $1, Y9, X10
	VPADDD X10, X9, X9
	VPSHUFD $0x4e, X9, X10
	VPADDD X10, X9, X9
	VPSHUFD $0xb1, X9, X10
	VPADDD X10, X9, X9
	VMOVD X9, AX
	MOVQ AX, nonFinite+40(FP)
	VZEROUPPER
	RET

#define INTBLOCKS(extend, quarter, elements) \
block:                        \
	LOADACC                         \
	MOVQ SI, R9                     \
	MOVQ DX, R10                    \
plane:                        \
	extend (R9), X4                 \
	extend quarter(R9), X5          \
	extend quarter*2(R9), X6      \
	extend quarter*3(R9), X7      \
	VCVTDQ2PD X4, Y4                \
	VCVTDQ2PD X5, Y5                \
	VCVTDQ2PD X6, Y6                \
	VCVTDQ2PD X7, Y7                \
	ADDACC                          \
	ADDQ R8, R9                     \
	DECQ R10                        \
	JNZ plane                 \
	STOREACC                        \
	ADDQ $128, DI                   \
	ADDQ $elements, SI              \
	SUBQ $16, CX                    \
	JNZ block                 \
	VZEROUPPER                      \
	RET

// func addPlanesU16AVX2(acc *float64, src *uint16, n, planes, stride int)
TEXT ·addPlanesU16AVX2(SB), NOSPLIT, $0-40
	PROLOGUE
	INTBLOCKS(VPMOVZXWD, 8, 32)

// func addPlanesI16AVX2(acc *float64, src *int16, n, planes, stride int)
TEXT ·addPlanesI16AVX2(SB), NOSPLIT, $0-40
	PROLOGUE
	INTBLOCKS(VPMOVSXWD, 8, 32)

// func addPlanesU8AVX2(acc *float64, src *uint8, n, planes, stride int)
TEXT ·addPlanesU8AVX2(SB), NOSPLIT, $0-40
	PROLOGUE
	INTBLOCKS(VPMOVZXBD, 4, 16)
