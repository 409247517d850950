// Weighted sums along an axis: pkg/filter/weights.go. The weights of an output are
// taps[start[i]] … taps[start[i+1]-1] and stand on inputs first[i] and those behind it.
// Sums are in float, in increasing tap, products rounded before they are added, and
// begin with the first product: the bits of filter.Combine.
#include "line.cuh"

// along: out (outer, n_out, inner) from in (outer, n_in, inner).
// Bytes per input voxel, where each takes part once: sizeof(T); per output voxel: 4.
template <class T>
__device__ __forceinline__ void along(const T* __restrict__ in, float* __restrict__ out, const int* __restrict__ first, const int* __restrict__ start,
                                      const float* __restrict__ taps, int outer, int n_in, int n_out, long long inner)
{
    EACH_LINE(at, n_out, outer, inner)
    {
        const T* src = in + ((long long)at.outer * n_in + first[at.i]) * inner + at.x;
        const int a = start[at.i], b = start[at.i + 1];
        float sum = 0;
        if (a < b) sum = taps[a] * (float)*src;
        for (int k = a + 1; k < b; k++) {
            src += inner;
            sum += taps[k] * (float)*src;
        }
        out[((long long)at.outer * n_out + at.i) * inner + at.x] = sum;
    }
}

#define ALONG(NAME, T)                                                                                          \
    extern "C" __global__ void __launch_bounds__(256, 4) along_##NAME(                                             \
        const T* __restrict__ in, float* __restrict__ out, const int* __restrict__ first, const int* __restrict__ start, \
        const float* __restrict__ taps, int outer, int n_in, int n_out, long long inner)                        \
    {                                                                                                           \
        along(in, out, first, start, taps, outer, n_in, n_out, inner);                                            \
    }

ALONG(u8, unsigned char)
ALONG(i8, signed char)
ALONG(u16, unsigned short)
ALONG(i16, short)
ALONG(u32, unsigned int)
ALONG(i32, int)
ALONG(u64, unsigned long long)
ALONG(i64, long long)
ALONG(f32, float)
ALONG(f64, double)
