// Projections along z: pkg/filter/project.go, bit by bit.
#include "few.cuh"
#include "finite.cuh"

// add_planes: acc[i] += in[z*n + i] for z = 0, 1, …, in double and in this order; from
// zero if begin. Non-finite voxels are counted in bad. A thread has as many neighbours as 8 bytes hold, where
// planes begin at multiples of these.
// Bytes per voxel: sizeof(T) read; per pixel: 8 read, 8 written.
template <class T>
__device__ __forceinline__ void add_planes(const T* __restrict__ in, double* __restrict__ acc, unsigned long long* __restrict__ bad, long long n, int nz, int begin)
{
    constexpr int most = 8 / sizeof(T);
    each<most>(n, n % most == 0 && begins<most>(in) && begins<most>(acc), [&](long long i, auto width) {
        constexpr int N = decltype(width)::n;
        Few<double, N> sum = {};
        if (!begin) sum = few<N>(acc + i);
        int count = 0;
#pragma unroll 4 // loads under way
        for (int z = 0; z < nz; z++) {
            const Few<T, N> v = few<N>(in + z * n + i);
#pragma unroll
            for (int k = 0; k < N; k++) {
                count += !finite(v.v[k]);
                sum.v[k] += (double)v.v[k];
            }
        }
        put(acc + i, sum);
        if (count) atomicAdd(bad, (unsigned long long)count);
    });
}

#define ADD_PLANES(NAME, T)                                                     \
    extern "C" __global__ void __launch_bounds__(256) add_planes_##NAME(        \
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
