// Checksums of ranges of bytes: parts of CRC-32 (RFC 1952) and of Adler-32 (RFC 1950) of segments of
// SEGMENT bytes, which the host puts together, and XXH64 whole (xxHash specification), by four threads, one for
// each of its lanes: its steps follow from each other. table has a row of three for each of
// count ranges: where it lies, as a distance from base, its bytes, and where its results begin in
// out. Bytes per byte: 1 read, 1/512 written.
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned char u8;

#define SEGMENT 4096

// Calls EACH with each byte of p[0, n), four at a time as WORD where they are aligned.
#define BYTES(p, n, EACH, WORD)                                              \
    do {                                                                     \
        i64 i_ = 0;                                                          \
        for (; i_ < (n) && ((u64)((p) + i_) & 3); i_++) EACH((p)[i_]);       \
        _Pragma("unroll 1") for (; i_ + 4 <= (n); i_ += 4) WORD(*(const unsigned*)((p) + i_)); \
        for (; i_ < (n); i_++) EACH((p)[i_]);                                \
    } while (0)

extern "C" __global__ void __launch_bounds__(256) crc32_segments(const i64* __restrict__ table, const u8* __restrict__ base, uint2* __restrict__ out, i64 count)
{
    __shared__ unsigned t[4][256]; // t[k][b]: byte b, then k zeros
    {
        unsigned c = threadIdx.x;
#pragma unroll
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
        t[0][threadIdx.x] = c;
        __syncthreads();
#pragma unroll
        for (int k = 1; k < 4; k++) t[k][threadIdx.x] = c = c >> 8 ^ t[0][c & 255];
        __syncthreads();
    }
#pragma unroll 1
    for (i64 k = blockIdx.y; k < count; k += gridDim.y) {
        const u8* in = base + table[3 * k];
        const i64 bytes = table[3 * k + 1];
#pragma unroll 1
        for (i64 g = (i64)blockIdx.x * blockDim.x + threadIdx.x; g * SEGMENT < bytes; g += (i64)gridDim.x * blockDim.x) {
            const u8* p = in + g * SEGMENT;
            const i64 n = bytes - g * SEGMENT < SEGMENT ? bytes - g * SEGMENT : SEGMENT;
            unsigned c = 0xffffffffu;
#define EACH(b) c = c >> 8 ^ t[0][(c ^ (b)) & 255]
#define WORD(w) c ^= (w), c = t[3][c & 255] ^ t[2][c >> 8 & 255] ^ t[1][c >> 16 & 255] ^ t[0][c >> 24]
            BYTES(p, n, EACH, WORD);
#undef EACH
#undef WORD
            out[table[3 * k + 2] + g] = uint2{~c, 0};
        }
    }
}

// The sum of a segment's bytes, and of its sums up to each byte.
extern "C" __global__ void __launch_bounds__(256) adler32_segments(const i64* __restrict__ table, const u8* __restrict__ base, uint2* __restrict__ out, i64 count)
{
#pragma unroll 1
    for (i64 k = blockIdx.y; k < count; k += gridDim.y) {
        const u8* in = base + table[3 * k];
        const i64 bytes = table[3 * k + 1];
#pragma unroll 1
        for (i64 g = (i64)blockIdx.x * blockDim.x + threadIdx.x; g * SEGMENT < bytes; g += (i64)gridDim.x * blockDim.x) {
            const u8* p = in + g * SEGMENT;
            const i64 n = bytes - g * SEGMENT < SEGMENT ? bytes - g * SEGMENT : SEGMENT;
            unsigned a = 0, b = 0; // at most 255 · 4096 · 4097 / 2 < 2³²
#define EACH(v) a += (v), b += a
#define WORD(w) EACH((w) & 255), EACH((w) >> 8 & 255), EACH((w) >> 16 & 255), EACH((w) >> 24)
            BYTES(p, n, EACH, WORD);
#undef EACH
#undef WORD
            out[table[3 * k + 2] + g] = uint2{a, b};
        }
    }
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

extern "C" __global__ void __launch_bounds__(128) xxh64_ranges(const i64* __restrict__ table, const u8* __restrict__ base, uint2* __restrict__ out, i64 count)
{
    const i64 k = ((i64)blockIdx.x * blockDim.x + threadIdx.x) / 4;
    const int lane = threadIdx.x & 3;
    const i64 bytes = k < count ? table[3 * k + 1] : 0;
    const u8* p = base + (k < count ? table[3 * k] : 0);
    u64 v = lane == 0 ? P1 + P2 : lane == 1 ? P2 : lane == 2 ? 0 : 0 - P1;
#pragma unroll 1
    for (i64 i = 0; i < bytes / 32; i++) v = mix(v, read(p + 32 * i + 8 * lane, 8));
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
