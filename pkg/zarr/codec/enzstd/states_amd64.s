//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// What is where:
//	SI  behind the next sequence, CX how many are left
//	DI  next byte of the output, DX the last that a sequence may begin at
//	R8  bits that are not written, R9 their number
//	R10, R11, R12 states of literal lengths, offsets, match lengths; R13, R14, R15 their tables

// STATE writes what comes between the state of a table and that of the code in AX. Uses AX, BX, BP.
#define STATE(state, table) \
	LEAQ    fseTable_moves(table)(AX*8), AX     \
	MOVL    fseMove_deltaBits(AX), BX           \
	ADDL    state, BX                           \
	SHRL    $16, BX                             \
	BZHIQ   BX, state, BP                       \
	SHLXQ   R9, BP, BP                          \
	ORQ     BP, R8                              \
	ADDQ    BX, R9                              \
	SHRXQ   BX, state, state                    \
	MOVLQSX fseMove_deltaState(AX), AX          \
	ADDQ    AX, state                           \
	MOVWLZX fseTable_states(table)(state*2), state

#define FLUSH \
	MOVQ  R8, (DI)    \
	MOVQ  R9, AX      \
	SHRQ  $3, AX      \
	ADDQ  AX, DI      \
	MOVQ  R9, AX      \
	ANDL  $56, AX     \
	SHRXQ AX, R8, R8  \
	ANDL  $7, R9

// func writeStatesBMI2(w *stateWriter)
TEXT ·writeStatesBMI2(SB), NOSPLIT, $8-8
	MOVQ w+0(FP), AX
	MOVQ (stateWriter_seqs+8)(AX), CX
	TESTQ CX, CX
	JZ   none
	LEAQ (CX)(CX*2), SI
	SHLQ $2, SI
	ADDQ stateWriter_seqs(AX), SI
	MOVQ stateWriter_dst(AX), DI
	MOVQ (stateWriter_dst+8)(AX), DX
	LEAQ -const_stateSlack(DI)(DX*1), DX
	ADDQ stateWriter_at(AX), DI
	MOVQ stateWriter_acc(AX), R8
	MOVQ stateWriter_bits(AX), R9
	MOVQ (stateWriter_states+0)(AX), R10
	MOVQ (stateWriter_states+8)(AX), R11
	MOVQ (stateWriter_states+16)(AX), R12
	MOVQ (stateWriter_tables+0)(AX), R13
	MOVQ (stateWriter_tables+8)(AX), R14
	MOVQ (stateWriter_tables+16)(AX), R15

sequence:
	CMPQ DI, DX
	JGT  end
	MOVBLZX (sequence_length+1-sequence__size)(SI), AX
	STATE(R11, R14)
	MOVBLZX (sequence_length+2-sequence__size)(SI), AX
	STATE(R12, R15)
	MOVBLZX (sequence_length+0-sequence__size)(SI), AX
	STATE(R10, R13)
	MOVBLZX (sequence_length+1-sequence__size)(SI), AX
	MOVBLZX (sequence_length+3-sequence__size)(SI), BX
	ADDL AX, BX
	CMPL BX, $30
	JGT  many

lengths:
	MOVL  (sequence_literals-sequence__size)(SI), BX
	SHLXQ R9, BX, BX
	ORQ   BX, R8
	MOVBLZX (sequence_length+3-sequence__size)(SI), BX
	ADDQ  BX, R9

offset:
	MOVL  (sequence_offset-sequence__size)(SI), BX
	MOVBLZX (sequence_length+1-sequence__size)(SI), AX
	BZHIQ AX, BX, BX
	SHLXQ R9, BX, BX
	ORQ   BX, R8
	ADDQ  AX, R9
	FLUSH
	SUBQ  $sequence__size, SI
	DECQ  CX
	JNZ   sequence

end:
	MOVQ w+0(FP), AX
	MOVQ CX, (stateWriter_seqs+8)(AX)
	SUBQ stateWriter_dst(AX), DI
	MOVQ DI, stateWriter_at(AX)
	MOVQ R8, stateWriter_acc(AX)
	MOVQ R9, stateWriter_bits(AX)
	MOVQ R10, (stateWriter_states+0)(AX)
	MOVQ R11, (stateWriter_states+8)(AX)
	MOVQ R12, (stateWriter_states+16)(AX)

none:
	RET

many: // bits, for which there may be no room
	FLUSH
	MOVL  (sequence_literals-sequence__size)(SI), BX
	SHLXQ R9, BX, BX
	ORQ   BX, R8
	MOVBLZX (sequence_length+3-sequence__size)(SI), BX
	ADDQ  BX, R9
	FLUSH
	JMP   offset
