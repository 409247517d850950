//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// What is where:
//	R8  codes, CX rounds
//	of a: SI behind the next literal, DI next byte of the output, R10 bits that are not written, at the top, R11 their number
//	of b: R12, R13, R14, DX

// CODE adds the code of the k-th literal from the end. Uses AX. The shift looks at the low six bits of its count only.
#define CODE(k, src, acc, bits) \
	MOVBLZX -k(src), AX     \
	MOVQ    (R8)(AX*8), AX  \
	SHRXQ   AX, acc, acc    \
	ORQ     AX, acc         \
	ADDQ    AX, bits

// FLUSH writes whole bytes. Uses AX, BX.
#define FLUSH(dst, acc, bits) \
	MOVBLZX bits, bits      \
	MOVQ    bits, AX        \
	NEGQ    AX              \
	SHRXQ   AX, acc, AX     \
	MOVQ    AX, (dst)       \
	MOVL    bits, AX        \
	SHRL    $3, AX          \
	ADDQ    AX, dst         \
	ANDL    $7, bits

#define LOAD(s, src, dst, acc, bits) \
	MOVQ huffStream_src(s), src      \
	ADDQ (huffStream_src+8)(s), src  \
	MOVQ huffStream_dst(s), dst      \
	ADDQ huffStream_at(s), dst       \
	MOVQ huffStream_acc(s), acc      \
	MOVQ huffStream_bits(s), bits

#define STORE(s, src, dst, acc, bits) \
	SUBQ huffStream_src(s), src      \
	MOVQ src, (huffStream_src+8)(s)  \
	SUBQ huffStream_dst(s), dst      \
	MOVQ dst, huffStream_at(s)       \
	MOVQ acc, huffStream_acc(s)      \
	MOVQ bits, huffStream_bits(s)

// func encodePairBMI2(a, b *huffStream, fours int, codes *[256]huffCode)
TEXT ·encodePairBMI2(SB), NOSPLIT, $0-32
	MOVQ fours+16(FP), CX
	TESTQ CX, CX
	JZ   done
	MOVQ codes+24(FP), R8
	MOVQ a+0(FP), AX
	LOAD(AX, SI, DI, R10, R11)
	MOVQ b+8(FP), AX
	LOAD(AX, R12, R13, R14, DX)

four: // 7 bits that were left, and 4 codes of up to 11
	CODE(1, SI, R10, R11)
	CODE(1, R12, R14, DX)
	CODE(2, SI, R10, R11)
	CODE(2, R12, R14, DX)
	CODE(3, SI, R10, R11)
	CODE(3, R12, R14, DX)
	CODE(4, SI, R10, R11)
	CODE(4, R12, R14, DX)
	FLUSH(DI, R10, R11)
	FLUSH(R13, R14, DX)
	SUBQ $4, SI
	SUBQ $4, R12
	DECQ CX
	JNZ  four
	MOVQ a+0(FP), AX
	STORE(AX, SI, DI, R10, R11)
	MOVQ b+8(FP), AX
	STORE(AX, R12, R13, R14, DX)

done:
	RET
