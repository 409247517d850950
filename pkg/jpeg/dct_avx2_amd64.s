//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// The low lanes of the registers hold rows (then columns) of block a, the high lanes those of block b.

// PAIR has two 16-bit factors for VPMADDWD, as often as a register holds them.
#define PAIR(name, a, b) \
	DATA name<>+0(SB)/2, $a; \
	DATA name<>+2(SB)/2, $b; \
	GLOBL name<>(SB), RODATA|NOPTR, $4

PAIR(dc0, 8192, 8192)
PAIR(dc1, 8192, -8192)
PAIR(even0, 10703, 4433)
PAIR(even1, 4433, -10704)
PAIR(odd0a, 11363, 9633)
PAIR(odd0b, 6437, 2260)
PAIR(odd1a, 9633, -2259)
PAIR(odd1b, -11362, -6436)
PAIR(odd2a, 6437, -11362)
PAIR(odd2b, 2261, 9633)
PAIR(odd3a, 2260, -6436)
PAIR(odd3b, 9633, -11363)

DATA round1<>+0(SB)/4, $0x400
GLOBL round1<>(SB), RODATA|NOPTR, $4
DATA round2<>+0(SB)/4, $0x20000
GLOBL round2<>(SB), RODATA|NOPTR, $4
DATA centre<>+0(SB)/4, $0x80808080
GLOBL centre<>(SB), RODATA|NOPTR, $4

// LOAD sets x to row i of both blocks, times the quantization tables.
#define LOAD(i, X, Y) \
	VMOVDQU     (16*i)(SI), X; \
	VINSERTI128 $1, (256+16*i)(SI), Y, Y; \
	VMOVDQU     (16*i)(R8), X8; \
	VINSERTI128 $1, (16*i)(R9), Y8, Y8; \
	VPMULLW     Y8, Y, Y

// OUT sets e and o to e+o and e-o, shifted.
#define OUT(e, o, shift) \
	VPSUBD o, e, Y15; \
	VPADDD o, e, e; \
	VPSRAD $shift, e, e; \
	VPSRAD $shift, Y15, o

// ODD sets d to coefficients 1, 3 (in a) and 5, 7 (in b) times their factors.
#define ODD(a, b, fa, fb, d) \
	VPBROADCASTD fa<>(SB), Y15; \
	VPMADDWD Y15, a, d; \
	VPBROADCASTD fb<>(SB), Y15; \
	VPMADDWD Y15, b, Y15; \
	VPADDD   Y15, d, d

// HALF transforms 4 columns, whose coefficients are interleaved in pairs: 0 and 4 in a, 2 and 6 in b, 1 and 3 in c, 5 and 7 in d.
// Results 0 to 7 are in Y8, Y9, Y10, Y11, a, Y14, Y13, Y12.
#define HALF(a, b, c, d, round, shift) \
	VPBROADCASTD round<>(SB), Y14; \
	VPBROADCASTD dc0<>(SB), Y15; \
	VPMADDWD Y15, a, Y8; \
	VPADDD   Y14, Y8, Y8; \
	VPBROADCASTD dc1<>(SB), Y15; \
	VPMADDWD Y15, a, Y9; \
	VPADDD   Y14, Y9, Y9; \
	VPBROADCASTD even0<>(SB), Y15; \
	VPMADDWD Y15, b, Y12; \
	VPBROADCASTD even1<>(SB), Y15; \
	VPMADDWD Y15, b, Y13; \
	VPSUBD   Y12, Y8, Y11; \
	VPADDD   Y12, Y8, Y8; \
	VPSUBD   Y13, Y9, Y10; \
	VPADDD   Y13, Y9, Y9; \
	ODD(c, d, odd0a, odd0b, Y12); \
	ODD(c, d, odd1a, odd1b, Y13); \
	ODD(c, d, odd2a, odd2b, Y14); \
	ODD(c, d, odd3a, odd3b, a); \
	OUT(Y8, Y12, shift); \
	OUT(Y9, Y13, shift); \
	OUT(Y10, Y14, shift); \
	OUT(Y11, a, shift)

