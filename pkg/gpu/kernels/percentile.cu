// A percentile of magnitudes (pkg/filter/magnitude_percentile.go): the keys of |v|, which are its
// bits as float, are counted one by one, or several to a bin, in a stretch of them; what lies below and
// above it is only counted. Integers of up to 16 bits have a counter for each magnitude.
#include "few.cuh"
#include "finite.cuh"
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
    return finite(v);
}

// What a thread counts. Neighbours often have the same key: it remembers the last bin and
// adds it up when another comes, by add(bin, n).
template <class F> struct Keys {
    unsigned low, size; // of the first bin; bins
    int shift;
    F add;
    unsigned last = 0, n = 0, below = 0, above = 0, bad = 0;
    template <class T> __device__ __forceinline__ void count(T v)
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
        if (n) add(last, n);
        n = 0;
    }
};

// elements calls f for those of n elements that are this thread's, V side by side; V 1: one by one.
template <int V, class T, class F> __device__ __forceinline__ void elements(const T* __restrict__ in, i64 n, F f)
{
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, all = (i64)gridDim.x * blockDim.x;
    const i64 whole = V == 1 ? 0 : n / V;
    for (i64 i = first; i < whole; i += all) {
        const Few<T, V> v = few<V>(in + V * i);
#pragma unroll
        for (int j = 0; j < V; j++) f(v.v[j]);
    }
    for (i64 i = V * whole + first; i < n; i += all) f(in[i]);
}

// keys: table[i] += how many of n elements have the key low + i·2^shift …; rest += those
// below, those above and those that are no numbers. A thread sees fewer than 2^32.
// Bytes per element: sizeof(T) read.
template <class T, int V>
__device__ __forceinline__ void keys(const T* __restrict__ in, u64* __restrict__ table, u64* __restrict__ rest, i64 n, unsigned low, int shift, unsigned size)
{
    __shared__ u64 sums[3];
    if (threadIdx.x < 3) sums[threadIdx.x] = 0;
    __syncthreads();
    auto add = [&](unsigned bin, unsigned n) { atomicAdd(&table[bin], (u64)n); };
    Keys<decltype(add)> k{low, size, shift, add};
    elements<V>(in, n, [&](T v) { k.count(v); });
    k.flush();
    if (k.below) atomicAdd(&sums[0], (u64)k.below);
    if (k.above) atomicAdd(&sums[1], (u64)k.above);
    if (k.bad) atomicAdd(&sums[2], (u64)k.bad);
    __syncthreads();
    if (threadIdx.x < 3 && sums[threadIdx.x]) atomicAdd(&rest[threadIdx.x], sums[threadIdx.x]);
}

// counts: table[m] += how many of n elements have the magnitude m, of types of up to 16 bits.
// A block counts in shared memory. Of the magnitudes that are the same modulo SLOTS one has the slot: of those that
// the block sees first the least. The others are counted in the table; those that many elements have are rarely
// among them. A block sees fewer than 2^32 elements. Bytes per element: sizeof(T) read.
enum : int { SLOTS = 2048 };

template <class T>
__device__ __forceinline__ void counts(const T* __restrict__ in, u64* __restrict__ table, i64 n)
{
    constexpr int V = 16 / sizeof(T);
    __shared__ unsigned owners[SLOTS], sums[SLOTS];
    for (int i = threadIdx.x; i < SLOTS; i += blockDim.x) {
        owners[i] = sizeof(T) == 1 ? i : 0xffffffffu;
        sums[i] = 0;
    }
    __syncthreads();
    if (sizeof(T) > 1) {
        const i64 first = V * ((i64)blockIdx.x * blockDim.x + threadIdx.x);
        if (first + V <= n) {
            const Few<T, V> v = few<V>(in + first);
#pragma unroll
            for (int j = 0; j < V; j++) {
                unsigned key;
                key_of(v.v[j], &key);
                atomicMin(&owners[key % SLOTS], key);
            }
        }
        __syncthreads();
    }
    auto add = [&](unsigned key, unsigned n) {
        if (owners[key % SLOTS] == key) atomicAdd(&sums[key % SLOTS], n);
        else atomicAdd(&table[key], (u64)n);
    };
    Keys<decltype(add)> k{0, 1 << 16, 0, add};
    elements<V>(in, n, [&](T v) { k.count(v); });
    k.flush();
    __syncthreads();
    for (int i = threadIdx.x; i < SLOTS; i += blockDim.x)
        if (sums[i]) atomicAdd(&table[owners[i]], (u64)sums[i]);
}

#define COUNTS(NAME, T)                                                        \
    extern "C" __global__ void __launch_bounds__(256) counts_##NAME(           \
        const T* __restrict__ in, u64* __restrict__ table, i64 n)              \
    {                                                                          \
        counts(in, table, n);                                                  \
    }
COUNTS(u8, unsigned char)
COUNTS(i8, signed char)
COUNTS(u16, unsigned short)
COUNTS(i16, short)

#define KEYS(NAME, T, V)                                                       \
    extern "C" __global__ void __launch_bounds__(256) keys_##NAME(             \
        const T* __restrict__ in, u64* __restrict__ table, u64* __restrict__ rest, i64 n, unsigned low, int shift, unsigned size) \
    {                                                                          \
        keys<T, V>(in, table, rest, n, low, shift, size);                      \
    }
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
