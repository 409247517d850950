// What lies in memory.
typedef long long i64;
typedef unsigned long long u64;

// count_set: count grows by the number of 16-byte words, and of bytes behind the last
// whole one, that are not zero. Bytes per byte: 1 read.
extern "C" __global__ void __launch_bounds__(256) count_set(const uint4* __restrict__ v, u64* __restrict__ count, i64 bytes)
{
    const i64 words = bytes / 16, step = (i64)gridDim.x * blockDim.x, first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    int n = 0;
    for (i64 i = first; i < words; i += step) {
        const uint4 w = v[i];
        n += (w.x | w.y | w.z | w.w) != 0;
    }
    const i64 tail = 16 * words + first;
    if (tail < bytes) n += ((const unsigned char*)v)[tail] != 0;
    for (int d = 16; d > 0; d /= 2) n += __shfl_down_sync(0xffffffffu, n, d);
    if ((threadIdx.x & 31) == 0 && n) atomicAdd(count, (u64)n);
}
