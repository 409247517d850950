// Fractional circular shifts of A-lines along z: pkg/filter/roll.go.

// roll: out[z] = (1−t)·in[(z+k) mod nz] + t·in[(z+k+1) mod nz] with k = floor(shift), t = shift − k,
// in float, then to T. in, out: (nz, ny, nx), not the same; shift: ny rows, pitch numbers apart, of
// magnitudes below 2^62. bad grows by the number of voxels that are no numbers, in float.
// A block has some columns: neighbouring A-lines, whose number is a power of two. It brings their planes to shared memory as they lie and writes planes as
// they lie, so that both go by whole sectors wherever the A-lines begin. Where ROOM does not hold the columns, a thread
// has one of them and reads it by itself.
// Bytes per voxel: sizeof(T) read, sizeof(T) written.
#include "convert.cuh"
#include "few.cuh"
#include "finite.cuh"

enum : int { ROOM = 39936, THREADS = 256, MOST = 128, AHEAD = 8 }; // bytes of voxels; columns that ROOM is used for; loads under way

// A shift: the plane that an A-line begins with, and the share of the next one.
struct Shift {
    int plane;
    float t;
};
__device__ __forceinline__ Shift shift_of(float by, int nz)
{
    const float down = floorf(by);
    const int k = (int)((long long)down % nz);
    return {k < 0 ? k + nz : k, by - down};
}

template <class T> __device__ __forceinline__ bool number(T v)
{
    if constexpr ((T)0.5 != 0) return finite((float)v);
    return true; // integers are
}

// line rolls one A-line, in and out being its first voxel, and returns how many voxels are no numbers.
template <class T> __device__ __forceinline__ int line(const T* __restrict__ in, T* __restrict__ out, Shift by, int nz, long long plane)
{
    int p = by.plane, count = 0;
    float a = (float)in[p * plane];
#pragma unroll 4 // loads under way
    for (int o = 0; o < nz; o++) {
        if (++p == nz) p = 0;
        const T v = in[p * plane];
        count += !number(v);
        const float b = (float)v;
        out[o * plane] = rounded<T>((1 - by.t) * a + by.t * b);
        a = b;
    }
    return count;
}

// together rolls columns, of which this thread has N neighbours at a time: in some planes when they are read, and in others,
// which follow each other, when they are written. in and out are the first of its voxels in the first plane; voxels has
// room for nz planes of the columns. some: do the columns that this thread has exist?
template <class T, int N>
__device__ __forceinline__ int together(const T* __restrict__ in, T* __restrict__ out, T* __restrict__ voxels, const Shift* __restrict__ shifts, int columns, bool some, int nz, long long plane)
{
    const int many = THREADS / (columns / N), first = threadIdx.x / (columns / N), at = threadIdx.x % (columns / N) * N;
    int count = 0;
    if (some) {
        auto bring = [&](int p, const Few<T, N>& v) {
            put(voxels + p * columns + at, v);
#pragma unroll
            for (int i = 0; i < N; i++) count += !number(v.v[i]);
        };
        int p = first;
#pragma unroll 1
        for (; p + (AHEAD - 1) * many < nz; p += AHEAD * many) {
            Few<T, N> v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++) v[k] = few<N>(in + (p + k * many) * plane);
#pragma unroll
            for (int k = 0; k < AHEAD; k++) bring(p + k * many, v[k]);
        }
#pragma unroll 1
        for (; p < nz; p += many) bring(p, few<N>(in + p * plane));
    }
    __syncthreads();
    const int each = (nz + many - 1) / many, from = first * each, to = min(nz, from + each);
    if (!some || from >= to) return count;
    int p[N];
    float s[N], t[N], a[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        const Shift by = shifts[at + i];
        p[i] = by.plane + from;
        if (p[i] >= nz) p[i] -= nz;
        s[i] = 1 - by.t;
        t[i] = by.t;
        a[i] = (float)voxels[p[i] * columns + at + i];
    }
#pragma unroll 2
    for (int o = from; o < to; o++) {
        Few<T, N> r;
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (++p[i] == nz) p[i] = 0;
            const float b = (float)voxels[p[i] * columns + at + i];
            r.v[i] = rounded<T>(s[i] * a[i] + t[i] * b);
            a[i] = b;
        }
        put(out + o * plane, r);
    }
    return count;
}

template <class T>
__device__ __forceinline__ void roll(const T* __restrict__ in, T* __restrict__ out, const float* __restrict__ shift, unsigned long long* __restrict__ bad, int nz, int ny, int nx, int pitch, int columns)
{
    constexpr int N = sizeof(T) < 4 ? 4 / sizeof(T) : 1;
    __shared__ uint4 room[ROOM / 16];
    __shared__ Shift shifts[MOST];
    const long long plane = (long long)ny * nx, first = (long long)blockIdx.x * columns;
    auto by = [&](long long i) {
        const int y = (int)(i / nx);
        return shift_of(shift[(long long)y * pitch + (i - (long long)y * nx)], nz);
    };
    int count = 0;
    if ((long long)columns * nz * sizeof(T) > ROOM) {
        if (const long long i = first + threadIdx.x; (int)threadIdx.x < columns && i < plane) count = line(in + i, out + i, by(i), nz, plane);
    } else {
        const int here = (int)min((long long)columns, plane - first);
        if ((int)threadIdx.x < here) shifts[threadIdx.x] = by(first + threadIdx.x);
        auto take = [&](auto width) {
            constexpr int n = decltype(width)::n;
            const int at = threadIdx.x % (columns / n) * n;
            return together<T, n>(in + first + at, out + first + at, (T*)room, shifts, columns, at < here, nz, plane);
        };
        if (columns % N == 0 && plane % N == 0 && begins<N>(in) && begins<N>(out)) count = take(Width<N>());
        else count = take(Width<1>());
    }
    if (count) atomicAdd(bad, (unsigned long long)count);
}

#define ROLL(NAME, T)                                                                                    \
    extern "C" __global__ void __launch_bounds__(THREADS, 2) roll_##NAME(                                   \
        const T* __restrict__ in, T* __restrict__ out, const float* __restrict__ shift, unsigned long long* __restrict__ bad, int nz, int ny, int nx, int pitch, int columns) \
    {                                                                                                    \
        roll(in, out, shift, bad, nz, ny, nx, pitch, columns);                                           \
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
