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

struct Box {
    i64 out;        // of this thread, or -1
    int z, y, x;
};

__device__ __forceinline__ bool place(Box* b, int ny, int nx, i64 n)
{
    b->out = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (b->out >= n) return false;
    b->x = (int)(b->out % nx);
    const i64 row = b->out / nx;
    b->y = (int)(row % ny);
    b->z = (int)(row / ny);
    return true;
}

// Every axis is even: the mean of 2^shift samples, of integers rounded half to even.
template <class T> __device__ __forceinline__ void mean_int(const T* __restrict__ in, T* __restrict__ out, i64 n, int ny, int nx, int in_ny, int in_nx, int planes)
{
    typedef typename Kind<T>::Sum S;
    Box b;
    if (!place(&b, ny, nx, n)) return;
    const int shift = planes == 2 ? 3 : 2;
    const S half = ((S)1 << (shift - 1)) - 1;
    S s = 0;
    for (int p = 0; p < planes; p++) {
        const T* r = in + (((i64)b.z * planes + p) * in_ny + 2 * b.y) * in_nx + 2 * b.x;
        s += (S)r[0] + (S)r[1] + (S)r[in_nx] + (S)r[in_nx + 1];
    }
    out[b.out] = (T)((s + half + (s >> shift & 1)) >> shift);
}

template <class T> __device__ __forceinline__ void mean_real(const T* __restrict__ in, T* __restrict__ out, i64 n, int ny, int nx, int in_ny, int in_nx, int planes)
{
    Box b;
    if (!place(&b, ny, nx, n)) return;
    const T* r = in + ((i64)b.z * planes * in_ny + 2 * b.y) * in_nx + 2 * b.x;
    T s = (r[0] + r[1]) + (r[in_nx] + r[in_nx + 1]);
    if (planes == 2) {
        r += (i64)in_ny * in_nx;
        s = s + ((r[0] + r[1]) + (r[in_nx] + r[in_nx + 1]));
        out[b.out] = s * (T)0.125;
    } else {
        out[b.out] = s * (T)0.25;
    }
}

#define MEAN(NAME, T, HOW)                                                              \
    extern "C" __global__ void __launch_bounds__(256) shrink_even_##NAME(               \
        const T* __restrict__ in, T* __restrict__ out, i64 n, int ny, int nx, int in_ny, int in_nx, int planes) \
    {                                                                                   \
        HOW(in, out, n, ny, nx, in_ny, in_nx, planes);                                  \
    }
MEAN(u8, unsigned char, mean_int)
MEAN(i8, signed char, mean_int)
MEAN(u16, unsigned short, mean_int)
MEAN(i16, short, mean_int)
MEAN(u32, unsigned int, mean_int)
MEAN(i32, int, mean_int)
MEAN(f32, float, mean_real)
MEAN(f64, double, mean_real)

// Some axis is odd, or sums of eight overflow: interpolated along x, then y, then z, by
// the taps of each axis: samples lo[i] and hi[i] with weights w0[i] and w1[i].
struct Taps {
    const int* lo;
    const int* hi;
    const double* w0;
    const double* w1;
};

template <class T>
__device__ __forceinline__ void blend(const T* __restrict__ in, T* __restrict__ out, i64 n, int ny, int nx, int in_ny, int in_nx, int planes, double scale, Taps tz, Taps ty, Taps tx)
{
    typedef typename Kind<T>::Real F;
    Box b;
    if (!place(&b, ny, nx, n)) return;
    const F x0 = (F)tx.w0[b.x], x1 = (F)tx.w1[b.x], y0 = (F)ty.w0[b.y], y1 = (F)ty.w1[b.y];
    const int lo = tx.lo[b.x], hi = tx.hi[b.x];
    F v = 0;
    for (int p = 0; p < planes; p++) {
        const int z = planes == 1 ? b.z : p ? tz.hi[b.z] : tz.lo[b.z];
        const T* r0 = in + ((i64)z * in_ny + ty.lo[b.y]) * in_nx;
        const T* r1 = in + ((i64)z * in_ny + ty.hi[b.y]) * in_nx;
        const F a = (F)r0[lo] * x0 + (F)r0[hi] * x1;
        const F c = (F)r1[lo] * x0 + (F)r1[hi] * x1;
        const F q = a * y0 + c * y1;
        if (planes == 1) v = q;
        else if (p == 0) v = q * (F)tz.w0[b.z];
        else v = v + q * (F)tz.w1[b.z];
    }
    out[b.out] = Kind<T>::round(v * (F)scale);
}

#define BLEND(NAME, T)                                                                  \
    extern "C" __global__ void __launch_bounds__(256) shrink_odd_##NAME(                \
        const T* __restrict__ in, T* __restrict__ out, i64 n, int ny, int nx, int in_ny, int in_nx, int planes, double scale, \
        const int* __restrict__ zlo, const int* __restrict__ zhi, const double* __restrict__ z0, const double* __restrict__ z1, \
        const int* __restrict__ ylo, const int* __restrict__ yhi, const double* __restrict__ y0, const double* __restrict__ y1, \
        const int* __restrict__ xlo, const int* __restrict__ xhi, const double* __restrict__ x0, const double* __restrict__ x1) \
    {                                                                                   \
        blend(in, out, n, ny, nx, in_ny, in_nx, planes, scale, Taps{zlo, zhi, z0, z1}, Taps{ylo, yhi, y0, y1}, Taps{xlo, xhi, x0, x1}); \
    }
BLEND(u8, unsigned char)
BLEND(i8, signed char)
BLEND(u16, unsigned short)
BLEND(i16, short)
BLEND(u32, unsigned int)
BLEND(i32, int)
BLEND(u64, u64)
BLEND(i64, i64)
BLEND(f32, float)
BLEND(f64, double)