// PASS transforms Y0 … Y7 in place; the stack has room for the half that is done first.
#define PASS(round, shift) \
	VPUNPCKHWD Y4, Y0, Y15; \
	VPUNPCKLWD Y4, Y0, Y0; \
	VPUNPCKHWD Y6, Y2, Y14; \
	VPUNPCKLWD Y6, Y2, Y2; \
	VPUNPCKHWD Y3, Y1, Y13; \
	VPUNPCKLWD Y3, Y1, Y1; \
	VPUNPCKHWD Y7, Y5, Y12; \
	VPUNPCKLWD Y7, Y5, Y5; \
	VMOVDQA    Y15, Y3; \
	VMOVDQA    Y14, Y4; \
	VMOVDQA    Y13, Y6; \
	VMOVDQA    Y12, Y7; \
	HALF(Y3, Y4, Y6, Y7, round, shift); \
	VMOVDQU    Y8, 0(SP); \
	VMOVDQU    Y9, 32(SP); \
	VMOVDQU    Y10, 64(SP); \
	VMOVDQU    Y11, 96(SP); \
	VMOVDQU    Y3, 128(SP); \
	VMOVDQU    Y14, 160(SP); \
	VMOVDQU    Y13, 192(SP); \
	VMOVDQU    Y12, 224(SP); \
	HALF(Y0, Y2, Y1, Y5, round, shift); \
	VPACKSSDW  128(SP), Y0, Y4; \
	VPACKSSDW  0(SP), Y8, Y0; \
	VPACKSSDW  32(SP), Y9, Y1; \
	VPACKSSDW  64(SP), Y10, Y2; \
	VPACKSSDW  96(SP), Y11, Y3; \
	VPACKSSDW  160(SP), Y14, Y5; \
	VPACKSSDW  192(SP), Y13, Y6; \
	VPACKSSDW  224(SP), Y12, Y7

// TRANSPOSE turns rows Y0 … Y7 into columns.
#define TRANSPOSE \
	VPUNPCKLWD Y1, Y0, Y8; \
	VPUNPCKHWD Y1, Y0, Y9; \
	VPUNPCKLWD Y3, Y2, Y10; \
	VPUNPCKHWD Y3, Y2, Y11; \
	VPUNPCKLWD Y5, Y4, Y12; \
	VPUNPCKHWD Y5, Y4, Y13; \
	VPUNPCKLWD Y7, Y6, Y14; \
	VPUNPCKHWD Y7, Y6, Y15; \
	VPUNPCKLDQ Y10, Y8, Y0; \
	VPUNPCKHDQ Y10, Y8, Y1; \
	VPUNPCKLDQ Y11, Y9, Y2; \
	VPUNPCKHDQ Y11, Y9, Y3; \
	VPUNPCKLDQ Y14, Y12, Y4; \
	VPUNPCKHDQ Y14, Y12, Y5; \
	VPUNPCKLDQ Y15, Y13, Y6; \
	VPUNPCKHDQ Y15, Y13, Y7; \
	VPUNPCKLQDQ Y4, Y0, Y8; \
	VPUNPCKHQDQ Y4, Y0, Y9; \
	VPUNPCKLQDQ Y5, Y1, Y10; \
	VPUNPCKHQDQ Y5, Y1, Y11; \
	VPUNPCKLQDQ Y6, Y2, Y12; \
	VPUNPCKHQDQ Y6, Y2, Y13; \
	VPUNPCKLQDQ Y7, Y3, Y14; \
	VPUNPCKHQDQ Y7, Y3, Y15; \
	VMOVDQA Y8, Y0; \
	VMOVDQA Y9, Y1; \
	VMOVDQA Y10, Y2; \
	VMOVDQA Y11, Y3; \
	VMOVDQA Y12, Y4; \
	VMOVDQA Y13, Y5; \
	VMOVDQA Y14, Y6; \
	VMOVDQA Y15, Y7

// STORE writes two rows of 8 samples at p, s bytes apart, and moves p behind them.
#define STORE(X, p, s) \
	VMOVQ   X, (p); \
	VPEXTRQ $1, X, (p)(s*1); \
	LEAQ    (p)(s*2), p

