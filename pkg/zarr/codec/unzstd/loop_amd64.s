//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// What is where:
//	DI  the sequencer
//	R8  address, in bits, of the bits that come next: they end below it
//	R9, R10, R11  states of literal lengths, offsets, match lengths
//	R12 next byte of the output, R13 next literal
//	AX, CX        lengths of literals and match; SI  offset, and 3
//	R14 word of bits, R15 number of bits of it that are left, in the low six bits
//	X5, X6, X7    the last offsets, and 3
//
// On the stack:
#define end 0(SP)         // of the output
#define literalsEnd 8(SP)
#define left 16(SP)       // sequences until the margins are looked at again
#define floor 24(SP)      // address, in bits, at which all are read
#define front 32(SP)      // of the output, less 3

#define LITERALS sequencer_entries
#define OFFSETS sequencer_entries+4096
#define MATCHES sequencer_entries+8192

// STATE puts the next state in place of state: its base and the bits below SI, the number of which it leaves in DX.
#define STATE(entries, state) \
	MOVBLZX entries+1(DI)(state*8), DX    \
	SHRXQ   SI, R14, BP                   \
	MOVWLZX entries+2(DI)(state*8), state \
	BZHIQ   DX, BP, BP                    \
	ADDQ    BP, state

// LONG adds to length, the base, the next bits of R14, as many as the fourth byte says. Uses BX, DX.
#define LONG(length) \
	MOVL  length, DX        \
	SHRL  $24, DX           \
	SUBQ  DX, R15           \
	SHRXQ R15, R14, BX      \
	BZHIQ DX, BX, BX        \
	ANDL  $0xffffff, length \
	ADDQ  BX, length

// func sequenceLoop(s *sequencer) int
TEXT ·sequenceLoop(SB), NOSPLIT, $40-16
	MOVQ s+0(FP), DI
	MOVQ sequencer_src(DI), R8
	SHLQ $3, R8
	MOVQ R8, DX
	ADDQ sequencer_floor(DI), DX
	MOVQ DX, floor
	ADDQ sequencer_position(DI), R8
	MOVQ (sequencer_states+0)(DI), R9
	MOVQ (sequencer_states+8)(DI), R10
	MOVQ (sequencer_states+16)(DI), R11
	MOVQ sequencer_dst(DI), R12
	LEAQ -3(R12), DX
	MOVQ DX, front
	MOVQ R12, DX
	ADDQ sequencer_end(DI), DX
	MOVQ DX, end
	ADDQ sequencer_n(DI), R12
	MOVQ sequencer_literals(DI), R13
	MOVQ R13, DX
	ADDQ sequencer_size(DI), DX
	MOVQ DX, literalsEnd
	ADDQ sequencer_lit(DI), R13
	MOVQ (sequencer_repeats+0)(DI), AX
	MOVQ (sequencer_repeats+8)(DI), BX
	MOVQ (sequencer_repeats+16)(DI), CX
	ADDQ $3, AX
	ADDQ $3, BX
	ADDQ $3, CX
	MOVQ AX, X5
	MOVQ BX, X6
	MOVQ CX, X7

batch:
	// A sequence takes at most 56 bits and, unless it is long, makes at most 32 bytes: so many need no look at the ends.
	MOVQ    sequencer_count(DI), BP
	DECQ    BP
	JLE     finished
	MOVQ    R8, DX
	SUBQ    floor, DX
	SARQ    $6, DX
	CMPQ    DX, BP
	CMOVQLT DX, BP
	MOVQ    end, DX
	SUBQ    R12, DX
	SARQ    $5, DX
	CMPQ    DX, BP
	CMOVQLT DX, BP
	TESTQ   BP, BP
	JLE     single
	SUBQ    BP, sequencer_count(DI)
	MOVQ    BP, left

sequence:
	MOVQ R8, R14
	MOVQ R8, R15
	SHRQ $3, R14
	ORQ  $-8, R15
	MOVQ -7(R14), R14
	MOVBLZX LITERALS+0(DI)(R9*8), AX
	MOVBLZX OFFSETS+0(DI)(R10*8), BX
	MOVBLZX MATCHES+0(DI)(R11*8), CX

	// the number of all bits, and what is left without them
	ADDL BX, CX
	MOVQ R15, SI
	SUBQ AX, SI
	SUBQ CX, SI
	ADDL CX, AX
	CMPL AX, $56
	JA   decode
	SUBQ AX, R8

	// the states are read last: from the end, offset, match length, literal length
	MOVBLZX OFFSETS+7(DI)(R10*8), BX
	STATE(OFFSETS, R10)
	ADDQ    DX, SI
	MOVL    MATCHES+4(DI)(R11*8), CX
	STATE(MATCHES, R11)
	ADDQ    DX, SI
	MOVL    LITERALS+4(DI)(R9*8), AX
	STATE(LITERALS, R9)

	// the value of an offset is its bits behind a one
	SUBQ  BX, R15
	SHRXQ R15, R14, SI
	BZHIQ BX, SI, SI
	BTSQ  BX, SI

	// lengths rarely have bits
	LEAL (AX)(CX*1), DX
	SHRL $24, DX
	JNZ  lengths

