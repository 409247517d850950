// A percentile of the positive values of planes, exactly: the digits of the values' sort
// keys are counted, the upper 11 bits of all, then the next 11 and the last 10 of those
// whose bits above are known (pkg/filter/quantile.go). Nothing comes to the host between
// the passes.
typedef long long i64;
typedef unsigned long long u64;

// What is known of a percentile: how many values there are, and of the two order
// statistics around it the upper bits of their keys, and their ranks among the values that share
// them.
struct Pick {
    u64 n, rank[2];
    unsigned prefix[2];
    double between; // how far from the lower statistic to the upper one
};

// select_digits: hist[k][bin] += how many voxels of a, of those that are above 0 in a
// and b, have that digit below prefix k. If each, planes have picks and histograms
// of their own. If finite, infinity is left out. A block sees fewer than 2^32 voxels of a plane.
// Neighbours often have the same digit: a thread remembers the last one and adds it up when
// another comes.
// Bytes per voxel: 8 read, 4 if b is a.
extern "C" __global__ void __launch_bounds__(256) select_digits(const float* __restrict__ a, const float* __restrict__ b, u64* __restrict__ hist, const Pick* __restrict__ picks, int nz, int ny, int nx,
                                                                i64 a_pitch, i64 a_stride, i64 b_pitch, i64 b_stride, int each, int finite, int shift, int bits)
{
    __shared__ unsigned counts[2 * 2048];
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z) {
        for (int i = threadIdx.x; i < 2 * 2048; i += blockDim.x) counts[i] = 0;
        __syncthreads();
        const Pick* k = picks + (each ? z : 0);
        const unsigned p0 = k->prefix[0], p1 = k->prefix[1], mask = (1u << bits) - 1;
        int last = -1;
        unsigned n = 0;
#pragma unroll 1
        for (int y = blockIdx.y; y < ny; y += gridDim.y) {
            const float* v = a + z * a_stride + y * a_pitch;
            const float* w = b + z * b_stride + y * b_pitch;
            for (int x = threadIdx.x; x < nx; x += blockDim.x) {
                const float f = v[x];
                if (!(f > 0 && w[x] > 0) || (finite && f - f != 0)) continue;
                const unsigned key = (unsigned)__float_as_int(f) | 0x80000000u, above = (unsigned)((u64)key >> (shift + bits));
                if (above != p0 && above != p1) continue;
                const int bin = (int)(key >> shift & mask) + (above == p0 ? 0 : 2048); // of equal prefixes the first counts
                if (bin != last) {
                    if (n) atomicAdd(&counts[last], n);
                    last = bin, n = 0;
                }
                n++;
            }
        }
        if (n) atomicAdd(&counts[last], n);
        __syncthreads();
        u64* to = hist + (each ? z : 0) * 2 * 2048;
        for (int i = threadIdx.x; i < 2 * 2048; i += blockDim.x)
            if (counts[i]) atomicAdd(&to[i], (u64)counts[i]);
        __syncthreads();
    }
}

// select_pick: a block takes the next digit of a pick from its histogram, which it leaves
// at zero. The first pass knows n and where the percentile lies; the last one makes values
// and counts: 0 where there are no voxels.
extern "C" __global__ void __launch_bounds__(256) select_pick(u64* __restrict__ hist, Pick* __restrict__ picks, double* __restrict__ values, u64* __restrict__ numbers, int n, double percent, int bits, int first, int end)
{
    __shared__ u64 part[256];
    __shared__ unsigned prefix[2];
    const int t = threadIdx.x;
#pragma unroll 1
    for (int z = blockIdx.x; z < n; z += gridDim.x) {
        Pick* k = picks + z;
        const bool same = k->prefix[0] == k->prefix[1];
#pragma unroll 1
        for (int s = 0; s < 2; s++) {
            const u64* h = hist + ((i64)z * 2 + (same ? 0 : s)) * 2048;
            u64 sum = 0;
            for (int i = 0; i < 8; i++) sum += h[8 * t + i];
            part[t] = sum;
            __syncthreads();
            if (t == 0) {
                if (first && s == 0) {
                    u64 total = 0;
                    for (int i = 0; i < 256; i++) total += part[i];
                    const double top = (double)((i64)total - 1), at = fmin(top, fmax(0.0, top * percent / 100));
                    const u64 lo = total ? (u64)at : 0;
                    k->n = total;
                    k->rank[0] = lo;
                    k->rank[1] = lo + 1 < total ? lo + 1 : lo;
                    k->between = at - (double)lo;
                }
                u64 rank = k->rank[s];
                unsigned bin = 0;
                if (k->n) {
                    int g = 0;
                    for (; g < 255 && rank >= part[g]; g++) rank -= part[g];
                    for (bin = 8 * g; bin < 8 * g + 7u && rank >= h[bin]; bin++) rank -= h[bin];
                }
                k->rank[s] = rank;
                prefix[s] = k->prefix[s] << bits | bin;
            }
            __syncthreads();
        }
        for (int i = t; i < 2 * 2048; i += 256) hist[(i64)z * 2 * 2048 + i] = 0;
        if (t == 0) {
            k->prefix[0] = prefix[0], k->prefix[1] = prefix[1];
            if (end) {
                const double lo = (double)__int_as_float((int)(prefix[0] & 0x7fffffffu)), hi = (double)__int_as_float((int)(prefix[1] & 0x7fffffffu));
                values[z] = !k->n ? 0.0 : k->between == 0 || lo == hi ? lo : lo + (hi - lo) * k->between;
                numbers[z] = k->n;
            }
        }
        __syncthreads();
    }
}
