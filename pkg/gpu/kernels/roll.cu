// Fractional circular shifts of A-lines along z: pkg/filter/roll.go.

// roll: out[z] = (1−t)·in[(z+k) mod nz] + t·in[(z+k+1) mod nz] with k = floor(shift), t = shift − k,
// in float, then to T. in, out: (nz, ny, nx), not the same; shift: ny rows, pitch numbers apart, of
// magnitudes below 2^62. bad grows by the number of voxels that are no numbers, in float.
// Bytes per voxel: sizeof(T) read (its neighbour comes from the register), sizeof(T) written.
#include "convert.cuh"

template <class T>
__device__ __forceinline__ void roll(const T* __restrict__ in, T* __restrict__ out, const float* __restrict__ shift, unsigned long long* __restrict__ bad, int nz, int ny, int nx, int pitch)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    const long long plane = (long long)ny * nx;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
        const long long at = (long long)y * nx + x;
        const float by = shift[(long long)y * pitch + x], down = floorf(by);
        const float t = by - down, s = 1 - t;
        const int k = (int)((long long)down % nz);
        int z = k < 0 ? k + nz : k, count = 0;
        float a = (float)in[z * plane + at];
#pragma unroll(sizeof(T) <= 2 ? 8 : 4) // loads under way
        for (int o = 0; o < nz; o++) {
            if (++z == nz) z = 0;
            const float b = (float)in[z * plane + at];
            if ((T)0.5 != 0) count += b - b != 0; // integers are numbers
            out[o * plane + at] = rounded<T>(s * a + t * b);
            a = b;
        }
        if (count) atomicAdd(bad, (unsigned long long)count);
    }
}

#define ROLL(NAME, T)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) roll_##NAME(                                       \
        const T* __restrict__ in, T* __restrict__ out, const float* __restrict__ shift, unsigned long long* __restrict__ bad, int nz, int ny, int nx, int pitch) \
    {                                                                                                    \
        roll(in, out, shift, bad, nz, ny, nx, pitch);                                                    \
    }

ROLL(u8, unsigned char)
ROLL(i8, signed char)
ROLL(u16, unsigned short)
ROLL(i16, short)
ROLL(u32, unsigned int)
ROLL(i32, int)
ROLL(u64, unsigned long long)
ROLL(i64, long long)
ROLL(f32, float)
ROLL(f64, double)
