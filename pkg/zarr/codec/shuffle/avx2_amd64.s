//go:build amd64 && !noasm

#include "textflag.h"

// All kernels take 32 elements per turn. Unpack and shuffle instructions work within 128-bit lanes, so lane 0 of a register holds
// something of elements 0 … 15 and lane 1 the same of elements 16 … 31. Then a row register has its 32 bytes in order, and on the
// side of the elements the lanes are loaded from, or stored to, two places.
//
// How the networks work: number a byte by the bits of its element e3 e2 e1 e0 (in its lane) and of its place b2 b1 b0 in the element.
// An unpack of two registers moves the bit that tells the two registers apart into the position in the register and the top bit of
// the position out into the choice low/high half. VPSHUFB permutes the bits of the position.

// bytes of 8 elements of 2 → 8 low bytes, 8 high bytes
DATA sep2<>+0(SB)/8, $0x0E0C0A0806040200
DATA sep2<>+8(SB)/8, $0x0F0D0B0907050301
GLOBL sep2<>(SB), RODATA|NOPTR, $16

// bytes of 4 elements of 4 → 4 bytes 0, 4 bytes 1, 4 bytes 2, 4 bytes 3
DATA sep4<>+0(SB)/8, $0x0D0905010C080400
DATA sep4<>+8(SB)/8, $0x0F0B07030E0A0602
GLOBL sep4<>(SB), RODATA|NOPTR, $16

// bytes of 2 elements of 8 → 2 bytes 0, 2 bytes 1, …
DATA sep8<>+0(SB)/8, $0x0B030A0209010800
DATA sep8<>+8(SB)/8, $0x0F070E060D050C04
GLOBL sep8<>(SB), RODATA|NOPTR, $16

DATA even1<>+0(SB)/8, $0x5555555555555555
GLOBL even1<>(SB), RODATA|NOPTR, $8
DATA even2<>+0(SB)/8, $0x3333333333333333
GLOBL even2<>(SB), RODATA|NOPTR, $8
DATA even4<>+0(SB)/8, $0x0F0F0F0F0F0F0F0F
GLOBL even4<>(SB), RODATA|NOPTR, $8

// LANES loads 16 bytes at off into lane 0 and 16 bytes at off2 into lane 1.
#define LANES(off, off2, x, y) \
	VMOVDQU off(SI), x; \
	VINSERTI128 $1, off2(SI), y, y

// UNPACK interleaves a and b: low halves to lo, high halves to hi. hi may be a; neither may otherwise be an input.
#define UNPACK(opl, oph, a, b, lo, hi) \
	opl b, a, lo; \
	oph b, a, hi

// STORE2 stores the lanes of a and b, which follow each other, in two places; t is scratch.
#define STORE2(a, b, t, off, off2) \
	VPERM2I128 $0x20, b, a, t; \
	VMOVDQU t, off(DI); \
	VPERM2I128 $0x31, b, a, t; \
	VMOVDQU t, off2(DI)

// ROWS8 sets R8 = row 4 and R9 = 3 strides for rows that begin at base, DX bytes apart.
#define ROWS8(base) \
	LEAQ (base)(DX*4), R8; \
	LEAQ (DX)(DX*2), R9

#define LOADROWS8 \
	VMOVDQU (SI), Y0; \
	VMOVDQU (SI)(DX*1), Y1; \
	VMOVDQU (SI)(DX*2), Y2; \
	VMOVDQU (SI)(R9*1), Y3; \
	VMOVDQU (R8), Y4; \
	VMOVDQU (R8)(DX*1), Y5; \
	VMOVDQU (R8)(DX*2), Y6; \
	VMOVDQU (R8)(R9*1), Y7

#define STOREROWS8 \
	VMOVDQU Y0, (DI); \
	VMOVDQU Y1, (DI)(DX*1); \
	VMOVDQU Y2, (DI)(DX*2); \
	VMOVDQU Y3, (DI)(R9*1); \
	VMOVDQU Y4, (R8); \
	VMOVDQU Y5, (R8)(DX*1); \
	VMOVDQU Y6, (R8)(DX*2); \
	VMOVDQU Y7, (R8)(R9*1)

