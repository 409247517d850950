// Shim that lets a CUDA C++ kernel file compile as ordinary host C++17.
// Force-included (-include) before the kernel source; never seen by nvcc/NVRTC.
// All kernel code runs on ONE thread (the emulated device), so shared memory is
// a plain static and every CUDA thread is a fiber (see emu.h).
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <algorithm>

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#if defined(__SANITIZE_ADDRESS__)
#define __shared__ static // ASan puts red zones around it
#else
#define __shared__ static __attribute__((section("emu_shared"))) // poisoned per block
#endif

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x = 1, y = 1, z = 1; };
#define EMU_VEC(T, N) \
    struct alignas(2 * sizeof(T)) N##2 { T x, y; }; \
    struct alignas(4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)) N##4 { T x, y, z, w; };
EMU_VEC(unsigned char, uchar) EMU_VEC(unsigned short, ushort) EMU_VEC(short, short)
EMU_VEC(unsigned, uint) EMU_VEC(int, int) EMU_VEC(float, float) EMU_VEC(double, double)

extern "C" {
extern uint3 emu_tid, emu_bid;
extern dim3 emu_bdim, emu_gdim;
void emu_barrier();                                      // __syncthreads
uint64_t emu_shfl(unsigned mask, uint64_t v, int src);   // warp exchange
unsigned emu_lane();
}
#define threadIdx emu_tid
#define blockIdx emu_bid
#define blockDim emu_bdim
#define gridDim emu_gdim
#define warpSize 32
#ifdef EMU_NO_BARRIER // plants a race, to see that it is found
#define __syncthreads() ((void)0)
#else
#define __syncthreads() emu_barrier()
#endif
#define __syncwarp(...) ((void)emu_shfl(0xffffffffu, 0, 0))

template <class T> inline T emu_shfl_t(unsigned mask, T v, int source) {
    static_assert(sizeof(T) <= 8, "shuffle");
    uint64_t bits = 0;
    memcpy(&bits, &v, sizeof v);
    bits = emu_shfl(mask, bits, source);
    memcpy(&v, &bits, sizeof v);
    return v;
}
template <class T> inline T __shfl_sync(unsigned mask, T v, int source) { return emu_shfl_t(mask, v, source & 31); }
template <class T> inline T __shfl_down_sync(unsigned mask, T v, unsigned by) {
    const int source = int(emu_lane() + by);
    return emu_shfl_t(mask, v, source > 31 ? int(emu_lane()) : source);
}
template <class T> inline T __shfl_up_sync(unsigned mask, T v, unsigned by) {
    const int source = int(emu_lane()) - int(by);
    return emu_shfl_t(mask, v, source < 0 ? int(emu_lane()) : source);
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int with) { return emu_shfl_t(mask, v, int(emu_lane()) ^ with); }

template <class T> inline T atomicAdd(T* p, T v) {
    if constexpr (std::is_integral<T>::value) return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
    const T old = *p;
    *p = old + v;
    return old;
}
template <class T> inline T atomicMax(T* p, T v) {
    const T old = *p;
    if (v > old) *p = v;
    return old;
}
template <class T> inline T atomicMin(T* p, T v) {
    const T old = *p;
    if (v < old) *p = v;
    return old;
}
template <class T> inline T atomicCAS(T* p, T compare, T v) {
    const T old = *p;
    if (old == compare) *p = v;
    return old;
}
using std::max; using std::min;
inline int __float_as_int(float v) { int b; memcpy(&b, &v, 4); return b; }
inline long long __double_as_longlong(double v) { long long b; memcpy(&b, &v, 8); return b; }
inline double __longlong_as_double(long long b) { double v; memcpy(&v, &b, 8); return v; }
inline float __int_as_float(int b) { float v; memcpy(&v, &b, 4); return v; }
template <class T> inline T __ldg(const T* p) { return *p; }
