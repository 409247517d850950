//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// What is where:
//	DI  the window
//	SI  coefficients
//	R8  Huffman table
//	R9  bits, from the top; R10 how many are sure; R11 the next byte
//	R12 position in the block
//	R13 zigzag
//	R14 -1
//	AX  entry of the table, BX the number

// REFILL makes 56 bits sure where there are fewer than 32. Uses BX, CX.
#define REFILL(enough) \
	CMPQ   R10, $32       \
	JGE    enough         \
	MOVQ   (R11), BX      \
	BSWAPQ BX             \
	SHRXQ  R10, BX, BX    \
	ORQ    BX, R9         \
	MOVL   $63, CX        \
	SUBL   R10, CX        \
	SHRL   $3, CX         \
	ADDQ   CX, R11        \
	ORQ    $56, R10       \
enough:

// LOOK sets AX to the entry of the next bits.
#define LOOK(none) \
	MOVQ  R9, BX                            \
	SHRQ  $(64-const_lookBits), BX          \
	MOVL  huffman_look(R8)(BX*4), AX        \
	TESTL AX, AX                            \
	JZ    none

// VALUE sets BX to the number behind the code of entry AX and takes both from the bits. Shifts look at the low six bits of their
// counts only, BZHI at the low eight. Uses CX, DX, R15.
#define VALUE \
	MOVQ    AX, CX         \
	NEGQ    CX             \
	SHRXQ   CX, R9, BX     \
	MOVL    AX, CX         \
	SHRL    $16, CX        \
	SHLXQ   CX, R9, DX     \ // the number from the top
	MOVL    AX, CX         \
	SHRL    $8, CX         \
	BZHIQ   CX, BX, BX     \
	SHLXQ   CX, R14, R15   \
	INCQ    R15            \ // 1 - 1<<size, for negative ones
	SARQ    $63, DX        \
	ANDNQ   R15, DX, DX    \
	ADDQ    DX, BX         \
	SHLXQ   AX, R9, R9     \
	MOVBLZX AX, CX         \
	SUBQ    CX, R10

// FIND sets AX to the entry of a code that the look-up has not got. Uses BX, CX, DX.
#define FIND(next, found, entry, value) \
	MOVQ  R9, BX                             \
	SHRQ  $48, BX                            \
	MOVL  $(const_lookBits+1), CX            \
next:                                        \
	CMPL  CX, $16                            \
	JHI   bad                                \
	CMPL  BX, huffman_limit(R8)(CX*4)        \
	JCS   found                              \
	INCL  CX                                 \
	JMP   next                               \
found:                                       \
	MOVL    $16, DX                          \
	SUBL    CX, DX                           \
	SHRXL   DX, BX, BX                       \
	ADDL    huffman_offset(R8)(CX*4), BX     \
	MOVBLZX BX, BX                           \
	MOVBLZX huffman_symbols(R8)(BX*1), BX    \
	MOVL    BX, DX                           \
	ANDL    $15, DX                          \ // size
	SHRL    $4, BX                           \
	INCL    BX                               \ // advance
	TESTL   DX, DX                           \
	JNZ     entry                            \
	CMPL    BX, $16                          \
	JEQ     entry                            \
	MOVL    $const_endOfBlock, BX            \
entry:                                       \
	SHLL    $24, BX                          \
	MOVL    CX, AX                           \
	SHLL    $16, AX                          \
	ORL     BX, AX                           \
	ADDL    DX, CX                           \
	ORL     CX, AX                           \
	SHLL    $8, DX                           \
	ORL     DX, AX                           \
	JMP     value

// func blockBMI2(w *window, c *coefficients, dc, ac *huffman, pred *int32) int
TEXT ·blockBMI2(SB), NOSPLIT, $0-48
	MOVQ w+0(FP), DI
	MOVQ c+8(FP), SI
	MOVQ dc+16(FP), R8
	MOVQ window_acc(DI), R9
	MOVQ window_n(DI), R10
	LEAQ window_buf(DI), R11
	ADDQ window_p(DI), R11
	LEAQ ·zigzag(SB), R13
	MOVQ $-1, R14

	REFILL(enoughDC)
	LOOK(longDC)
valueDC:
	VALUE
	MOVQ pred+32(FP), DX
	ADDL (DX), BX
	MOVL BX, (DX)
	MOVW BX, (SI)
	MOVQ ac+24(FP), R8
	MOVL $1, R12

coefficient:
	REFILL(enough)
	LOOK(long)
value:
	VALUE
	SHRL    $24, AX
	ADDQ    AX, R12
	MOVBQZX -1(R13)(R12*1), CX
	MOVW    BX, (SI)(CX*2)
	CMPQ    R12, $64
	JLT     coefficient

end:
	MOVQ R9, window_acc(DI)
	MOVQ R10, window_n(DI)
	LEAQ window_buf(DI), BX
	SUBQ BX, R11
	MOVQ R11, window_p(DI)
	MOVQ R12, ret+40(FP)
	RET

longDC:
	FIND(nextDC, foundDC, entryDC, valueDC)

long:
	FIND(next, found, entryAC, value)

bad:
	MOVQ $const_badCode, R12
	JMP  end
