// A pass along the middle axis of an array (outer, n, inner). Threads stand side by side
// along inner, or along the axis itself where inner is 1; kernels.line is their grid.
#pragma once

struct Line {
    long long x; // along inner
    int i, outer;
};

// EACH_LINE(at, n, outer, inner) { … } is done for each element of this thread. There is no
// division in it: that takes longer than the memory.
#define EACH_LINE(AT, N, OUTER, INNER)                                                                       \
    const long long AT##_x = (long long)blockIdx.x * blockDim.x + threadIdx.x;                               \
    const bool AT##_one = (INNER) == 1;                                                                      \
    if (AT##_x >= (AT##_one ? (long long)(N) : (INNER))) return;                                             \
    _Pragma("unroll 1") for (int AT##_z = blockIdx.z; AT##_z < (AT##_one ? 1 : (OUTER)); AT##_z += gridDim.z) \
        _Pragma("unroll 1") for (int AT##_y = blockIdx.y * blockDim.y + threadIdx.y; AT##_y < (AT##_one ? (OUTER) : (N)); AT##_y += gridDim.y * blockDim.y) \
            if (const Line AT = AT##_one ? Line{0, (int)AT##_x, AT##_y} : Line{AT##_x, AT##_y, AT##_z}; true)
