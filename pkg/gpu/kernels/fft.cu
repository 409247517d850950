// Discrete Fourier transforms in double, of lengths 2^a·3^b·5^c, by passes that sort as they
// go (Stockham's; Van Loan, Computational Frameworks for the Fast Fourier Transform, 1.7).
typedef long long i64;

__device__ __forceinline__ double2 times(double2 a, double2 b) { return double2{a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x}; }

// pass: the pass of radix R over an array (outer, n, inner), after passes whose radices
// multiply to s. A thread takes R elements a stride apart. table[k] is exp(−2πi·k/n); the
// inverse takes the conjugates.
// Bytes per element: 16 read, 16 written; as much of the table, from the cache.
template <int R>
__device__ __forceinline__ void pass(const double2* __restrict__ in, double2* __restrict__ out, const double2* __restrict__ table, i64 count, int n, int s, i64 inner, int inverse)
{
    const i64 t = (i64)blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= count) return;
    const i64 i = t % inner, b = t / inner;
    const int each = n / R, g = (int)(b % each), q = g % s, p = g / s;
    const i64 base = b / each * n * inner + i;
    double2 x[R];
#pragma unroll
    for (int j = 0; j < R; j++) x[j] = in[base + ((i64)g + (i64)each * j) * inner];
#pragma unroll
    for (int k = 0; k < R; k++) {
        double2 sum = x[0];
#pragma unroll
        for (int j = 1; j < R; j++) {
            double2 w = table[j * k % R * each];
            if (inverse) w.y = -w.y;
            const double2 v = times(x[j], w);
            sum.x += v.x;
            sum.y += v.y;
        }
        double2 w = table[(i64)p * k * s];
        if (inverse) w.y = -w.y;
        out[base + ((i64)q + (i64)s * (R * p + k)) * inner] = times(sum, w);
    }
}

#define PASS(R)                                                              \
    extern "C" __global__ void __launch_bounds__(256, 2) fft_##R(            \
        const double2* __restrict__ in, double2* __restrict__ out, const double2* __restrict__ table, i64 count, int n, int s, i64 inner, int inverse) \
    {                                                                        \
        pass<R>(in, out, table, count, n, s, inner, inverse);                \
    }
PASS(2)
PASS(3)
PASS(4)
PASS(5)
