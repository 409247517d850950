// What each instruction does, by its full name. Arithmetic is as the PTX ISA 8.0 defines it, bit by
// bit, but for .approx, of which it gives only bounds. Compiled with -ffp-contract=off -frounding-math.
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>
#include "ptx_code.h"

namespace ptx {
namespace {

typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef __int128 s128;
typedef unsigned __int128 u128;

template <class T> constexpr bool is_float = std::is_floating_point<T>::value;
template <class T> using Unsigned = std::make_unsigned_t<T>;
template <class T> using Wide = std::conditional_t<std::is_same<T, s16>::value, s32, std::conditional_t<std::is_same<T, u16>::value, u32,
    std::conditional_t<std::is_same<T, s32>::value, s64, u64>>>;

template <class To, class From> To bits_as(From v) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    memcpy(&to, &v, sizeof to);
    return to;
}

// Results that are NaN: of single precision there is one; of double, any.
template <class T> T canonical(T v) {
    if constexpr (sizeof(T) == 4) return v == v ? v : bits_as<float>(0x7fffffffu);
    else return v;
}
template <class T> T flushed(T v, bool ftz) { return ftz && std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(T(0), v) : v; }
template <class T> T saturated(T v) { return v != v ? T(0) : v < T(0) ? T(0) : v > T(1) ? T(1) : v == T(0) ? T(0) : v; }

class Rounding { // for its lifetime
    int before;
public:
    explicit Rounding(int mode) : before(fegetround()) {
        if (mode != before) fesetround(mode);
    }
    ~Rounding() { fesetround(before); }
};

// ---- integers; two's complement that wraps

template <class T> struct Add { static T of(T a, T b) { return T(Unsigned<T>(a) + Unsigned<T>(b)); } };
template <class T> struct Sub { static T of(T a, T b) { return T(Unsigned<T>(a) - Unsigned<T>(b)); } };
template <class T> struct MulLo { static T of(T a, T b) { return T(u64(a) * u64(b)); } };
template <class T> struct MulHi {
    static T of(T a, T b) {
        if constexpr (std::is_signed<T>::value) return T((s128(a) * s128(b)) >> (8 * sizeof(T)));
        else return T((u128(a) * u128(b)) >> (8 * sizeof(T)));
    }
};
template <class T> struct Div {
    static T of(T a, T b) {
        if (!b) fail(719, "division by zero");
        if (std::is_signed<T>::value && b == T(-1)) return T(0 - Unsigned<T>(a));
        return a / b;
    }
};
template <class T> struct Rem {
    static T of(T a, T b) {
        if (!b) fail(719, "remainder of a division by zero");
        if (std::is_signed<T>::value && b == T(-1)) return 0;
        return a % b;
    }
};
template <class T> struct Min { static T of(T a, T b) { return b < a ? b : a; } };
template <class T> struct Max { static T of(T a, T b) { return a < b ? b : a; } };
template <class T> struct And { static T of(T a, T b) { return a & b; } };
template <class T> struct Or { static T of(T a, T b) { return a | b; } };
template <class T> struct Xor { static T of(T a, T b) { return a ^ b; } };

template <class T, template <class> class F> void binary(Thread& t, const Instruction& i) { t.set(i.d, F<T>::of(t.get<T>(i.a), t.get<T>(i.b))); }
template <class T> void mul_wide(Thread& t, const Instruction& i) { t.set(i.d, Wide<T>(Wide<T>(t.get<T>(i.a)) * Wide<T>(t.get<T>(i.b)))); }
template <class T> void mad_lo(Thread& t, const Instruction& i) { t.set(i.d, Add<T>::of(MulLo<T>::of(t.get<T>(i.a), t.get<T>(i.b)), t.get<T>(i.c))); }
template <class T> void mad_hi(Thread& t, const Instruction& i) { t.set(i.d, Add<T>::of(MulHi<T>::of(t.get<T>(i.a), t.get<T>(i.b)), t.get<T>(i.c))); }
template <class T> void mad_wide(Thread& t, const Instruction& i) {
    typedef Wide<T> W;
    t.set(i.d, Add<W>::of(W(t.get<T>(i.a)) * W(t.get<T>(i.b)), t.get<W>(i.c)));
}
template <class T> void invert(Thread& t, const Instruction& i) { t.set(i.d, T(~t.get<T>(i.a))); }
void invert_predicate(Thread& t, const Instruction& i) { t.set(i.d, u64(!t.get<u64>(i.a))); }
template <class T> void negate_int(Thread& t, const Instruction& i) { t.set(i.d, T(0 - Unsigned<T>(t.get<T>(i.a)))); }
template <class T> void absolute_int(Thread& t, const Instruction& i) {
    T v = t.get<T>(i.a);
    t.set(i.d, T(v < 0 ? 0 - Unsigned<T>(v) : Unsigned<T>(v)));
}

// Shifts by more than the width are shifts by the width.
template <class T> void shift_left(Thread& t, const Instruction& i) {
    u32 by = t.get<u32>(i.b);
    t.set(i.d, by >= 8 * sizeof(T) ? T(0) : T(t.get<T>(i.a) << by));
}
template <class T> void shift_right(Thread& t, const Instruction& i) {
    u32 by = t.get<u32>(i.b);
    T v = t.get<T>(i.a);
    if (by >= 8 * sizeof(T)) t.set(i.d, T(std::is_signed<T>::value && v < 0 ? -1 : 0));
    else t.set(i.d, T(v >> by));
}
template <bool left, bool wrap> void funnel(Thread& t, const Instruction& i) {
    u32 by = t.get<u32>(i.c);
    by = wrap ? by & 31 : by > 32 ? 32 : by;
    u64 both = u64(t.get<u32>(i.b)) << 32 | t.get<u32>(i.a);
    t.set(i.d, left ? u32(both << by >> 32) : u32(both >> by));
}
template <class T> void population(Thread& t, const Instruction& i) { t.set(i.d, u32(__builtin_popcountll(u64(t.get<T>(i.a))))); }
template <class T> void leading_zeros(Thread& t, const Instruction& i) {
    T v = t.get<T>(i.a);
    t.set(i.d, u32(v ? __builtin_clzll(u64(v)) - (64 - 8 * sizeof(T)) : 8 * sizeof(T)));
}
template <class T> void reversed(Thread& t, const Instruction& i) {
    T v = t.get<T>(i.a), r = 0;
    for (size_t k = 0; k < 8 * sizeof(T); k++) r |= T((v >> k) & 1) << (8 * sizeof(T) - 1 - k);
    t.set(i.d, r);
}
template <class T> void extract_bits(Thread& t, const Instruction& i) { // bfe
    const unsigned msb = 8 * sizeof(T) - 1;
    Unsigned<T> v = t.get<Unsigned<T>>(i.a), r = 0;
    unsigned pos = t.get<u32>(i.b) & 255, len = t.get<u32>(i.c) & 255;
    bool sign = std::is_signed<T>::value && len && (v >> std::min(pos + len - 1, msb) & 1);
    for (unsigned k = 0; k <= msb; k++) {
        bool bit = k < len && pos + k <= msb ? v >> (pos + k) & 1 : sign;
        r |= Unsigned<T>(bit) << k;
    }
    t.set(i.d, r);
}
template <class T> void insert_bits(Thread& t, const Instruction& i) { // bfi: a into b
    T a = t.get<T>(i.a), r = t.get<T>(i.b);
    unsigned pos = t.get<u32>(i.c) & 255, len = t.get<u32>(i.e) & 255;
    for (unsigned k = 0; k < len && pos + k < 8 * sizeof(T); k++) {
        T bit = T(1) << (pos + k);
        r = (a >> k & 1) ? r | bit : r & ~bit;
    }
    t.set(i.d, r);
}
void permute(Thread& t, const Instruction& i) { // prmt
    u64 bytes = u64(t.get<u32>(i.b)) << 32 | t.get<u32>(i.a);
    u32 selector = t.get<u32>(i.c), r = 0;
    for (int k = 0; k < 4; k++) {
        unsigned s = selector >> (4 * k) & 15;
        u8 byte = u8(bytes >> (8 * (s & 7)));
        if (s & 8) byte = byte & 0x80 ? 0xff : 0;
        r |= u32(byte) << (8 * k);
    }
    t.set(i.d, r);
}

// ---- floating point

struct AddF { template <class T> static T of(T a, T b) { return a + b; } };
struct SubF { template <class T> static T of(T a, T b) { return a - b; } };
struct MulF { template <class T> static T of(T a, T b) { return a * b; } };
struct DivF { template <class T> static T of(T a, T b) { return a / b; } };

// volatile: the arithmetic stays between the changes of the rounding mode.
template <class T, class F, int mode, bool ftz, bool sat> void arithmetic(Thread& t, const Instruction& i) {
    volatile T a = flushed(t.get<T>(i.a), ftz), b = flushed(t.get<T>(i.b), ftz), r;
    if (mode == FE_TONEAREST) {
        r = F::of(T(a), T(b));
    } else {
        Rounding m(mode);
        r = F::of(T(a), T(b));
    }
    T v = flushed(canonical(T(r)), ftz);
    t.set(i.d, sat ? saturated(v) : v);
}
template <class T, int mode, bool ftz, bool sat> void fused(Thread& t, const Instruction& i) {
    volatile T a = flushed(t.get<T>(i.a), ftz), b = flushed(t.get<T>(i.b), ftz), c = flushed(t.get<T>(i.c), ftz), r;
    if (mode == FE_TONEAREST) {
        r = std::fma(T(a), T(b), T(c));
    } else {
        Rounding m(mode);
        r = std::fma(T(a), T(b), T(c));
    }
    T v = flushed(canonical(T(r)), ftz);
    t.set(i.d, sat ? saturated(v) : v);
}

struct Reciprocal { template <class T> static T of(T a) { return T(1) / a; } };
struct Root { template <class T> static T of(T a) { return std::sqrt(a); } };
struct RootReciprocal { template <class T> static T of(T a) { return T(1 / std::sqrt(double(a))); } };
struct Exp2 { template <class T> static T of(T a) { return T(std::exp2(double(a))); } };
struct Log2 { template <class T> static T of(T a) { return T(std::log2(double(a))); } };
struct Sine { template <class T> static T of(T a) { return T(std::sin(double(a))); } };
struct Cosine { template <class T> static T of(T a) { return T(std::cos(double(a))); } };

template <class T, class F, bool ftz> void function(Thread& t, const Instruction& i) {
    T a = flushed(t.get<T>(i.a), ftz);
    t.set(i.d, flushed(canonical(F::of(a)), ftz));
}

template <class T> void absolute(Thread& t, const Instruction& i) { t.set(i.d, std::fabs(t.get<T>(i.a))); }
template <class T> void negate(Thread& t, const Instruction& i) { t.set(i.d, -t.get<T>(i.a)); }
template <class T> void copy_sign(Thread& t, const Instruction& i) { t.set(i.d, std::copysign(t.get<T>(i.b), t.get<T>(i.a))); } // a's sign

// A NaN loses against a number; −0 < +0.
template <class T> T least(T a, T b) { return a != a ? canonical(b) : b != b ? a : a == b ? (std::signbit(a) ? a : b) : a < b ? a : b; }
template <class T> T greatest(T a, T b) { return a != a ? canonical(b) : b != b ? a : a == b ? (std::signbit(a) ? b : a) : a > b ? a : b; }
template <class T, bool most, bool nan, bool ftz> void extreme(Thread& t, const Instruction& i) {
    T a = flushed(t.get<T>(i.a), ftz), b = flushed(t.get<T>(i.b), ftz);
    T r = most ? greatest(a, b) : least(a, b);
    if (nan && (a != a || b != b)) r = canonical(std::numeric_limits<T>::quiet_NaN());
    t.set(i.d, r);
}

// ---- comparisons and selection

struct Eq { template <class T> static bool of(T a, T b) { return a == b; } };
struct Lt { template <class T> static bool of(T a, T b) { return a < b; } };
struct Le { template <class T> static bool of(T a, T b) { return a <= b; } };
struct Gt { template <class T> static bool of(T a, T b) { return a > b; } };
struct Ge { template <class T> static bool of(T a, T b) { return a >= b; } };
struct NeInt { template <class T> static bool of(T a, T b) { return a != b; } };
template <class T> bool unordered(T a, T b) { return a != a || b != b; }
struct Ne { template <class T> static bool of(T a, T b) { return !unordered(a, b) && a != b; } }; // ordered, unlike C's !=
template <class F> struct OrUnordered { template <class T> static bool of(T a, T b) { return unordered(a, b) || F::of(a, b); } };
struct Numbers { template <class T> static bool of(T a, T b) { return !unordered(a, b); } };
struct Nans { template <class T> static bool of(T a, T b) { return unordered(a, b); } };

enum class Logic { None, And, Or, Xor };
template <class T, class F, Logic logic, bool ftz> void compare(Thread& t, const Instruction& i) {
    T a = t.get<T>(i.a), b = t.get<T>(i.b);
    if constexpr (is_float<T>) a = flushed(a, ftz), b = flushed(b, ftz);
    bool r = F::of(a, b), q = !r;
    if (logic != Logic::None) {
        bool c = bool(t.get<u64>(i.c)) != i.invert;
        r = logic == Logic::And ? r & c : logic == Logic::Or ? r | c : r ^ c;
        q = logic == Logic::And ? q & c : logic == Logic::Or ? q | c : q ^ c;
    }
    t.set(i.d, u64(r));
    if (i.d2 >= 0) t.set(i.d2, u64(q));
}
template <class T> void select(Thread& t, const Instruction& i) { t.set(i.d, t.get<u64>(i.c) ? t.get<T>(i.a) : t.get<T>(i.b)); }

// ---- moves and conversions

template <class T> void move(Thread& t, const Instruction& i) { t.set(i.d, t.get<T>(i.a)); }
template <class T> void pack(Thread& t, const Instruction& i) {
    const int part = i.width ? 8 * sizeof(T) / i.width : 0;
    const u64 mask = part ? ~u64(0) >> (64 - part) : 0;
    if (!i.width) {
        move<T>(t, i);
    } else if (i.d < 0) { // unpack
        u64 v = t.get<T>(i.a);
        for (int k = 0; k < i.width; k++) t.set(i.vector[k], (v >> (part * k)) & mask);
    } else {
        u64 v = 0;
        for (int k = 0; k < i.width; k++) v |= (t.get<u64>(i.vector[k]) & mask) << (part * k);
        t.set(i.d, T(v));
    }
}

// A register is wider than a narrow result: signed ones are extended by their sign.
template <class T> void put(Thread& t, int slot, T v) {
    if constexpr (std::is_integral<T>::value && std::is_signed<T>::value) t.set(slot, s64(v));
    else t.set(slot, v);
}

template <class D, class S, bool sat> void resize(Thread& t, const Instruction& i) {
    S v = t.get<S>(i.a);
    if (sat) {
        s128 w = v, lo = std::numeric_limits<D>::min(), hi = std::numeric_limits<D>::max();
        put(t, i.d, D(w < lo ? lo : w > hi ? hi : w));
    } else {
        put(t, i.d, D(v));
    }
}
template <class D, class S, int mode> void to_float(Thread& t, const Instruction& i) {
    volatile S v = t.get<S>(i.a);
    if constexpr (is_float<S>) {
        if (v != v) return t.set(i.d, canonical(D(S(v))));
    }
    Rounding m(mode);
    volatile D r = D(S(v));
    t.set(i.d, D(r));
}

template <class T> T integral(T v, int mode) {
    switch (mode) {
    case FE_TONEAREST: return std::nearbyint(v);
    case FE_TOWARDZERO: return std::trunc(v);
    case FE_DOWNWARD: return std::floor(v);
    default: return std::ceil(v);
    }
}
template <class T, int mode, bool ftz, bool sat> void to_integral(Thread& t, const Instruction& i) {
    T v = canonical(integral(flushed(t.get<T>(i.a), ftz), mode));
    t.set(i.d, sat ? saturated(v) : v);
}
template <class T, bool ftz, bool sat> void same_float(Thread& t, const Instruction& i) {
    T v = canonical(flushed(t.get<T>(i.a), ftz));
    t.set(i.d, sat ? saturated(v) : v);
}
template <class S> void widen(Thread& t, const Instruction& i) { t.set(i.d, double(t.get<S>(i.a))); }

// Out of range: the nearest. NaN: 0, or only the top bit, if either type has 64 bits.
template <class D, class S, int mode, bool ftz> void to_int(Thread& t, const Instruction& i) {
    typedef std::numeric_limits<D> L;
    S v = integral(flushed(t.get<S>(i.a), ftz), mode);
    const S end = std::ldexp(S(1), L::digits); // the first above the range, exactly
    D r;
    if (v != v) r = sizeof(S) == 8 || sizeof(D) == 8 ? D(Unsigned<D>(1) << (8 * sizeof(D) - 1)) : D(0);
    else if (v >= end) r = L::max();
    else if (v < (std::is_signed<D>::value ? -end : S(0))) r = L::min();
    else r = D(v);
    put(t, i.d, r);
}

// ---- memory

template <class T, Space space> void load(Thread& t, const Instruction& i) {
    const char* p = at(t, i, space, t.get<u64>(i.a) + i.offset, sizeof(T) * i.width, Access::Read);
    for (int k = 0; k < i.width; k++) {
        T v;
        memcpy(&v, p + k * sizeof v, sizeof v);
        put(t, i.vector[k], v);
    }
}
template <class T, Space space> void store(Thread& t, const Instruction& i) {
    char* p = at(t, i, space, t.get<u64>(i.a) + i.offset, sizeof(T) * i.width, Access::Write);
    for (int k = 0; k < i.width; k++) {
        T v = t.get<T>(i.vector[k]);
        memcpy(p + k * sizeof v, &v, sizeof v);
    }
}

template <class T> struct Exchange { static T of(T, T b) { return b; } };
template <class T> struct Increment { static T of(T a, T b) { return a >= b ? 0 : a + 1; } };
template <class T> struct Decrement { static T of(T a, T b) { return !a || a > b ? b : a - 1; } };
template <class T> struct AddFloat { static T of(T a, T b) { return canonical(a + b); } };

template <class T, Space space, template <class> class F> void atomic(Thread& t, const Instruction& i) {
    char* p = at(t, i, space, t.get<u64>(i.a) + i.offset, sizeof(T), Access::Atomic);
    T old;
    memcpy(&old, p, sizeof old);
    T now = F<T>::of(old, t.get<T>(i.b));
    memcpy(p, &now, sizeof now);
    if (i.d >= 0) put(t, i.d, old);
}
template <class T, Space space> void compare_and_swap(Thread& t, const Instruction& i) {
    char* p = at(t, i, space, t.get<u64>(i.a) + i.offset, sizeof(T), Access::Atomic);
    T old, now = t.get<T>(i.c);
    memcpy(&old, p, sizeof old);
    if (old == t.get<T>(i.b)) memcpy(p, &now, sizeof now);
    if (i.d >= 0) put(t, i.d, old);
}

// ---- control

void branch(Thread& t, const Instruction& i) { t.next = &i + i.offset; }
void leave(Thread& t, const Instruction&) { t.state = State::Done; }
void nothing(Thread&, const Instruction&) {}
void barrier(Thread& t, const Instruction& i) {
    if (t.get<u32>(i.a)) fail(719, "barrier %u: only 0 is supported", t.get<u32>(i.a));
    t.state = State::Barrier;
}
void warp(Thread& t, const Instruction&) { t.state = State::Warp; }
void trap(Thread&, const Instruction&) { fail(719, "trap"); }

// ---- the table

struct Table : std::map<std::string, Form> {
    template <class T> static const char* type() {
        if (std::is_same<T, float>::value) return "f32";
        if (std::is_same<T, double>::value) return "f64";
        static const std::string name = std::string(1, std::is_signed<T>::value ? 's' : 'u') + std::to_string(8 * sizeof(T));
        return name.c_str();
    }
    void plain(const std::string& name, Operation run, int sources) { (*this)[name] = Form{run, Form::Plain, sources}; }

