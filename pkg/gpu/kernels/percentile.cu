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

// counts: table[m] += how many of n elements have the magnitude m, of types of up to 16 bits. A block counts in shared
// memory and adds to the table at its end. It sees fewer than 2^32 elements. Bytes per element: sizeof(T) read.

// Of 8 bits, each lane has a counter of a byte for each magnitude, so that there are no atomics; those of four magnitudes
// are a word in the lane's own bank of shared memory. A warp adds its lanes' counters before one can overflow.
enum : int { BYTE_WARPS = 4, BYTE_WORDS = 64 }; // of a block; of a lane

template <class T> __device__ __forceinline__ void counts_of_bytes(const T* __restrict__ in, u64* __restrict__ table, i64 n)
{
    constexpr int V = 16, room = 255 / V * V; // elements of a lane between two sums
    __shared__ unsigned words[BYTE_WARPS * BYTE_WORDS * 32], sums[4 * BYTE_WORDS];
    const int lane = threadIdx.x % 32;
    unsigned* const own = words + threadIdx.x / 32 * (BYTE_WORDS * 32); // this warp's
    unsigned char* const bytes = (unsigned char*)(own + lane);
    for (int i = threadIdx.x; i < 4 * BYTE_WORDS; i += blockDim.x) sums[i] = 0;
#pragma unroll 1
    for (int w = 0; w < BYTE_WORDS; w++) own[w * 32 + lane] = 0;
    __syncthreads();
    auto count = [&](T v) {
        unsigned key;
        key_of(v, &key);
        bytes[(key & 0xfcu) << 5 | (key & 3)]++;
    };
    // sum_up adds the lanes' counters of four magnitudes each, in shares of 16 bits, and begins anew.
    auto sum_up = [&] {
        __syncwarp();
#pragma unroll 1
        for (int w = lane; w < BYTE_WORDS; w += 32) {
            unsigned even = 0, odd = 0;
#pragma unroll 8
            for (int i = 0; i < 32; i++) {
                unsigned& of = own[w * 32 + (lane + i) % 32]; // each lane another bank
                even += of & 0x00ff00ffu;
                odd += of >> 8 & 0x00ff00ffu;
                of = 0;
            }
            if (even & 0xffffu) atomicAdd(&sums[4 * w], even & 0xffffu);
            if (odd & 0xffffu) atomicAdd(&sums[4 * w + 1], odd & 0xffffu);
            if (even >> 16) atomicAdd(&sums[4 * w + 2], even >> 16);
            if (odd >> 16) atomicAdd(&sums[4 * w + 3], odd >> 16);
        }
        __syncwarp();
    };
    const i64 all = (i64)gridDim.x * blockDim.x, warp = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32 * 32, whole = n / V;
    int left = room;
    Few<T, V> next = {};
    if (warp + lane < whole) next = few<V>(in + V * (warp + lane));
#pragma unroll 1
    for (i64 i = warp; i < whole; i += all) { // the lanes of a warp turn back together
        const Few<T, V> v = next;
        if (i + lane + all < whole) next = few<V>(in + V * (i + lane + all));
        if (i + lane < whole) {
#pragma unroll
            for (int j = 0; j < V; j++) count(v.v[j]);
        }
        if ((left -= V) == 0) {
            sum_up();
            left = room;
        }
    }
    if (warp == 0 && V * whole + lane < n) { // fewer than V are left
        count(in[V * whole + lane]);
    }
    sum_up();
    __syncthreads();
    for (int i = threadIdx.x; i < 4 * BYTE_WORDS; i += blockDim.x)
        if (sums[i]) atomicAdd(&table[i], (u64)sums[i]);
}

// Of 16 bits, a block has counters of 10 bits, three to a word, for KEYS magnitudes. All of int16 are that many; of uint16, every other
// block has the magnitudes from KEYS on, and the same elements as its neighbour. A thread whose counter is at FULL moves it
// to the table before it goes on, so that a counter exceeds FULL by no more than the block's 256 threads. Neighbours that are the same
// are counted at once, in one of OWNERS counters of 32 bits that the first magnitude owns which comes to it, or in the table.
enum : int { KEYS = 32769, WORDS = KEYS / 3, FULL = 1024 - 256, OWNERS = 64 };

