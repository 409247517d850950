//go:build !noasm

#include "textflag.h"

// func columnsAVX2(sums *int16, near, far *byte, n int)
TEXT ·columnsAVX2(SB), NOSPLIT, $0-32
	MOVQ sums+0(FP), DI
	MOVQ near+8(FP), SI
	MOVQ far+16(FP), DX
	MOVQ n+24(FP), CX
loop:
	VPMOVZXBW (SI), Y0
	VPMOVZXBW (DX), Y1
	VPADDW Y0, Y1, Y1
	VPADDW Y0, Y0, Y0
	VPADDW Y0, Y1, Y1
	VMOVDQU Y1, (DI)
	ADDQ $16, SI
	ADDQ $16, DX
	ADDQ $32, DI
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

// func spreadAVX2(dst *byte, sums *int16, n int, first, second uint16)
TEXT ·spreadAVX2(SB), NOSPLIT, $0-28
	MOVQ dst+0(FP), DI
	MOVQ sums+8(FP), SI
	MOVQ n+16(FP), CX
	VPBROADCASTW first+24(FP), Y14
	VPBROADCASTW second+26(FP), Y15
loop:
	VMOVDQU (SI), Y0
	VPADDW Y0, Y0, Y1
	VPADDW Y0, Y1, Y0
	VPADDW -2(SI), Y0, Y1
	VPADDW 2(SI), Y0, Y2
	VPADDW Y14, Y1, Y1
	VPADDW Y15, Y2, Y2
	VPSRLW $4, Y1, Y1            // the first of two samples
	VPSRLW $4, Y2, Y2
	VPSLLW $8, Y2, Y2            // the second, behind it
	VPOR Y1, Y2, Y1
	VMOVDQU Y1, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $16, CX
	JG loop
	VZEROUPPER
	RET

DATA half<>+0(SB)/2, $128
GLOBL half<>(SB), RODATA|NOPTR, $2
// Twice a colour difference times these, in 15 bits after the point and rounded, is the same as in 16 bits for all 256 values.
DATA red<>+0(SB)/2, $22971       // 1.402 / 2
GLOBL red<>(SB), RODATA|NOPTR, $2
DATA blue<>+0(SB)/2, $29033      // 1.772 / 2
GLOBL blue<>(SB), RODATA|NOPTR, $2
DATA green<>+0(SB)/2, $-22554
DATA green<>+2(SB)/2, $18734     // 65536 - 46802
GLOBL green<>(SB), RODATA|NOPTR, $4
DATA point5<>+0(SB)/4, $32768
GLOBL point5<>(SB), RODATA|NOPTR, $4

// CONVERT makes of 16 samples at off red, green and blue ones of 16 bits, which may be out of range.
#define CONVERT(off, r, g, b) \
	VPMOVZXBW off(SI), Y0; \
	VPMOVZXBW off(DX), Y1; \
	VPMOVZXBW off(R8), Y2; \
	VPSUBW Y15, Y1, Y1; \
	VPSUBW Y15, Y2, Y2; \
	VPADDW Y2, Y2, r; \
	VPMULHRSW Y14, r, r; \
	VPADDW Y0, r, r; \
	VPADDW Y1, Y1, b; \
	VPMULHRSW Y13, b, b; \
	VPADDW Y0, b, b; \
	VPUNPCKLWD Y2, Y1, Y3; \
	VPUNPCKHWD Y2, Y1, Y4; \
	VPMADDWD Y12, Y3, Y3; \
	VPMADDWD Y12, Y4, Y4; \
	VPADDD Y11, Y3, Y3; \
	VPADDD Y11, Y4, Y4; \
	VPSRAD $16, Y3, Y3; \
	VPSRAD $16, Y4, Y4; \
	VPACKSSDW Y4, Y3, g; \
	VPSUBW Y2, Y0, Y0; \
	VPADDW Y0, g, g

// PART makes bytes 16·part … 16·part+15 of each lane's 16 pixels, whose components are in a, b, c.
#define PART(part, a, b, c, d) \
	VPSHUFB (part*96+0)(R9), a, d; \
	VPSHUFB (part*96+32)(R9), b, Y0; \
	VPOR Y0, d, d; \
	VPSHUFB (part*96+64)(R9), c, Y0; \
	VPOR Y0, d, d

// STORE3 stores 32 pixels whose components are in a, b, c. Uses Y0 … Y4.
#define STORE3(a, b, c) \
	PART(0, a, b, c, Y1); \
	PART(1, a, b, c, Y2); \
	PART(2, a, b, c, Y3); \
	VPERM2I128 $0x20, Y2, Y1, Y4; \
	VMOVDQU Y4, (DI); \
	VPBLENDD $0xF0, Y1, Y3, Y4; \
	VMOVDQU Y4, 32(DI); \
	VPERM2I128 $0x31, Y3, Y2, Y4; \
	VMOVDQU Y4, 64(DI)

// func rgbAVX2(dst, y, cb, cr *byte, n int, masks *masks)
TEXT ·rgbAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ y+8(FP), SI
	MOVQ cb+16(FP), DX
	MOVQ cr+24(FP), R8
	MOVQ n+32(FP), CX
	MOVQ masks+40(FP), R9
	VPBROADCASTW half<>(SB), Y15
	VPBROADCASTW red<>(SB), Y14
	VPBROADCASTW blue<>(SB), Y13
	VPBROADCASTD green<>(SB), Y12
	VPBROADCASTD point5<>(SB), Y11
loop:
	CONVERT(0, Y5, Y6, Y7)
	CONVERT(16, Y8, Y9, Y10)
	VPACKUSWB Y8, Y5, Y5
	VPACKUSWB Y9, Y6, Y6
	VPACKUSWB Y10, Y7, Y7
	VPERMQ $0xD8, Y5, Y5
	VPERMQ $0xD8, Y6, Y6
	VPERMQ $0xD8, Y7, Y7
	STORE3(Y5, Y6, Y7)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, R8
	ADDQ $96, DI
	SUBQ $32, CX
	JG loop
	VZEROUPPER
	RET

// func interleaveAVX2(dst, a, b, c *byte, n int, masks *masks)
TEXT ·interleaveAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ c+24(FP), R8
	MOVQ n+32(FP), CX
	MOVQ masks+40(FP), R9
loop:
	VMOVDQU (SI), Y5
	VMOVDQU (DX), Y6
	VMOVDQU (R8), Y7
	STORE3(Y5, Y6, Y7)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, R8
	ADDQ $96, DI
	SUBQ $32, CX
	JG loop
	VZEROUPPER
	RET
