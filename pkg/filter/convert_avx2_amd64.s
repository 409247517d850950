//go:build !noasm

#include "textflag.h"

DATA exponentBits<>+0(SB)/4, $0x7f800000
GLOBL exponentBits<>(SB), RODATA|NOPTR, $4
DATA f255<>+0(SB)/4, $0x437f0000
GLOBL f255<>(SB), RODATA|NOPTR, $4
DATA f65535<>+0(SB)/4, $0x477fff00
GLOBL f65535<>(SB), RODATA|NOPTR, $4
DATA f32767<>+0(SB)/4, $0x46fffe00
GLOBL f32767<>(SB), RODATA|NOPTR, $4
DATA fMinus32768<>+0(SB)/4, $0xc7000000
GLOBL fMinus32768<>(SB), RODATA|NOPTR, $4
DATA packOrder<>+0(SB)/4, $0
DATA packOrder<>+4(SB)/4, $4
DATA packOrder<>+8(SB)/4, $1
DATA packOrder<>+12(SB)/4, $5
DATA packOrder<>+16(SB)/4, $2
DATA packOrder<>+20(SB)/4, $6
DATA packOrder<>+24(SB)/4, $3
DATA packOrder<>+28(SB)/4, $7
GLOBL packOrder<>(SB), RODATA|NOPTR, $32

#define WIDEN(extend, bytes) \
	MOVQ dst+0(FP), DI   \
	MOVQ src+8(FP), SI   \
	MOVQ n+16(FP), CX    \
loop:                    \
	extend (SI), Y0      \
	VCVTDQ2PS Y0, Y0     \
	VMOVUPS Y0, (DI)     \
	ADDQ $bytes, SI      \
	ADDQ $32, DI         \
	SUBQ $8, CX          \
	JNZ loop             \
	VZEROUPPER           \
	RET

// func fromU8AVX2(dst *float32, src *uint8, n int)
TEXT ·fromU8AVX2(SB), NOSPLIT, $0-24
	WIDEN(VPMOVZXBD, 8)

// func fromU16AVX2(dst *float32, src *uint16, n int)
TEXT ·fromU16AVX2(SB), NOSPLIT, $0-24
	WIDEN(VPMOVZXWD, 16)

// func fromI16AVX2(dst *float32, src *int16, n int)
TEXT ·fromI16AVX2(SB), NOSPLIT, $0-24
	WIDEN(VPMOVSXWD, 16)

// 32 numbers into Y0–Y3, NaN as 0, between Y8 and Y9, rounded to integers
#define ROUNDED \
	VMOVUPS (SI), Y0       \
	VMOVUPS 32(SI), Y1     \
	VMOVUPS 64(SI), Y2     \
	VMOVUPS 96(SI), Y3     \
	VCMPPS $7, Y0, Y0, Y4  \
	VCMPPS $7, Y1, Y1, Y5  \
	VCMPPS $7, Y2, Y2, Y6  \
	VCMPPS $7, Y3, Y3, Y7  \
	VANDPS Y4, Y0, Y0      \
	VANDPS Y5, Y1, Y1      \
	VANDPS Y6, Y2, Y2      \
	VANDPS Y7, Y3, Y3      \
	VMAXPS Y8, Y0, Y0      \
	VMAXPS Y8, Y1, Y1      \
	VMAXPS Y8, Y2, Y2      \
	VMAXPS Y8, Y3, Y3      \
	VMINPS Y9, Y0, Y0      \
	VMINPS Y9, Y1, Y1      \
	VMINPS Y9, Y2, Y2      \
	VMINPS Y9, Y3, Y3      \
	VCVTPS2DQ Y0, Y0       \
	VCVTPS2DQ Y1, Y1       \
	VCVTPS2DQ Y2, Y2       \
	VCVTPS2DQ Y3, Y3

#define ARGUMENTS \
	MOVQ dst+0(FP), DI \
	MOVQ src+8(FP), SI \
	MOVQ n+16(FP), CX

