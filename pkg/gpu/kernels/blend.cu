// What two slices become where they overlap: pkg/filter/hann.go and common.go, bit by bit.
typedef long long i64;

// A sample of planes that move by (dy, dx), edges repeated.
__device__ __forceinline__ const float* moved(const float* v, i64 pitch, int y, int x, int ny, int nx, int dy, int dx)
{
    return v + min(max(y - dy, 0), ny - 1) * pitch + min(max(x - dx, 0), nx - 1);
}

// mix: of fixed f and m = gain·moving, where both are above 0, (1−w)·f + w·m; where one
// is, that one; else 0. w is a number per plane.
// Bytes per voxel: 8 read, 4 written.
extern "C" __global__ void __launch_bounds__(256) mix(float* __restrict__ fixed, const float* __restrict__ moving, const double* __restrict__ weights, float gain, int nz, int ny, int nx,
                                                      i64 fixed_pitch, i64 fixed_stride, i64 moving_pitch, i64 moving_stride, int dy, int dx)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z) {
        const double w = weights[z], u = 1 - w;
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
            float* to = fixed + z * fixed_stride + y * fixed_pitch + x;
            const float f = *to, m = *moved(moving + z * moving_stride, moving_pitch, y, x, ny, nx, dy, dx) * gain;
            float r = 0;
            if (f > 0 && m > 0) r = (float)(u * (double)f + w * (double)m);
            else if (f > 0) r = f;
            else if (m > 0) r = m;
            *to = r;
        }
    }
}

// scale: fixed = gain·moving. Bytes per voxel: 4 read, 4 written.
extern "C" __global__ void __launch_bounds__(256) scale(float* __restrict__ fixed, const float* __restrict__ moving, float gain, int nz, int ny, int nx,
                                                        i64 fixed_pitch, i64 fixed_stride, i64 moving_pitch, i64 moving_stride, int dy, int dx)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y)
            fixed[z * fixed_stride + y * fixed_pitch + x] = *moved(moving + z * moving_stride, moving_pitch, y, x, ny, nx, dy, dx) * gain;
}

// count_common counts voxels that are above 0 in both of two sets of planes, by plane.
// Bytes per voxel: 8 read. Blocks stand side by side along y; x is walked through.
extern "C" __global__ void __launch_bounds__(256) count_common(const float* __restrict__ a, const float* __restrict__ b, unsigned long long* __restrict__ counts, int nz, int ny, int nx,
                                                               i64 a_pitch, i64 a_stride, i64 b_pitch, i64 b_stride)
{
    for (int z = blockIdx.z; z < nz; z += gridDim.z) {
        int count = 0;
        for (int y = blockIdx.y; y < ny; y += gridDim.y) {
            const float* p = a + z * a_stride + y * a_pitch;
            const float* q = b + z * b_stride + y * b_pitch;
            for (int x = threadIdx.x; x < nx; x += blockDim.x) count += p[x] > 0 && q[x] > 0;
        }
        for (int d = 16; d > 0; d /= 2) count += __shfl_down_sync(0xffffffffu, count, d);
        if ((threadIdx.x & 31) == 0 && count) atomicAdd(&counts[z], (unsigned long long)count);
    }
}
