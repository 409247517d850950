// Four elements side by side, read and written at once: by one access of up to 16 bytes, two
// for types of eight. They begin at a multiple of their size.
#pragma once

template <class T> struct alignas(4 * sizeof(T)) Four {
    T v[4];
};
template <class T> __device__ __forceinline__ Four<T> four(const T* p) { return *(const Four<T>*)p; }
