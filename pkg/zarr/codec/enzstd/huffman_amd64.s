//go:build !noasm

#include "textflag.h"

// What is where:
//	DI  next byte of the output, R9 its start
//	SI  behind the next literal, CX how many there are
//	R8  codes
//	R10 bits that are not written, R11 their number

// CODE adds the code of the k-th literal from the end. Uses AX, BX.
#define CODE(k) \
	MOVBLZX -k(SI), AX       \
	MOVL    (R8)(AX*4), AX   \
	MOVBLZX AX, BX           \
	SHRL    $8, AX           \
	SHLXQ   R11, AX, AX      \
	ORQ     AX, R10          \
	ADDQ    BX, R11

// func encodeStreamBMI2(dst, src *byte, n int, codes *[256]huffCode) int
TEXT ·encodeStreamBMI2(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ codes+24(FP), R8
	MOVQ DI, R9
	ADDQ CX, SI
	XORL R10, R10
	XORL R11, R11
	SUBQ $5, CX
	JLT  rest

five: // 7 bits that were left, and 5 codes of up to 11
	CODE(1)
	CODE(2)
	CODE(3)
	CODE(4)
	CODE(5)
	MOVQ  R10, (DI)
	MOVQ  R11, AX
	SHRQ  $3, AX
	ADDQ  AX, DI
	MOVQ  R11, AX
	ANDL  $56, AX
	SHRXQ AX, R10, R10
	ANDL  $7, R11
	SUBQ  $5, SI
	SUBQ  $5, CX
	JGE   five

rest:
	ADDQ $5, CX
	JZ   end

one:
	CODE(1)
	DECQ SI
	DECQ CX
	JNZ  one

end:
	BTSQ R11, R10
	MOVQ R10, (DI)
	SHRQ $3, R11
	LEAQ 1(DI)(R11*1), AX
	SUBQ R9, AX
	MOVQ AX, ret+32(FP)
	RET
