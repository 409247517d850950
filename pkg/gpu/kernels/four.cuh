// Four elements side by side, read and written by one access, of 16 bytes for types of
// four. They begin at a multiple of their size.
#pragma once

template <class T> struct alignas(4 * sizeof(T)) Four {
    T v[4];
};
template <class T> __device__ __forceinline__ Four<T> four(const T* p) { return *(const Four<T>*)p; }