// func idct2AVX2(a *byte, strideA int, b *byte, strideB int, c *[2]coefficients, quantA, quantB *[64]uint16)
TEXT ·idct2AVX2(SB), NOSPLIT, $256-56
	MOVQ c+32(FP), SI
	MOVQ quantA+40(FP), R8
	MOVQ quantB+48(FP), R9
	LOAD(0, X0, Y0)
	LOAD(1, X1, Y1)
	LOAD(2, X2, Y2)
	LOAD(3, X3, Y3)
	LOAD(4, X4, Y4)
	LOAD(5, X5, Y5)
	LOAD(6, X6, Y6)
	LOAD(7, X7, Y7)
	VPXOR   Y8, Y8, Y8
	VMOVDQU Y8, 0(SI)
	VMOVDQU Y8, 32(SI)
	VMOVDQU Y8, 64(SI)
	VMOVDQU Y8, 96(SI)
	VMOVDQU Y8, 256(SI)
	VMOVDQU Y8, 288(SI)
	VMOVDQU Y8, 320(SI)
	VMOVDQU Y8, 352(SI)

	PASS(round1, 11)
	TRANSPOSE
	PASS(round2, 18)

	// Columns of 16 bits to rows of bytes.
	MOVQ a+0(FP), DI
	MOVQ strideA+8(FP), CX
	MOVQ b+16(FP), DX
	MOVQ strideB+24(FP), BX
	VPACKSSWB Y4, Y0, Y0           // columns 0, 4
	VPACKSSWB Y5, Y1, Y1
	VPACKSSWB Y6, Y2, Y2
	VPACKSSWB Y7, Y3, Y3
	VPUNPCKLBW Y1, Y0, Y4          // columns 0 1 of rows 0 … 7
	VPUNPCKHBW Y1, Y0, Y5          // 4 5
	VPUNPCKLBW Y3, Y2, Y6          // 2 3
	VPUNPCKHBW Y3, Y2, Y7          // 6 7
	VPUNPCKLWD Y6, Y4, Y0          // columns 0 … 3 of rows 0 … 3
	VPUNPCKHWD Y6, Y4, Y1          // of rows 4 … 7
	VPUNPCKLWD Y7, Y5, Y2          // columns 4 … 7 of rows 0 … 3
	VPUNPCKHWD Y7, Y5, Y3
	VPUNPCKLDQ Y2, Y0, Y4          // rows 0 1
	VPUNPCKHDQ Y2, Y0, Y5
	VPUNPCKLDQ Y3, Y1, Y6
	VPUNPCKHDQ Y3, Y1, Y7
	VPBROADCASTD centre<>(SB), Y8
	VPADDB Y8, Y4, Y4
	VPADDB Y8, Y5, Y5
	VPADDB Y8, Y6, Y6
	VPADDB Y8, Y7, Y7
	VEXTRACTI128 $1, Y4, X0
	VEXTRACTI128 $1, Y5, X1
	VEXTRACTI128 $1, Y6, X2
	VEXTRACTI128 $1, Y7, X3
	STORE(X4, DI, CX)
	STORE(X5, DI, CX)
	STORE(X6, DI, CX)
	STORE(X7, DI, CX)
	STORE(X0, DX, BX)
	STORE(X1, DX, BX)
	STORE(X2, DX, BX)
	STORE(X3, DX, BX)
	VZEROUPPER
	RET

// SCALED sets dst to lanes lo and hi, rounded (Y11) and shifted, as 16 bits. lo is overwritten; dst may be hi.
#define SCALED(lo, hi, dst, shift) \
	VPADDD    Y11, lo, lo; \
	VPADDD    Y11, hi, hi; \
	VPSRAD    $shift, lo, lo; \
	VPSRAD    $shift, hi, hi; \
	VPACKSSDW hi, lo, dst

// FORWARD2 sets dst to the pairs in Y6, Y7 times their factors. Uses Y14, Y15.
#define FORWARD2(f, dst, shift) \
	VPBROADCASTD f<>(SB), Y15; \
	VPMADDWD Y15, Y6, Y14; \
	VPMADDWD Y15, Y7, Y15; \
	SCALED(Y14, Y15, dst, shift)

// FORWARD4 sets dst to the pairs in Y13, Y8 and Y9, Y10 times their factors. Uses Y12, Y14, Y15.
#define FORWARD4(fa, fb, dst, shift) \
	VPBROADCASTD fa<>(SB), Y15; \
	VPMADDWD Y15, Y13, Y14; \
	VPMADDWD Y15, Y8, dst; \
	VPBROADCASTD fb<>(SB), Y15; \
	VPMADDWD Y15, Y9, Y12; \
	VPADDD   Y12, Y14, Y14; \
	VPMADDWD Y15, Y10, Y12; \
	VPADDD   Y12, dst, dst; \
	SCALED(Y14, dst, dst, shift)

// FORWARD transforms Y0 … Y7 in place, but for coefficients 0 and 4, which are only added up.
#define FORWARD(round, shift) \
	VPSUBW Y7, Y0, Y8; \
	VPADDW Y7, Y0, Y0; \
	VPSUBW Y6, Y1, Y9; \
	VPADDW Y6, Y1, Y1; \
	VPSUBW Y5, Y2, Y10; \
	VPADDW Y5, Y2, Y2; \
	VPSUBW Y4, Y3, Y11; \
	VPADDW Y4, Y3, Y3; \
	VPUNPCKLWD Y9, Y8, Y13; \
	VPUNPCKHWD Y9, Y8, Y8; \
	VPUNPCKLWD Y11, Y10, Y9; \
	VPUNPCKHWD Y11, Y10, Y10; \
	VPSUBW Y3, Y0, Y4; \
	VPADDW Y3, Y0, Y0; \
	VPSUBW Y2, Y1, Y5; \
	VPADDW Y2, Y1, Y1; \
	VPUNPCKLWD Y5, Y4, Y6; \
	VPUNPCKHWD Y5, Y4, Y7; \
	VPSUBW Y1, Y0, Y4; \
	VPADDW Y1, Y0, Y0; \
	VPBROADCASTD round<>(SB), Y11; \
	FORWARD2(even0, Y2, shift); \
	FORWARD2(even1, Y6, shift); \
	FORWARD4(odd0a, odd0b, Y1, shift); \
	FORWARD4(odd1a, odd1b, Y3, shift); \
	FORWARD4(odd2a, odd2b, Y5, shift); \
	FORWARD4(odd3a, odd3b, Y7, shift)

// QUANTIZE divides row i, in Y, by the table and stores it in both blocks.
#define QUANTIZE(i, Y) \
	VPABSW Y, Y8; \
	VBROADCASTI128 (divisors_half+16*i)(R8), Y9; \
	VPADDW Y9, Y8, Y8; \
	VBROADCASTI128 (divisors_factor+16*i)(R8), Y9; \
	VPMULHUW Y9, Y8, Y8; \
	VBROADCASTI128 (divisors_scale+16*i)(R8), Y9; \
	VPMULHUW Y9, Y8, Y8; \
	VPSIGNW Y, Y8, Y8; \
	VMOVDQU X8, (16*i)(DI); \
	VEXTRACTI128 $1, Y8, (128+16*i)(DI)

DATA round3<>+0(SB)/4, $0x4000
GLOBL round3<>(SB), RODATA|NOPTR, $4
DATA two<>+0(SB)/2, $2
GLOBL two<>(SB), RODATA|NOPTR, $2
DATA middle<>+0(SB)/2, $128
GLOBL middle<>(SB), RODATA|NOPTR, $2

// func fdct2AVX2(c *int16, samples *byte, stride int, d *divisors)
TEXT ·fdct2AVX2(SB), NOSPLIT, $0-32
	MOVQ c+0(FP), DI
	MOVQ samples+8(FP), SI
	MOVQ stride+16(FP), CX
	MOVQ d+24(FP), R8
	LEAQ (CX)(CX*2), DX
	LEAQ (SI)(CX*4), BX
	VPMOVZXBW (SI), Y0
	VPMOVZXBW (SI)(CX*1), Y1
	VPMOVZXBW (SI)(CX*2), Y2
	VPMOVZXBW (SI)(DX*1), Y3
	VPMOVZXBW (BX), Y4
	VPMOVZXBW (BX)(CX*1), Y5
	VPMOVZXBW (BX)(CX*2), Y6
	VPMOVZXBW (BX)(DX*1), Y7
	VPBROADCASTW middle<>(SB), Y8
	VPSUBW Y8, Y0, Y0
	VPSUBW Y8, Y1, Y1
	VPSUBW Y8, Y2, Y2
	VPSUBW Y8, Y3, Y3
	VPSUBW Y8, Y4, Y4
	VPSUBW Y8, Y5, Y5
	VPSUBW Y8, Y6, Y6
	VPSUBW Y8, Y7, Y7
	TRANSPOSE
	FORWARD(round1, 11)
	VPSLLW $2, Y0, Y0
	VPSLLW $2, Y4, Y4
	TRANSPOSE
	FORWARD(round3, 15)
	VPBROADCASTW two<>(SB), Y8
	VPADDW Y8, Y0, Y0
	VPADDW Y8, Y4, Y4
	VPSRAW $2, Y0, Y0
	VPSRAW $2, Y4, Y4
	QUANTIZE(0, Y0)
	QUANTIZE(1, Y1)
	QUANTIZE(2, Y2)
	QUANTIZE(3, Y3)
	QUANTIZE(4, Y4)
	QUANTIZE(5, Y5)
	QUANTIZE(6, Y6)
	QUANTIZE(7, Y7)
	VZEROUPPER
	RET
