// Rigid resampling of planes: pkg/filter/rigid.go, bit by bit.
typedef long long i64;

// rigid: pixel (y, x) of each plane of out shows in at R·(p − c) + c + t, linear in
// double; outside is fill. The rotation's sine s and cosine c come from the host. All
// planes are sampled alike.
// Bytes per voxel: 4 read (neighbours come from the cache), 4 written.
extern "C" __global__ void __launch_bounds__(256) rigid(const float* __restrict__ in, float* __restrict__ out, int nz, int ny, int nx,
                                                        double s, double c, double tx, double ty, double cx, double cy, float fill)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= nx) return;
    const double mx = (double)(nx - 1), my = (double)(ny - 1);
#pragma unroll 1
    for (int j = blockIdx.y * blockDim.y + threadIdx.y; j < ny; j += gridDim.y * blockDim.y) {
        const double v = (double)j - cy;
        double x = ((cx + tx) - c * cx) - s * v + c * (double)i;
        double y = ((cy + ty) - s * cx) + c * v + s * (double)i;
        const bool inside = x >= -0.5 && x <= mx + 0.5 && y >= -0.5 && y <= my + 0.5;
        if (!inside) x = y = 0;
        x = fmin(fmax(x, 0.0), mx);
        y = fmin(fmax(y, 0.0), my);
        const int x0 = (int)x, y0 = (int)y, x1 = min(x0 + 1, nx - 1), y1 = min(y0 + 1, ny - 1);
        const double p = x - (double)x0, q = y - (double)y0;
#pragma unroll 1
        for (int z = blockIdx.z; z < nz; z += gridDim.z) {
            float r = fill;
            if (inside) {
                const float* r0 = in + ((i64)z * ny + y0) * nx;
                const float* r1 = in + ((i64)z * ny + y1) * nx;
                const double a = (double)r0[x0], b = (double)r0[x1], d = (double)r1[x0], e = (double)r1[x1];
                const double top = a + (b - a) * p, bottom = d + (e - d) * p;
                r = (float)(top + (bottom - top) * q);
            }
            out[((i64)z * ny + j) * nx + i] = r;
        }
    }
}
