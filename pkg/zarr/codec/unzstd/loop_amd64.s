//go:build !noasm

#include "go_asm.h"
#include "textflag.h"

// What is where:
//	DI  the sequencer
//	R8  position in the bits
//	R9, R10, R11  states of literal lengths, offsets, match lengths
//	R12 next byte of the output, R13 next literal
//	AX, BX, CX    entries of literal length, offset, match length; then the values

// VALUE makes of the entry in e its value: the base and the bits at the top of R14, which are taken from it. The shifts look at
// the low six bits of their counts only, BZHI at the low eight. Uses DX, R15.
#define VALUE(e) \
	SHRQ   $8, e           \
	MOVQ   e, R15          \
	NEGQ   R15             \
	SHRXQ  R15, R14, DX    \
	BZHIQ  e, DX, DX       \
	SHLXQ  e, R14, R14     \
	SHRQ   $24, e          \
	ADDQ   DX, e

// STATE makes the next state of the entry in e and the bits at the top of SI, which are taken from it. Uses DX, R15.
#define STATE(e, state) \
	MOVQ    e, R15          \
	NEGQ    R15             \
	SHRXQ   R15, SI, DX     \
	BZHIQ   e, DX, DX       \
	SHLXQ   e, SI, SI       \
	MOVQ    e, R15          \
	SHRQ    $16, R15        \
	MOVWQZX R15, R15        \
	LEAQ    (R15)(DX*1), state

// func sequenceLoop(s *sequencer) int
TEXT ·sequenceLoop(SB), NOSPLIT, $16-16
	MOVQ s+0(FP), DI
	MOVQ sequencer_position(DI), R8
	MOVQ (sequencer_states+0)(DI), R9
	MOVQ (sequencer_states+8)(DI), R10
	MOVQ (sequencer_states+16)(DI), R11
	MOVQ sequencer_dst(DI), R12
	MOVQ R12, DX
	ADDQ sequencer_end(DI), DX
	MOVQ DX, 0(SP)                 // end of the output
	ADDQ sequencer_n(DI), R12
	MOVQ sequencer_literals(DI), R13
	MOVQ R13, DX
	ADDQ sequencer_size(DI), DX
	MOVQ DX, 8(SP)                 // end of the literals
	ADDQ sequencer_lit(DI), R13

sequence:
	MOVQ (sequencer_entries)(DI)(R9*8), AX
	MOVQ (sequencer_entries+4096)(DI)(R10*8), BX
	MOVQ (sequencer_entries+8192)(DI)(R11*8), CX

	// R15: bits of the values, DX: of the states too
	LEAQ    (AX)(BX*1), DX
	ADDQ    CX, DX
	MOVQ    DX, R15
	SHRQ    $8, R15
	MOVBQZX R15, R15
	MOVBQZX DX, DX
	ADDQ    R15, DX
	CMPQ    DX, $57
	JA      decode

	// R14: the bits in front of the position, at the top
	LEAQ  7(R8), R14
	SHRQ  $3, R14
	MOVQ  sequencer_src(DI), SI
	MOVQ  -8(SI)(R14*1), SI
	SHLQ  $3, R14
	SUBQ  R8, R14
	SHLXQ R14, SI, R14
	SUBQ  DX, R8
	CMPQ  R8, sequencer_floor(DI)
	JLT   restore

	SHLXQ R15, R14, SI
	STATE(AX, R9)
	STATE(CX, R11)
	STATE(BX, R10)
	VALUE(BX)
	VALUE(CX)
	VALUE(AX)

	CMPQ BX, $3
	JBE  repeat
	SUBQ $3, BX
	MOVQ (sequencer_repeats+0)(DI), DX
	MOVQ (sequencer_repeats+8)(DI), R15
	MOVQ BX, (sequencer_repeats+0)(DI)
	MOVQ DX, (sequencer_repeats+8)(DI)
	MOVQ R15, (sequencer_repeats+16)(DI)

copies:
	// AX literals, then CX bytes from BX bytes back; copies may write 15 bytes too many
	LEAQ 32(AX)(CX*1), DX
	ADDQ R12, DX
	CMPQ DX, 0(SP)
	JA   execute
	LEAQ (R13)(AX*1), DX
	CMPQ DX, 8(SP)
	JA   execute
	MOVQ R12, DX
	SUBQ sequencer_dst(DI), DX
	ADDQ AX, DX
	CMPQ BX, DX
	JA   execute
	CMPQ BX, $16
	JAE  literals
	TESTQ BX, BX
	JZ   execute
	CMPQ CX, $16
	JA   execute

literals:
	MOVOU (R13), X0
	MOVOU X0, (R12)
	CMPQ  AX, $16
	JBE   match
	MOVQ  $16, R14

moreLiterals:
	MOVOU (R13)(R14*1), X0
	MOVOU X0, (R12)(R14*1)
	ADDQ  $16, R14
	CMPQ  R14, AX
	JB    moreLiterals

match:
	ADDQ  AX, R13
	ADDQ  AX, R12
	MOVQ  R12, SI
	SUBQ  BX, SI
	CMPQ  BX, $16
	JB    near
	MOVOU (SI), X0
	MOVOU X0, (R12)
	CMPQ  CX, $16
	JBE   next
	MOVQ  $16, R14

moreMatch:
	MOVOU (SI)(R14*1), X0
	MOVOU X0, (R12)(R14*1)
	ADDQ  $16, R14
	CMPQ  R14, CX
	JB    moreMatch

next:
	ADDQ CX, R12
	DECQ sequencer_count(DI)
	CMPQ sequencer_count(DI), $1
	JGT  sequence
	MOVQ $const_done, AX
	JMP  save

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
	XORQ R14, R14

bytes:
	MOVBLZX (SI)(R14*1), DX
	MOVB    DX, (R12)(R14*1)
	INCQ    R14
	CMPQ    R14, CX
	JB      bytes
	JMP     next

repeat:
	// without literals, 1 to 3 mean the second, the third, and the first less one
	XORL  DX, DX
	TESTQ AX, AX
	SETEQ DX
	ADDQ  DX, BX
	MOVQ  (sequencer_repeats+0)(DI), DX
	MOVQ  (sequencer_repeats+8)(DI), R15
	CMPQ  BX, $2
	JB    first
	JE    second
	CMPQ  BX, $3
	MOVQ  (sequencer_repeats+16)(DI), BX
	JE    third
	LEAQ  -1(DX), BX

third:
	MOVQ BX, (sequencer_repeats+0)(DI)
	MOVQ DX, (sequencer_repeats+8)(DI)
	MOVQ R15, (sequencer_repeats+16)(DI)
	JMP  copies

second:
	MOVQ R15, BX
	MOVQ BX, (sequencer_repeats+0)(DI)
	MOVQ DX, (sequencer_repeats+8)(DI)
	JMP  copies

first:
	MOVQ DX, BX
	JMP  copies

restore:
	ADDQ DX, R8

decode:
	MOVQ $const_decode, AX
	JMP  save

execute:
	MOVQ AX, sequencer_run(DI)
	MOVQ CX, sequencer_length(DI)
	MOVQ BX, sequencer_offset(DI)
	MOVQ $const_execute, AX

save:
	MOVQ R8, sequencer_position(DI)
	MOVQ R9, (sequencer_states+0)(DI)
	MOVQ R10, (sequencer_states+8)(DI)
	MOVQ R11, (sequencer_states+16)(DI)
	SUBQ sequencer_dst(DI), R12
	MOVQ R12, sequencer_n(DI)
	SUBQ sequencer_literals(DI), R13
	MOVQ R13, sequencer_lit(DI)
	MOVQ AX, ret+8(FP)
	RET
