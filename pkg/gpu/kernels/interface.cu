// The tissue interface: pkg/filter/interface.go and mean_filter.go, bit by bit.
#include "few.cuh"

// ln is the logarithm of filter.Ln: Cephes' minimax polynomial in float.
__device__ __forceinline__ float ln(float v)
{
    int bits = __float_as_int(v), e = 0;
    if (bits < 0x00800000) { // subnormal
        bits = __float_as_int(v * 8388608.0f);
        e = -23;
    }
    const int k = (bits - 0x3f3504f3) >> 23;
    e += k;
    const float f = __int_as_float(bits - (k << 23)) - 1;
    float p = 7.0376836292e-2f;
    p = p * f + -1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f + -1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f + -1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f + -2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    const float square = f * f, x = (float)e;
    p = (p * f) * square;
    p += x * -2.12194440e-4f;
    p -= 0.5f * square;
    return (f + p) + x * 0.693359375f;
}

// |v| in float, at most clip, NaN and infinities 0; its logarithm where it is above 0, if log.
template <class T> __device__ __forceinline__ float magnitude(T in, float clip, int log)
{
    const int b = __float_as_int((float)in) & 0x7fffffff;
    float v = __int_as_float(b);
    if (b >= 0x7f800000) v = 0;
    if (v > clip) v = clip;
    if (log && v > 0) v = ln(v);
    return v;
}

// mirror folds index i into 0…n−1, the edge repeated: (d c b a | a b c d | d c b a).
__device__ __forceinline__ int mirror(int i, int n)
{
    if (i >= 0 && i < n) return i;
    i %= 2 * n;
    if (i < 0) i += 2 * n;
    return i < n ? i : 2 * n - 1 - i;
}

// A box of voxels in a larger volume, whose first row is row first of an axis of length
// rows; outputs are rows from, from+1, … of that axis.
struct Rows {
    int pitch;        // elements from a row to the next
    long long stride; // and from a plane
    int from, first, length;
};

// row_means: the mean over w rows, i−w/2 … i+(w−1)/2, of magnitudes: out (nz, ny, nx) from
// rows of nx voxels. A block makes STRIP rows of 4·32 columns, a thread four neighbours in each eighth row;
// side_by_side: rows all begin at multiples of four. Magnitudes, as they are weighted, are made once for all
// windows of the strip, and shared; a window adds them up in increasing y.
// Bytes per voxel: sizeof(T) read ((STRIP + w − 1) / STRIP times), 4 written.
enum : int { STRIP = 32, STEP = 8 };

template <class T>
__device__ __forceinline__ void row_means(const T* __restrict__ in, float* __restrict__ out, int nz, int ny, int nx, Rows r, int w, float clip, int log, int side_by_side)
{
    __shared__ Few<float, 4> shared[STRIP][32];
    const int column = threadIdx.x, first = threadIdx.y, x = (blockIdx.x * 32 + column) * 4;
    const float tap = 1.0f / w;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y0 = blockIdx.y * STRIP; y0 < ny; y0 += gridDim.y * STRIP) {
            Few<float, 4> sums[STRIP / STEP] = {};
            const int rows = min((int)STRIP, ny - y0) + w - 1; // that its windows see
#pragma unroll 1
            for (int e0 = 0; e0 < rows; e0 += STRIP) {
                __syncthreads(); // what was shared before has been added
#pragma unroll 1
                for (int e = first; e < STRIP; e += STEP) {
                    if (e0 + e >= rows || x >= nx) continue;
                    const T* p = in + z * r.stride + (long long)(mirror(r.from + y0 + e0 + e - w / 2, r.length) - r.first) * r.pitch + x;
                    Few<T, 4> v;
                    if (sizeof(T) <= 4 && side_by_side) v = few<4>(p);
                    else
#pragma unroll
                        for (int i = 0; i < 4; i++) v.v[i] = p[x + i < nx ? i : 0];
#pragma unroll
                    for (int i = 0; i < 4; i++) shared[e][column].v[i] = tap * magnitude(v.v[i], clip, log);
                }
                __syncthreads();
#pragma unroll
                for (int k = 0; k < STRIP / STEP; k++) {
                    const int y = first + k * STEP, to = x < nx ? min(y + w, rows) - e0 : 0; // its window is rows y … y+w−1
#pragma unroll 1
                    for (int e = max(y - e0, 0); e < STRIP && e < to; e++) {
                        const Few<float, 4> m = shared[e][column];
#pragma unroll
                        for (int i = 0; i < 4; i++) sums[k].v[i] = e0 + e == y ? m.v[i] : sums[k].v[i] + m.v[i];
                    }
                }
            }
#pragma unroll
            for (int k = 0; k < STRIP / STEP; k++) {
                const int y = y0 + first + k * STEP;
                if (y >= ny || x >= nx) continue;
                float* to = out + ((long long)z * ny + y) * nx + x;
                if (side_by_side) put(to, sums[k]);
                else
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        if (x + i < nx) to[i] = sums[k].v[i];
            }
        }
}

