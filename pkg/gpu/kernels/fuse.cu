// Tiles are put together to columns of the output: pkg/oct/compute/fusion/fuse.go, bit by bit, with
// filter.Between, filter.Blend and dtype.ConvertSlice. T is the type of the voxels, F the
// one in which they are blended.
#include "convert.cuh"
#include "finite.cuh"
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

// Sums over what two tiles say of the same voxels: pkg/oct/compute/fusion/seams.go, SeamSum, which are the
// number, |a−b|, and of a and b about an offset a, b, a², b², ab; then the offset.
enum { SUMS = 7 };

// The cells from first on, in which the running means are those of one other tile.
struct Seam {
    address sums;
    int first, count;
};

// last_half is half of the last place of v; 0 where that is too small for a number.
__device__ __forceinline__ double last_half(double v)
{
    const i64 exponent = __double_as_longlong(v) >> 52 & 0x7ff;
    return exponent > 53 ? __longlong_as_double((exponent - 53) << 52) : 0;
}

// beside tells whether two numbers have the same sign and exponent, and neither is a power of two.
__device__ __forceinline__ bool beside(double a, double b)
{
    const i64 p = __double_as_longlong(a), q = __double_as_longlong(b);
    return p >> 52 == q >> 52 && p << 12 != 0 && q << 12 != 0;
}

// added is sum + term(0) + term(1) + … + term(n−1), each sum rounded, in this order, by a warp. While a sum
// keeps its exponent, a term makes it grow by the multiple of its last place that is nearest to the term,
// whatever the sum is, unless the term lies in the middle between two; and such multiples can be added in any order,
// as no sum of them is rounded. Terms up to one that lies there, or fewer, where what is added could change
// the exponent, are added so, and the next 32 one after the other.
template <class F> __device__ __forceinline__ double added(double sum, int n, F term)
{
    const int lane = threadIdx.x & 31;
#pragma unroll 1
    for (int i = 0, size = n; i < n;) {
        const int end = min(i + size, n);
        const double half = last_half(sum);
        double up = 0, down = 0;
        int middle = end; // the first
#pragma unroll 2
        for (int k = i + lane; k < end; k += 32) {
            const double t = term(k), step = (sum + t) - sum;
            if (t != 0 && !(fabs(t - step) < half)) middle = min(middle, k); // or NaN
            up += fmax(step, 0.0);
            down += fmin(step, 0.0);
        }
#pragma unroll
        for (int d = 16; d > 0; d /= 2) {
            up += __shfl_xor_sync(0xffffffffu, up, d);
            down += __shfl_xor_sync(0xffffffffu, down, d);
            middle = min(middle, __shfl_xor_sync(0xffffffffu, middle, d));
        }
        const double low = sum + down, high = sum + up;
        if (middle == end && ((low == sum && high == sum) || (beside(low, high) && beside(low, sum)))) {
            sum += up + down;
            i = end;
        } else {
            size = middle < end ? middle - i : (end - i) / 2;
            if (size >= 32) continue;
        }
        if (i == n) break;
        const double t = i + lane < n ? term(i + lane) : 0; // to add 0 changes no sum that began at 0
#pragma unroll 8
        for (int k = 0; k < 32; k++) sum += __shfl_sync(0xffffffffu, t, k);
        i += 32;
        size = n;
    }
    return sum;
}

// Voxels are compared SHARE by a thread at a time: PAIRS of a block.
enum : int { SHARE = 2, PAIRS = 256 * SHARE };

// Where the voxels of a seam are that come next: i of plane z of a cell, in the CPU's order, which is
// that of pieces of so many planes, then cells, planes, rows. The tile has planes begin … end−1.
struct Place {
    int piece, cell, z, i;
    // settle goes on to the next plane and cell that there are, and tells whether there is one.
    __device__ __forceinline__ bool settle(const Seam& s, int planes, int begin, int end)
    {
        while (piece < end && z >= min(piece + planes, end)) { // of this cell and piece that was all
            if (++cell == s.first + s.count) {
                cell = s.first;
                piece += planes;
            }
            z = (max(piece, begin) + 3) / 4 * 4;
        }
        return piece < end;
    }
};