    template <class T> void integers() {
        const std::string s = std::string(".") + type<T>();
        plain("add" + s, binary<T, Add>, 2);
        plain("sub" + s, binary<T, Sub>, 2);
        plain("mul.lo" + s, binary<T, MulLo>, 2);
        plain("mul.hi" + s, binary<T, MulHi>, 2);
        plain("mad.lo" + s, mad_lo<T>, 3);
        plain("mad.hi" + s, mad_hi<T>, 3);
        plain("div" + s, binary<T, Div>, 2);
        plain("rem" + s, binary<T, Rem>, 2);
        plain("min" + s, binary<T, Min>, 2);
        plain("max" + s, binary<T, Max>, 2);
        plain("shr" + s, shift_right<T>, 2);
        if constexpr (std::is_signed<T>::value) {
            plain("neg" + s, negate_int<T>, 1);
            plain("abs" + s, absolute_int<T>, 1);
        }
        if constexpr (sizeof(T) < 8) {
            plain("mul.wide" + s, mul_wide<T>, 2);
            plain("mad.wide" + s, mad_wide<T>, 3);
        }
        if constexpr (sizeof(T) > 2) {
            plain("bfe" + s, extract_bits<T>, 3);
        }
        comparison<T, Eq>("eq");
        comparison<T, NeInt>("ne");
        comparison<T, Lt>("lt");
        comparison<T, Le>("le");
        comparison<T, Gt>("gt");
        comparison<T, Ge>("ge");
        if constexpr (!std::is_signed<T>::value) {
            comparison<T, Lt>("lo");
            comparison<T, Le>("ls");
            comparison<T, Gt>("hi");
            comparison<T, Ge>("hs");
        }
        moves<T>(type<T>());
    }

