// What undoes the filters of Blosc: pkg/zarr/codec/shuffle. A chunk of size bytes consists
// of blocks of block bytes, the last one shorter, that are filtered each for itself; count
// chunks lie stride bytes apart. Bytes per byte: 1 read, 1 written.
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned char u8;

// A thread of those that share a block.
struct Worker {
    i64 first, step;
};

__device__ __forceinline__ bool aligned(const void* p, int n) { return (unsigned long long)p % n == 0; }

__device__ __forceinline__ void copy_bytes(const u8* __restrict__ in, u8* __restrict__ out, i64 from, i64 to, Worker w)
{
#pragma unroll 1
    for (i64 k = from + w.first; k < to; k += w.step) out[k] = in[k];
}

// Elements of any size, byte by byte.
__device__ __forceinline__ void bytes_any(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, unsigned ts, Worker w)
{
    const unsigned n = len / ts;
#pragma unroll 1
    for (i64 k = w.first; k < len; k += w.step) {
        const unsigned i = (unsigned)k / ts, j = (unsigned)k % ts;
        out[k] = in[i < n ? j * n + i : k];
    }
}

// Stores N words at a multiple of 16 bytes, or of 8 if there are two.
template <int N> __device__ __forceinline__ void store(u8* out, const unsigned* w)
{
    if (N == 2) {
        *(uint2*)out = uint2{w[0], w[1]};
        return;
    }
#pragma unroll
    for (int i = 0; i + 3 < N; i += 4) ((uint4*)out)[i / 4] = uint4{w[i], w[i + 1], w[i + 2], w[i + 3]};
}

// Elements of TS bytes: a thread reads four bytes of each plane and writes four elements.
template <int TS> struct Bytes {
    static __device__ __forceinline__ void undo(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, int, Worker w)
    {
        const unsigned n = len / TS;
        if (n % 4 || !aligned(in, 4) || !aligned(out, 16)) {
            bytes_any(in, out, len, TS, w);
            return;
        }
#pragma unroll 1
        for (i64 g = w.first; g < n / 4; g += w.step) {
            unsigned plane[TS], word[TS];
#pragma unroll
            for (int j = 0; j < TS; j++) plane[j] = ((const unsigned*)(in + (i64)j * n))[g], word[j] = 0;
#pragma unroll
            for (int b = 0; b < 4 * TS; b++) word[b / 4] |= (plane[b % TS] >> b / TS * 8 & 255) << b % 4 * 8;
            store<TS>(out + g * 4 * TS, word);
        }
        copy_bytes(in, out, (i64)n * TS, len, w);
    }
};
template <> struct Bytes<0> {
    static __device__ __forceinline__ void undo(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, int ts, Worker w) { bytes_any(in, out, len, ts, w); }
};

// The 8×8 bits of x transposed (Warren, Hacker's Delight, section 7-3).
__device__ __forceinline__ u64 transpose8(u64 x)
{
    u64 t = (x ^ x >> 7) & 0x00AA00AA00AA00AAull;
    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & 0x0000CCCC0000CCCCull;
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & 0x00000000F0F0F0F0ull;
    return x ^ t ^ t << 28;
}

// Byte j of elements 8c … 8c+7: bits of eight rows of rows bytes.
__device__ __forceinline__ u64 eight(const u8* __restrict__ in, i64 rows, int j, i64 c)
{
    u64 x = 0;
    const u8* p = in + 8 * j * rows + c;
#pragma unroll
    for (int r = 0; r < 8; r++) x |= (u64)p[r * rows] << 8 * r;
    return transpose8(x);
}

__device__ __forceinline__ void bits_any(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, unsigned ts, Worker w)
{
    const unsigned n = len / ts, rows = n / 8;
    if (n % 8) {
        copy_bytes(in, out, 0, len, w);
        return;
    }
#pragma unroll 1
    for (i64 g = w.first; g < rows * ts; g += w.step) {
        const unsigned j = (unsigned)g / rows, c = (unsigned)g % rows;
        const u64 x = eight(in, rows, j, c);
        u8* to = out + (i64)c * 8 * ts + j;
#pragma unroll
        for (int e = 0; e < 8; e++) to[e * ts] = (u8)(x >> 8 * e);
    }
    copy_bytes(in, out, (i64)n * ts, len, w);
}

// Elements of TS bytes: a thread makes eight of them. A warp reads 32 bytes of each row.
template <int TS> struct Bits {
    static __device__ __forceinline__ void undo(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, int, Worker w)
    {
        const unsigned n = len / TS;
        if (n % 8 || !aligned(out, 16)) {
            bits_any(in, out, len, TS, w);
            return;
        }
#pragma unroll 1
        for (i64 c = w.first; c < n / 8; c += w.step) {
            unsigned word[2 * TS];
#pragma unroll
            for (int i = 0; i < 2 * TS; i++) word[i] = 0;
#pragma unroll
            for (int j = 0; j < TS; j++) {
                const u64 x = eight(in, n / 8, j, c);
#pragma unroll
                for (int e = 0; e < 8; e++) word[(e * TS + j) / 4] |= ((unsigned)(x >> 8 * e) & 255) << (e * TS + j) % 4 * 8;
            }
            store<2 * TS>(out + c * 8 * TS, word);
        }
        copy_bytes(in, out, (i64)n * TS, len, w);
    }
};
template <> struct Bits<0> {
    static __device__ __forceinline__ void undo(const u8* __restrict__ in, u8* __restrict__ out, unsigned len, int ts, Worker w) { bits_any(in, out, len, ts, w); }
};

#define UNDO(NAME, HOW)                                                                     \
    extern "C" __global__ void __launch_bounds__(256, 4) NAME(                               \
        const u8* __restrict__ in, u8* __restrict__ out, i64 size, i64 block, int ts, int count, i64 stride) \
    {                                                                                       \
        const Worker w{(i64)blockIdx.x * blockDim.x + threadIdx.x, (i64)gridDim.x * blockDim.x}; \
        _Pragma("unroll 1") for (int k = blockIdx.z; k < count; k += gridDim.z)             \
            _Pragma("unroll 1") for (i64 at = blockIdx.y * block; at < size; at += gridDim.y * block) \
                HOW::undo(in + k * stride + at, out + k * stride + at, (unsigned)(size - at < block ? size - at : block), ts, w); \
    }
UNDO(unshuffle_2, Bytes<2>)
UNDO(unshuffle_4, Bytes<4>)
UNDO(unshuffle_8, Bytes<8>)
UNDO(unshuffle_any, Bytes<0>)
UNDO(bit_unshuffle_1, Bits<1>)
UNDO(bit_unshuffle_2, Bits<2>)
UNDO(bit_unshuffle_4, Bits<4>)
UNDO(bit_unshuffle_8, Bits<8>)
UNDO(bit_unshuffle_any, Bits<0>)
