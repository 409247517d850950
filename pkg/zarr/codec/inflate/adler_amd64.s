//go:build amd64 && !noasm

#include "textflag.h"

DATA weights<>+0(SB)/8, $0x191A1B1C1D1E1F20
DATA weights<>+8(SB)/8, $0x1112131415161718
DATA weights<>+16(SB)/8, $0x090A0B0C0D0E0F10
DATA weights<>+24(SB)/8, $0x0102030405060708
GLOBL weights<>(SB), RODATA|NOPTR, $32

DATA ones<>+0(SB)/8, $0x0001000100010001
GLOBL ones<>(SB), RODATA|NOPTR, $8

// func adlerSums(p *byte, n int) (sum, before, weighted uint64)
// Y0 sum, Y1 before (4 numbers of 64 bits), Y2 weighted (8 of 32 bits).
TEXT ·adlerSums(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VMOVDQU weights<>(SB), Y4
	VPBROADCASTQ ones<>(SB), Y5

loop:
	VMOVDQU (SI), Y6
	VPADDQ Y0, Y1, Y1
	VPSADBW Y3, Y6, Y7
	VPADDQ Y7, Y0, Y0
	VPMADDUBSW Y4, Y6, Y6 // bytes unsigned, weights signed: at most 255·63
	VPMADDWD Y5, Y6, Y6
	VPADDD Y6, Y2, Y2
	ADDQ $32, SI
	SUBQ $32, CX
	JG   loop

	VEXTRACTI128 $1, Y0, X6
	VPADDQ X6, X0, X0
	VPSRLDQ $8, X0, X6
	VPADDQ X6, X0, X0
	VMOVQ X0, AX
	MOVQ AX, sum+16(FP)

	VEXTRACTI128 $1, Y1, X6
	VPADDQ X6, X1, X1
	VPSRLDQ $8, X1, X6
	VPADDQ X6, X1, X1
	VMOVQ X1, AX
	MOVQ AX, before+24(FP)

	// Widen to 64 bits before adding up.
	VPSRLQ $32, Y2, Y6
	VPBLENDD $0xAA, Y3, Y2, Y2
	VPADDQ Y6, Y2, Y2
	VEXTRACTI128 $1, Y2, X6
	VPADDQ X6, X2, X2
	VPSRLDQ $8, X2, X6
	VPADDQ X6, X2, X2
	VMOVQ X2, AX
	MOVQ AX, weighted+32(FP)
	VZEROUPPER
	RET
