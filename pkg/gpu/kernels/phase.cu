// Phase correlation: pkg/filter/phase.go, in double, with sums by trees.
typedef long long i64;

enum { WORKERS = 512 }; // threads of the one block that looks at a plane

__device__ __forceinline__ double sum_of(double v, double* shared)
{
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int d = WORKERS / 2; d > 0; d /= 2) {
        if ((int)threadIdx.x < d) shared[threadIdx.x] += shared[threadIdx.x + d];
        __syncthreads();
    }
    const double s = shared[0];
    __syncthreads();
    return s;
}

__device__ __forceinline__ double max_of(double v, double* shared)
{
    shared[threadIdx.x] = v;
    __syncthreads();
    for (int d = WORKERS / 2; d > 0; d /= 2) {
        if ((int)threadIdx.x < d) shared[threadIdx.x] = fmax(shared[threadIdx.x], shared[threadIdx.x + d]);
        __syncthreads();
    }
    const double m = shared[0];
    __syncthreads();
    return m;
}

// What is known of a plane: it is flattened by subtracting the mean and a polynomial of
// second degree, Σ c·y_a·x_b in the order (a, b) = 00, 01, 02, 10, 11, 20.
struct Stats {
    double mean, scale; // 1/norm of what is left; 0: there is nothing to compare
    double c[6];
};

__device__ __forceinline__ double centred(float v, double mean)
{
    const double d = (double)v - mean;
    return d - d == 0 ? d : 0;
}

// The polynomial at y, x; py and px hold the values of three polynomials each.
__device__ __forceinline__ double shading(const double* c, const double* __restrict__ py, const double* __restrict__ px, int y, int x, int ny, int nx)
{
    const double x0 = px[x], x1 = px[nx + x], x2 = px[2 * nx + x];
    return py[y] * (c[0] * x0 + c[1] * x1 + c[2] * x2) + py[ny + y] * (c[3] * x0 + c[4] * x1) + py[2 * ny + y] * (c[5] * x0);
}

// phase_fit: block b fits the polynomial of plane b (0: fixed, 1: moving).
// Bytes per pixel: 12 read, in three turns.
extern "C" __global__ void __launch_bounds__(512, 1) phase_fit(const float* __restrict__ fixed, const float* __restrict__ moving, const double* __restrict__ py, const double* __restrict__ px,
                                                            Stats* __restrict__ stats, int ny, int nx)
{
    __shared__ double shared[WORKERS];
    const float* in = blockIdx.x ? moving : fixed;
    double sum = 0, count = 0, most = __int_as_float((int)0xff800000u), least = -most; // −∞ and ∞
    for (int y = 0; y < ny; y++)
        for (int x = threadIdx.x; x < nx; x += WORKERS) {
            const double v = (double)in[(i64)y * nx + x];
            if (v - v == 0) sum += v, count += 1, least = fmin(least, v), most = fmax(most, v);
        }
    sum = sum_of(sum, shared);
    count = sum_of(count, shared);
    least = -max_of(-least, shared);
    most = max_of(most, shared);
    const double mean = count > 0 ? sum / count : 0;
    double c[6] = {0, 0, 0, 0, 0, 0}, all = 0, left = 0;
    for (int y = 0; y < ny; y++) {
        const double y0 = py[y], y1 = py[ny + y], y2 = py[2 * ny + y];
        for (int x = threadIdx.x; x < nx; x += WORKERS) {
            const double v = centred(in[(i64)y * nx + x], mean), x0 = px[x] * v, x1 = px[nx + x] * v;
            c[0] += y0 * x0;
            c[1] += y0 * x1;
            c[2] += y0 * (px[2 * nx + x] * v);
            c[3] += y1 * x0;
            c[4] += y1 * x1;
            c[5] += y2 * x0;
            all += v * v;
        }
    }
#pragma unroll
    for (int k = 0; k < 6; k++) c[k] = sum_of(c[k], shared);
    all = sum_of(all, shared);
    for (int y = 0; y < ny; y++)
        for (int x = threadIdx.x; x < nx; x += WORKERS) {
            const double d = centred(in[(i64)y * nx + x], mean) - shading(c, py, px, y, x, ny, nx);
            left += d * d;
        }
    left = sum_of(left, shared);
    if (threadIdx.x) return;
    Stats* to = stats + blockIdx.x;
    to->mean = mean;
    to->scale = most > least && left > 1e-10 * all ? 1 / sqrt(left) : 0;
#pragma unroll
    for (int k = 0; k < 6; k++) to->c[k] = c[k];
}

// phase_window: out = flat fixed + i·flat moving, of norm 1 and times the windows, in an
// array (my, mx) that is zero behind the planes.
// Bytes per pixel: 8 read, 16 written.
extern "C" __global__ void __launch_bounds__(256) phase_window(const float* __restrict__ fixed, const float* __restrict__ moving, const double* __restrict__ py, const double* __restrict__ px,
                                                               const double* __restrict__ wy, const double* __restrict__ wx, const Stats* __restrict__ stats, double2* __restrict__ out,
                                                               int ny, int nx, int my, int mx)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= mx) return;
#pragma unroll 1
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < my; y += gridDim.y * blockDim.y) {
        double2 v{0, 0};
        if (y < ny && x < nx) {
            const i64 i = (i64)y * nx + x;
            const double w = wy[y] * wx[x];
            v.x = (centred(fixed[i], stats[0].mean) - shading(stats[0].c, py, px, y, x, ny, nx)) * stats[0].scale * w;
            v.y = (centred(moving[i], stats[1].mean) - shading(stats[1].c, py, px, y, x, ny, nx)) * stats[1].scale * w;
        }
        out[(i64)y * mx + x] = v;
    }
}

// phase_cross: the cross spectrum F·conj(G) of the two real planes whose transforms z is
// the sum F + i·G of, and its magnitudes for x ≤ mx/2.
// Bytes per element: 32 read, 16 written, and 2 of magnitudes.
extern "C" __global__ void __launch_bounds__(256) phase_cross(const double2* __restrict__ z, double2* __restrict__ out, float* __restrict__ magnitudes, int my, int mx)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, half = mx / 2 + 1;
    if (x >= mx) return;
#pragma unroll 1
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < my; y += gridDim.y * blockDim.y) {
        const i64 i = (i64)y * mx + x;
        const double2 a = z[i], b = z[(i64)(y ? my - y : 0) * mx + (x ? mx - x : 0)];
        const double2 f{(a.x + b.x) / 2, (a.y - b.y) / 2}, g{(a.y + b.y) / 2, (b.x - a.x) / 2};
        const double2 r{f.x * g.x + f.y * g.y, f.y * g.x - f.x * g.y};
        out[i] = r;
        if (x < half) magnitudes[(i64)y * half + x] = (float)sqrt(r.x * r.x + r.y * r.y);
    }
}

// phase_whiten: r /= |r| + floor; the mean is taken away. Bytes per element: 16 read, 16 written.
extern "C" __global__ void __launch_bounds__(256) phase_whiten(double2* __restrict__ r, double floor, i64 n)
{
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double2 v = r[i];
    const double d = sqrt(v.x * v.x + v.y * v.y) + floor;
    if (d > 0) v.x /= d, v.y /= d;
    if (i == 0) v.x = v.y = 0;
    r[i] = v;
}

// phase_add: sum += scale · the real part of z. Bytes per element: 20 read, 4 written.
extern "C" __global__ void __launch_bounds__(256) phase_add(const double2* __restrict__ z, float* __restrict__ sum, double scale, i64 n)
{
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) sum[i] += (float)(z[i].x * scale);
}