// func toU8AVX2(dst *uint8, src *float32, n int)
TEXT ·toU8AVX2(SB), NOSPLIT, $0-24
	ARGUMENTS
	VXORPS Y8, Y8, Y8
	VBROADCASTSS f255<>(SB), Y9
	VMOVDQU packOrder<>(SB), Y10
loop:
	ROUNDED
	VPACKUSDW Y1, Y0, Y0
	VPACKUSDW Y3, Y2, Y2
	VPACKUSWB Y2, Y0, Y0
	VPERMD Y0, Y10, Y0
	VMOVDQU Y0, (DI)
	ADDQ $128, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JNZ loop
	VZEROUPPER
	RET

#define NARROW16(pack) \
loop:                    \
	ROUNDED              \
	pack Y1, Y0, Y0      \
	pack Y3, Y2, Y2      \
	VPERMQ $0xd8, Y0, Y0 \
	VPERMQ $0xd8, Y2, Y2 \
	VMOVDQU Y0, (DI)     \
	VMOVDQU Y2, 32(DI)   \
	ADDQ $128, SI        \
	ADDQ $64, DI         \
	SUBQ $32, CX         \
	JNZ loop             \
	VZEROUPPER           \
	RET

// func toU16AVX2(dst *uint16, src *float32, n int)
TEXT ·toU16AVX2(SB), NOSPLIT, $0-24
	ARGUMENTS
	VXORPS Y8, Y8, Y8
	VBROADCASTSS f65535<>(SB), Y9
	NARROW16(VPACKUSDW)

// func toI16AVX2(dst *int16, src *float32, n int)
TEXT ·toI16AVX2(SB), NOSPLIT, $0-24
	ARGUMENTS
	VBROADCASTSS fMinus32768<>(SB), Y8
	VBROADCASTSS f32767<>(SB), Y9
	NARROW16(VPACKSSDW)

// func countNonFiniteAVX2(src *float32, n int) int64
TEXT ·countNonFiniteAVX2(SB), NOSPLIT, $0-24
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSS exponentBits<>(SB), Y8
	VPXOR Y9, Y9, Y9
loop:
	VPAND (SI), Y8, Y0
	VPCMPEQD Y8, Y0, Y0
	VPSUBD Y0, Y9, Y9
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ loop
	VEXTRACTI128 $1, Y9, X0
	VPMOVZXDQ X9, Y1
	VPMOVZXDQ X0, Y2
	VPADDQ Y1, Y2, Y1
	VEXTRACTI128 $1, Y1, X0
	VPADDQ X0, X1, X1
	VPSHUFD $0x4e, X1, X0
	VPADDQ X0, X1, X1
	VMOVQ X1, AX
	MOVQ AX, ret+16(FP)
	VZEROUPPER
	RET

// func belowAVX2(src *float32, n int, limit uint32) int
TEXT ·belowAVX2(SB), NOSPLIT, $0-32
	MOVQ src+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL limit+16(FP), AX
	DECL AX
	VMOVD AX, X8
	VPBROADCASTD X8, Y8
	VPCMPEQD Y9, Y9, Y9
	VPSRLD $1, Y9, Y9 // all bits but the sign
	XORQ DX, DX
belowLoop:
	VPAND (SI)(DX*4), Y9, Y0
	VPCMPGTD Y8, Y0, Y0
	VPTEST Y0, Y0
	JNZ belowEnd
	ADDQ $8, DX
	CMPQ DX, CX
	JLT belowLoop
belowEnd:
	MOVQ DX, ret+24(FP)
	VZEROUPPER
	RET

