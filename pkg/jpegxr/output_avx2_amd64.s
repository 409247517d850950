//go:build !noasm

#include "textflag.h"

// Values become samples: Y15 is added, X14 and X13 are shifts to the right and to the left, Y12 is the largest sample, Y11 is 0.
#define SAMPLE(y) \
	VPADDD Y15, y, y; \
	CLAMP(y)

#define CLAMP(y) \
	VPSRAD X14, y, y; \
	VPSLLD X13, y, y; \
	VPMAXSD Y11, y, y; \
	VPMINSD Y12, y, y

// SHIFTS loads the last four arguments and makes the largest sample of as many bits.
#define SHIFTS(offset, down, up, bits) \
	VPBROADCASTD offset, Y15; \
	VMOVQ down, X14; \
	VMOVQ up, X13; \
	VPCMPEQD Y12, Y12, Y12; \
	VPSRLD $(32-bits), Y12, Y12; \
	VPXOR Y11, Y11, Y11

#define NEXT4 \
	VMOVDQU (SI), Y0; \
	VMOVDQU (DX), Y1; \
	VMOVDQU (BX), Y2; \
	VMOVDQU (R8), Y3; \
	ADDQ $32, SI; \
	ADDQ $32, DX; \
	ADDQ $32, BX; \
	ADDQ $32, R8

// func gray8AVX2(dst *byte, a, b, c, d *int32, n int, offset int32, down, up int)
TEXT ·gray8AVX2(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), BX
	MOVQ d+32(FP), R8
	MOVQ n+40(FP), CX
	SHIFTS(offset+48(FP), down+56(FP), up+64(FP), 8)

gray8Loop:
	NEXT4
	SAMPLE(Y0)
	SAMPLE(Y1)
	SAMPLE(Y2)
	SAMPLE(Y3)
	VPSLLD $8, Y1, Y1
	VPSLLD $16, Y2, Y2
	VPSLLD $24, Y3, Y3
	VPOR Y1, Y0, Y0
	VPOR Y3, Y2, Y2
	VPOR Y2, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $32, DI
	SUBQ $8, CX
	JG gray8Loop
	VZEROUPPER
	RET

// func gray16AVX2(dst *byte, a, b, c, d *int32, n int, offset int32, down, up int)
TEXT ·gray16AVX2(SB), NOSPLIT, $0-72
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), BX
	MOVQ d+32(FP), R8
	MOVQ n+40(FP), CX
	SHIFTS(offset+48(FP), down+56(FP), up+64(FP), 16)

gray16Loop:
	NEXT4
	SAMPLE(Y0)
	SAMPLE(Y1)
	SAMPLE(Y2)
	SAMPLE(Y3)
	VPSLLD $16, Y1, Y1
	VPSLLD $16, Y3, Y3
	VPOR Y1, Y0, Y0
	VPOR Y3, Y2, Y2
	VPUNPCKLDQ Y2, Y0, Y4        // blocks 0, 1 and 4, 5
	VPUNPCKHDQ Y2, Y0, Y5        // 2, 3 and 6, 7
	VPERM2I128 $0x20, Y5, Y4, Y0
	VPERM2I128 $0x31, Y5, Y4, Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	ADDQ $64, DI
	SUBQ $8, CX
	JG gray16Loop
	VZEROUPPER
	RET

// func line4AVX2(dst, a, b, c, d *int32, n int)
TEXT ·line4AVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), BX
	MOVQ d+32(FP), R8
	MOVQ n+40(FP), CX

line4Loop:
	NEXT4
	VPUNPCKLDQ Y1, Y0, Y4
	VPUNPCKHDQ Y1, Y0, Y5
	VPUNPCKLDQ Y3, Y2, Y6
	VPUNPCKHDQ Y3, Y2, Y7
	VPUNPCKLQDQ Y6, Y4, Y0       // blocks 0 and 4
	VPUNPCKHQDQ Y6, Y4, Y1       // 1 and 5
	VPUNPCKLQDQ Y7, Y5, Y2
	VPUNPCKHQDQ Y7, Y5, Y3
	VPERM2I128 $0x20, Y1, Y0, Y4
	VPERM2I128 $0x20, Y3, Y2, Y5
	VPERM2I128 $0x31, Y1, Y0, Y6
	VPERM2I128 $0x31, Y3, Y2, Y7
	VMOVDQU Y4, (DI)
	VMOVDQU Y5, 32(DI)
	VMOVDQU Y6, 64(DI)
	VMOVDQU Y7, 96(DI)
	ADDQ $128, DI
	SUBQ $8, CX
	JG line4Loop
	VZEROUPPER
	RET

