// What float becomes in another element type: filter.FromFloat32. Integers round half to
// even and are clamped; the limits as float are the numbers themselves, or the power of
// two behind the largest. NaN becomes 0.
// Of double likewise: dtype.ConvertSlice.
#pragma once

template <class T> __device__ __forceinline__ T rounded(float v);
template <> __device__ __forceinline__ float rounded<float>(float v) { return v; }
template <> __device__ __forceinline__ double rounded<double>(float v) { return v; }
// Of 8 and 16 bits float has all numbers, and nothing branches: limits are applied before rounding.
#define ROUNDED_SMALL(T, LO, HI)                                              \
    template <> __device__ __forceinline__ T rounded<T>(float v)              \
    {                                                                         \
        const float r = rintf(fminf(fmaxf(v, (float)(LO)), (float)(HI)));     \
        return (T)(int)(v == v ? r : 0);                                      \
    }
ROUNDED_SMALL(unsigned char, 0, 255)
ROUNDED_SMALL(signed char, -128, 127)
ROUNDED_SMALL(unsigned short, 0, 65535)
ROUNDED_SMALL(short, -32768, 32767)
#define ROUNDED(T, LO, HI)                                          \
    template <> __device__ __forceinline__ T rounded<T>(float v)    \
    {                                                               \
        if (v != v) return 0;                                       \
        const float r = rintf(v);                                   \
        return r <= (float)(LO) ? (T)(LO) : r >= (float)(HI) ? (T)(HI) : (T)r; \
    }
ROUNDED(unsigned int, 0, 4294967295ull)
ROUNDED(int, -2147483648ll, 2147483647)
ROUNDED(unsigned long long, 0, 18446744073709551615ull)
ROUNDED(long long, (-9223372036854775807ll - 1), 9223372036854775807ull)

template <class T> __device__ __forceinline__ T rounded(double v);
template <> __device__ __forceinline__ double rounded<double>(double v) { return v; }
#define ROUNDED_F64(T, LO, HI)                                       \
    template <> __device__ __forceinline__ T rounded<T>(double v)    \
    {                                                                \
        if (v != v) return 0;                                        \
        const double r = rint(v);                                    \
        return r <= (double)(LO) ? (T)(LO) : r >= (double)(HI) ? (T)(HI) : (T)r; \
    }
ROUNDED_F64(unsigned int, 0, 4294967295ull)
ROUNDED_F64(int, -2147483648ll, 2147483647)
ROUNDED_F64(unsigned long long, 0, 18446744073709551615ull)
ROUNDED_F64(long long, (-9223372036854775807ll - 1), 9223372036854775807ull)