    template <class T> void moves(const std::string& type) {
        (*this)["mov." + type] = Form{move<T>, Form::Plain, 1};
        plain("selp." + type, select<T>, 3);
    }

    template <class T> void bits() {
        const std::string b = ".b" + std::to_string(8 * sizeof(T));
        plain("and" + b, binary<T, And>, 2);
        plain("or" + b, binary<T, Or>, 2);
        plain("xor" + b, binary<T, Xor>, 2);
        plain("not" + b, invert<T>, 1);
        plain("shl" + b, shift_left<T>, 2);
        plain("shr" + b, shift_right<T>, 2);
        if constexpr (sizeof(T) > 2) {
            plain("popc" + b, population<T>, 1);
            plain("clz" + b, leading_zeros<T>, 1);
            plain("brev" + b, reversed<T>, 1);
            plain("bfi" + b, insert_bits<T>, 4);
        }
        moves<T>(b.substr(1));
        (*this)["mov" + b] = Form{pack<T>, Form::Pack};
        compare_as<T, Eq>("setp.eq", b);
        compare_as<T, NeInt>("setp.ne", b);
    }

    template <class T, class F> void comparison(const std::string& name) { compare_as<T, F>("setp." + name, std::string(".") + type<T>()); }
    template <class T, class F> void compare_as(const std::string& name, const std::string& type) {
        (*this)[name + type] = Form{compare<T, F, Logic::None, false>, Form::Two, 2};
        (*this)[name + ".and" + type] = Form{compare<T, F, Logic::And, false>, Form::Two, 3};
        (*this)[name + ".or" + type] = Form{compare<T, F, Logic::Or, false>, Form::Two, 3};
        (*this)[name + ".xor" + type] = Form{compare<T, F, Logic::Xor, false>, Form::Two, 3};
        if constexpr (std::is_same<T, float>::value) (*this)[name + ".ftz" + type] = Form{compare<T, F, Logic::None, true>, Form::Two, 2};
    }

