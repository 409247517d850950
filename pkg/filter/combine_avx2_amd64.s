//go:build !noasm

#include "textflag.h"

// A weighted sum of rows. The sums stay in registers while the rows pass by, 64
// elements at a time, then 8. Products are rounded before they are added, as in
// the scalar twin.
//
// DI dst, SI src, CX elements left, R8 distance of rows, DX taps, R10 number of
// taps, R11 zero when the sum begins with the first product.

#define MUL8(reg, off) VMULPS off(R9), Y8, reg
#define ADD8(reg, off, tmp) \
	VMULPS off(R9), Y8, tmp \
	VADDPS tmp, reg, reg

// func combineAVX2(dst, src *float32, n, stride int, taps *float32, count, add int)
TEXT ·combineAVX2(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ stride+24(FP), R8
	MOVQ taps+32(FP), DX
	MOVQ count+40(FP), R10
	MOVQ add+48(FP), R11

wide:
	CMPQ CX, $64
	JLT narrow
	MOVQ SI, R9
	MOVQ DX, BX
	MOVQ R10, AX
	TESTQ R11, R11
	JNZ wideload
	VBROADCASTSS (BX), Y8
	MUL8(Y0, 0)
	MUL8(Y1, 32)
	MUL8(Y2, 64)
	MUL8(Y3, 96)
	MUL8(Y4, 128)
	MUL8(Y5, 160)
	MUL8(Y6, 192)
	MUL8(Y7, 224)
	ADDQ R8, R9
	ADDQ $4, BX
	DECQ AX
	JZ widestore
	JMP widetap
wideload:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VMOVUPS 128(DI), Y4
	VMOVUPS 160(DI), Y5
	VMOVUPS 192(DI), Y6
	VMOVUPS 224(DI), Y7
widetap:
	VBROADCASTSS (BX), Y8
	ADD8(Y0, 0, Y9)
	ADD8(Y1, 32, Y10)
	ADD8(Y2, 64, Y11)
	ADD8(Y3, 96, Y12)
	ADD8(Y4, 128, Y9)
	ADD8(Y5, 160, Y10)
	ADD8(Y6, 192, Y11)
	ADD8(Y7, 224, Y12)
	ADDQ R8, R9
	ADDQ $4, BX
	DECQ AX
	JNZ widetap
widestore:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VMOVUPS Y4, 128(DI)
	VMOVUPS Y5, 160(DI)
	VMOVUPS Y6, 192(DI)
	VMOVUPS Y7, 224(DI)
	ADDQ $256, DI
	ADDQ $256, SI
	SUBQ $64, CX
	JMP wide

narrow:
	CMPQ CX, $32
	JLT eight
	MOVQ SI, R9
	MOVQ DX, BX
	MOVQ R10, AX
	TESTQ R11, R11
	JNZ narrowload
	VBROADCASTSS (BX), Y8
	MUL8(Y0, 0)
	MUL8(Y1, 32)
	MUL8(Y2, 64)
	MUL8(Y3, 96)
	ADDQ R8, R9
	ADDQ $4, BX
	DECQ AX
	JZ narrowstore
	JMP narrowtap
narrowload:
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
narrowtap:
	VBROADCASTSS (BX), Y8
	ADD8(Y0, 0, Y9)
	ADD8(Y1, 32, Y10)
	ADD8(Y2, 64, Y11)
	ADD8(Y3, 96, Y12)
	ADDQ R8, R9
	ADDQ $4, BX
	DECQ AX
	JNZ narrowtap
narrowstore:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	ADDQ $128, DI
	ADDQ $128, SI
	SUBQ $32, CX

eight:
	TESTQ CX, CX
	JZ done
	MOVQ SI, R9
	MOVQ DX, BX
	MOVQ R10, AX
	TESTQ R11, R11
	JNZ eightload
	VBROADCASTSS (BX), Y8
	MUL8(Y0, 0)
	ADDQ R8, R9
	ADDQ $4, BX
	DECQ AX
	JZ eightstore
	JMP eighttap
eightload:
	VMOVUPS (DI), Y0
eighttap:
	VBROADCASTSS (BX), Y8
	ADD8(Y0, 0, Y9)
	ADDQ R8, R9
	ADDQ $4, BX
	DECQ AX
	JNZ eighttap
eightstore:
	VMOVUPS Y0, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	SUBQ $8, CX
	JMP eight

done:
	VZEROUPPER
	RET

// Eight rows become eight columns, 8 × 8 elements at a time.
//
// func transpose8AVX2(dst, src *float32, blocks, dstStride, srcStride int)
TEXT ·transpose8AVX2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ dstStride+24(FP), R8
	MOVQ srcStride+32(FP), R9
	LEAQ (R9)(R9*2), R10
	LEAQ (R8)(R8*2), R11
block:
	LEAQ (SI)(R9*4), BX
	// rows 0–3 in the low, 4–7 in the high halves
	VMOVUPS (SI), X0
	VMOVUPS (SI)(R9*1), X1
	VMOVUPS (SI)(R9*2), X2
	VMOVUPS (SI)(R10*1), X3
	VINSERTF128 $1, (BX), Y0, Y0
	VINSERTF128 $1, (BX)(R9*1), Y1, Y1
	VINSERTF128 $1, (BX)(R9*2), Y2, Y2
	VINSERTF128 $1, (BX)(R10*1), Y3, Y3
	VMOVUPS 16(SI), X4
	VMOVUPS 16(SI)(R9*1), X5
	VMOVUPS 16(SI)(R9*2), X6
	VMOVUPS 16(SI)(R10*1), X7
	VINSERTF128 $1, 16(BX), Y4, Y4
	VINSERTF128 $1, 16(BX)(R9*1), Y5, Y5
	VINSERTF128 $1, 16(BX)(R9*2), Y6, Y6
	VINSERTF128 $1, 16(BX)(R10*1), Y7, Y7
	VUNPCKLPS Y1, Y0, Y8
	VUNPCKHPS Y1, Y0, Y9
	VUNPCKLPS Y3, Y2, Y10
	VUNPCKHPS Y3, Y2, Y11
	VUNPCKLPS Y5, Y4, Y12
	VUNPCKHPS Y5, Y4, Y13
	VUNPCKLPS Y7, Y6, Y14
	VUNPCKHPS Y7, Y6, Y15
	VSHUFPS $0x44, Y10, Y8, Y0
	VSHUFPS $0xee, Y10, Y8, Y1
	VSHUFPS $0x44, Y11, Y9, Y2
	VSHUFPS $0xee, Y11, Y9, Y3
	VSHUFPS $0x44, Y14, Y12, Y4
	VSHUFPS $0xee, Y14, Y12, Y5
	VSHUFPS $0x44, Y15, Y13, Y6
	VSHUFPS $0xee, Y15, Y13, Y7
	LEAQ (DI)(R8*4), BX
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, (DI)(R8*1)
	VMOVUPS Y2, (DI)(R8*2)
	VMOVUPS Y3, (DI)(R11*1)
	VMOVUPS Y4, (BX)
	VMOVUPS Y5, (BX)(R8*1)
	VMOVUPS Y6, (BX)(R8*2)
	VMOVUPS Y7, (BX)(R11*1)
	ADDQ $32, SI
	LEAQ (DI)(R8*8), DI
	DECQ CX
	JNZ block
	VZEROUPPER
	RET
