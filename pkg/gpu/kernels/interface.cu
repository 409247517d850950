// The tissue interface: pkg/filter/interface.go and mean_filter.go, bit by bit.
#include "line.cuh"

// ln is the logarithm of filter.Ln: Cephes' minimax polynomial in float.
__device__ __forceinline__ float ln(float v)
{
    int bits = __float_as_int(v), e = 0;
    if (bits < 0x00800000) { // subnormal
        bits = __float_as_int(v * 8388608.0f);
        e = -23;
    }
    const int k = (bits - 0x3f3504f3) >> 23;
    e += k;
    const float f = __int_as_float(bits - (k << 23)) - 1;
    float p = 7.0376836292e-2f;
    p = p * f + -1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f + -1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f + -1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f + -2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    const float square = f * f, x = (float)e;
    p = (p * f) * square;
    p += x * -2.12194440e-4f;
    p -= 0.5f * square;
    return (f + p) + x * 0.693359375f;
}

// magnitudes: |v| in float, at most clip, NaN and infinities 0; its logarithm where
// it is above 0, if log. Bytes per voxel: sizeof(T) read, 4 written.
template <class T> __device__ __forceinline__ void magnitudes(const T* __restrict__ in, float* __restrict__ out, long long n, float clip, int log)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int b = __float_as_int((float)in[i]) & 0x7fffffff;
    float v = __int_as_float(b);
    if (b >= 0x7f800000) v = 0;
    if (v > clip) v = clip;
    if (log && v > 0) v = ln(v);
    out[i] = v;
}

#define MAGNITUDES(NAME, T)                                                    \
    extern "C" __global__ void __launch_bounds__(256) magnitudes_##NAME(       \
        const T* __restrict__ in, float* __restrict__ out, long long n, float clip, int log) \
    {                                                                          \
        magnitudes(in, out, n, clip, log);                                     \
    }

MAGNITUDES(u8, unsigned char)
MAGNITUDES(i8, signed char)
MAGNITUDES(u16, unsigned short)
MAGNITUDES(i16, short)
MAGNITUDES(u32, unsigned int)
MAGNITUDES(i32, int)
MAGNITUDES(u64, unsigned long long)
MAGNITUDES(i64, long long)
MAGNITUDES(f32, float)
MAGNITUDES(f64, double)

// mirror folds index i into 0…n−1, the edge repeated: (d c b a | a b c d | d c b a).
__device__ __forceinline__ int mirror(int i, int n)
{
    if (i >= 0 && i < n) return i;
    i %= 2 * n;
    if (i < 0) i += 2 * n;
    return i < n ? i : 2 * n - 1 - i;
}

// window_mean along the middle axis: in, out (outer, n, inner); window of w samples,
// i−w/2 … i+(w−1)/2. Bytes per voxel: 4 read (the window is in the cache), 4 written.
extern "C" __global__ void __launch_bounds__(256, 4) window_mean(
    const float* __restrict__ in, float* __restrict__ out, int outer, int n, long long inner, int w)
{
    const float tap = 1.0f / w;
    EACH_LINE(at, n, outer, inner)
    {
        const int from = at.i - w / 2;
        const long long line = (long long)at.outer * n * inner + at.x;
        const float* src = in + line;
        float sum = tap * src[mirror(from, n) * inner];
        for (int k = 1; k < w; k++) sum += tap * src[mirror(from + k, n) * inner];
        out[line + at.i * inner] = sum;
    }
}

// steepest: where the derivative along z of each of n A-lines is largest, the first
// maximum, in planes 0…limit−1 of nz; and what it is there. The derivative is
// Σ_k weights[k]·(v[z+radius−k] − v[z−radius+k]), mirrored at the ends.
// Bytes per voxel: 4 read (each plane comes radius times from the cache); per A-line: 8 written.
extern "C" __global__ void __launch_bounds__(256) steepest(
    const float* __restrict__ in, int* __restrict__ arg, float* __restrict__ peak, const float* __restrict__ weights,
    int radius, long long n, int nz, int limit)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* v = in + i;
    float best = __int_as_float(0xff800000); // -infinity
    int at = 0;
    for (int z = 0; z < limit; z++) {
        float sum = 0;
        for (int k = 0; k < radius; k++) {
            const int d = radius - k;
            sum += weights[k] * (v[mirror(z + d, nz) * n] - v[mirror(z - d, nz) * n]);
        }
        if (sum > best) {
            best = sum;
            at = z;
        }
    }
    arg[i] = at;
    peak[i] = best;
}
