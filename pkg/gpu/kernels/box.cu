// Boxes of one volume that become boxes of another: nz planes of ny rows of nx elements,
// of 1, 2, 4, 8 or 16 bytes, whatever they are. Bytes per element: its size read, its size written.
typedef long long i64;

#define COPY_BOX(NAME, T)                                                              \
    extern "C" __global__ void __launch_bounds__(256) NAME(                            \
        const T* __restrict__ in, T* __restrict__ out, int nz, int ny, int nx, i64 in_pitch, i64 in_stride, i64 out_pitch, i64 out_stride) \
    {                                                                                  \
        const int x = blockIdx.x * blockDim.x + threadIdx.x;                           \
        if (x >= nx) return;                                                           \
        for (int z = blockIdx.z; z < nz; z += gridDim.z)                               \
            for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) \
                out[z * out_stride + y * out_pitch + x] = in[z * in_stride + y * in_pitch + x]; \
    }

COPY_BOX(copy_box_1, unsigned char)
COPY_BOX(copy_box_2, unsigned short)
COPY_BOX(copy_box_4, unsigned int)
COPY_BOX(copy_box_8, uint2)
COPY_BOX(copy_box_16, uint4)