    template <class T, int mode> void rounded(const std::string& r) {
        const std::string s = std::string(".") + type<T>();
        rounded_as<T, mode, false, false>(r + s);
        if constexpr (sizeof(T) == 4) {
            rounded_as<T, mode, true, false>(r + ".ftz" + s);
            rounded_as<T, mode, false, true>(r + ".sat" + s);
            rounded_as<T, mode, true, true>(r + ".ftz.sat" + s);
        }
    }
    template <class T, int mode, bool ftz, bool sat> void rounded_as(const std::string& s) {
        plain("add" + s, arithmetic<T, AddF, mode, ftz, sat>, 2);
        plain("sub" + s, arithmetic<T, SubF, mode, ftz, sat>, 2);
        plain("mul" + s, arithmetic<T, MulF, mode, ftz, sat>, 2);
        plain("fma" + s, fused<T, mode, ftz, sat>, 3);
        if constexpr (mode == FE_TONEAREST && !sat) {
            plain("div" + s, arithmetic<T, DivF, mode, ftz, false>, 2);
            plain("rcp" + s, function<T, Reciprocal, ftz>, 1);
            plain("sqrt" + s, function<T, Root, ftz>, 1);
        }
    }
    template <bool ftz> void approximate(const std::string& s) {
        plain("ex2.approx" + s, function<float, Exp2, ftz>, 1);
        plain("lg2.approx" + s, function<float, Log2, ftz>, 1);
        plain("sin.approx" + s, function<float, Sine, ftz>, 1);
        plain("cos.approx" + s, function<float, Cosine, ftz>, 1);
        plain("rcp.approx" + s, function<float, Reciprocal, ftz>, 1);
        plain("sqrt.approx" + s, function<float, Root, ftz>, 1);
        plain("rsqrt.approx" + s, function<float, RootReciprocal, ftz>, 1);
    }

