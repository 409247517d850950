//go:build !noasm

#include "textflag.h"

// In all macros Y15 is -1 in each lane, Y14 is 4, and t and u are lost.

// LIFT is the second half of hadamard and hadamardUp.
#define LIFT(a, b, c, d, t, u) \
	VPSUBD d, t, u; \
	VPSUBD c, t, d; \
	VMOVDQA u, c; \
	VPSUBD d, a, a; \
	VPADDD c, b, b

// HADAMARD is hadamard.
#define HADAMARD(a, b, c, d, t, u) \
	VPADDD d, a, a; \
	VPSUBD c, b, b; \
	VPSUBD b, a, t; \
	VPSRAD $1, t, t; \
	LIFT(a, b, c, d, t, u)

// HADAMARDUP is hadamardUp.
#define HADAMARDUP(a, b, c, d, t, u) \
	VPADDD d, a, a; \
	VPSUBD c, b, b; \
	VPSUBD b, a, t; \
	VPSUBD Y15, t, t; \
	VPSRAD $1, t, t; \
	LIFT(a, b, c, d, t, u)

// THREE makes t of three times a, plus something, shifted.
#define THREE(a, plus, shift, t) \
	VPADDD a, a, t; \
	VPADDD a, t, t; \
	VPADDD plus, t, t; \
	VPSRAD shift, t, t

// HALF makes t of (a+1)>>1.
#define HALF(a, t) \
	VPSUBD Y15, a, t; \
	VPSRAD $1, t, t

#define ODD(a, b, c, d, t) \
	VPADDD d, b, b; \
	VPSUBD c, a, a; \
	VPSRAD $1, b, t; \
	VPSUBD t, d, d; \
	HALF(a, t); \
	VPADDD t, c, c; \
	THREE(b, Y14, $3, t); \
	VPSUBD t, a, a; \
	THREE(a, Y14, $3, t); \
	VPADDD t, b, b; \
	THREE(d, Y14, $3, t); \
	VPSUBD t, c, c; \
	THREE(c, Y14, $3, t); \
	VPADDD t, d, d; \
	HALF(b, t); \
	VPSUBD t, c, c; \
	HALF(a, t); \
	VPSUBD d, t, d; \
	VPADDD c, b, b; \
	VPSUBD d, a, a

// ODDODD is oddOdd without the changes of sign, and oddOddFilter, by what is added in the first two steps.
#define ODDODD(a, b, c, d, first, second, t, u, w) \
	VPADDD a, d, d; \
	VPSUBD b, c, c; \
	VPSRAD $1, d, u; \
	VPSRAD $1, c, w; \
	VPSUBD u, a, a; \
	VPADDD w, b, b; \
	THREE(b, first, $3, t); \
	VPSUBD t, a, a; \
	THREE(a, second, $2, t); \
	VPADDD t, b, b; \
	THREE(b, Y14, $3, t); \
	VPSUBD t, a, a; \
	VPSUBD w, b, b; \
	VPADDD u, a, a; \
	VPADDD b, c, c; \
	VPSUBD a, d, d

#define ROTATE(a, b, t) \
	HALF(b, t); \
	VPSUBD t, a, a; \
	HALF(a, t); \
	VPADDD t, b, b

// SCALE is scale and then unfold.
#define SCALE(a, b, c, d, t, u) \
	VPADDD d, a, a; \
	VPSRAD $1, a, t; \
	VPSUBD d, t, d; \
	VPADDD d, d, t; \
	VPADDD d, t, t; \
	VPSRAD $3, t, t; \
	VPADDD t, a, a; \
	VPADDD a, a, t; \
	VPADDD a, t, t; \
	VPSRAD $4, t, t; \
	VPADDD t, d, d; \
	VPSRAD $7, a, t; \
	VPADDD t, d, d; \
	VPSRAD $10, a, t; \
	VPSUBD t, d, d; \
	VPSUBD c, b, b; \
	THREE(d, Y14, $3, t); \
	VPADDD t, a, a; \
	VPSRAD $1, b, t; \
	VPSUBD t, d, d; \
	VPSUBD b, a, u; \
	VPSRAD $1, u, u; \
	VPSUBD c, u, u; \
	VMOVDQA d, c; \
	VMOVDQA u, d; \
	VPSUBD d, a, a; \
	VPADDD c, b, b

#define LOAD4(p, a, b, c, d) \
	VMOVDQU (p), a; \
	VMOVDQU (p)(R8*1), b; \
	VMOVDQU (p)(R8*2), c; \
	VMOVDQU (p)(R9*1), d

#define STORE4(p, a, b, c, d) \
	VMOVDQU a, (p); \
	VMOVDQU b, (p)(R8*1); \
	VMOVDQU c, (p)(R8*2); \
	VMOVDQU d, (p)(R9*1)

// CONSTANT broadcasts a number.
#define CONSTANT(v, x, y) \
	MOVL v, AX; \
	VMOVD AX, x; \
	VPBROADCASTD x, y

// func inverseAVX2(v *int32, stride, n int)
TEXT ·inverseAVX2(SB), NOSPLIT, $0-24
	MOVQ v+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ n+16(FP), CX
	SHLQ $2, R8
	LEAQ (R8)(R8*2), R9
	LEAQ (DI)(R8*4), SI
	LEAQ (SI)(R8*4), DX
	LEAQ (DX)(R8*4), BX
	VPCMPEQD Y15, Y15, Y15
	CONSTANT($4, X14, Y14)
	CONSTANT($3, X13, Y13)
	VPXOR Y12, Y12, Y12

