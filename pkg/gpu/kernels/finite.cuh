// NaN and infinities.
#pragma once

// finite: integers always are; nothing is computed to find that out.
template <class T> __device__ __forceinline__ bool finite(T v)
{
    if constexpr ((T)0.5 != 0) return v - v == 0;
    return true;
}
