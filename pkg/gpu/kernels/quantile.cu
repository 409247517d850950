// Exact percentiles: the digits of the values' sort keys are counted, the upper 11 bits of
// all, then the next 11 and the last 10 of those whose bits above are known
// (pkg/filter/quantile.go).
typedef long long i64;
typedef unsigned long long u64;

// A digit of keys: those whose bits above it are prefix.
struct Digit {
    unsigned prefix;
    int shift, bits;
};

// The sort key of a value, of its magnitude if asked for. NaN has none, and of
// magnitudes infinity has none.
__device__ __forceinline__ bool key_of(float v, int magnitude, unsigned* key)
{
    const unsigned b = (unsigned)__float_as_int(v), m = b & 0x7fffffffu;
    *key = magnitude ? m | 0x80000000u : b >> 31 ? ~b : b | 0x80000000u;
    return magnitude ? m < 0x7f800000u : v == v;
}

// Counts that a block shares. Neighbours often have the same digit: a thread remembers the
// last one and adds it up when another comes.
struct Counter {
    unsigned* counts;
    int last;
    unsigned n;
    __device__ __forceinline__ void add(unsigned key, Digit d)
    {
        if ((u64)key >> (d.shift + d.bits) != d.prefix) return;
        const int bin = (int)(key >> d.shift & ((1u << d.bits) - 1));
        if (bin == last) {
            n++;
            return;
        }
        flush();
        last = bin;
        n = 1;
    }
    __device__ __forceinline__ void flush()
    {
        if (n) atomicAdd(&counts[last], n);
    }
};

__device__ __forceinline__ void begin(unsigned* counts)
{
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) counts[i] = 0;
    __syncthreads();
}

__device__ __forceinline__ void finish(Counter& c, u64* __restrict__ hist)
{
    c.flush();
    __syncthreads();
    for (int i = threadIdx.x; i < 2048; i += blockDim.x)
        if (c.counts[i]) atomicAdd(&hist[i], (u64)c.counts[i]);
}

// digits: hist[d] += how many of n elements have digit d. A block sees fewer than 2^32.
// Bytes per element: sizeof(T) read.
#define DIGITS(NAME, T)                                                                       \
    extern "C" __global__ void __launch_bounds__(256) digits_##NAME(                          \
        const T* __restrict__ in, u64* __restrict__ hist, i64 n, int magnitude, unsigned prefix, int shift, int bits) \
    {                                                                                         \
        __shared__ unsigned counts[2048];                                                     \
        const Digit d{prefix, shift, bits};                                                   \
        Counter c{counts, -1, 0};                                                             \
        begin(counts);                                                                        \
        for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) { \
            unsigned key;                                                                     \
            if (key_of((float)in[i], magnitude, &key)) c.add(key, d);                         \
        }                                                                                     \
        finish(c, hist);                                                                      \
    }
DIGITS(u8, unsigned char)
DIGITS(i8, signed char)
DIGITS(u16, unsigned short)
DIGITS(i16, short)
DIGITS(u32, unsigned int)
DIGITS(i32, int)
DIGITS(u64, u64)
DIGITS(i64, i64)
DIGITS(f32, float)
DIGITS(f64, double)

// digits_common: the same of the voxels of a where a and b are above 0.
// Bytes per voxel: 8 read.
extern "C" __global__ void __launch_bounds__(256) digits_common(const float* __restrict__ a, const float* __restrict__ b, u64* __restrict__ hist, int nz, int ny, int nx,
                                                                i64 a_pitch, i64 a_stride, i64 b_pitch, i64 b_stride, unsigned prefix, int shift, int bits)
{
    __shared__ unsigned counts[2048];
    const Digit d{prefix, shift, bits};
    Counter c{counts, -1, 0};
    begin(counts);
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
        for (int y = blockIdx.y; y < ny; y += gridDim.y) {
            const float* p = a + z * a_stride + y * a_pitch;
            const float* q = b + z * b_stride + y * b_pitch;
            for (int x = threadIdx.x; x < nx; x += blockDim.x) {
                unsigned key;
                if (p[x] > 0 && q[x] > 0 && key_of(p[x], 0, &key)) c.add(key, d);
            }
        }
    finish(c, hist);
}
