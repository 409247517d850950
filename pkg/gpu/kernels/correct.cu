// Corrections of voxels, each on its own: pkg/filter/correct.go, bit by bit. v has planes of n voxels, or of ny × nx, without gaps.
#include "finite.cuh"
typedef long long i64;
typedef unsigned long long u64;

// divide_planes: v[z][i] = float(v[z][i] / by[z]), the quotient in double. Bytes per voxel: 4 read, 4 written.
extern "C" __global__ void __launch_bounds__(256) divide_planes(float* __restrict__ v, const double* __restrict__ by, int nz, i64 n)
{
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z) v[z * n + i] = (float)((double)v[z * n + i] / by[z]);
}

// scale_planes: v[z][i] is clipped to range[z][0] … range[z][1]; (v − range[z][0])/divisor stays of it. NaN stays. The upper limit goes first.
// Bytes per voxel: 4 read, 4 written.
extern "C" __global__ void __launch_bounds__(256) scale_planes(float* __restrict__ v, const float* __restrict__ range, float divisor, int nz, i64 n)
{
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z) {
        const float low = range[2 * z], high = range[2 * z + 1];
        float f = v[z * n + i];
        if (f > high) f = high;
        if (f < low) f = low;
        v[z * n + i] = (f - low) / divisor;
    }
}

// divide_field: v = (v − dark)/(field + epsilon), at least 0, where v is finite; else it stays if keep, or is 0. The field repeats every
// height rows and width columns; voxel (0, 0) of v is (y0, x0) of a field. dark may be null. counts[0] grows by the voxels other than 0 and
// NaN, counts[1] by the finite ones above 0, counts[2] by those that are not finite. Bytes per voxel: 8 read, or 12, and 4 written.
extern "C" __global__ void __launch_bounds__(256) divide_field(
    float* __restrict__ v, const float* __restrict__ field, const float* __restrict__ dark, u64* __restrict__ counts, int nz, int ny, int nx,
    int y0, int x0, int height, int width, float epsilon, int keep)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    const int column = (x0 + x) % width;
    unsigned some = 0, above = 0, bad = 0;
#pragma unroll 1
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
        const i64 at = (i64)((y0 + y) % height) * width + column;
        const float by = field[at] + epsilon, less = dark ? dark[at] : 0;
#pragma unroll 1
        for (int z = blockIdx.z; z < nz; z += gridDim.z) {
            float* p = v + ((i64)z * ny + y) * nx + x;
            const float f = *p;
            some += f != 0 && f == f;
            above += f > 0 && finite(f);
            bad += !finite(f);
            if (keep && !finite(f)) continue;
            const float q = (f - less) / by;
            *p = q > 0 && finite(q) ? q : 0;
        }
    }
    if (some) atomicAdd(counts, (u64)some);
    if (above) atomicAdd(counts + 1, (u64)above);
    if (bad) atomicAdd(counts + 2, (u64)bad);
}
