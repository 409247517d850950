// Fractional circular shifts of A-lines along z: pkg/filter/roll.go.

// roll: out[z] = (1−t)·in[(z+k) mod nz] + t·in[(z+k+1) mod nz] with k = floor(shift), t = shift − k,
// in float, then to T. in, out: (nz, ny, nx), not the same; shift: ny rows, pitch numbers apart, all
// finite. Bytes per voxel: sizeof(T) read (its neighbour comes from the register), sizeof(T) written.
#include "convert.cuh"

__device__ __forceinline__ int whole(float shift, int nz)
{
    const double n = nz;
    return (int)fmod(fmod(floor((double)shift), n) + n, n);
}

template <class T>
__device__ __forceinline__ void roll(const T* __restrict__ in, T* __restrict__ out, const float* __restrict__ shift, int nz, int ny, int nx, int pitch)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= nx) return;
    const long long plane = (long long)ny * nx, at = (long long)y * nx + x;
    const float by = shift[(long long)y * pitch + x];
    const float t = by - (float)floor((double)by), s = 1 - t;
    int z = whole(by, nz);
    float a = (float)in[z * plane + at];
    for (int o = 0; o < nz; o++) {
        if (++z == nz) z = 0;
        const float b = (float)in[z * plane + at];
        out[o * plane + at] = rounded<T>(s * a + t * b);
        a = b;
    }
}

#define ROLL(NAME, T)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256) roll_##NAME(                                       \
        const T* __restrict__ in, T* __restrict__ out, const float* __restrict__ shift, int nz, int ny, int nx, int pitch) \
    {                                                                                                    \
        roll(in, out, shift, nz, ny, nx, pitch);                                                         \
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
