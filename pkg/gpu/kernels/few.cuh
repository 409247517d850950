// Elements side by side, and kernels that take several of them a thread.
#pragma once

// Few are N elements that are read and written at once, by one access of up to 16 bytes. They
// begin at a multiple of their size, or of 16 bytes where they are larger.
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Few {
    T v[N];
};
template <int N, class T> __device__ __forceinline__ Few<T, N> few(const T* p) { return *(const Few<T, N>*)p; }

// Word is the type of an access of BYTES. What is written goes by it: the compiler would write element by element.
template <int BYTES> struct Word {
    typedef uint4 type;
};
template <> struct Word<1> {
    typedef unsigned char type;
};
template <> struct Word<2> {
    typedef unsigned short type;
};
template <> struct Word<4> {
    typedef unsigned int type;
};
template <> struct Word<8> {
    typedef unsigned long long type;
};
template <int N, class T> __device__ __forceinline__ void put(T* p, const Few<T, N>& v)
{
    typedef typename Word<N * sizeof(T)>::type W;
    constexpr int words = N * sizeof(T) / sizeof(W);
    union {
        Few<T, N> few;
        W word[words];
    } u = {v};
#pragma unroll
    for (int i = 0; i < words; i++) ((W*)p)[i] = u.word[i];
}

// begins tells whether Few<T, N> can be at p.
template <int N, class T> __device__ __forceinline__ bool begins(const T* p) { return (unsigned long long)p % alignof(Few<T, N>) == 0; }

template <int N> struct Width {
    enum { n = N };
};

// each calls f(i, Width) for elements 0 … n−1 along x of the grid, whose threads have N each. Where they are
// aligned a thread takes N neighbours at once, but for the last n mod N; else one after
// the other, side by side with those of the other threads.
template <int N, class F> __device__ __forceinline__ void each(long long n, bool aligned, F f)
{
    long long i = (long long)blockIdx.x * blockDim.x * N + (aligned ? threadIdx.x * N : threadIdx.x);
    if constexpr (N > 1)
        if (aligned && i + N <= n) return f(i, Width<N>());
#pragma unroll 1
    for (int k = 0; k < N && i < n; k++, i += aligned ? 1 : blockDim.x) f(i, Width<1>());
}
