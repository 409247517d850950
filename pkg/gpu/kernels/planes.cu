// Boxes of planes: what is stored becomes float32 and goes to its place; brightness; sums
// along z, weighted or not. pkg/dtype/convert.go, pkg/filter/combine.go and project.go, bit by bit.
#include "finite.cuh"
typedef long long i64;
typedef unsigned long long u64;

// NaN keeps its bits where the hardware would make them its own.
__device__ __forceinline__ float scaled(float v, float gain)
{
    return v == v ? v * gain : __int_as_float(__float_as_int(v) | 0x00400000);
}

template <class T> __device__ __forceinline__ float single(const T* in, i64 i) { return (float)in[i]; }
template <> __device__ __forceinline__ float single<double>(const double* in, i64 i)
{
    const double v = in[i];
    if (v == v) return (float)v;
    const u64 bits = ((const u64*)in)[i];
    return __int_as_float((int)((unsigned)(bits >> 32) & 0x80000000u | 0x7fc00000u | (unsigned)(bits >> 29) & 0x007fffffu));
}

// place: out[z][y][x] = gain·float(in[z][y][x]), in without gaps; a gain of 1 changes no bit.
// Voxels that are not finite are counted in bad, unless it is null.
// Bytes per voxel: sizeof(T) read, 4 written.
template <class T>
__device__ __forceinline__ void place(const T* __restrict__ in, float* __restrict__ out, u64* __restrict__ bad, int nz, int ny, int nx, i64 pitch, i64 stride, float gain)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    int n = 0;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
            const i64 i = ((i64)z * ny + y) * nx + x;
            n += !finite(in[i]);
            const float f = single(in, i);
            out[z * stride + y * pitch + x] = gain == 1 ? f : scaled(f, gain);
        }
    if (bad && n) atomicAdd(bad, (u64)n);
}

#define PLACE(NAME, T)                                                     \
    extern "C" __global__ void __launch_bounds__(256) place_##NAME(        \
        const T* __restrict__ in, float* __restrict__ out, u64* __restrict__ bad, int nz, int ny, int nx, i64 pitch, i64 stride, float gain) \
    {                                                                      \
        place(in, out, bad, nz, ny, nx, pitch, stride, gain);       \
    }

PLACE(u8, unsigned char)
PLACE(i8, signed char)
PLACE(u16, unsigned short)
PLACE(i16, short)
PLACE(u32, unsigned int)
PLACE(i32, int)
PLACE(u64, u64)
PLACE(i64, i64)
PLACE(f32, float)
PLACE(f64, double)

// brighten: v[z][y][x] *= gain. Bytes per voxel: 4 read, 4 written.
extern "C" __global__ void __launch_bounds__(256) brighten(float* v, int nz, int ny, int nx, i64 pitch, i64 stride, float gain)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
            float* p = v + z * stride + y * pitch + x;
            *p = scaled(*p, gain);
        }
}

// sum_planes: acc[y][x] += in[z][y][x] for z = 0, 1, …, in double and in this order; from
// zero if begin. Bytes per voxel: 4 read; per pixel: 8 read, 8 written.
extern "C" __global__ void __launch_bounds__(256, 2) sum_planes(const float* __restrict__ in, double* __restrict__ acc, int nz, int ny, int nx, i64 pitch, i64 stride, int begin)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
#pragma unroll 1
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
        const float* v = in + y * pitch + x;
        const i64 i = (i64)y * nx + x;
        double sum = begin ? 0 : acc[i];
#pragma unroll 8 // loads under way
        for (int z = 0; z < nz; z++) sum += (double)v[z * stride];
        acc[i] = sum;
    }
}

// accumulate: acc[i] += weight·in[i], the product rounded before the sum; the product alone
// if begin. Bytes per element: 8 read, 4 written; 4 read if begin.
extern "C" __global__ void __launch_bounds__(256) accumulate(const float* __restrict__ in, float* __restrict__ acc, float weight, i64 n, int begin)
{
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float v = weight * in[i];
    acc[i] = begin ? v : acc[i] + v;
}
