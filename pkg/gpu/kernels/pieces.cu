// Ranges of bytes that are copied to other places, at any address: what a compressed
// container stores as it is, and what several encoders left, put together. table has a row of
// three for each of count ranges: where it lies and where it goes, as distances from the
// table, and its bytes. Ranges do not overlap. Bytes per byte: 1 read, 1 written.
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned char u8;

extern "C" __global__ void __launch_bounds__(256) copy_pieces(const i64* __restrict__ table, u8* __restrict__ base, i64 count)
{
    const i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
#pragma unroll 1
    for (i64 k = blockIdx.y; k < count; k += gridDim.y) {
        const u8* in = base + table[3 * k];
        u8* out = base + table[3 * k + 1];
        const i64 n = table[3 * k + 2];
        // Bytes up to a multiple of 16 of the output, 16 at a time, the bytes behind these. A piece of 16 is read
        // as four words, or as the five that it lies in, all of them inside the range.
        i64 head = (16 - (i64)((u64)out & 15)) & 15;
        const int shift = (int)((u64)(in + head) & 3);
        if (head < shift) head += 16;
        const i64 groups = n < head + 20 ? 0 : (n - head + shift - 4 * (shift > 0)) / 16;
        if (groups == 0) head = n;
#pragma unroll 1
        for (i64 i = first; i < head; i += step) out[i] = in[i];
#pragma unroll 1
        for (i64 g = first; g < groups; g += step) {
            const u8* p = in + head + 16 * g;
            uint4 v;
            if (((u64)p & 15) == 0) {
                v = *(const uint4*)p;
            } else {
                const unsigned* w = (const unsigned*)(p - shift);
                unsigned a = w[0], b = w[1], c = w[2], d = w[3], e = shift ? w[4] : 0;
                const int by = 8 * shift;
                v.x = (unsigned)(((u64)b << 32 | a) >> by);
                v.y = (unsigned)(((u64)c << 32 | b) >> by);
                v.z = (unsigned)(((u64)d << 32 | c) >> by);
                v.w = (unsigned)(((u64)e << 32 | d) >> by);
            }
            *(uint4*)(out + head + 16 * g) = v;
        }
#pragma unroll 1
        for (i64 i = head + 16 * groups + first; i < n; i += step) out[i] = in[i];
    }
}
