// A box of a volume as a volume of its own, with fill values behind the box: what a chunk at
// the edge of an image holds. Elements are bytes of a length, whatever they mean.
//
// out (nz, ny, nx): the box (vz, vy, vx) of in, whose rows lie row elements apart and planes
// plane elements, then fill. Bytes per element: sizeof(T) read, sizeof(T) written.
typedef long long i64;
typedef unsigned long long u64;

template <class T> __device__ __forceinline__ T of(u64 low, u64) { return (T)low; }
template <> __device__ __forceinline__ uint4 of<uint4>(u64 low, u64 high)
{
    return uint4{(unsigned)low, (unsigned)(low >> 32), (unsigned)high, (unsigned)(high >> 32)};
}

template <class T>
__device__ __forceinline__ void gather(const T* __restrict__ in, T* __restrict__ out, int nz, int ny, int nx, int vz, int vy, int vx, i64 plane, i64 row, u64 low, u64 high)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    const T fill = of<T>(low, high);
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
            T v = fill;
            if (z < vz && y < vy && x < vx) v = in[z * plane + y * row + x];
            out[((i64)z * ny + y) * nx + x] = v;
        }
}

#define GATHER(NAME, T)                                                                                  \
    extern "C" __global__ void __launch_bounds__(256) gather_##NAME(                                     \
        const T* __restrict__ in, T* __restrict__ out, int nz, int ny, int nx, int vz, int vy, int vx,   \
        i64 plane, i64 row, u64 low, u64 high)                                                           \
    {                                                                                                    \
        gather<T>(in, out, nz, ny, nx, vz, vy, vx, plane, row, low, high);                               \
    }
GATHER(1, unsigned char)
GATHER(2, unsigned short)
GATHER(4, unsigned)
GATHER(8, u64)
GATHER(16, uint4)