    template <class T> void floats() {
        const std::string s = std::string(".") + type<T>();
        rounded<T, FE_TONEAREST>(".rn");
        rounded<T, FE_TOWARDZERO>(".rz");
        rounded<T, FE_DOWNWARD>(".rm");
        rounded<T, FE_UPWARD>(".rp");
        plain("abs" + s, absolute<T>, 1);
        plain("neg" + s, negate<T>, 1);
        plain("copysign" + s, copy_sign<T>, 2);
        plain("min" + s, extreme<T, false, false, false>, 2);
        plain("max" + s, extreme<T, true, false, false>, 2);
        if constexpr (sizeof(T) == 4) {
            plain("min.ftz" + s, extreme<T, false, false, true>, 2);
            plain("max.ftz" + s, extreme<T, true, false, true>, 2);
        }
        comparison<T, Eq>("eq");
        comparison<T, Ne>("ne");
        comparison<T, Lt>("lt");
        comparison<T, Le>("le");
        comparison<T, Gt>("gt");
        comparison<T, Ge>("ge");
        comparison<T, OrUnordered<Eq>>("equ");
        comparison<T, OrUnordered<Ne>>("neu");
        comparison<T, OrUnordered<Lt>>("ltu");
        comparison<T, OrUnordered<Le>>("leu");
        comparison<T, OrUnordered<Gt>>("gtu");
        comparison<T, OrUnordered<Ge>>("geu");
        comparison<T, Numbers>("num");
        comparison<T, Nans>("nan");
        moves<T>(type<T>());

        const std::string same = s + s;
        integral_as<T, FE_TONEAREST>("cvt.rni", same);
        integral_as<T, FE_TOWARDZERO>("cvt.rzi", same);
        integral_as<T, FE_DOWNWARD>("cvt.rmi", same);
        integral_as<T, FE_UPWARD>("cvt.rpi", same);
        plain("cvt.sat" + same, same_float<T, false, true>, 1);
        from_float<T, u8, s8, u16, s16, u32, s32, u64, s64>();
    }
    template <class T, int mode> void integral_as(const std::string& name, const std::string& types) {
        plain(name + types, to_integral<T, mode, false, false>, 1);
        plain(name + ".sat" + types, to_integral<T, mode, false, true>, 1);
        if constexpr (sizeof(T) == 4) plain(name + ".ftz" + types, to_integral<T, mode, true, false>, 1);
    }
    template <class S, class... D> void from_float() { (from_float_to<D, S>(), ...); }
    template <class D, class S> void from_float_to() {
        const std::string s = std::string(".") + type<D>() + "." + type<S>();
        plain("cvt.rni" + s, to_int<D, S, FE_TONEAREST, false>, 1);
        plain("cvt.rzi" + s, to_int<D, S, FE_TOWARDZERO, false>, 1);
        plain("cvt.rmi" + s, to_int<D, S, FE_DOWNWARD, false>, 1);
        plain("cvt.rpi" + s, to_int<D, S, FE_UPWARD, false>, 1);
        if constexpr (sizeof(S) == 4) {
            plain("cvt.rni.ftz" + s, to_int<D, S, FE_TONEAREST, true>, 1);
            plain("cvt.rzi.ftz" + s, to_int<D, S, FE_TOWARDZERO, true>, 1);
        }
    }