// LOADSEP8 loads 32 elements of 8 bytes and turns them into rows Y0 … Y7. Y12 = sep8; Y8 … Y11 are scratch.
// Registers are numbered e3 e2 e1 at first; the unpacks replace e1 by b2, e2 by b1, e3 by b0.
#define LOADSEP8 \
	LANES(0, 128, X0, Y0); \
	LANES(16, 144, X1, Y1); \
	LANES(32, 160, X2, Y2); \
	LANES(48, 176, X3, Y3); \
	LANES(64, 192, X4, Y4); \
	LANES(80, 208, X5, Y5); \
	LANES(96, 224, X6, Y6); \
	LANES(112, 240, X7, Y7); \
	VPSHUFB Y12, Y0, Y0; \
	VPSHUFB Y12, Y1, Y1; \
	VPSHUFB Y12, Y2, Y2; \
	VPSHUFB Y12, Y3, Y3; \
	VPSHUFB Y12, Y4, Y4; \
	VPSHUFB Y12, Y5, Y5; \
	VPSHUFB Y12, Y6, Y6; \
	VPSHUFB Y12, Y7, Y7; \
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y0, Y1, Y8, Y9); \
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y2, Y3, Y10, Y11); \
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y4, Y5, Y0, Y1); \
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y6, Y7, Y2, Y3); \
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y8, Y10, Y4, Y5); \
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y9, Y11, Y6, Y7); \
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y0, Y2, Y8, Y9); \
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y1, Y3, Y10, Y11); \
	UNPACK(VPUNPCKLQDQ, VPUNPCKHQDQ, Y4, Y8, Y0, Y1); \
	UNPACK(VPUNPCKLQDQ, VPUNPCKHQDQ, Y5, Y9, Y2, Y3); \
	UNPACK(VPUNPCKLQDQ, VPUNPCKHQDQ, Y6, Y10, Y4, Y5); \
	UNPACK(VPUNPCKLQDQ, VPUNPCKHQDQ, Y7, Y11, Y6, Y7)

// JOINSTORE8 turns rows Y0 … Y7 into 32 elements of 8 bytes and stores them. Y8 … Y11 are scratch.
#define JOINSTORE8 \
	UNPACK(VPUNPCKLBW, VPUNPCKHBW, Y0, Y1, Y8, Y9); \
	UNPACK(VPUNPCKLBW, VPUNPCKHBW, Y2, Y3, Y10, Y11); \
	UNPACK(VPUNPCKLBW, VPUNPCKHBW, Y4, Y5, Y0, Y1); \
	UNPACK(VPUNPCKLBW, VPUNPCKHBW, Y6, Y7, Y2, Y3); \
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y8, Y10, Y4, Y5); \
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y9, Y11, Y6, Y7); \
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y0, Y2, Y8, Y9); \
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y1, Y3, Y10, Y11); \
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y4, Y8, Y0, Y1); \
	STORE2(Y0, Y1, Y2, 0, 128); \
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y5, Y9, Y0, Y1); \
	STORE2(Y0, Y1, Y2, 32, 160); \
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y6, Y10, Y0, Y1); \
	STORE2(Y0, Y1, Y2, 64, 192); \
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y7, Y11, Y0, Y1); \
	STORE2(Y0, Y1, Y2, 96, 224)

// SWAPBITS exchanges the odd groups of s bits of a with the even groups of b; mask selects the even groups, t is scratch.
#define SWAPBITS(s, mask, a, b, t) \
	VPSRLQ s, a, t; \
	VPXOR b, t, t; \
	VPAND mask, t, t; \
	VPXOR t, b, b; \
	VPSLLQ s, t, t; \
	VPXOR t, a, a

