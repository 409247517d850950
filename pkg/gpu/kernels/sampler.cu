// Images between their samples: pkg/filter/map_coordinates.go and affine.go, bit by bit.
typedef long long i64;

// at: the image (n0, n1, n2) at a point, linear along every axis: products and sums of
// doubles in the order of the corners. An axis of one sample weighs 1 and 0, and
// corners of weight 0 take no part: images of fewer axes have such in front.
__device__ __forceinline__ float at(const float* __restrict__ in, const int* n, int nearest, float fill, const double* point)
{
    int low[3];
    double part[3];
    i64 stride[3] = {(i64)n[1] * n[2], n[2], 1}, base = 0;
    if (n[0] == 0 || n[1] == 0 || n[2] == 0) return fill;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        double c = point[d];
        const double last = (double)(n[d] - 1);
        if (!(c >= 0 && c <= last)) {
            if (!nearest) return fill;
            c = c > last ? last : 0;
        }
        int k = (int)c;
        if (k == n[d] - 1 && k > 0) k--; // the last sample is the far end of the last interval
        low[d] = k;
        part[d] = c - (double)k;
        base += k * stride[d];
    }
    double sum = 0;
#pragma unroll
    for (int corner = 0; corner < 8; corner++) {
        double w = 1;
        i64 i = base;
#pragma unroll
        for (int d = 0; d < 3; d++) {
            if (corner >> (2 - d) & 1) {
                w *= part[d];
                if (part[d] != 0) i += stride[d];
            } else {
                w *= 1 - part[d];
            }
        }
        if (w != 0) sum += w * (double)in[i];
    }
    return (float)sum;
}

// map_coordinates: out[i] is the image at points[d·n + i] along its last axes d.
// Bytes per point: 8 read for each axis, 4 for each corner, 4 written.
extern "C" __global__ void __launch_bounds__(256) map_coordinates(const float* __restrict__ in, float* __restrict__ out, const double* __restrict__ points, i64 n, int axes,
                                                                  int n0, int n1, int n2, int nearest, float fill)
{
    const i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int shape[3] = {n0, n1, n2};
    const double point[3] = {axes > 2 ? points[(axes - 3) * n + i] : 0, axes > 1 ? points[(axes - 2) * n + i] : 0, points[(axes - 1) * n + i]};
    out[i] = at(in, shape, nearest, fill, point);
}

// affine: out (nz, ny, nx) at o = (z, y, x) is the image at m·o + offset, m given by rows.
// Bytes per element: 4 read for each corner (mostly from the cache), 4 written.
extern "C" __global__ void __launch_bounds__(256) affine(const float* __restrict__ in, float* __restrict__ out, int nz, int ny, int nx, int n0, int n1, int n2, int nearest, float fill,
                                                         double m00, double m01, double m02, double m10, double m11, double m12, double m20, double m21, double m22, double c0, double c1, double c2)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    const int shape[3] = {n0, n1, n2};
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
            const double point[3] = {
                c0 + m00 * (double)z + m01 * (double)y + m02 * (double)x,
                c1 + m10 * (double)z + m11 * (double)y + m12 * (double)x,
                c2 + m20 * (double)z + m21 * (double)y + m22 * (double)x,
            };
            out[((i64)z * ny + y) * nx + x] = at(in, shape, nearest, fill, point);
        }
}