    template <class S, class... D> void from_int() {
        (from_int_to<D, S>(), ...);
        to_float_from<float, S>();
        to_float_from<double, S>();
    }
    template <class D, class S> void from_int_to() {
        const std::string s = std::string(".") + type<D>() + "." + type<S>();
        plain("cvt" + s, resize<D, S, false>, 1);
        plain("cvt.sat" + s, resize<D, S, true>, 1);
    }
    template <class D, class S> void to_float_from() {
        const std::string s = std::string(".") + type<D>() + "." + type<S>();
        plain("cvt.rn" + s, to_float<D, S, FE_TONEAREST>, 1);
        plain("cvt.rz" + s, to_float<D, S, FE_TOWARDZERO>, 1);
        plain("cvt.rm" + s, to_float<D, S, FE_DOWNWARD>, 1);
        plain("cvt.rp" + s, to_float<D, S, FE_UPWARD>, 1);
    }

    template <class T> void memory(const std::string& type) {
        for (int n : {1, 2, 4}) {
            if (n * sizeof(T) > 16) continue;
            const std::string s = (n == 1 ? std::string(".") : ".v" + std::to_string(n) + ".") + type;
            (*this)["ld.param" + s] = Form{load<T, Space::Param>, Form::Load, 0, n};
            for (const char* how : {"", ".nc", ".ca", ".cg", ".cs", ".lu", ".cv"}) (*this)[std::string("ld.global") + how + s] = Form{load<T, Space::Global>, Form::Load, 0, n};
            for (const char* how : {"", ".wb", ".cg", ".cs", ".wt"}) (*this)[std::string("st.global") + how + s] = Form{store<T, Space::Global>, Form::Store, 0, n};
            for (const char* how : {"", ".volatile"}) {
                (*this)[std::string("ld") + how + ".shared" + s] = Form{load<T, Space::Shared>, Form::Load, 0, n};
                (*this)[std::string("st") + how + ".shared" + s] = Form{store<T, Space::Shared>, Form::Store, 0, n};
            }
            (*this)["ld.volatile.global" + s] = Form{load<T, Space::Global>, Form::Load, 0, n};
            (*this)["st.volatile.global" + s] = Form{store<T, Space::Global>, Form::Store, 0, n};
        }
    }

