// Boxes of chunks that become boxes of a region: rows of n units of 1 to 16 bytes, of up to
// four more dimensions, each box with strides of its own on both sides, in units. A box
// that begins at a negative place has no source: it is filled. Bytes per byte: 1 read, 1
// written.
typedef long long i64;
typedef unsigned long long u64;

struct Box {
    i64 src, dst, n, rows;
    i64 shape[4]; // of the rows; the first one is not looked at
    i64 from[4], to[4];
};

template <class T> __device__ __forceinline__ T of(u64 low, u64) { return (T)low; }
template <> __device__ __forceinline__ uint4 of<uint4>(u64 low, u64 high)
{
    return uint4{(unsigned)low, (unsigned)(low >> 32), (unsigned)high, (unsigned)(high >> 32)};
}

template <class T>
__device__ __forceinline__ void scatter(const Box* __restrict__ boxes, int count, const T* __restrict__ in, T* __restrict__ out, u64 low, u64 high)
{
    const T fill = of<T>(low, high);
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
#pragma unroll 1
    for (int k = blockIdx.z; k < count; k += gridDim.z) {
        const Box& b = boxes[k];
        const unsigned rows = (unsigned)b.rows;
#pragma unroll 1
        for (unsigned row = blockIdx.y * blockDim.y + threadIdx.y; row < rows; row += gridDim.y * blockDim.y) {
            i64 from = b.src, to = b.dst;
            unsigned at = row;
#pragma unroll
            for (int d = 3; d > 0; d--) {
                const unsigned s = (unsigned)b.shape[d], i = at % s;
                from += i * b.from[d], to += i * b.to[d];
                at /= s;
            }
            from += at * b.from[0], to += at * b.to[0];
            const i64 n = b.n;
            if (b.src < 0) {
#pragma unroll 1
                for (i64 x = first; x < n; x += step) out[to + x] = fill;
            } else {
#pragma unroll 1
                for (i64 x = first; x < n; x += step) out[to + x] = in[from + x];
            }
        }
    }
}

#define SCATTER(NAME, T)                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 4) scatter_##NAME(                                \
        const Box* __restrict__ boxes, int count, const T* __restrict__ in, T* __restrict__ out, u64 low, u64 high) \
    {                                                                                                \
        scatter<T>(boxes, count, in, out, low, high);                                                \
    }
SCATTER(1, unsigned char)
SCATTER(2, unsigned short)
SCATTER(4, unsigned)
SCATTER(8, u64)
SCATTER(16, uint4)
