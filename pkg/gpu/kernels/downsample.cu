// The next level of a pyramid: pkg/ngff/downsample.go, bit by bit.
//
// out (nz, ny, nx) from in (·, in_ny, in_nx). Y and X are halved; Z is when planes is 2. An
// output is made of two samples along each halved axis.
// Bytes per input voxel: sizeof(T) read; per output voxel: sizeof(T) written.
typedef long long i64;
typedef unsigned long long u64;

// Sums of eight are exact in Sum; what is interpolated is so in Real.
template <class T> struct Kind;
#define KIND(T, SUM, REAL, LEAST, MOST)                  \
    template <> struct Kind<T> {                         \
        typedef SUM Sum;                                 \
        typedef REAL Real;                               \
        static __device__ __forceinline__ T round(double v) \
        {                                                \
            v = rint(v);                                 \
            return v >= (double)(MOST) ? (T)(MOST) : v <= (double)(LEAST) ? (T)(LEAST) : (T)v; \
        }                                                \
    };
KIND(unsigned char, int, float, 0, 255)
KIND(signed char, int, float, -128, 127)
KIND(unsigned short, int, float, 0, 65535)
KIND(short, int, float, -32768, 32767)
KIND(unsigned int, i64, double, 0, 4294967295ull)
KIND(int, i64, double, -2147483648ll, 2147483647)
KIND(u64, double, double, 0, 18446744073709551615ull)
KIND(i64, double, double, -9223372036854775807ll - 1, 9223372036854775807ll)
template <> struct Kind<float> {
    typedef float Real;
    static __device__ __forceinline__ float round(float v) { return v; }
};
template <> struct Kind<double> {
    typedef double Real;
    static __device__ __forceinline__ double round(double v) { return v; }
};

// The mean of four or eight samples; of integers rounded half to even.
template <class T, bool REAL> struct Mean {
    typedef typename Kind<T>::Sum S;
    static __device__ __forceinline__ S four(T a, T b, T c, T d) { return (S)a + (S)b + (S)c + (S)d; }
    static __device__ __forceinline__ T of(S s, int shift) { return (T)((s + ((S)1 << (shift - 1)) - 1 + (s >> shift & 1)) >> shift); }
};
template <class T> struct Mean<T, true> {
    typedef T S;
    static __device__ __forceinline__ T four(T a, T b, T c, T d) { return (a + b) + (c + d); }
    static __device__ __forceinline__ T of(T s, int shift) { return s * (shift == 3 ? (T)0.125 : (T)0.25); }
};

// Sample i of 16 bytes.
template <class T> __device__ __forceinline__ T sample(uint4 v, int i)
{
    const int at = i * (int)sizeof(T);
    const unsigned w = at < 4 ? v.x : at < 8 ? v.y : at < 12 ? v.z : v.w;
    return (T)(w >> at % 4 * 8);
}
template <> __device__ __forceinline__ float sample<float>(uint4 v, int i)
{
    return __int_as_float((int)(i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w));
}
template <class T> __device__ __forceinline__ unsigned bits(T v) { return sizeof(T) == 1 ? (unsigned char)v : sizeof(T) == 2 ? (unsigned short)v : (unsigned)v; }
template <> __device__ __forceinline__ unsigned bits<float>(float v) { return (unsigned)__float_as_int(v); }

// Every axis is even. A thread makes V outputs of a row: from 16 bytes of each row of the
// input, if rows divide into these.
template <class T, int V, bool REAL>
__device__ __forceinline__ void even(const T* __restrict__ in, T* __restrict__ out, int nz, int ny, int nx, int planes)
{
    typedef Mean<T, REAL> M;
    const int x = (blockIdx.x * blockDim.x + threadIdx.x) * V, shift = planes + 1;
    if (x >= nx) return;
    const i64 in_nx = 2 * (i64)nx, plane = in_nx * 2 * ny;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
            const T* r = in + (i64)z * planes * plane + 2 * y * in_nx + 2 * x;
            T* to = out + ((i64)z * ny + y) * nx + x;
            if (sizeof(T) <= 4 && nx % V == 0) {
                uint4 a = *(const uint4*)r, b = *(const uint4*)(r + in_nx), c = a, d = b;
                if (planes == 2) c = *(const uint4*)(r + plane), d = *(const uint4*)(r + plane + in_nx);
                unsigned w[2] = {0, 0};
#pragma unroll
                for (int i = 0; i < V; i++) {
                    typename M::S s = M::four(sample<T>(a, 2 * i), sample<T>(a, 2 * i + 1), sample<T>(b, 2 * i), sample<T>(b, 2 * i + 1));
                    if (planes == 2) s = s + M::four(sample<T>(c, 2 * i), sample<T>(c, 2 * i + 1), sample<T>(d, 2 * i), sample<T>(d, 2 * i + 1));
                    w[i * (int)sizeof(T) / 4] |= bits<T>(M::of(s, shift)) << i * (int)sizeof(T) % 4 * 8;
                }
                *(uint2*)to = uint2{w[0], w[1]};
                continue;
            }
#pragma unroll 1
            for (int i = 0; i < V && x + i < nx; i++) {
                const T* p = r + 2 * i;
                typename M::S s = M::four(p[0], p[1], p[in_nx], p[in_nx + 1]);
                if (planes == 2) s = s + M::four(p[plane], p[plane + 1], p[plane + in_nx], p[plane + in_nx + 1]);
                to[i] = M::of(s, shift);
            }
        }
}