    template <class T, Space space, template <class> class F> void atomic_as(const std::string& name) {
        const std::string where = space == Space::Global ? ".global." : ".shared.";
        (*this)["atom" + where + name] = Form{atomic<T, space, F>, Form::Atomic, 1};
        (*this)["red" + where + name] = Form{atomic<T, space, F>, Form::Reduce, 1};
    }
    template <Space space> void atomics() {
        atomic_as<u32, space, Add>("add.u32");
        atomic_as<s32, space, Add>("add.s32");
        atomic_as<u64, space, Add>("add.u64");
        atomic_as<float, space, AddFloat>("add.f32");
        atomic_as<double, space, AddFloat>("add.f64");
        atomic_as<u32, space, Min>("min.u32");
        atomic_as<s32, space, Min>("min.s32");
        atomic_as<u64, space, Min>("min.u64");
        atomic_as<s64, space, Min>("min.s64");
        atomic_as<u32, space, Max>("max.u32");
        atomic_as<s32, space, Max>("max.s32");
        atomic_as<u64, space, Max>("max.u64");
        atomic_as<s64, space, Max>("max.s64");
        atomic_as<u32, space, And>("and.b32");
        atomic_as<u64, space, And>("and.b64");
        atomic_as<u32, space, Or>("or.b32");
        atomic_as<u64, space, Or>("or.b64");
        atomic_as<u32, space, Xor>("xor.b32");
        atomic_as<u64, space, Xor>("xor.b64");
        atomic_as<u32, space, Exchange>("exch.b32");
        atomic_as<u64, space, Exchange>("exch.b64");
        atomic_as<u32, space, Increment>("inc.u32");
        atomic_as<u32, space, Decrement>("dec.u32");
        const std::string where = space == Space::Global ? "atom.global.cas." : "atom.shared.cas.";
        (*this)[where + "b32"] = Form{compare_and_swap<u32, space>, Form::Atomic, 2};
        (*this)[where + "b64"] = Form{compare_and_swap<u64, space>, Form::Atomic, 2};
    }

