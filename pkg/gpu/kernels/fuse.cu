// Tiles are put together to columns of the output: pkg/oct/stitch_fuse.go, bit by bit, with
// filter.Between, filter.Blend and dtype.ConvertSlice. T is the type of the voxels, F the
// one in which they are blended.
#include "convert.cuh"
typedef long long i64;

// An address in a table, and what is there: found from a pointer of the kernel, so that
// the compiler knows that it is in the device's memory.
typedef unsigned long long address;
template <class P> __device__ __forceinline__ P* there(const void* any, address a) { return (P*)((char*)any + (i64)(a - (address)any)); }

// A box of pixels of a column of the output that the same tiles cover.
struct Cell {
    address voxels; // of the output: of plane 0 the box's first pixel
    address mean;   // running means, likewise
    address before; // sums of the weights (y, x) of the box, without the tile
    address after;  // and with it; 0: there are none
    i64 stride, mean_stride; // elements from plane to plane
    int pitch, mean_pitch;   // and from row to row
    int y, x;                // of the box's first pixel in the tile
    int ny, nx;
    int todo;
    int unused;
};
enum { SAMPLE = 1, BLEND = 2, STORE = 4, COPY = 8 };

// The tile: planes (nz, ny, nx), less than half a voxel before its place by (fy, fx).
template <class T> struct Tile {
    const T* v;
    int ny, nx;
    float fy, fx;
};

// column: the tile at a place between rows.
template <class T, class F> __device__ __forceinline__ F column(const Tile<T>& t, const T* plane, int y, int x)
{
    const F a = (F)plane[(i64)y * t.nx + x];
    if (t.fy == 0) return a;
    const int o = t.fy > 0 ? max(y - 1, 0) : min(y + 1, t.ny - 1);
    const F b = (F)plane[(i64)o * t.nx + x];
    return a + (F)fabsf(t.fy) * (b - a);
}

// at: the tile at a place between voxels; beyond the centre of the outermost it is that.
template <class T, class F> __device__ __forceinline__ F at(const Tile<T>& t, const T* plane, int y, int x)
{
    const F a = column<T, F>(t, plane, y, x);
    const int o = t.fx > 0 ? x - 1 : x + 1;
    if (t.fx == 0 || o < 0 || o >= t.nx) return a;
    const F b = column<T, F>(t, plane, y, o);
    return a + (F)fabsf(t.fx) * (b - a);
}

template <class F> __device__ __forceinline__ F blended(F a, F b, F w)
{
    F r = a + w * (b - a);
    if (r != r) r = a + b; // infinite, or NaN
    if (w <= 0) r = a;
    if (w >= 1 || a != a) r = b;
    if (b != b) r = a;
    return r;
}

// fuse adds a tile to the cells on which it lies; each has its blocks, along z of the grid.
// weights are of the tile's pixels, null: all 1. choose: the tile of the largest weight is
// taken; else all are averaged.
// Bytes per voxel: sizeof(T) read (four times with fractions, mostly from the cache);
// alone sizeof(T) written, else sizeof(F) read, but for the first, and sizeof(F) or, by the last,
// sizeof(T) written; 12 of weights for 16 planes.
template <class T, class F>
__device__ __forceinline__ void fuse(const T* __restrict__ v, const Cell* cells, const float* __restrict__ weights, int choose, int nz, int ny, int nx, float fy, float fx)
{
    const Tile<T> t = {v, ny, nx, fy, fx};
    const Cell* k = cells + blockIdx.z;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= k->ny * k->nx) return;
    const int y = i / k->nx, x = i - y * k->nx, ty = k->y + y, tx = k->x + x, todo = k->todo;
    const i64 stride = k->stride, plane = (i64)ny * nx, pixel = (i64)ty * nx + tx;
    T* to = there<T>(cells, k->voxels) + (i64)y * k->pitch + x;
    if (todo & COPY) {
#pragma unroll 4
        for (int z = blockIdx.y; z < nz; z += gridDim.y) to[z * stride] = v[z * plane + pixel];
        return;
    }
    F alpha = 0;
    if (k->after) {
        const float w = weights ? weights[pixel] : 1;
        float sum = todo & BLEND ? there<float>(cells, k->before)[i] : 0, a = 0;
        if (!choose) {
            sum += w;
            a = w / sum;
        } else if (w > sum) {
            sum = w;
            a = 1;
        }
        alpha = (F)a;
        if (blockIdx.y == 0) there<float>(cells, k->after)[i] = sum;
    }
    const i64 mean_stride = k->mean_stride;
    F* mean = there<F>(cells, k->mean) + (i64)y * k->mean_pitch + x;
#pragma unroll 1
    for (int z = blockIdx.y; z < nz; z += gridDim.y) {
        F r = 0;
        if (todo & BLEND) r = mean[z * mean_stride];
        if (todo & SAMPLE) {
            const F s = at<T, F>(t, v + z * plane, ty, tx);
            r = todo & BLEND ? blended(r, s, alpha) : s;
        }
        if (todo & STORE)
            to[z * stride] = rounded<T>(r);
        else
            mean[z * mean_stride] = r;
    }
}