// seams adds every fourth plane, z0 being the number of plane 0, to the sums of one seam a
// block: element by element, in the CPU's order. A warp has each sum; the next voxels come while it adds.
// Bytes per voxel: sizeof(T) + sizeof(F) read.
template <class T, class F>
__device__ __forceinline__ void seams(const T* __restrict__ v, const Cell* cells, const Seam* __restrict__ all, int z0, int piece, int nz, int ny, int nx, float fy, float fx)
{
    __shared__ double pairs[2][PAIRS]; // of the voxels that are added: running mean and tile
    const Tile<T> t = {v, ny, nx, fy, fx};
    const int me = threadIdx.x, lane = me & 31, which = me / 32, end = z0 + nz;
    const Seam s = all[blockIdx.x];
    double* of_seam = there<double>(cells, s.sums);
    double sum = which < SUMS ? of_seam[which] : 0, offset = of_seam[SUMS];
    bool none = of_seam[0] == 0;
    Place at_place = {z0 / piece * piece, s.first, (z0 + 3) / 4 * 4, 0};
    int have = 0;
#pragma unroll 1
    for (bool more = true; more;) {
        double a[SHARE] = {}, b[SHARE] = {};
        int come = 0;
        more = at_place.settle(s, piece, z0, end);
        if (more) {
            const Cell* k = cells + at_place.cell;
            const int size = k->ny * k->nx;
            come = min((int)PAIRS, size - at_place.i);
#pragma unroll
            for (int j = 0; j < SHARE; j++) {
                const int i = at_place.i + me + 256 * j;
                if (i >= size) continue;
                const int y = i / k->nx, x = i - y * k->nx;
                a[j] = (double)there<F>(cells, k->mean)[(at_place.z - z0) * k->mean_stride + (i64)y * k->mean_pitch + x];
                b[j] = (double)at<T, F>(t, v + (i64)(at_place.z - z0) * ny * nx, k->y + y, k->x + x);
            }
            at_place.i += come;
            if (at_place.i == size) {
                at_place.i = 0;
                at_place.z += 4;
            }
        }
        if (have > 0 && which < SUMS) {
            auto counts = [&](int i) { return finite(pairs[0][i] - pairs[1][i]); };
            if (none) { // the offset is the first that counts
                int first = lane;
                while (first < have && !counts(first)) first += 32;
                for (int d = 16; d > 0; d /= 2) first = min(first, __shfl_xor_sync(0xffffffffu, first, d));
                none = first >= have;
                if (!none) offset = pairs[0][first];
            }
            sum = added(sum, have, [&](int i) -> double {
                if (!counts(i)) return 0;
                if (which == 0) return 1;
                if (which == 1) return fabs(pairs[0][i] - pairs[1][i]);
                const double p = pairs[0][i] - offset, q = pairs[1][i] - offset;
                return which == 2 ? p : which == 3 ? q : (which == 5 ? q : p) * (which == 4 ? p : q);
            });
        }
        __syncthreads(); // they have been added
        have = come;
#pragma unroll
        for (int j = 0; j < SHARE; j++) {
            pairs[0][me + 256 * j] = a[j];
            pairs[1][me + 256 * j] = b[j];
        }
        __syncthreads();
    }
    if (which < SUMS && lane == 0) of_seam[which] = sum;
    if (me == 0) of_seam[SUMS] = offset;
}

#define KERNELS(NAME, T, F)                                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256) fuse_##NAME(const T* __restrict__ v, const Cell* cells, const float* __restrict__ weights, int choose, \
                                                                  int nz, int ny, int nx, float fy, float fx)                        \
    {                                                                                                                                            \
        fuse<T, F>(v, cells, weights, choose, nz, ny, nx, fy, fx);                                                                        \
    }                                                                                                                                            \
    extern "C" __global__ void __launch_bounds__(256, 2) seams_##NAME(const T* __restrict__ v, const Cell* cells, const Seam* __restrict__ all, int z0,    \
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