struct Counters {
    unsigned *words, *owners, *sums; // in shared memory
    u64* table;
    unsigned low; // the first magnitude
    unsigned last = 0, n = 0; // n neighbours are last
    __device__ __forceinline__ void count(unsigned key)
    {
        if (key - low >= KEYS) return;
        if (key != last) {
            flush();
            last = key;
        }
        n++;
    }
    __device__ __forceinline__ void flush()
    {
        if (n == 1) one();
        else if (n) several();
        n = 0;
    }
    __device__ __forceinline__ void one()
    {
        const unsigned k = last - low, shift = k % 3 * 10;
        unsigned* word = words + k / 3;
        const unsigned old = atomicAdd(word, 1u << shift);
        if ((old >> shift & 1023u) < FULL) return;
        unsigned now = old + (1u << shift);
        for (unsigned many; (many = now >> shift & 1023u) >= FULL;) {
            const unsigned before = atomicCAS(word, now, now - (many << shift));
            if (before == now) {
                atomicAdd(&table[last], (u64)many);
                return;
            }
            now = before;
        }
    }
    __device__ __forceinline__ void several()
    {
        const unsigned place = last % OWNERS, owner = atomicCAS(&owners[place], KEYS * 2u, last);
        if (owner == KEYS * 2u || owner == last) atomicAdd(&sums[place], n);
        else atomicAdd(&table[last], (u64)n);
    }
};

template <class T> __device__ __forceinline__ void counts_of_words(const T* __restrict__ in, u64* __restrict__ table, i64 n)
{
    constexpr int V = 8, halves = (T)-1 < 0 ? 1 : 2;
    __shared__ unsigned words[WORDS], owners[OWNERS], sums[OWNERS];
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = 0;
    for (int i = threadIdx.x; i < OWNERS; i += blockDim.x) {
        owners[i] = KEYS * 2u; // nobody
        sums[i] = 0;
    }
    __syncthreads();
    const unsigned low = blockIdx.x % halves * KEYS;
    Counters c{words, owners, sums, table, low};
    const i64 first = (i64)(blockIdx.x / halves) * blockDim.x + threadIdx.x, all = (i64)(gridDim.x / halves) * blockDim.x, whole = n / V;
    auto count = [&](T v) {
        unsigned key;
        key_of(v, &key);
        c.count(key);
    };
    Few<T, V> next = {};
    if (first < whole) next = few<V>(in + V * first);
#pragma unroll 1
    for (i64 i = first; i < whole; i += all) {
        const Few<T, V> v = next;
        if (i + all < whole) next = few<V>(in + V * (i + all));
#pragma unroll
        for (int j = 0; j < V; j++) count(v.v[j]);
    }
#pragma unroll 1
    for (i64 i = V * whole + first; i < n; i += all) count(in[i]);
    c.flush();
    __syncthreads();
    for (unsigned k = threadIdx.x; k < KEYS; k += blockDim.x) {
        const unsigned n = words[k / 3] >> k % 3 * 10 & 1023u;
        if (n) atomicAdd(&table[low + k], (u64)n);
    }
    for (int i = threadIdx.x; i < OWNERS; i += blockDim.x)
        if (sums[i]) atomicAdd(&table[owners[i]], (u64)sums[i]);
}

template <class T> __device__ __forceinline__ void counts(const T* __restrict__ in, u64* __restrict__ table, i64 n)
{
    if constexpr (sizeof(T) == 1) counts_of_bytes(in, table, n);
    else counts_of_words(in, table, n);
}

#define COUNTS(NAME, T, THREADS)                                               \
    extern "C" __global__ void __launch_bounds__(THREADS) counts_##NAME(       \
        const T* __restrict__ in, u64* __restrict__ table, i64 n)              \
    {                                                                          \
        counts(in, table, n);                                                  \
    }
COUNTS(u8, unsigned char, 32 * BYTE_WARPS)
COUNTS(i8, signed char, 32 * BYTE_WARPS)
COUNTS(u16, unsigned short, 256)
COUNTS(i16, short, 256)

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