// COLORS makes blue, green and red samples, Y3, Y0 and Y1, of Y, U and V at SI, DX and BX.
#define COLORS \
	VPADDD (SI), Y15, Y0; \
	VPSUBD (DX), Y11, Y1; \
	VMOVDQU (BX), Y3; \
	VPSRAD $1, Y1, Y4; \
	VPSUBD Y4, Y0, Y0; \
	VPSUBD Y10, Y3, Y4; \
	VPSRAD $1, Y4, Y4; \
	VPSUBD Y4, Y1, Y1; \
	VPADDD Y0, Y1, Y1; \
	VPADDD Y1, Y3, Y3; \
	CLAMP(Y0); \
	CLAMP(Y1); \
	CLAMP(Y3); \
	ADDQ $32, SI; \
	ADDQ $32, DX; \
	ADDQ $32, BX

// Of four bytes the first three.
DATA three<>+0(SB)/8, $0x0908060504020100
DATA three<>+8(SB)/8, $0x808080800e0d0c0a
GLOBL three<>(SB), RODATA|NOPTR, $16

// Of four words the first three.
DATA three16<>+0(SB)/8, $0x0908050403020100
DATA three16<>+8(SB)/8, $0x808080800d0c0b0a
GLOBL three16<>(SB), RODATA|NOPTR, $16

// func bgr24AVX2(dst *byte, y, u, v *int32, n int, offset int32, down, up int)
TEXT ·bgr24AVX2(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ u+16(FP), DX
	MOVQ v+24(FP), BX
	MOVQ n+32(FP), CX
	SHIFTS(offset+40(FP), down+48(FP), up+56(FP), 8)
	VPCMPEQD Y10, Y10, Y10
	VBROADCASTI128 three<>(SB), Y9

bgr24Loop:
	COLORS
	VPSLLD $8, Y0, Y0
	VPSLLD $16, Y1, Y1
	VPOR Y0, Y3, Y3
	VPOR Y1, Y3, Y3
	VPSHUFB Y9, Y3, Y3
	VEXTRACTI128 $1, Y3, X4
	VMOVDQU X3, (DI)
	VMOVDQU X4, 12(DI)
	ADDQ $24, DI
	SUBQ $8, CX
	JG bgr24Loop
	VZEROUPPER
	RET

// func bgr48AVX2(dst *byte, y, u, v *int32, n int, offset int32, down, up int)
TEXT ·bgr48AVX2(SB), NOSPLIT, $0-64
	MOVQ dst+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ u+16(FP), DX
	MOVQ v+24(FP), BX
	MOVQ n+32(FP), CX
	SHIFTS(offset+40(FP), down+48(FP), up+56(FP), 16)
	VPCMPEQD Y10, Y10, Y10
	VBROADCASTI128 three16<>(SB), Y9

bgr48Loop:
	COLORS
	VPSLLD $16, Y0, Y0
	VPOR Y0, Y3, Y3
	VPUNPCKLDQ Y1, Y3, Y4        // pixels 0, 1 and 4, 5
	VPUNPCKHDQ Y1, Y3, Y5        // 2, 3 and 6, 7
	VPSHUFB Y9, Y4, Y4
	VPSHUFB Y9, Y5, Y5
	VEXTRACTI128 $1, Y4, X6
	VEXTRACTI128 $1, Y5, X7
	VMOVDQU X4, (DI)
	VMOVDQU X5, 12(DI)
	VMOVDQU X6, 24(DI)
	VMOVDQU X7, 36(DI)
	ADDQ $48, DI
	SUBQ $8, CX
	JG bgr48Loop
	VZEROUPPER
	RET
