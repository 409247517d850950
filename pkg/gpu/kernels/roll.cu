// Fractional circular shifts of A-lines along z: pkg/filter/roll.go.

// roll: out[z] = (1−t)·in[(z+k) mod nz] + t·in[(z+k+1) mod nz] with k = floor(shift), t = shift − k,
// in float, then to T. in, out: (nz, ny, nx), not the same; shift: ny rows, pitch numbers apart, of
// magnitudes below 2^62. bad grows by the number of voxels that are no numbers, in float.
// A thread has four neighbouring A-lines of 8 and 16 bits, where rows begin at multiples of four, and one of others.
// Bytes per voxel: sizeof(T) read (its neighbour comes from the register), sizeof(T) written.
#include "convert.cuh"
#include "few.cuh"
#include "finite.cuh"

// A shift: the plane that an A-line begins with, and the shares of that one and the next.
struct Shift {
    int plane;
    float s, t;
    __device__ __forceinline__ Shift(float by, int nz)
    {
        const float down = floorf(by);
        const int k = (int)((long long)down % nz);
        plane = k < 0 ? k + nz : k;
        t = by - down;
        s = 1 - t;
    }
};

// line rolls one A-line, in and out being its first voxel, and returns how many voxels are no numbers.
template <class T> __device__ __forceinline__ int line(const T* __restrict__ in, T* __restrict__ out, float shift, int nz, long long plane)
{
    const Shift by(shift, nz);
    int p = by.plane, count = 0;
    float a = (float)in[p * plane];
#pragma unroll(sizeof(T) <= 2 ? 2 : 4) // loads under way
    for (int o = 0; o < nz; o++) {
        if (++p == nz) p = 0;
        const float b = (float)in[p * plane];
        if constexpr ((T)0.5 != 0) count += !finite(b); // integers are finite
        out[o * plane] = rounded<T>(by.s * a + by.t * b);
        a = b;
    }
    return count;
}

// lines rolls N neighbours of an integer type. As a rule each begins at the plane of the first of them or at a
// neighbour of it: then they are read together, and those that begin one plane later than others use what was
// read one plane later.
template <class T, int N> __device__ __forceinline__ void lines(const T* __restrict__ in, T* __restrict__ out, const float* __restrict__ shift, int nz, long long plane)
{
    const int first = Shift(shift[0], nz).plane, before = (first > 0 ? first : nz) - 1;
    int from = first;
#pragma unroll
    for (int i = 1; i < N; i++)
        if (Shift(shift[i], nz).plane == before) from = before;
    float s[N], t[N], a[N];
    unsigned later = 0; // bits
    bool near = true;
#pragma unroll
    for (int i = 0; i < N; i++) {
        const Shift by(shift[i], nz);
        const int more = by.plane - from + (by.plane < from ? nz : 0);
        s[i] = by.s;
        t[i] = by.t;
        near = near && more <= 1;
        later |= more << i;
    }
    if (!near) {
#pragma unroll 1
        for (int i = 0; i < N; i++) line(in + i, out + i, shift[i], nz, plane);
        return;
    }
    int p = from + 1 == nz ? 0 : from + 1;
    const Few<T, N> v = few<N>(in + from * plane);
    Few<T, N> now = few<N>(in + p * plane);
#pragma unroll
    for (int i = 0; i < N; i++) a[i] = (float)(later >> i & 1 ? now.v[i] : v.v[i]);
#pragma unroll 4
    for (int o = 0; o < nz; o++) {
        if (++p == nz) p = 0;
        const Few<T, N> next = few<N>(in + p * plane);
        Few<T, N> r;
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float b = (float)(later >> i & 1 ? next.v[i] : now.v[i]);
            r.v[i] = rounded<T>(s[i] * a[i] + t[i] * b);
            a[i] = b;
        }
        put(out + o * plane, r);
        now = next;
    }
}

template <class T>
__device__ __forceinline__ void roll(const T* __restrict__ in, T* __restrict__ out, const float* __restrict__ shift, unsigned long long* __restrict__ bad, int nz, int ny, int nx, int pitch)
{
    constexpr int most = sizeof(T) <= 2 ? 4 : 1;
    const long long plane = (long long)ny * nx;
    const bool aligned = nx % most == 0 && begins<most>(in) && begins<most>(out);
    int count = 0;
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y)
        each<most>(nx, aligned, [&](long long x, auto width) {
            const long long at = (long long)y * nx + x;
            const float* by = shift + (long long)y * pitch + x;
            if constexpr (decltype(width)::n > 1) lines<T, decltype(width)::n>(in + at, out + at, by, nz, plane);
            else count += line(in + at, out + at, *by, nz, plane);
        });
    if (count) atomicAdd(bad, (unsigned long long)count);
}

#define ROLL(NAME, T)                                                                                    \
    extern "C" __global__ void __launch_bounds__(256, 2) roll_##NAME(                                       \
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
