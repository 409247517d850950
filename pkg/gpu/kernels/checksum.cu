// Checksums of ranges of bytes: parts of CRC-32 (RFC 1952) and of Adler-32 (RFC 1950) of segments of
// SEGMENT bytes, by a warp each, which the host puts together, and XXH64 whole (xxHash specification), by four threads,
// one for each of its lanes: its steps follow from each other. table has a row of three for each of
// count ranges: where it lies, as a distance from base, its bytes, and where its results begin in
// out. Bytes per byte: 1 read, 1/2048 written.
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned char u8;

#define SEGMENT 16384

// segments calls f(segment, bytes, result) for the segments of this warp.
template <class F> __device__ __forceinline__ void segments(const i64* __restrict__ table, const u8* __restrict__ base, uint2* __restrict__ out, i64 count, F f)
{
    const i64 first = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 32, all = (i64)gridDim.x * blockDim.x / 32;
#pragma unroll 1
    for (i64 k = blockIdx.y; k < count; k += gridDim.y) {
        const i64 bytes = table[3 * k + 1];
#pragma unroll 1
        for (i64 g = first; g * SEGMENT < bytes; g += all)
            f(base + table[3 * k] + g * SEGMENT, (int)(bytes - g * SEGMENT < SEGMENT ? bytes - g * SEGMENT : SEGMENT), out + table[3 * k + 2] + g);
    }
}

// words calls f(v, i) for the words of a segment, in rows of 32 of which a lane has one each: word i begins at byte
// 4·i behind the aligned address at or before p, and has zeros for what lies before p. Before them come
// zeros, of negative i, up to a whole row. It returns where the last bytes begin, which are no word.
template <class F> __device__ __forceinline__ const u8* words(const u8* p, int n, F f)
{
    const int lead = (int)((u64)p & 3), all = (lead + n) / 4, rows = (all + 31) / 32;
    const unsigned* in = (const unsigned*)(p - lead);
    if (rows > 0) {
        int i = (int)(threadIdx.x & 31) + all - 32 * rows;
        unsigned v = i >= 0 ? in[i] : 0;
        if (i == 0) v &= ~0u << 8 * lead;
        f(v, i);
#pragma unroll 4
        for (i += 32; i < all; i += 32) {
            v = in[i];
            if (i == 0) v &= ~0u << 8 * lead;
            f(v, i);
        }
    }
    return all > 0 ? (const u8*)(in + all) : p;
}

// A CRC is a polynomial over the field of two elements, modulo that of the CRC; the highest bit of a word is
// the coefficient of x⁰. times_x is c·xⁿ, times c·F.
constexpr __device__ __forceinline__ unsigned times_x(unsigned c, int n)
{
    for (int k = 0; k < n; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    return c;
}
template <unsigned F> __device__ __forceinline__ unsigned times(unsigned c)
{
    unsigned product = 0;
#pragma unroll
    for (int k = 31; k >= 0; k--) {
        if (F >> k & 1) product ^= c;
        c = times_x(c, 1);
    }
    return product;
}
template <int N> __device__ __forceinline__ unsigned times_power(unsigned c)
{
    constexpr unsigned power = times_x(1u << 31, N);
    return times<power>(c);
}

// join puts the D words of this lane and of those behind it before those of the next D lanes.
template <int D> __device__ __forceinline__ unsigned join(unsigned c) { return times_power<32 * D>(c) ^ __shfl_down_sync(0xffffffffu, c, D); }

// crc32_segments: the segment's bytes times x³² modulo the polynomial: a CRC that begins with 0 and is not inverted.
// A lane has every 32nd word, which is 1024 bits before the next of its own.
extern "C" __global__ void __launch_bounds__(256, 2) crc32_segments(const i64* __restrict__ table, const u8* __restrict__ base, uint2* __restrict__ out, i64 count)
{
    __shared__ unsigned t[4][256]; // t[k][b]: byte b, at place k of a word, times x¹⁰²⁴
#pragma unroll 1
    for (int k = 0; k < 4; k++) t[k][threadIdx.x] = times_power<1024>(threadIdx.x << 8 * k);
    __syncthreads();
    segments(table, base, out, count, [&](const u8* p, int n, uint2* to) {
        unsigned c = 0;
        const u8* last = words(p, n, [&](unsigned v, int) { c = v ^ t[0][c & 255] ^ t[1][c >> 8 & 255] ^ t[2][c >> 16 & 255] ^ t[3][c >> 24]; });
        c = times_power<32>(join<16>(join<8>(join<4>(join<2>(join<1>(c))))));
        if (threadIdx.x & 31) return;
        for (; last < p + n; last++) c = times_x(c ^ *last, 8);
        *to = uint2{c, 0};
    });
}

// adler32_segments: the sum of the segment's bytes, and of its sums up to each byte, which has a byte as often as there are bytes
// from it on.
extern "C" __global__ void __launch_bounds__(256) adler32_segments(const i64* __restrict__ table, const u8* __restrict__ base, uint2* __restrict__ out, i64 count)
{
    segments(table, base, out, count, [&](const u8* p, int n, uint2* to) {
        const int end = (int)((u64)p & 3) + n; // behind word 0
        unsigned a = 0, b = 0;                 // at most 255 · 4 · 16387 · 129 < 2³²
        const u8* last = words(p, n, [&](unsigned v, int i) {
            const unsigned odd = v >> 8 & 0xff00ff, pairs = (v & 0xff00ff) + odd; // of bytes 1 and 3; of 0 and 1, and of 2 and 3
            const unsigned sum = (pairs + (pairs >> 16)) & 0xffff;
            a += sum;
            b += (unsigned)(end - 4 * i) * sum - ((odd + (odd >> 16)) & 0xffff) - 2 * (pairs >> 16);
        });
        b %= 65521;
        for (int d = 16; d > 0; d /= 2) {
            a += __shfl_down_sync(0xffffffffu, a, d);
            b += __shfl_down_sync(0xffffffffu, b, d);
        }
        if (threadIdx.x & 31) return;
        for (; last < p + n; last++) {
            a += *last;
            b += (unsigned)(p + n - last) * *last;
        }
        *to = uint2{a, b % 65521};
    });
}

#define P1 0x9E3779B185EBCA87ull
#define P2 0xC2B2AE3D27D4EB4Full
#define P3 0x165667B19E3779F9ull
#define P4 0x85EBCA77C2B2AE63ull
#define P5 0x27D4EB2F165667C5ull

__device__ __forceinline__ u64 rotate(u64 v, int by) { return v << by | v >> (64 - by); }
__device__ __forceinline__ u64 mix(u64 acc, u64 v) { return rotate(acc + v * P2, 31) * P1; }

__device__ __forceinline__ u64 read(const u8* p, int n)
{
    if (n == 8 && ((u64)p & 7) == 0) return *(const u64*)p;
    u64 v = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) v |= (u64)p[i] << 8 * i;
    return v;
}