#define EVEN(NAME, T, V, REAL)                                                          \
    extern "C" __global__ void __launch_bounds__(256) downsample_even_##NAME(           \
        const T* __restrict__ in, T* __restrict__ out, int nz, int ny, int nx, int planes) \
    {                                                                                   \
        even<T, V, REAL>(in, out, nz, ny, nx, planes);                                  \
    }
EVEN(u8, unsigned char, 8, false)
EVEN(i8, signed char, 8, false)
EVEN(u16, unsigned short, 4, false)
EVEN(i16, short, 4, false)
EVEN(u32, unsigned int, 2, false)
EVEN(i32, int, 2, false)
EVEN(f32, float, 2, true)

extern "C" __global__ void __launch_bounds__(256) downsample_even_f64(const double* __restrict__ in, double* __restrict__ out, int nz, int ny, int nx, int planes)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    const i64 in_nx = 2 * (i64)nx, plane = in_nx * 2 * ny;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
            double s = 0;
#pragma unroll 1
            for (int p = 0; p < planes; p++) {
                const double* r = in + ((i64)z * planes + p) * plane + 2 * y * in_nx + 2 * x;
                const double2 a = *(const double2*)r, b = *(const double2*)(r + in_nx);
                const double four = (a.x + a.y) + (b.x + b.y);
                s = p ? s + four : four;
            }
            out[((i64)z * ny + y) * nx + x] = Mean<double, true>::of(s, planes + 1);
        }
}

// Some axis is odd, or sums of eight overflow: interpolated along x, then y, then z, by the
// taps of each axis.
struct Tap {
    double w0, w1; // weights
    int lo, hi;    // of these samples
};

template <class T>
__device__ __forceinline__ void odd(const T* __restrict__ in, T* __restrict__ out, int nz, int ny, int nx, int in_ny, int in_nx, int planes, double scale,
                                    const Tap* __restrict__ tz, const Tap* __restrict__ ty, const Tap* __restrict__ tx)
{
    typedef typename Kind<T>::Real F;
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= nx) return;
    const F x0 = (F)tx[x].w0, x1 = (F)tx[x].w1;
    const int lo = tx[x].lo, hi = tx[x].hi;
#pragma unroll 1
    for (int z = blockIdx.z; z < nz; z += gridDim.z)
#pragma unroll 1
        for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < ny; y += gridDim.y * blockDim.y) {
            const F y0 = (F)ty[y].w0, y1 = (F)ty[y].w1;
            F v = 0;
#pragma unroll 1
            for (int p = 0; p < planes; p++) {
                const int from = planes == 1 ? z : p ? tz[z].hi : tz[z].lo;
                const T* r0 = in + ((i64)from * in_ny + ty[y].lo) * in_nx;
                const T* r1 = in + ((i64)from * in_ny + ty[y].hi) * in_nx;
                const F a = (F)r0[lo] * x0 + (F)r0[hi] * x1;
                const F b = (F)r1[lo] * x0 + (F)r1[hi] * x1;
                const F q = a * y0 + b * y1;
                if (planes == 1) v = q;
                else if (p == 0) v = q * (F)tz[z].w0;
                else v = v + q * (F)tz[z].w1;
            }
            out[((i64)z * ny + y) * nx + x] = Kind<T>::round(v * (F)scale);
        }
}

#define ODD(NAME, T)                                                                    \
    extern "C" __global__ void __launch_bounds__(256, 4) downsample_odd_##NAME(            \
        const T* __restrict__ in, T* __restrict__ out, int nz, int ny, int nx, int in_ny, int in_nx, int planes, double scale, \
        const Tap* __restrict__ tz, const Tap* __restrict__ ty, const Tap* __restrict__ tx) \
    {                                                                                   \
        odd(in, out, nz, ny, nx, in_ny, in_nx, planes, scale, tz, ty, tx);              \
    }
ODD(u8, unsigned char)
ODD(i8, signed char)
ODD(u16, unsigned short)
ODD(i16, short)
ODD(u32, unsigned int)
ODD(i32, int)
ODD(u64, u64)
ODD(i64, i64)
ODD(f32, float)
ODD(f64, double)
