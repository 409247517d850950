// Conversions of element types: pkg/filter/convert.go.
#include "convert.cuh"
#include "few.cuh"

// Bytes per element: 4 read, sizeof(T) written. A thread has four neighbours.
#define FROM_F32(NAME, T)                                                     \
    extern "C" __global__ void __launch_bounds__(256) from_f32_##NAME(        \
        const float* __restrict__ in, T* __restrict__ out, long long n)       \
    {                                                                         \
        each<4>(n, begins<4>(in) && begins<4>(out), [&](long long i, auto width) { \
            constexpr int N = decltype(width)::n;                             \
            const Few<float, N> v = few<N>(in + i);                           \
            Few<T, N> r;                                                      \
            for (int k = 0; k < N; k++) r.v[k] = rounded<T>(v.v[k]);          \
            put(out + i, r);                                                  \
        });                                                                   \
    }

FROM_F32(u8, unsigned char)
FROM_F32(i8, signed char)
FROM_F32(u16, unsigned short)
FROM_F32(i16, short)
FROM_F32(u32, unsigned int)
FROM_F32(i32, int)
FROM_F32(u64, unsigned long long)
FROM_F32(i64, long long)
FROM_F32(f64, double)
