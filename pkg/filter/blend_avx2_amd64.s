//go:build !noasm

#include "textflag.h"

DATA one<>+0(SB)/4, $0x3f800000
GLOBL one<>(SB), RODATA|NOPTR, $4

// func blendF32AVX2(acc, v, alpha *float32, n int)
TEXT ·blendF32AVX2(SB), NOSPLIT, $0-32
	MOVQ acc+0(FP), DI
	MOVQ v+8(FP), SI
	MOVQ alpha+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS one<>(SB), Y15
	VXORPS Y14, Y14, Y14
loop:
	VMOVUPS (DI), Y0             // a
	VMOVUPS (SI), Y1             // b
	VMOVUPS (DX), Y2             // w
	VSUBPS Y0, Y1, Y3            // b-a
	VMULPS Y3, Y2, Y3
	VADDPS Y3, Y0, Y3            // a + w(b-a)
	VCMPPS $3, Y3, Y3, Y4        // NaN
	VADDPS Y0, Y1, Y5            // a + b
	VBLENDVPS Y4, Y5, Y3, Y3
	VCMPPS $2, Y14, Y2, Y4       // w <= 0
	VBLENDVPS Y4, Y0, Y3, Y3
	VCMPPS $13, Y15, Y2, Y4      // w >= 1
	VCMPPS $3, Y0, Y0, Y5        // a is NaN
	VORPS Y4, Y5, Y4
	VBLENDVPS Y4, Y1, Y3, Y3
	VCMPPS $3, Y1, Y1, Y5        // b is NaN
	VBLENDVPS Y5, Y0, Y3, Y3
	VMOVUPS Y3, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, DX
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// func betweenF32AVX2(dst, a, b *float32, n int, t float32)
TEXT ·betweenF32AVX2(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS t+32(FP), Y2
loop:
	VMOVUPS (SI), Y0
	VMOVUPS (DX), Y1
	VSUBPS Y0, Y1, Y1
	VMULPS Y1, Y2, Y1
	VADDPS Y1, Y0, Y1
	VMOVUPS Y1, (DI)
	ADDQ $32, DI
	ADDQ $32, SI
	ADDQ $32, DX
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET
