// The byte shuffle of Blosc: pkg/zarr/codec/shuffle. A chunk of size bytes consists of blocks of
// block bytes, the last one shorter, that are shuffled each for itself; count chunks lie stride
// bytes apart. Bytes per byte: 1 read, 1 written. Its opposite is in shuffle.cu.
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned char u8;

// A thread of those that share a block.
struct Worker {
    i64 first, step;
};

__device__ __forceinline__ bool aligned(const void* p, int n) { return (u64)p % n == 0; }

// Elements of any size, byte by byte.
__device__ __forceinline__ void bytes_any(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, unsigned ts, Worker w)
{
    const unsigned n = len / ts;
#pragma unroll 1
    for (i64 k = w.first; k < len; k += w.step) {
        const unsigned j = n ? (unsigned)k / n : ts, i = n ? (unsigned)k % n : 0;
        out[k] = in[j < ts ? i * ts + j : k];
    }
}

// Loads N words from a multiple of 16 bytes, or of 8 if there are two.
template <int N> __device__ __forceinline__ void load(const u8* in, unsigned* w)
{
    if (N == 2) {
        const uint2 v = *(const uint2*)in;
        w[0] = v.x, w[1] = v.y;
        return;
    }
#pragma unroll
    for (int i = 0; i + 3 < N; i += 4) {
        const uint4 v = ((const uint4*)in)[i / 4];
        w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
    }
}

// Elements of TS bytes: a thread reads four elements and writes four bytes of each plane.
template <int TS> struct Bytes {
    static __device__ __forceinline__ void shuffle(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, int, Worker w)
    {
        const unsigned n = len / TS;
        if (n % 4 || !aligned(in, 16) || !aligned(out, 4)) {
            bytes_any(in, out, len, TS, w);
            return;
        }
#pragma unroll 1
        for (i64 g = w.first; g < n / 4; g += w.step) {
            unsigned plane[TS], word[TS];
            load<TS>(in + g * 4 * TS, word);
#pragma unroll
            for (int j = 0; j < TS; j++) plane[j] = 0;
#pragma unroll
            for (int b = 0; b < 4 * TS; b++) plane[b % TS] |= (word[b / 4] >> b % 4 * 8 & 255) << b / TS * 8;
#pragma unroll
            for (int j = 0; j < TS; j++) ((unsigned*)(out + (i64)j * n))[g] = plane[j];
        }
#pragma unroll 1
        for (i64 k = (i64)n * TS + w.first; k < len; k += w.step) out[k] = in[k];
    }
};
template <> struct Bytes<0> {
    static __device__ __forceinline__ void shuffle(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, int ts, Worker w) { bytes_any(in, out, len, ts, w); }
};

#define SHUFFLE(NAME, TS)                                                                   \
    extern "C" __global__ void __launch_bounds__(256, 4) NAME(                               \
        const u8* __restrict__ in, u8* __restrict__ out, i64 size, i64 block, int ts, int count, i64 stride) \
    {                                                                                       \
        const Worker w{(i64)blockIdx.x * blockDim.x + threadIdx.x, (i64)gridDim.x * blockDim.x}; \
        _Pragma("unroll 1") for (int k = blockIdx.z; k < count; k += gridDim.z)             \
            _Pragma("unroll 1") for (i64 at = blockIdx.y * block; at < size; at += gridDim.y * block) \
                Bytes<TS>::shuffle(in + k * stride + at, out + k * stride + at, (unsigned)(size - at < block ? size - at : block), ts, w); \
    }
SHUFFLE(shuffle_2, 2)
SHUFFLE(shuffle_4, 4)
SHUFFLE(shuffle_8, 8)
SHUFFLE(shuffle_any, 0)
