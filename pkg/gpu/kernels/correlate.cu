// The sums of normalised cross-correlations of slices over their overlaps along z:
// pkg/filter/correlate.go, bit by bit. Four threads share a row; thread l takes the
// elements i mod 4 = l in increasing i, in double, and the four sums are added as
// (0+1)+(2+3).
typedef long long i64;

__device__ __forceinline__ double together(double s)
{
    s += __shfl_xor_sync(0xffffffffu, s, 1);
    return s + __shfl_xor_sync(0xffffffffu, s, 2);
}

// row_sums: out[z][y] = Σv, Σv² of a row of nx. Bytes per voxel: 4 read.
extern "C" __global__ void __launch_bounds__(256) row_sums(const float* __restrict__ in, double* __restrict__ out, int nz, int ny, int nx, i64 pitch, i64 stride)
{
    const int lane = threadIdx.x & 3;
    const i64 row = ((i64)blockIdx.x * blockDim.x + threadIdx.x) >> 2;
    const bool mine = row < (i64)nz * ny;
    double s = 0, q = 0;
    if (mine) {
        const float* v = in + row / ny * stride + row % ny * pitch;
        for (int i = lane; i < nx; i += 4) {
            const double f = (double)v[i];
            s += f;
            q += f * f;
        }
    }
    s = together(s);
    q = together(q);
    if (mine && lane == 0) out[2 * row] = s, out[2 * row + 1] = q;
}

// row_moments: for each row y and overlap o = lo + k, out[y][k] = Σa, Σb, Σa², Σb², Σab of
// the row in the last o planes of fixed and the first o of moving, added in the order of
// the distance t of the fixed plane from the end. fixed has hi planes of which the last is
// t = 0; fixed_sums and moving_sums are of row_sums.
// Bytes: every pair of planes of every overlap is read, from the cache but for the first
// overlap: 8 per voxel of the largest overlap.
extern "C" __global__ void __launch_bounds__(256) row_moments(const float* __restrict__ fixed, const float* __restrict__ moving, const double* __restrict__ fixed_sums, const double* __restrict__ moving_sums,
                                                              double* __restrict__ out, int lo, int hi, int ny, int nx, i64 fixed_pitch, i64 fixed_stride, i64 moving_pitch, i64 moving_stride)
{
    const int lane = threadIdx.x & 3, n = hi - lo + 1, k = (blockIdx.x * blockDim.x + threadIdx.x) >> 2, o = lo + k;
    for (int y = blockIdx.y; y < ny; y += gridDim.y) {
        double sum = 0;
        for (int t = 0; t < hi; t++) {
            double s = 0;
            const bool mine = k < n && t < o;
            if (mine) {
                const float* a = fixed + (hi - 1 - t) * fixed_stride + y * fixed_pitch;
                const float* b = moving + (o - 1 - t) * moving_stride + y * moving_pitch;
                for (int i = lane; i < nx; i += 4) s += (double)a[i] * (double)b[i];
            }
            s = together(s);
            if (mine) sum += s;
        }
        if (k >= n) continue;
        double* to = out + ((i64)y * n + k) * 5;
        // of thread 0 Σa, 1 Σb, 2 Σa², 3 Σb²; their sums of a plane lie side by side
        const bool of_fixed = (lane & 1) == 0;
        const double* from = (of_fixed ? fixed_sums : moving_sums) + lane / 2;
        double v = 0;
        for (int t = 0; t < o; t++) v += from[2 * ((i64)(of_fixed ? hi - 1 - t : t) * ny + y)];
        to[lane] = v;
        if (lane == 0) to[4] = sum;
    }
}

// add_rows: total[j] += in[y][j] for y = 0, 1, … Bytes per number: 8 read.
extern "C" __global__ void __launch_bounds__(256) add_rows(const double* __restrict__ in, double* __restrict__ total, int ny, int n)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= n) return;
    double s = total[j];
#pragma unroll 8
    for (int y = 0; y < ny; y++) s += in[(i64)y * n + j];
    total[j] = s;
}