values:
	CMPQ SI, $3
	JBE  repeat
	MOVO X6, X7
	MOVO X5, X6
	MOVQ SI, X5

copies:
	// AX literals, then CX bytes from 3(BX)
	MOVOU (R13), X0
	MOVOU X0, (R12)
	ADDQ  AX, R13
	ADDQ  AX, R12
	MOVQ  R12, BX
	SUBQ  SI, BX
	CMPQ  R13, literalsEnd
	JA    execute
	CMPQ  BX, front
	JLT   execute
	CMPQ  AX, $16
	JA    long
	CMPQ  CX, $16
	JA    long
	CMPQ  SI, $(16+3)
	JB    near
	MOVOU 3(BX), X0
	MOVOU X0, (R12)

next:
	ADDQ CX, R12
	DECQ left
	JNZ  sequence
	JMP  batch

near:
	// at most 16 bytes from less than 16 bytes back
	CMPQ SI, $(8+3)
	JB   nearer
	MOVQ 3(BX), DX
	MOVQ DX, (R12)
	MOVQ 11(BX), DX
	MOVQ DX, 8(R12)
	JMP  next

nearer:
	CMPQ SI, $3
	JE   execute
	XORL R14, R14

bytes:
	MOVBLZX 3(BX)(R14*1), DX
	MOVB    DX, (R12)(R14*1)
	INCQ    R14
	CMPQ    R14, CX
	JB      bytes
	JMP     next

long:
	// copies in steps of 32 bytes may write 31 bytes too many
	CMPQ SI, $(16+3)
	JB   execute
	LEAQ 32(R12)(CX*1), DX
	CMPQ DX, end
	JA   execute
	CMPQ AX, $16
	JBE  longMatch
	NEGQ AX
	ADDQ $16, AX

moreLiterals:
	MOVOU (R13)(AX*1), X0
	MOVOU 16(R13)(AX*1), X1
	MOVOU X0, (R12)(AX*1)
	MOVOU X1, 16(R12)(AX*1)
	ADDQ  $32, AX
	JLT   moreLiterals

longMatch:
	MOVOU 3(BX), X0
	MOVOU X0, (R12)
	MOVOU 19(BX), X0
	MOVOU X0, 16(R12)
	CMPQ  CX, $32
	JBE   longNext
	MOVL  $32, R14

moreMatch:
	MOVOU 3(BX)(R14*1), X0
	MOVOU X0, (R12)(R14*1)
	MOVOU 19(BX)(R14*1), X0
	MOVOU X0, 16(R12)(R14*1)
	ADDQ  $32, R14
	CMPQ  R14, CX
	JB    moreMatch

longNext:
	ADDQ CX, R12
	MOVQ left, DX
	DECQ DX
	ADDQ DX, sequencer_count(DI)
	JMP  batch

lengths:
	LONG(CX)
	LONG(AX)
	JMP values

repeat:
	// without literals, 1 to 3 mean the second, the third, and the first less one
	XORL  DX, DX
	TESTQ AX, AX
	SETEQ DX
	ADDQ  DX, SI
	CMPQ  SI, $2
	JB    first
	JE    second
	CMPQ  SI, $3
	MOVQ  X7, SI
	JE    third
	MOVQ  X5, SI
	DECQ  SI

third:
	MOVO X6, X7
	MOVO X5, X6
	MOVQ SI, X5
	JMP  copies

second:
	MOVQ X6, SI
	MOVO X5, X6
	MOVQ SI, X5
	JMP  copies

first:
	MOVQ X5, SI
	JMP  copies

decode:
	MOVQ left, DX
	ADDQ DX, sequencer_count(DI)

single:
	MOVQ $const_decode, AX
	JMP  save

finished:
	MOVQ $const_done, AX
	JMP  save

execute:
	SUBQ AX, R12
	SUBQ AX, R13
	MOVQ left, DX
	ADDQ DX, sequencer_count(DI)
	MOVQ AX, sequencer_run(DI)
	MOVQ CX, sequencer_length(DI)
	SUBQ $3, SI
	MOVQ SI, sequencer_offset(DI)
	MOVQ $const_execute, AX

save:
	MOVQ sequencer_src(DI), DX
	SHLQ $3, DX
	SUBQ DX, R8
	MOVQ R8, sequencer_position(DI)
	MOVQ R9, (sequencer_states+0)(DI)
	MOVQ R10, (sequencer_states+8)(DI)
	MOVQ R11, (sequencer_states+16)(DI)
	SUBQ sequencer_dst(DI), R12
	MOVQ R12, sequencer_n(DI)
	SUBQ sequencer_literals(DI), R13
	MOVQ R13, sequencer_lit(DI)
	MOVQ X5, BX
	MOVQ X6, CX
	MOVQ X7, DX
	SUBQ $3, BX
	SUBQ $3, CX
	SUBQ $3, DX
	MOVQ BX, (sequencer_repeats+0)(DI)
	MOVQ CX, (sequencer_repeats+8)(DI)
	MOVQ DX, (sequencer_repeats+16)(DI)
	MOVQ AX, ret+8(FP)
	RET
