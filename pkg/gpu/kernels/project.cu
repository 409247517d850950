// Projections along z: pkg/filter/project.go, bit by bit.
#include "few.cuh"
#include "finite.cuh"

// add_planes: acc[i] += in[z*n + i] for z = 0, 1, …, in double and in this order; from
// zero if begin. Non-finite voxels are counted in bad.
// Bytes per voxel: sizeof(T) read; per pixel: 8 read, 8 written.

// add_in_order gives a thread one pixel, so that small planes have many threads.
template <class T>
__device__ __forceinline__ void add_in_order(const T* __restrict__ in, double* __restrict__ acc, unsigned long long* __restrict__ bad, long long n, int nz, int begin)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = begin ? 0 : acc[i];
    int count = 0;
#pragma unroll 8 // loads under way
    for (int z = 0; z < nz; z++) {
        const T v = in[z * n + i];
        count += !finite(v);
        sum += (double)v;
    }
    acc[i] = sum;
    if (count) atomicAdd(bad, (unsigned long long)count);
}

// Sums of integers are exact in double, in any order (filter.AddPlanes): those of 8 and 16 bits are made of
// integers, by blocks of LANES × SLICES threads. A slice has every SLICES-th plane, and a lane as many pixels as it reads in 16
// bytes, where planes begin at multiples of these; else in 4 bytes, or one. The slices' sums are added in shared memory.
enum : int { LANES = 32, SLICES = 8, MOST_PLANES = 1 << 16, AHEAD = 8 }; // planes whose sum fits into 32 bits; loads under way

// Sums are of the elements of WORDS words, without a sign.
template <int SIZE, int WORDS> struct Sums {
    enum { each = 4 / SIZE, all = each * WORDS, room = 256 }; // room: that many bytes fit into 16 bits
    unsigned sum[all] = {};
    unsigned pair[SIZE == 1 ? 2 * WORDS : 1] = {}; // bytes 0 and 2, bytes 1 and 3, in 16 bits each
    __device__ __forceinline__ void add(int w, unsigned v)
    {
        if constexpr (SIZE == 1) {
            pair[2 * w] += v & 0x00ff00ffu;
            pair[2 * w + 1] += v >> 8 & 0x00ff00ffu;
        } else {
            sum[2 * w] += v & 0xffffu;
            sum[2 * w + 1] += v >> 16;
        }
    }
    __device__ __forceinline__ void widen() // after at most room additions
    {
        if constexpr (SIZE == 1)
#pragma unroll
            for (int p = 0; p < 2 * WORDS; p++) {
                const int k = p / 2 * 4 + p % 2;
                sum[k] += pair[p] & 0xffffu;
                sum[k + 2] += pair[p] >> 16;
                pair[p] = 0;
            }
    }
};

// add_words adds a slice of nz planes, from in on, to the block's sums: the pixel k of a lane is at k · (LANES + 1) + lane. flip
// makes numbers with a sign those without.
template <int SIZE, int WORDS>
__device__ __forceinline__ void add_words(const void* __restrict__ in, long long plane, int nz, unsigned flip, unsigned* __restrict__ sums)
{
    Sums<SIZE, WORDS> own;
    int z = threadIdx.y;
#pragma unroll 1
    while (z < nz) {
        const int end = min(nz, z + own.room * SLICES);
        auto at = [&](int z) { return few<WORDS>((const unsigned*)((const char*)in + z * plane)); };
        auto add = [&](const Few<unsigned, WORDS>& v) {
#pragma unroll
            for (int w = 0; w < WORDS; w++) own.add(w, v.v[w] ^ flip);
        };
#pragma unroll 1
        for (; z + (AHEAD - 1) * SLICES < end; z += AHEAD * SLICES) {
            Few<unsigned, WORDS> v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) v[k] = at(z + k * SLICES);
#pragma unroll
            for (int k = 0; k < AHEAD; k++) add(v[k]);
        }
#pragma unroll 1
        for (; z < end; z += SLICES) add(at(z));
        own.widen();
    }
#pragma unroll
    for (int k = 0; k < own.all; k++) atomicAdd(&sums[k * (LANES + 1) + threadIdx.x], own.sum[k]);
}

// add_elements does the same of one pixel, whose least number is low.
template <class T> __device__ __forceinline__ void add_elements(const T* __restrict__ in, long long n, int nz, int low, unsigned* __restrict__ sums)
{
    unsigned sum = 0;
#pragma unroll 8 // loads under way
    for (int z = threadIdx.y; z < nz; z += SLICES) sum += (unsigned)((int)in[z * n] - low);
    atomicAdd(&sums[threadIdx.x], sum);
}

