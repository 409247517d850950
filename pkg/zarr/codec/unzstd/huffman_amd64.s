//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// What is where:
//	R8 to R11   the words of the four streams
//	R12 to R15  how many bits they have, in the low six bits
//	CX, DX      shift and table
//	DI          next byte of the first segment; SI, BP: one and three segments
//
// On the stack: where the next words are loaded from, and the rounds left.
#define next0 0(SP)
#define next1 8(SP)
#define next2 16(SP)
#define next3 24(SP)
#define left 32(SP)

// REFILL fills word up. Uses AX, BX.
#define REFILL(word, count, next) \
	MOVQ  next, AX         \
	MOVQ  (AX), BX         \
	SHRXQ count, BX, BX    \
	ORQ   BX, word         \
	MOVQ  count, BX        \
	NOTQ  BX               \
	SHRQ  $3, BX           \
	ANDL  $7, BX           \
	SUBQ  BX, AX           \
	MOVQ  AX, next         \
	ORQ   $-8, count

// SYMBOL moves a symbol from word to place. The number of bits is taken with what lies above it: shifts look at six bits. Uses AX.
#define SYMBOL(word, count, place) \
	SHRXQ   CX, word, AX       \
	MOVWLZX (DX)(AX*2), AX     \
	SHLXQ   AX, word, word     \
	SUBQ    AX, count          \
	MOVB    AH, place

#define SYMBOLS(i) \
	SYMBOL(R8, R12, i(DI))       \
	SYMBOL(R9, R13, i(DI)(SI*1)) \
	SYMBOL(R10, R14, i(DI)(SI*2)) \
	SYMBOL(R11, R15, i(DI)(BP*1))

// func huffmanLoop(h *huffman, rounds int)
TEXT ·huffmanLoop(SB), NOSPLIT, $40-16
	MOVQ h+0(FP), AX
	MOVQ rounds+8(FP), BX
	MOVQ BX, left
	MOVQ huffman_src(AX), BX
	MOVQ (huffman_at+0)(AX), R8
	MOVQ (huffman_at+8)(AX), R9
	MOVQ (huffman_at+16)(AX), R10
	MOVQ (huffman_at+24)(AX), R11
	ADDQ BX, R8
	ADDQ BX, R9
	ADDQ BX, R10
	ADDQ BX, R11
	MOVQ R8, next0
	MOVQ R9, next1
	MOVQ R10, next2
	MOVQ R11, next3
	MOVQ (huffman_word+0)(AX), R8
	MOVQ (huffman_word+8)(AX), R9
	MOVQ (huffman_word+16)(AX), R10
	MOVQ (huffman_word+24)(AX), R11
	MOVQ (huffman_count+0)(AX), R12
	MOVQ (huffman_count+8)(AX), R13
	MOVQ (huffman_count+16)(AX), R14
	MOVQ (huffman_count+24)(AX), R15
	MOVQ huffman_shift(AX), CX
	LEAQ huffman_table(AX), DX
	MOVQ huffman_out(AX), DI
	ADDQ huffman_done(AX), DI
	MOVQ huffman_segment(AX), SI
	LEAQ (SI)(SI*2), BP

round:
	REFILL(R8, R12, next0)
	REFILL(R9, R13, next1)
	REFILL(R10, R14, next2)
	REFILL(R11, R15, next3)
	SYMBOLS(0)
	SYMBOLS(1)
	SYMBOLS(2)
	SYMBOLS(3)
	SYMBOLS(4)
	ADDQ $const_symbolsARound, DI
	DECQ left
	JNZ  round

	MOVQ h+0(FP), AX
	MOVQ R8, (huffman_word+0)(AX)
	MOVQ R9, (huffman_word+8)(AX)
	MOVQ R10, (huffman_word+16)(AX)
	MOVQ R11, (huffman_word+24)(AX)
	ANDL $63, R12
	ANDL $63, R13
	ANDL $63, R14
	ANDL $63, R15
	MOVQ R12, (huffman_count+0)(AX)
	MOVQ R13, (huffman_count+8)(AX)
	MOVQ R14, (huffman_count+16)(AX)
	MOVQ R15, (huffman_count+24)(AX)
	MOVQ huffman_src(AX), BX
	MOVQ next0, R8
	MOVQ next1, R9
	MOVQ next2, R10
	MOVQ next3, R11
	SUBQ BX, R8
	SUBQ BX, R9
	SUBQ BX, R10
	SUBQ BX, R11
	MOVQ R8, (huffman_at+0)(AX)
	MOVQ R9, (huffman_at+8)(AX)
	MOVQ R10, (huffman_at+16)(AX)
	MOVQ R11, (huffman_at+24)(AX)
	SUBQ huffman_out(AX), DI
	MOVQ DI, huffman_done(AX)
	RET
