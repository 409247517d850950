//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// What is where:
//	DI  the sequencer
//	R8  address, in bits, of the bits that come next: they end below it
//	R9, R10, R11  states of literal lengths, offsets, match lengths
//	R12 next byte of the output, R13 next literal
//	AX, BX, CX    entries of literal length, offset, match length; then the values
//	R14 word of bits, R15 number of bits of it that are left, in the low six bits
//	X5, X6, X7    the last offsets
//
// On the stack:
#define end 0(SP)         // of the output
#define literalsEnd 8(SP)
#define left 16(SP)       // sequences until the margins are looked at again
#define floor 24(SP)      // address, in bits, at which all are read

// STATE adds to state, the base of the next one, the bits below SI. The second byte of e is their number, which it leaves in DX.
#define STATE(e, state) \
	RORXQ $8, e, DX     \
	SHRXQ SI, R14, BP   \
	BZHIQ DX, BP, BP    \
	ADDQ  BP, state

// LONG makes of the entry in e its value: the base, three bytes from the fifth on, and the next bits of R14, as many as its last byte
// says. Uses DX, SI.
#define LONG(e) \
	RORXQ $56, e, DX    \
	SUBQ  DX, R15       \
	SHRXQ R15, R14, SI  \
	BZHIQ DX, SI, SI    \
	SHLQ  $8, e         \
	SHRQ  $40, e        \
	ADDQ  SI, e

// func sequenceLoop(s *sequencer) int
TEXT ·sequenceLoop(SB), NOSPLIT, $32-16
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
	MOVQ R12, DX
	ADDQ sequencer_end(DI), DX
	MOVQ DX, end
	ADDQ sequencer_n(DI), R12
	MOVQ sequencer_literals(DI), R13
	MOVQ R13, DX
	ADDQ sequencer_size(DI), DX
	MOVQ DX, literalsEnd
	ADDQ sequencer_lit(DI), R13
	MOVQ (sequencer_repeats+0)(DI), X5
	MOVQ (sequencer_repeats+8)(DI), X6
	MOVQ (sequencer_repeats+16)(DI), X7

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
	MOVQ (sequencer_entries)(DI)(R9*8), AX
	MOVQ (sequencer_entries+4096)(DI)(R10*8), BX
	MOVQ (sequencer_entries+8192)(DI)(R11*8), CX

	// the number of all bits, and what is left without them
	LEAQ    (BX)(CX*1), DX
	MOVQ    R15, SI
	SUBQ    AX, SI
	SUBQ    DX, SI
	ADDQ    AX, DX
	MOVBLZX DX, DX
	CMPL    DX, $56
	JA      decode
	SUBQ    DX, R8

	// the states are read last: from the end, offset, match length, literal length
	MOVWLZX (sequencer_entries+2)(DI)(R9*8), R9
	MOVWLZX (sequencer_entries+4098)(DI)(R10*8), R10
	MOVWLZX (sequencer_entries+8194)(DI)(R11*8), R11
	STATE(BX, R10)
	ADDQ    DX, SI
	STATE(CX, R11)
	ADDQ    DX, SI
	STATE(AX, R9)

	// the value of an offset is its bits behind a one
	RORXQ $56, BX, DX
	SUBQ  DX, R15
	SHRXQ R15, R14, BX
	BZHIQ DX, BX, BX
	BTSQ  DX, BX

	// lengths rarely have bits
	LEAQ (AX)(CX*1), DX
	SHRQ $56, DX
	JNZ  lengths
	SHRQ $32, AX
	SHRQ $32, CX

values:
	CMPQ BX, $3
	JBE  repeat
	SUBQ $3, BX
	MOVO X6, X7
	MOVO X5, X6
	MOVQ BX, X5

copies:
	// AX literals, then CX bytes from BX bytes back
	MOVOU (R13), X0
	MOVOU X0, (R12)
	ADDQ  AX, R13
	ADDQ  AX, R12
	MOVQ  R12, SI
	SUBQ  BX, SI
	CMPQ  R13, literalsEnd
	JA    execute
	CMPQ  SI, sequencer_dst(DI)
	JLT   execute
	CMPQ  AX, $16
	JA    long
	CMPQ  CX, $16
	JA    long
	CMPQ  BX, $16
	JB    near
	MOVOU (SI), X0
	MOVOU X0, (R12)

next:
	ADDQ CX, R12
	DECQ left
	JNZ  sequence
	JMP  batch

near:
	// at most 16 bytes from less than 16 bytes back
	CMPQ BX, $8
	JB   nearer
	MOVQ (SI), DX
	MOVQ DX, (R12)
	MOVQ 8(SI), DX
	MOVQ DX, 8(R12)
	JMP  next

nearer:
	TESTQ BX, BX
	JZ    execute
	XORL  R14, R14

bytes:
	MOVBLZX (SI)(R14*1), DX
	MOVB    DX, (R12)(R14*1)
	INCQ    R14
	CMPQ    R14, CX
	JB      bytes
	JMP     next

long:
	// copies in steps of 32 bytes may write 31 bytes too many
	CMPQ BX, $16
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
	MOVOU (SI), X0
	MOVOU X0, (R12)
	MOVOU 16(SI), X0
	MOVOU X0, 16(R12)
	CMPQ  CX, $32
	JBE   longNext
	MOVL  $32, R14

moreMatch:
	MOVOU (SI)(R14*1), X0
	MOVOU X0, (R12)(R14*1)
	MOVOU 16(SI)(R14*1), X0
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
	ADDQ  DX, BX
	CMPQ  BX, $2
	JB    first
	JE    second
	CMPQ  BX, $3
	MOVQ  X7, BX
	JE    third
	MOVQ  X5, BX
	DECQ  BX

third:
	MOVO X6, X7
	MOVO X5, X6
	MOVQ BX, X5
	JMP  copies

second:
	MOVQ X6, BX
	MOVO X5, X6
	MOVQ BX, X5
	JMP  copies

first:
	MOVQ X5, BX
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
	MOVQ BX, sequencer_offset(DI)
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
	MOVQ X5, (sequencer_repeats+0)(DI)
	MOVQ X6, (sequencer_repeats+8)(DI)
	MOVQ X7, (sequencer_repeats+16)(DI)
	MOVQ AX, ret+8(FP)
	RET