// TRANSPOSE exchanges register number and bit number: bit i of each byte of Yk becomes bit k of that byte of Yi. It is its own
// inverse. Y13, Y14, Y15 are the masks; Y8 … Y11 are scratch.
#define TRANSPOSE \
	SWAPBITS($1, Y13, Y0, Y1, Y8); \
	SWAPBITS($1, Y13, Y2, Y3, Y9); \
	SWAPBITS($1, Y13, Y4, Y5, Y10); \
	SWAPBITS($1, Y13, Y6, Y7, Y11); \
	SWAPBITS($2, Y14, Y0, Y2, Y8); \
	SWAPBITS($2, Y14, Y1, Y3, Y9); \
	SWAPBITS($2, Y14, Y4, Y6, Y10); \
	SWAPBITS($2, Y14, Y5, Y7, Y11); \
	SWAPBITS($4, Y15, Y0, Y4, Y8); \
	SWAPBITS($4, Y15, Y1, Y5, Y9); \
	SWAPBITS($4, Y15, Y2, Y6, Y10); \
	SWAPBITS($4, Y15, Y3, Y7, Y11)

#define MASKS \
	VPBROADCASTQ even1<>(SB), Y13; \
	VPBROADCASTQ even2<>(SB), Y14; \
	VPBROADCASTQ even4<>(SB), Y15

// func shuffle2(dst, src *byte, stride, n int)
TEXT ·shuffle2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTI128 sep2<>(SB), Y12

loop:
	LANES(0, 32, X0, Y0)
	LANES(16, 48, X1, Y1)
	VPSHUFB Y12, Y0, Y0
	VPSHUFB Y12, Y1, Y1
	UNPACK(VPUNPCKLQDQ, VPUNPCKHQDQ, Y0, Y1, Y2, Y3)
	VMOVDQU Y2, (DI)
	VMOVDQU Y3, (DI)(DX*1)
	ADDQ $64, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JG   loop
	VZEROUPPER
	RET

// func shuffle4(dst, src *byte, stride, n int)
TEXT ·shuffle4(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX
	LEAQ (DX)(DX*2), R9
	VBROADCASTI128 sep4<>(SB), Y12

loop:
	LANES(0, 64, X0, Y0)
	LANES(16, 80, X1, Y1)
	LANES(32, 96, X2, Y2)
	LANES(48, 112, X3, Y3)
	VPSHUFB Y12, Y0, Y0
	VPSHUFB Y12, Y1, Y1
	VPSHUFB Y12, Y2, Y2
	VPSHUFB Y12, Y3, Y3
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y0, Y1, Y4, Y5)
	UNPACK(VPUNPCKLDQ, VPUNPCKHDQ, Y2, Y3, Y6, Y7)
	UNPACK(VPUNPCKLQDQ, VPUNPCKHQDQ, Y4, Y6, Y0, Y1)
	UNPACK(VPUNPCKLQDQ, VPUNPCKHQDQ, Y5, Y7, Y2, Y3)
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, (DI)(DX*1)
	VMOVDQU Y2, (DI)(DX*2)
	VMOVDQU Y3, (DI)(R9*1)
	ADDQ $128, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JG   loop
	VZEROUPPER
	RET