#define ROW_MEANS(NAME, T)                                                       \
    extern "C" __global__ void __launch_bounds__(256, 2) row_means_##NAME(          \
        const T* __restrict__ in, float* __restrict__ out, int nz, int ny, int nx, int pitch, long long stride, \
        int from, int first, int length, int w, float clip, int log, int side_by_side) \
    {                                                                            \
        row_means(in, out, nz, ny, nx, Rows{pitch, stride, from, first, length}, w, clip, log, side_by_side); \
    }

ROW_MEANS(u8, unsigned char)
ROW_MEANS(i8, signed char)
ROW_MEANS(u16, unsigned short)
ROW_MEANS(i16, short)
ROW_MEANS(u32, unsigned int)
ROW_MEANS(i32, int)
ROW_MEANS(u64, unsigned long long)
ROW_MEANS(i64, long long)
ROW_MEANS(f32, float)
ROW_MEANS(f64, double)

// column_means: the mean over w columns: out (rows, nx) from in (rows, pitch), whose first
// column is column first of an axis of length columns; the first output is column from.
// Bytes per voxel: 4 read (the window is in the cache), 4 written.
extern "C" __global__ void __launch_bounds__(256) column_means(
    const float* __restrict__ in, float* __restrict__ out, long long rows, int nx, int pitch, int from, int first, int length, int w)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    const float tap = 1.0f / w;
    const int left = from + x - w / 2;
#pragma unroll 1
    for (long long y = (long long)blockIdx.y * blockDim.y + threadIdx.y; y < rows; y += (long long)gridDim.y * blockDim.y) {
        const float* row = in + y * pitch;
        float sum = tap * row[mirror(left, length) - first];
#pragma unroll 1
        for (int k = 1; k < w; k++) sum += tap * row[mirror(left + k, length) - first];
        out[y * nx + x] = sum;
    }
}

// The derivative along z is Σ_k weights[k]·(v[z+radius−k] − v[z−radius+k]), mirrored at the
// ends of nz planes. steepest: where that of each of n A-lines is largest, the first
// maximum, in planes 0…limit−1; and what it is there.
// Bytes per voxel: 4 read (each plane comes 2·radius times from the cache); per A-line: 8 written.
extern "C" __global__ void __launch_bounds__(256) steepest(
    const float* __restrict__ in, int* __restrict__ arg, float* __restrict__ peak, const float* __restrict__ weights,
    int radius, long long n, int nz, int limit)
{
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* v = in + i;
    float best = __int_as_float(0xff800000); // -infinity
    int at = 0;
    for (int z = 0; z < limit; z++) {
        float sum = 0;
        for (int k = 0; k < radius; k++) {
            const int d = radius - k;
            sum += weights[k] * (v[mirror(z + d, nz) * n] - v[mirror(z - d, nz) * n]);
        }
        if (sum > best) {
            best = sum;
            at = z;
        }
    }
    arg[i] = at;
    peak[i] = best;
}

// steepest8: the same for 8 weights, which may begin with zeros: an A-line passes by in
// registers, 3 planes ahead. Bytes per voxel: 4 read; per A-line: 8 written.
extern "C" __global__ void __launch_bounds__(256) steepest8(
    const float* __restrict__ in, int* __restrict__ arg, float* __restrict__ peak, const float* __restrict__ weights, long long n, int nz, int limit)
{
    constexpr int R = 8, AHEAD = R + 3, SIZE = R + 1 + AHEAD;
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float* v = in + i;
    float w[R], ring[SIZE] = {}; // plane z is ring[z mod SIZE]
#pragma unroll
    for (int k = 0; k < R; k++) w[k] = weights[k];
    float best = __int_as_float(0xff800000); // -infinity
    int at = 0;
#pragma unroll 1
    for (int z0 = -SIZE; z0 < limit; z0 += SIZE) // the first round fills the ring
#pragma unroll
        for (int u = 0; u < SIZE; u++) {
            const int z = z0 + u;
            if (z >= limit) break;
            ring[(u + AHEAD) % SIZE] = v[mirror(z + AHEAD, nz) * n];
            if (z < 0) continue;
            float sum = 0;
#pragma unroll
            for (int d = R; d > 0; d--) sum += w[R - d] * (ring[(u + d) % SIZE] - ring[(u + SIZE - d) % SIZE]);
            if (sum > best) {
                best = sum;
                at = z;
            }
        }
    arg[i] = at;
    peak[i] = best;
}
