// A percentile of magnitudes (pkg/filter/magnitude_percentile.go): the keys of |v|, which are its
// bits as float, or itself for integers of up to 16 bits, are counted one by one, or several to
// a bin, in a stretch of them; what lies below and above it is only counted.
#include "four.cuh"
typedef long long i64;
typedef unsigned long long u64;

// key_of is false for NaN and infinities. What is finite as T only is 0.
template <class T> __device__ __forceinline__ bool key_of(T v, unsigned* key)
{
    *key = (unsigned)__float_as_int((float)v) & 0x7fffffffu;
    return *key < 0x7f800000u;
}
#define SMALL(T)                                                                  \
    template <> __device__ __forceinline__ bool key_of<T>(T v, unsigned* key)     \
    {                                                                             \
        *key = (unsigned)(v < 0 ? -(int)v : (int)v);                              \
        return true;                                                              \
    }
SMALL(unsigned char)
SMALL(signed char)
SMALL(unsigned short)
SMALL(short)
template <> __device__ __forceinline__ bool key_of<double>(double v, unsigned* key)
{
    *key = (unsigned)__float_as_int((float)v) & 0x7fffffffu;
    if (*key < 0x7f800000u) return true;
    *key = 0;
    return v - v == 0;
}

// What a thread counts. Neighbours often have the same key: it remembers the last bin and
// adds it up when another comes.
struct Keys {
    u64* table;
    unsigned low, size; // of the first bin; bins
    int shift;
    unsigned last, n, below, above, bad;
    template <class T> __device__ __forceinline__ void add(T v)
    {
        unsigned key;
        if (!key_of(v, &key)) {
            bad++;
            return;
        }
        if (key < low) {
            below++;
            return;
        }
        const unsigned bin = (key - low) >> shift;
        if (bin >= size) {
            above++;
            return;
        }
        if (bin != last) {
            flush();
            last = bin;
        }
        n++;
    }
    __device__ __forceinline__ void flush()
    {
        if (n) atomicAdd(&table[last], (u64)n);
        n = 0;
    }
};

// keys: table[i] += how many of n elements have the key low + i·2^shift …; rest += those
// below, those above and those that are no numbers. A thread sees fewer than 2^32.
// Bytes per element: sizeof(T) read.
template <class T, int V>
__device__ __forceinline__ void keys(const T* __restrict__ in, u64* __restrict__ table, u64* __restrict__ rest, i64 n, unsigned low, int shift, unsigned size)
{
    __shared__ u64 sums[3];
    if (threadIdx.x < 3) sums[threadIdx.x] = 0;
    __syncthreads();
    Keys k{table, low, size, shift, 0, 0, 0, 0, 0};
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, all = (i64)gridDim.x * blockDim.x;
    const i64 whole = V == 1 ? 0 : n / V;
    for (i64 i = first; i < whole; i += all) {
        const Four<T> v = four(in + V * i);
#pragma unroll
        for (int j = 0; j < V; j++) k.add(v.v[j % 4]);
    }
    for (i64 i = V * whole + first; i < n; i += all) k.add(in[i]);
    k.flush();
    if (k.below) atomicAdd(&sums[0], (u64)k.below);
    if (k.above) atomicAdd(&sums[1], (u64)k.above);
    if (k.bad) atomicAdd(&sums[2], (u64)k.bad);
    __syncthreads();
    if (threadIdx.x < 3 && sums[threadIdx.x]) atomicAdd(&rest[threadIdx.x], sums[threadIdx.x]);
}

#define KEYS(NAME, T, V)                                                       \
    extern "C" __global__ void __launch_bounds__(256) keys_##NAME(             \
        const T* __restrict__ in, u64* __restrict__ table, u64* __restrict__ rest, i64 n, unsigned low, int shift, unsigned size) \
    {                                                                          \
        keys<T, V>(in, table, rest, n, low, shift, size);                      \
    }
KEYS(u8, unsigned char, 4)
KEYS(i8, signed char, 4)
KEYS(u16, unsigned short, 4)
KEYS(i16, short, 4)
KEYS(u32, unsigned int, 4)
KEYS(i32, int, 4)
KEYS(u64, u64, 1)
KEYS(i64, i64, 1)
KEYS(f32, float, 4)
KEYS(f64, double, 1)

// key_sums: sums[b] = the sum of bins 4096·b … 4096·b+4095 of a table; a block each.
// Bytes per bin: 8 read.
extern "C" __global__ void __launch_bounds__(256) key_sums(const u64* __restrict__ table, u64* __restrict__ sums)
{
    __shared__ u64 sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    u64 mine = 0;
    for (int i = threadIdx.x; i < 4096; i += 256) mine += table[(i64)blockIdx.x * 4096 + i];
    if (mine) atomicAdd(&sum, mine);
    __syncthreads();
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