// func shuffle8(dst, src *byte, stride, n int)
TEXT ·shuffle8(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX
	ROWS8(DI)
	VBROADCASTI128 sep8<>(SB), Y12

loop:
	LOADSEP8
	STOREROWS8
	ADDQ $256, SI
	ADDQ $32, DI
	ADDQ $32, R8
	SUBQ $32, CX
	JG   loop
	VZEROUPPER
	RET

// func unshuffle2(dst, src *byte, stride, n int)
TEXT ·unshuffle2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX

loop:
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(DX*1), Y1
	UNPACK(VPUNPCKLBW, VPUNPCKHBW, Y0, Y1, Y2, Y3)
	STORE2(Y2, Y3, Y4, 0, 32)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $32, CX
	JG   loop
	VZEROUPPER
	RET

// func unshuffle4(dst, src *byte, stride, n int)
TEXT ·unshuffle4(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX
	LEAQ (DX)(DX*2), R9

loop:
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(DX*1), Y1
	VMOVDQU (SI)(DX*2), Y2
	VMOVDQU (SI)(R9*1), Y3
	UNPACK(VPUNPCKLBW, VPUNPCKHBW, Y0, Y1, Y4, Y5)
	UNPACK(VPUNPCKLBW, VPUNPCKHBW, Y2, Y3, Y6, Y7)
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y4, Y6, Y0, Y1)
	UNPACK(VPUNPCKLWD, VPUNPCKHWD, Y5, Y7, Y2, Y3)
	STORE2(Y0, Y1, Y4, 0, 64)
	STORE2(Y2, Y3, Y5, 32, 96)
	ADDQ $32, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JG   loop
	VZEROUPPER
	RET

// func unshuffle8(dst, src *byte, stride, n int)
TEXT ·unshuffle8(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX
	ROWS8(SI)

loop:
	LOADROWS8
	JOINSTORE8
	ADDQ $32, SI
	ADDQ $32, R8
	ADDQ $256, DI
	SUBQ $32, CX
	JG   loop
	VZEROUPPER
	RET

// func bytesToBitRows(dst, src *byte, stride, nb int)
// Eight neighbouring bytes are an element of 8 here: separated, register k holds bytes 8c+k, and the transposition turns register
// number into bit number.
TEXT ·bytesToBitRows(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ nb+24(FP), CX
	ROWS8(DI)
	VBROADCASTI128 sep8<>(SB), Y12
	MASKS

loop:
	LOADSEP8
	TRANSPOSE
	STOREROWS8
	ADDQ $256, SI
	ADDQ $32, DI
	ADDQ $32, R8
	SUBQ $32, CX
	JG   loop
	VZEROUPPER
	RET

// func bitRowsToBytes(dst, src *byte, stride, nb int)
TEXT ·bitRowsToBytes(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ nb+24(FP), CX
	ROWS8(SI)
	MASKS

loop:
	LOADROWS8
	TRANSPOSE
	JOINSTORE8
	ADDQ $32, SI
	ADDQ $32, R8
	ADDQ $256, DI
	SUBQ $32, CX
	JG   loop
	VZEROUPPER
	RET

// Elements of 3 bytes, such as RGB pixels: 16 of them in three registers. Byte p of an element lies in each register at other places: mask
// 3·p+r moves those of register r to their places in row p, and the way back, mask 3·r+p those of row p to their places in register r.
DATA split3<>+0(SB)/8, $0x80800F0C09060300
DATA split3<>+8(SB)/8, $0x8080808080808080
DATA split3<>+16(SB)/8, $0x0502808080808080
DATA split3<>+24(SB)/8, $0x80808080800E0B08
DATA split3<>+32(SB)/8, $0x8080808080808080
DATA split3<>+40(SB)/8, $0x0D0A070401808080
DATA split3<>+48(SB)/8, $0x8080800D0A070401
DATA split3<>+56(SB)/8, $0x8080808080808080
DATA split3<>+64(SB)/8, $0x0603008080808080
DATA split3<>+72(SB)/8, $0x80808080800F0C09
DATA split3<>+80(SB)/8, $0x8080808080808080
DATA split3<>+88(SB)/8, $0x0E0B080502808080
DATA split3<>+96(SB)/8, $0x8080800E0B080502
DATA split3<>+104(SB)/8, $0x8080808080808080
DATA split3<>+112(SB)/8, $0x0704018080808080
DATA split3<>+120(SB)/8, $0x8080808080800D0A
DATA split3<>+128(SB)/8, $0x8080808080808080
DATA split3<>+136(SB)/8, $0x0F0C090603008080
GLOBL split3<>(SB), RODATA|NOPTR, $144

DATA join3<>+0(SB)/8, $0x8002808001808000
DATA join3<>+8(SB)/8, $0x0580800480800380
DATA join3<>+16(SB)/8, $0x0280800180800080
DATA join3<>+24(SB)/8, $0x8080048080038080
DATA join3<>+32(SB)/8, $0x8080018080008080
DATA join3<>+40(SB)/8, $0x8004808003808002
DATA join3<>+48(SB)/8, $0x8080078080068080
DATA join3<>+56(SB)/8, $0x800A808009808008
DATA join3<>+64(SB)/8, $0x8007808006808005
DATA join3<>+72(SB)/8, $0x0A80800980800880
DATA join3<>+80(SB)/8, $0x0780800680800580
DATA join3<>+88(SB)/8, $0x8080098080088080
DATA join3<>+96(SB)/8, $0x0D80800C80800B80
DATA join3<>+104(SB)/8, $0x80800F80800E8080
DATA join3<>+112(SB)/8, $0x80800C80800B8080
DATA join3<>+120(SB)/8, $0x800F80800E80800D
DATA join3<>+128(SB)/8, $0x800C80800B80800A
DATA join3<>+136(SB)/8, $0x0F80800E80800D80
GLOBL join3<>(SB), RODATA|NOPTR, $144

#define MASKS3(table) \
	VBROADCASTI128 table<>+0(SB), Y4 \
	VBROADCASTI128 table<>+16(SB), Y5 \
	VBROADCASTI128 table<>+32(SB), Y6 \
	VBROADCASTI128 table<>+48(SB), Y7 \
	VBROADCASTI128 table<>+64(SB), Y8 \
	VBROADCASTI128 table<>+80(SB), Y9 \
	VBROADCASTI128 table<>+96(SB), Y10 \
	VBROADCASTI128 table<>+112(SB), Y11 \
	VBROADCASTI128 table<>+128(SB), Y12

// PICK3 sets out to the bytes that three masks move from Y0, Y1 and Y2; Y14 is scratch.
#define PICK3(m0, m1, m2, out) \
	VPSHUFB m0, Y0, out; \
	VPSHUFB m1, Y1, Y14; \
	VPOR Y14, out, out; \
	VPSHUFB m2, Y2, Y14; \
	VPOR Y14, out, out

// func shuffle3(dst, src *byte, stride, n int)
TEXT ·shuffle3(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX
	MASKS3(split3)

loop3:
	LANES(0, 48, X0, Y0)
	LANES(16, 64, X1, Y1)
	LANES(32, 80, X2, Y2)
	PICK3(Y4, Y5, Y6, Y3)
	VMOVDQU Y3, (DI)
	PICK3(Y7, Y8, Y9, Y3)
	VMOVDQU Y3, (DI)(DX*1)
	PICK3(Y10, Y11, Y12, Y3)
	VMOVDQU Y3, (DI)(DX*2)
	ADDQ $96, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JNZ  loop3
	VZEROUPPER
	RET

// func unshuffle3(dst, src *byte, stride, n int)
TEXT ·unshuffle3(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ stride+16(FP), DX
	MOVQ n+24(FP), CX
	MASKS3(join3)

unloop3:
	VMOVDQU (SI), Y0
	VMOVDQU (SI)(DX*1), Y1
	VMOVDQU (SI)(DX*2), Y2
	PICK3(Y4, Y5, Y6, Y3)
	VMOVDQU X3, 0(DI)
	VEXTRACTI128 $1, Y3, 48(DI)
	PICK3(Y7, Y8, Y9, Y3)
	VMOVDQU X3, 16(DI)
	VEXTRACTI128 $1, Y3, 64(DI)
	PICK3(Y10, Y11, Y12, Y3)
	VMOVDQU X3, 32(DI)
	VEXTRACTI128 $1, Y3, 80(DI)
	ADDQ $32, SI
	ADDQ $96, DI
	SUBQ $32, CX
	JNZ  unloop3
	VZEROUPPER
	RET
