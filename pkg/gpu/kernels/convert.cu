// Conversions of element types: pkg/filter/convert.go.
#include "convert.cuh"

// Bytes per element: 4 read, sizeof(T) written.
#define FROM_F32(NAME, T)                                                     \
    extern "C" __global__ void __launch_bounds__(256) from_f32_##NAME(        \
        const float* __restrict__ in, T* __restrict__ out, long long n)       \
    {                                                                         \
        const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; \
        if (i < n) out[i] = rounded<T>(in[i]);                                \
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