    Table() {
        integers<u16>();
        integers<s16>();
        integers<u32>();
        integers<s32>();
        integers<u64>();
        integers<s64>();
        bits<u16>();
        bits<u32>();
        bits<u64>();
        floats<float>();
        floats<double>();
        approximate<false>(".f32");
        approximate<true>(".ftz.f32");
        plain("rcp.approx.ftz.f64", function<double, Reciprocal, true>, 1);
        plain("rsqrt.approx.ftz.f64", function<double, RootReciprocal, true>, 1);
        plain("shf.l.wrap.b32", funnel<true, true>, 3);
        plain("shf.l.clamp.b32", funnel<true, false>, 3);
        plain("shf.r.wrap.b32", funnel<false, true>, 3);
        plain("shf.r.clamp.b32", funnel<false, false>, 3);
        plain("prmt.b32", permute, 3);
        plain("mov.pred", move<u64>, 1);
        plain("and.pred", binary<u64, And>, 2);
        plain("or.pred", binary<u64, Or>, 2);
        plain("xor.pred", binary<u64, Xor>, 2);
        plain("not.pred", invert_predicate, 1);

        from_int<u8, u8, s8, u16, s16, u32, s32, u64, s64>();
        from_int<s8, u8, s8, u16, s16, u32, s32, u64, s64>();
        from_int<u16, u8, s8, u16, s16, u32, s32, u64, s64>();
        from_int<s16, u8, s8, u16, s16, u32, s32, u64, s64>();
        from_int<u32, u8, s8, u16, s16, u32, s32, u64, s64>();
        from_int<s32, u8, s8, u16, s16, u32, s32, u64, s64>();
        from_int<u64, u8, s8, u16, s16, u32, s32, u64, s64>();
        from_int<s64, u8, s8, u16, s16, u32, s32, u64, s64>();
        to_float_from<float, double>();
        plain("cvt.f64.f32", widen<float>, 1);

        memory<u8>("u8");
        memory<u8>("b8");
        memory<s8>("s8");
        memory<u16>("u16");
        memory<u16>("b16");
        memory<s16>("s16");
        memory<u32>("u32");
        memory<u32>("b32");
        memory<s32>("s32");
        memory<float>("f32");
        memory<u64>("u64");
        memory<u64>("b64");
        memory<s64>("s64");
        memory<double>("f64");
        atomics<Space::Global>();
        atomics<Space::Shared>();
        // Addresses of the global space are those of the driver; kernels get no others.
        plain("cvta.to.global.u64", move<u64>, 1);

        (*this)["bra"] = Form{branch, Form::Branch};
        (*this)["bra.uni"] = Form{branch, Form::Branch};
        (*this)["ret"] = Form{leave, Form::Nothing};
        (*this)["exit"] = Form{leave, Form::Nothing};
        (*this)["trap"] = Form{trap, Form::Nothing};
        for (const char* scope : {"membar.cta", "membar.gl", "membar.sys", "fence.acq_rel.gpu", "fence.sc.gpu"}) (*this)[scope] = Form{nothing, Form::Nothing};
        (*this)["bar.sync"] = Form{barrier, Form::Wait, 0, 1, true};
        (*this)["barrier.sync"] = Form{barrier, Form::Wait, 0, 1, true};
        (*this)["bar.warp.sync"] = Form{warp, Form::Wait, 0, 1, true};
        for (const char* how : {"up", "down", "bfly", "idx"}) (*this)[std::string("shfl.sync.") + how + ".b32"] = Form{warp, Form::Two, 4, 1, true};
        for (const char* how : {"all.pred", "any.pred", "uni.pred", "ballot.b32"}) (*this)[std::string("vote.sync.") + how] = Form{warp, Form::Two, 2, 1, true};
    }
};

} // namespace

const std::map<std::string, Form>& forms() {
    static const Table& table = *new Table; // never destroyed: see emu.h
    return table;
}

void exchange(Thread* lanes, unsigned count, const Instruction& i, uint32_t mask) {
    const std::string name = i.name;
    auto takes_part = [&](unsigned l) { return l < count && (mask >> l & 1); };
    if (name.compare(0, 9, "shfl.sync") == 0) {
        const char how = name[10]; // up, down, bfly, idx
        uint32_t value[32];
        for (unsigned l = 0; l < count; l++) value[l] = lanes[l].get<uint32_t>(i.a);
        for (unsigned l = 0; l < count; l++) {
            if (!takes_part(l)) continue;
            const unsigned by = lanes[l].get<uint32_t>(i.b) & 31, c = lanes[l].get<uint32_t>(i.c), clamp = c & 31, segment = c >> 8 & 31;
            const int most = (l & segment) | (clamp & ~segment), least = l & segment;
            int from = how == 'u' ? int(l) - int(by) : how == 'd' ? int(l + by) : how == 'b' ? int(l ^ by) : int(least | (by & ~segment));
            const bool inside = how == 'u' ? from >= most : from <= most;
            if (!inside) from = l;
            lanes[l].set(i.d, takes_part(from) ? value[from] : 0xffffffffu); // undefined by the ISA: a NaN
            if (i.d2 >= 0) lanes[l].set(i.d2, uint64_t(inside));
        }
    } else if (name.compare(0, 9, "vote.sync") == 0) {
        uint32_t ballot = 0;
        for (unsigned l = 0; l < count; l++) {
            // The predicate is the first source; ! stands before it.
            if (takes_part(l) && lanes[l].get<uint64_t>(i.a)) ballot |= 1u << l;
        }
        const char how = name[11]; // al, an, un, ba
        uint32_t here = count == 32 ? mask : mask & ((1u << count) - 1);
        uint64_t r = name[10] == 'b' ? ballot : name[10] == 'u' ? ballot == here || !ballot : how == 'l' ? ballot == here : ballot != 0;
        for (unsigned l = 0; l < count; l++) {
            if (takes_part(l)) lanes[l].set(i.d, r);
        }
    }
}

} // namespace ptx