// AHEAD stripes of 32 bytes are on their way while as many are mixed.
enum : int { AHEAD = 8 };

// lane_of mixes every fourth word of stripes, of which p is the first. ODD: a word is put together from the two that
// it lies in; of the last stripes bytes are read, as the second may lie behind the range.
template <bool ODD> __device__ __forceinline__ u64 lane_of(u64 v, const u8* p, i64 stripes)
{
    const int odd = (int)((u64)p & 7);
    const u64* in = (const u64*)(p - odd);
    u64 next[AHEAD], behind[AHEAD];
    auto load = [&](i64 i) {
#pragma unroll
        for (int k = 0; k < AHEAD; k++) {
            next[k] = in[4 * (i + k)];
            if (ODD) behind[k] = in[4 * (i + k) + 1];
        }
    };
    i64 i = 0;
    if (AHEAD < stripes) load(0);
#pragma unroll 1
    for (; i + AHEAD < stripes; i += AHEAD) {
        u64 now[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) now[k] = ODD ? next[k] >> 8 * odd | behind[k] << (64 - 8 * odd) : next[k];
        if (i + 2 * AHEAD < stripes) load(i + AHEAD);
#pragma unroll
        for (int k = 0; k < AHEAD; k++) v = mix(v, now[k]);
    }
    if (ODD) {
#pragma unroll 1
        for (; i < stripes; i++) v = mix(v, read(p + 32 * i, 8));
        return v;
    }
#pragma unroll
    for (int k = 0; k < AHEAD; k++)
        if (i + k < stripes) next[k] = in[4 * (i + k)];
#pragma unroll
    for (int k = 0; k < AHEAD; k++)
        if (i + k < stripes) v = mix(v, next[k]);
    return v;
}

extern "C" __global__ void __launch_bounds__(32) xxh64_ranges(const i64* __restrict__ table, const u8* __restrict__ base, uint2* __restrict__ out, i64 count)
{
    const i64 k = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 4;
    const int lane = threadIdx.x & 3;
    const i64 bytes = k < count ? table[3 * k + 1] : 0;
    const u8* p = base + (k < count ? table[3 * k] : 0);
    const u64 begin = lane == 0 ? P1 + P2 : lane == 1 ? P2 : lane == 2 ? 0 : 0 - P1;
    const u64 v = (u64)p & 7 ? lane_of<true>(begin, p + 8 * lane, bytes / 32) : lane_of<false>(begin, p + 8 * lane, bytes / 32);
    // The first of the four gets the others' lanes.
    const int first = threadIdx.x & 28;
    const u64 v1 = __shfl_sync(0xffffffffu, v, first + 1), v2 = __shfl_sync(0xffffffffu, v, first + 2), v3 = __shfl_sync(0xffffffffu, v, first + 3);
    if (lane || k >= count) return;
    u64 h = P5;
    if (bytes >= 32) {
        h = rotate(v, 1) + rotate(v1, 7) + rotate(v2, 12) + rotate(v3, 18);
        h = (h ^ mix(0, v)) * P1 + P4;
        h = (h ^ mix(0, v1)) * P1 + P4;
        h = (h ^ mix(0, v2)) * P1 + P4;
        h = (h ^ mix(0, v3)) * P1 + P4;
    }
    h += (u64)bytes;
    i64 i = bytes / 32 * 32;
#pragma unroll 1
    for (; i + 8 <= bytes; i += 8) h = rotate(h ^ mix(0, read(p + i, 8)), 27) * P1 + P4;
    if (i + 4 <= bytes) {
        h = rotate(h ^ read(p + i, 4) * P1, 23) * P2 + P3;
        i += 4;
    }
#pragma unroll 1
    for (; i < bytes; i++) h = rotate(h ^ p[i] * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    h ^= h >> 32;
    out[table[3 * k + 2]] = uint2{(unsigned)h, (unsigned)(h >> 32)};
}