DATA lnHalf<>+0(SB)/4, $0x3f3504f3
GLOBL lnHalf<>(SB), RODATA|NOPTR, $4
DATA lnOne<>+0(SB)/4, $0x3f800000
GLOBL lnOne<>(SB), RODATA|NOPTR, $4
DATA lnHalfOne<>+0(SB)/4, $0x3f000000
GLOBL lnHalfOne<>(SB), RODATA|NOPTR, $4
DATA lnHigh<>+0(SB)/4, $0x3f318000
GLOBL lnHigh<>(SB), RODATA|NOPTR, $4
DATA lnLow<>+0(SB)/4, $0xb95e8083
GLOBL lnLow<>(SB), RODATA|NOPTR, $4
DATA lnScale<>+0(SB)/4, $0x4b000000
GLOBL lnScale<>(SB), RODATA|NOPTR, $4
DATA lnNormal<>+0(SB)/4, $0x00800000
GLOBL lnNormal<>(SB), RODATA|NOPTR, $4
DATA lnShift<>+0(SB)/4, $-23
GLOBL lnShift<>(SB), RODATA|NOPTR, $4

// func lnAVX2(v *float32, n int, polynomial *float32)
TEXT ·lnAVX2(SB), NOSPLIT, $0-24
	MOVQ v+0(FP), DI
	MOVQ n+8(FP), CX
	MOVQ polynomial+16(FP), SI
	VBROADCASTSS lnHalf<>(SB), Y8
	VBROADCASTSS lnOne<>(SB), Y9
	VBROADCASTSS lnScale<>(SB), Y10
	VBROADCASTSS lnNormal<>(SB), Y11
	VBROADCASTSS lnShift<>(SB), Y12
	VBROADCASTSS exponentBits<>(SB), Y13
	VXORPS Y14, Y14, Y14
loop:
	VMOVUPS (DI), Y0
	VPCMPGTD Y0, Y11, Y1     // subnormal, zero or negative
	VMULPS Y10, Y0, Y2
	VBLENDVPS Y1, Y2, Y0, Y2 // bits
	VPAND Y12, Y1, Y3        // exponent so far
	VPSUBD Y8, Y2, Y4
	VPSRAD $23, Y4, Y4
	VPADDD Y4, Y3, Y3
	VPSLLD $23, Y4, Y4
	VPSUBD Y4, Y2, Y2
	VSUBPS Y9, Y2, Y2        // f
	VCVTDQ2PS Y3, Y3         // exponent
	VBROADCASTSS (SI), Y4
	VMULPS Y2, Y4, Y4
	VBROADCASTSS 4(SI), Y5
	VADDPS Y5, Y4, Y4
	VMULPS Y2, Y4, Y4
	VBROADCASTSS 8(SI), Y5
	VADDPS Y5, Y4, Y4
	VMULPS Y2, Y4, Y4
	VBROADCASTSS 12(SI), Y5
	VADDPS Y5, Y4, Y4
	VMULPS Y2, Y4, Y4
	VBROADCASTSS 16(SI), Y5
	VADDPS Y5, Y4, Y4
	VMULPS Y2, Y4, Y4
	VBROADCASTSS 20(SI), Y5
	VADDPS Y5, Y4, Y4
	VMULPS Y2, Y4, Y4
	VBROADCASTSS 24(SI), Y5
	VADDPS Y5, Y4, Y4
	VMULPS Y2, Y4, Y4
	VBROADCASTSS 28(SI), Y5
	VADDPS Y5, Y4, Y4
	VMULPS Y2, Y4, Y4
	VBROADCASTSS 32(SI), Y5
	VADDPS Y5, Y4, Y4
	VMULPS Y2, Y4, Y4
	VMULPS Y2, Y2, Y5        // f²
	VMULPS Y5, Y4, Y4
	VBROADCASTSS lnLow<>(SB), Y6
	VMULPS Y6, Y3, Y6
	VADDPS Y6, Y4, Y4
	VBROADCASTSS lnHalfOne<>(SB), Y6
	VMULPS Y6, Y5, Y5
	VSUBPS Y5, Y4, Y4
	VADDPS Y4, Y2, Y4
	VBROADCASTSS lnHigh<>(SB), Y6
	VMULPS Y6, Y3, Y6
	VADDPS Y6, Y4, Y4
	VPCMPGTD Y14, Y0, Y5     // above 0
	VPCMPGTD Y0, Y13, Y6     // finite
	VANDPS Y6, Y5, Y5
	VBLENDVPS Y5, Y4, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET
