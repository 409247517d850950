// Rigid resampling of planes: pkg/filter/rigid.go, bit by bit.
typedef long long i64;

// rigid: pixel (y, x) of each plane of the result shows in at R·(p − c) + c + t, linear in
// double; outside is the plane's number of fill. The rotation's sine s and cosine c come
// from the host. Of the result the box of height × width pixels at (y0, x0) is made, to out. All
// planes are sampled alike.
// Bytes per voxel: 4 read (neighbours come from the cache), 4 written.
extern "C" __global__ void __launch_bounds__(256) rigid(const float* __restrict__ in, float* __restrict__ out, const double* __restrict__ fill, int nz, int ny, int nx,
                                                        int y0, int x0, int height, int width, i64 pitch, i64 stride,
                                                        double s, double c, double tx, double ty, double cx, double cy)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= width) return;
    const int i = x0 + column;
    const double mx = (double)(nx - 1), my = (double)(ny - 1);
#pragma unroll 1
    for (int row = blockIdx.y * blockDim.y + threadIdx.y; row < height; row += gridDim.y * blockDim.y) {
        const int j = y0 + row;
        const double v = (double)j - cy;
        double x = ((cx + tx) - c * cx) - s * v + c * (double)i;
        double y = ((cy + ty) - s * cx) + c * v + s * (double)i;
        const bool inside = x >= -0.5 && x <= mx + 0.5 && y >= -0.5 && y <= my + 0.5;
        if (!inside) x = y = 0;
        x = fmin(fmax(x, 0.0), mx);
        y = fmin(fmax(y, 0.0), my);
        const int left = (int)x, top = (int)y, right = min(left + 1, nx - 1), bottom = min(top + 1, ny - 1);
        const double p = x - (double)left, q = y - (double)top;
#pragma unroll 1
        for (int z = blockIdx.z; z < nz; z += gridDim.z) {
            float r = (float)fill[z];
            if (inside) {
                const float* r0 = in + ((i64)z * ny + top) * nx;
                const float* r1 = in + ((i64)z * ny + bottom) * nx;
                const double a = (double)r0[left], b = (double)r0[right], d = (double)r1[left], e = (double)r1[right];
                const double upper = a + (b - a) * p, lower = d + (e - d) * p;
                r = (float)(upper + (lower - upper) * q);
            }
            out[z * stride + row * pitch + column] = r;
        }
    }
}