// Sums over what two tiles say of the same voxels: stitch_seam.go's seamSum, which are the
// number, |a−b|, and of a and b about an offset a, b, a², b², ab; then the offset.
enum { SUMS = 7 };

// The cells from first on, in which the running means are those of one other tile.
struct Seam {
    address sums;
    int first, count;
};

// seams adds every fourth plane, z0 being the number of plane 0, to the sums of one seam a
// block: element by element, in the CPU's order, which is that of pieces of so many
// planes, then cells, planes, rows. Seven threads, of as many warps, have a sum each.
// Bytes per voxel: sizeof(T) + sizeof(F) read.
template <class T, class F>
__device__ __forceinline__ void seams(const T* __restrict__ v, const Cell* cells, const Seam* __restrict__ all, int z0, int piece, int nz, int ny, int nx, float fy, float fx)
{
    __shared__ double terms[SUMS][256];
    __shared__ double sums[SUMS];
    __shared__ double offset;
    __shared__ int first;
    const Tile<T> t = {v, ny, nx, fy, fx};
    const int me = threadIdx.x, which = me / 32;
    const bool adds = me % 32 == 0 && which < SUMS;
    const Seam s = all[blockIdx.x];
    double* of_seam = there<double>(cells, s.sums);
    if (adds) sums[which] = of_seam[which];
    if (me == 0) offset = of_seam[SUMS];
    const int end = z0 + nz;
    int p = z0 / piece * piece, c = s.first, z = (z0 + 3) / 4 * 4, i0 = 0; // piece, cell, plane, pixels
#pragma unroll 1
    while (p < end) {
        if (z >= min(p + piece, end)) { // of this cell and piece that was all
            if (++c == s.first + s.count) {
                c = s.first;
                p += piece;
            }
            z = (max(p, z0) + 3) / 4 * 4;
            continue;
        }
        const Cell* k = cells + c;
        const int size = k->ny * k->nx, i = i0 + me;
        double a = 0, b = 0, d = 0;
        bool counts = false;
        if (me == 0) first = 256;
        if (i < size) {
            const int y = i / k->nx, x = i - y * k->nx;
            a = (double)there<F>(cells, k->mean)[(z - z0) * k->mean_stride + (i64)y * k->mean_pitch + x];
            b = (double)at<T, F>(t, v + (i64)(z - z0) * ny * nx, k->y + y, k->x + x);
            d = a - b;
            counts = d - d == 0;
        }
        __syncthreads(); // the terms of before have been added
        if (sums[0] == 0) {
            if (counts) atomicMin(&first, me);
            __syncthreads();
            if (first == me) offset = a;
            __syncthreads();
        }
        a -= offset;
        b -= offset;
        terms[0][me] = counts ? 1 : 0; // to add 0 changes no sum that began at 0
        terms[1][me] = counts ? fabs(d) : 0;
        terms[2][me] = counts ? a : 0;
        terms[3][me] = counts ? b : 0;
        terms[4][me] = counts ? a * a : 0;
        terms[5][me] = counts ? b * b : 0;
        terms[6][me] = counts ? a * b : 0;
        __syncthreads();
        if (adds) {
            double sum = sums[which];
            const int last = min(256, size - i0);
#pragma unroll 8
            for (int j = 0; j < last; j++) sum += terms[which][j];
            sums[which] = sum;
        }
        i0 += 256;
        if (i0 >= size) {
            i0 = 0;
            z += 4;
        }
    }
    __syncthreads();
    if (adds) of_seam[which] = sums[which];
    if (me == 0) of_seam[SUMS] = offset;
}

#define KERNELS(NAME, T, F)                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) fuse_##NAME(const T* __restrict__ v, const Cell* cells, const float* __restrict__ weights, int choose, \
                                                                  int nz, int ny, int nx, float fy, float fx)                        \
    {                                                                                                                                            \
        fuse<T, F>(v, cells, weights, choose, nz, ny, nx, fy, fx);                                                                        \
    }                                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(256) seams_##NAME(const T* __restrict__ v, const Cell* cells, const Seam* __restrict__ all, int z0,    \
                                                                   int piece, int nz, int ny, int nx, float fy, float fx)                        \
    {                                                                                                                                            \
        seams<T, F>(v, cells, all, z0, piece, nz, ny, nx, fy, fx);                                                                               \
    }

KERNELS(u8, unsigned char, float)
KERNELS(i8, signed char, float)
KERNELS(u16, unsigned short, float)
KERNELS(i16, short, float)
KERNELS(u32, unsigned int, double)
KERNELS(i32, int, double)
KERNELS(u64, unsigned long long, double)
KERNELS(i64, long long, double)
KERNELS(f32, float, float)
KERNELS(f64, double, double)