inverseLoop:
	LOAD4(DI, Y0, Y1, Y2, Y3)
	HADAMARDUP(Y0, Y1, Y2, Y3, Y4, Y5)
	STORE4(DI, Y0, Y1, Y2, Y3)
	LOAD4(SI, Y0, Y1, Y2, Y3)
	ODD(Y1, Y0, Y3, Y2, Y4)
	STORE4(SI, Y0, Y1, Y2, Y3)
	LOAD4(DX, Y0, Y1, Y2, Y3)
	ODD(Y2, Y0, Y3, Y1, Y4)
	STORE4(DX, Y0, Y1, Y2, Y3)
	LOAD4(BX, Y8, Y9, Y10, Y11)
	ODDODD(Y11, Y10, Y9, Y8, Y13, Y13, Y4, Y5, Y6)
	VPSUBD Y10, Y12, Y10
	VPSUBD Y9, Y12, Y9

	VMOVDQU (DI), Y0
	VMOVDQU (SI), Y1
	VMOVDQU (DX), Y2
	HADAMARD(Y0, Y1, Y2, Y8, Y4, Y5)
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, (SI)
	VMOVDQU Y2, (DX)
	VMOVDQU Y8, (BX)
	VMOVDQU (DI)(R8*1), Y0
	VMOVDQU (SI)(R8*1), Y1
	VMOVDQU (DX)(R8*1), Y2
	HADAMARD(Y0, Y1, Y2, Y9, Y4, Y5)
	VMOVDQU Y0, (DI)(R8*1)
	VMOVDQU Y1, (SI)(R8*1)
	VMOVDQU Y2, (DX)(R8*1)
	VMOVDQU Y9, (BX)(R8*1)
	VMOVDQU (DI)(R8*2), Y0
	VMOVDQU (SI)(R8*2), Y1
	VMOVDQU (DX)(R8*2), Y2
	HADAMARD(Y0, Y1, Y2, Y10, Y4, Y5)
	VMOVDQU Y0, (DI)(R8*2)
	VMOVDQU Y1, (SI)(R8*2)
	VMOVDQU Y2, (DX)(R8*2)
	VMOVDQU Y10, (BX)(R8*2)
	VMOVDQU (DI)(R9*1), Y0
	VMOVDQU (SI)(R9*1), Y1
	VMOVDQU (DX)(R9*1), Y2
	HADAMARD(Y0, Y1, Y2, Y11, Y4, Y5)
	VMOVDQU Y0, (DI)(R9*1)
	VMOVDQU Y1, (SI)(R9*1)
	VMOVDQU Y2, (DX)(R9*1)
	VMOVDQU Y11, (BX)(R9*1)

	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, BX
	SUBQ $8, CX
	JG inverseLoop
	VZEROUPPER
	RET

// Value i of each quarter, at an index, d being a register for the last quarter's.
#define WINDOW(at, d) \
	VMOVDQU (DI)at, Y0; \
	VMOVDQU (SI)at, Y1; \
	VMOVDQU (DX)at, Y2; \
	VMOVDQU (BX)at, d; \
	HADAMARD(Y0, Y1, Y2, d, Y4, Y5); \
	VMOVDQU Y0, (DI)at; \
	VMOVDQU Y1, (SI)at; \
	VMOVDQU Y2, (DX)at

#define UNFOLD(at, d) \
	VMOVDQU (DI)at, Y0; \
	VMOVDQU (SI)at, Y1; \
	VMOVDQU (DX)at, Y2; \
	SCALE(Y0, Y1, Y2, d, Y4, Y5); \
	VMOVDQU Y0, (DI)at; \
	VMOVDQU Y1, (SI)at; \
	VMOVDQU Y2, (DX)at; \
	VMOVDQU d, (BX)at

// func overlapAVX2(topLeft, topRight, bottomLeft, bottomRight *int32, stride, n int)
TEXT ·overlapAVX2(SB), NOSPLIT, $0-48
	MOVQ topLeft+0(FP), DI
	MOVQ topRight+8(FP), SI
	MOVQ bottomLeft+16(FP), DX
	MOVQ bottomRight+24(FP), BX
	MOVQ stride+32(FP), R8
	MOVQ n+40(FP), CX
	SHLQ $2, R8
	LEAQ (R8)(R8*2), R9
	VPCMPEQD Y15, Y15, Y15
	CONSTANT($4, X14, Y14)
	CONSTANT($6, X13, Y13)
	CONSTANT($2, X12, Y12)
	XORL R10, R10

overlapLoop:
	WINDOW((R10*1), Y8)
	WINDOW((R8*1), Y9)
	WINDOW((R8*2), Y10)
	WINDOW((R9*1), Y11)
	ODDODD(Y8, Y9, Y10, Y11, Y13, Y12, Y4, Y5, Y6)
	LOAD4(DX, Y0, Y1, Y2, Y3)
	ROTATE(Y2, Y3, Y4)
	ROTATE(Y0, Y1, Y5)
	STORE4(DX, Y0, Y1, Y2, Y3)
	LOAD4(SI, Y0, Y1, Y2, Y3)
	ROTATE(Y1, Y3, Y4)
	ROTATE(Y0, Y2, Y5)
	STORE4(SI, Y0, Y1, Y2, Y3)
	UNFOLD((R10*1), Y8)
	UNFOLD((R8*1), Y9)
	UNFOLD((R8*2), Y10)
	UNFOLD((R9*1), Y11)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, BX
	SUBQ $8, CX
	JG overlapLoop
	VZEROUPPER
	RET