template <class T> __device__ __forceinline__ void add_exactly(const T* __restrict__ in, double* __restrict__ acc, long long n, int nz, int begin)
{
    constexpr int SIZE = sizeof(T), most = 16 / SIZE, threads = LANES * SLICES;
    constexpr int low = (T)-1 < 0 ? -(1 << (8 * SIZE - 1)) : 0;
    constexpr unsigned flip = low == 0 ? 0 : SIZE == 1 ? 0x80808080u : 0x80008000u;
    __shared__ unsigned sums[most * (LANES + 1)];
    const int t = threadIdx.y * LANES + threadIdx.x;
    const unsigned long long begins = (unsigned long long)in | (unsigned long long)(n * SIZE);
    const int each = begins % 16 == 0 ? most : begins % 4 == 0 ? 4 / SIZE : 1; // pixels of a lane
    const long long first = (long long)blockIdx.x * LANES * most;
#pragma unroll 1
    for (long long from = first; from < n && from < first + LANES * most; from += LANES * each) {
        int z = 0;
#pragma unroll 1
        do {
            const int planes = min(nz - z, (int)MOST_PLANES);
            for (int k = t; k < each * (LANES + 1); k += threads) sums[k] = 0;
            __syncthreads();
            if (const long long i = from + threadIdx.x * each; i < n) {
                const T* v = in + z * n + i;
                if (each == most) add_words<SIZE, 4>(v, n * SIZE, planes, flip, sums);
                else if (each > 1) add_words<SIZE, 1>(v, n * SIZE, planes, flip, sums);
                else add_elements(v, n, planes, low, sums);
            }
            __syncthreads();
            for (int p = t; p < LANES * each && from + p < n; p += threads) {
                const long long sum = (long long)low * planes + sums[p % each * (LANES + 1) + p / each];
                acc[from + p] = (begin && z == 0 ? 0 : acc[from + p]) + (double)sum;
            }
            __syncthreads();
        } while ((z += MOST_PLANES) < nz);
    }
}

template <class T>
__device__ __forceinline__ void add_planes(const T* __restrict__ in, double* __restrict__ acc, unsigned long long* __restrict__ bad, long long n, int nz, int begin)
{
    if constexpr (sizeof(T) <= 2) add_exactly(in, acc, n, nz, begin);
    else add_in_order(in, acc, bad, n, nz, begin);
}

#define ADD_PLANES(NAME, T)                                                     \
    extern "C" __global__ void __launch_bounds__(256, 2) add_planes_##NAME(     \
        const T* __restrict__ in, double* __restrict__ acc, unsigned long long* __restrict__ bad, long long n, int nz, int begin) \
    {                                                                           \
        add_planes(in, acc, bad, n, nz, begin);                                 \
    }

ADD_PLANES(u8, unsigned char)
ADD_PLANES(i8, signed char)
ADD_PLANES(u16, unsigned short)
ADD_PLANES(i16, short)
ADD_PLANES(u32, unsigned int)
ADD_PLANES(i32, int)
ADD_PLANES(u64, unsigned long long)
ADD_PLANES(i64, long long)
ADD_PLANES(f32, float)
ADD_PLANES(f64, double)

// mean: out[i] = float(acc[i] / nz). Bytes per pixel: 8 read, 4 written.
extern "C" __global__ void __launch_bounds__(256) mean(const double* __restrict__ acc, float* __restrict__ out, long long n, int nz)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (float)(acc[i] / (double)nz);
}

// count_bad counts NaN and infinities, of four elements a thread at a time.
// Bytes per element: sizeof(T) read.
template <class T> __device__ __forceinline__ void count_bad(const T* __restrict__ in, unsigned long long* __restrict__ bad, long long n)
{
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, all = (long long)gridDim.x * blockDim.x;
    unsigned count = 0;
#pragma unroll 1
    for (long long i = first; i < n / 4; i += all) {
        const Few<T, 4> v = few<4>(in + 4 * i);
#pragma unroll
        for (int j = 0; j < 4; j++) count += !finite(v.v[j]);
    }
    for (long long i = n / 4 * 4 + first; i < n; i += all) count += !finite(in[i]);
    if (count) atomicAdd(bad, (unsigned long long)count);
}

extern "C" __global__ void __launch_bounds__(256) count_bad_f32(const float* __restrict__ in, unsigned long long* __restrict__ bad, long long n) { count_bad(in, bad, n); }
extern "C" __global__ void __launch_bounds__(256) count_bad_f64(const double* __restrict__ in, unsigned long long* __restrict__ bad, long long n) { count_bad(in, bad, n); }
