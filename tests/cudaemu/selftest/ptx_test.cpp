// usage: ptx_test FILE.ptx…
// Does the interpreter know everything in these files? And the interpreter against the PTX ISA 8.0: what instructions give at the edges, and what it refuses.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <string>
#include "ptx_code.h"

alignas(32) static uint64_t memory[64]; // all the global memory there is
static int failures;

void ptx::seen(uint64_t, size_t, bool, bool) {}

bool ptx::range(uint64_t address, uint64_t* from, uint64_t* to) {
    *from = (uint64_t)memory;
    *to = (uint64_t)(memory + 64);
    return address >= *from && address < *to;
}

static uint64_t f(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static uint64_t d(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static std::string program(const std::string& body) {
    return ".version 8.0\n.target sm_70\n.address_size 64\n"
           ".visible .entry test(.param .u64 out, .param .u64 pa, .param .u64 pb, .param .u64 pc)\n.maxntid 64, 1, 1\n{\n"
           ".reg .pred %p<4>;\n.reg .b64 %rd<10>;\n.reg .b32 %r<10>;\n.shared .align 4 .b8 s[256];\n"
           "ld.param.u64 %rd9, [out];\nld.param.u64 %rd1, [pa];\nld.param.u64 %rd2, [pb];\nld.param.u64 %rd3, [pc];\n" +
           body + "\nmov.u32 %r9, %tid.x; setp.ne.s32 %p3, %r9, 0; @%p3 ret;\nst.global.u64 [%rd9], %rd0;\nret;\n}\n";
}

static void run(const std::string& text, uint64_t a, uint64_t b, uint64_t c, unsigned threads = 1, ptx::Order order = ptx::Order::Forward, unsigned blocks = 1, ptx::Counts* counts = nullptr) {
    std::vector<std::vector<char>> params;
    for (uint64_t v : {(uint64_t)memory, a, b, c}) params.emplace_back((char*)&v, (char*)&v + 8);
    auto kernels = ptx::parse(text.c_str());
    ptx::run(kernels.at(0), params, ptx::Launch{{blocks, 1, 1}, {threads, 1, 1}, 0, order, 1, counts});
}

// The instruction's result is %rd0; its operands, of whatever type, are %rd1 … %rd3.
static void gives(const std::string& body, uint64_t a, uint64_t b, uint64_t c, uint64_t want, uint64_t mask = ~0ull) {
    try {
        run(program(body), a, b, c);
        if ((memory[0] & mask) == (want & mask)) return;
        printf("%s of %#llx, %#llx, %#llx is %#llx, want %#llx\n", body.c_str(), (long long)a, (long long)b, (long long)c, (long long)memory[0], (long long)want);
    } catch (ptx::Fault& e) {
        printf("%s: %s\n", body.c_str(), e.text.c_str());
    }
    failures++;
}

static void fails(const std::string& text, int code, const std::string& says, unsigned threads = 1, ptx::Order order = ptx::Order::Forward, unsigned blocks = 1) {
    try {
        run(text, 0, 0, 0, threads, order, blocks);
        printf("%s: no error, want %d %s\n", text.c_str(), code, says.c_str());
    } catch (ptx::Fault& e) {
        if (e.code == code && e.text.find(says) != std::string::npos) return;
        printf("%d %s, want %d %s\n", e.code, e.text.c_str(), code, says.c_str());
    }
    failures++;
}

static const uint64_t LOW = 0xffffffffull;
static const float inf = INFINITY, nan32 = std::numeric_limits<float>::quiet_NaN(), tiny = 1e-45f;
static const double nan64 = std::numeric_limits<double>::quiet_NaN();

static void conversions() {
    for (auto& v : {std::pair<float, long>{0.5f, 0}, {1.5f, 2}, {2.5f, 2}, {-0.5f, 0}, {-1.5f, -2}, {1e20f, 2147483647}, {-1e20f, -2147483648}, {inf, 2147483647}, {nan32, 0}}) {
        gives("cvt.rni.s32.f32 %rd0, %rd1;", f(v.first), 0, 0, v.second, LOW);
    }
    gives("cvt.rzi.s32.f32 %rd0, %rd1;", f(-1.9f), 0, 0, -1, LOW);
    gives("cvt.rmi.s32.f32 %rd0, %rd1;", f(-1.1f), 0, 0, -2, LOW);
    gives("cvt.rpi.s32.f32 %rd0, %rd1;", f(1.1f), 0, 0, 2, LOW);
    gives("cvt.rzi.u32.f32 %rd0, %rd1;", f(-5), 0, 0, 0, LOW);
    gives("cvt.rzi.u32.f32 %rd0, %rd1;", f(4294967296.0f), 0, 0, LOW, LOW);
    gives("cvt.rzi.u8.f32 %rd0, %rd1;", f(300), 0, 0, 255, LOW);
    gives("cvt.rni.s8.f32 %rd0, %rd1;", f(-300), 0, 0, -128);
    gives("cvt.rzi.s64.f32 %rd0, %rd1;", f(nan32), 0, 0, 0x8000000000000000ull);
    gives("cvt.rzi.s64.f64 %rd0, %rd1;", d(9.3e18), 0, 0, 0x7fffffffffffffffull);
    gives("cvt.rzi.u64.f64 %rd0, %rd1;", d(1.9e19), 0, 0, ~0ull);
    gives("cvt.rzi.u64.f64 %rd0, %rd1;", d(18446744073709549568.0), 0, 0, 18446744073709549568ull);
    gives("cvt.rzi.s32.f64 %rd0, %rd1;", d(nan64), 0, 0, 0x80000000u, LOW);
    gives("cvt.rni.f32.f32 %rd0, %rd1;", f(-0.5f), 0, 0, f(-0.0f));
    gives("cvt.rni.f64.f64 %rd0, %rd1;", d(3.5), 0, 0, d(4));
    gives("cvt.rmi.f64.f64 %rd0, %rd1;", d(-0.1), 0, 0, d(-1));
    gives("cvt.sat.f32.f32 %rd0, %rd1;", f(nan32), 0, 0, f(0));
    gives("cvt.rn.f32.f64 %rd0, %rd1;", d(1 + 0x1p-24), 0, 0, f(1));
    gives("cvt.rn.f32.f64 %rd0, %rd1;", d(1 + 0x3p-24), 0, 0, f(1 + 0x1p-22f));
    gives("cvt.rz.f32.f64 %rd0, %rd1;", d(1 + 0x1.8p-23), 0, 0, f(1 + 0x1p-23f));
    gives("cvt.rp.f32.f64 %rd0, %rd1;", d(1 + 0x1p-40), 0, 0, f(1 + 0x1p-23f));
    gives("cvt.rn.f32.f64 %rd0, %rd1;", d(1e300), 0, 0, f(inf));
    gives("cvt.rn.f32.f64 %rd0, %rd1;", d(nan64), 0, 0, 0x7fffffff);
    gives("cvt.rn.f32.s64 %rd0, %rd1;", (1ull << 62) + (1ull << 38) + 1, 0, 0, f(0x1.000002p62f)); // rounded once
    gives("cvt.rn.f32.u64 %rd0, %rd1;", ~0ull, 0, 0, f(18446744073709551616.0f));
    gives("cvt.rn.f64.u64 %rd0, %rd1;", (1ull << 63) + 1024, 0, 0, d(9223372036854775808.0));
    gives("cvt.f64.f32 %rd0, %rd1;", f(tiny), 0, 0, d(0x1p-149));
    gives("cvt.s16.s8 %rd0, %rd1;", 0x80, 0, 0, 0xff80, 0xffff);
    gives("cvt.s64.s32 %rd0, %rd1;", 0x80000000u, 0, 0, 0xffffffff80000000ull);
    gives("cvt.u64.u32 %rd0, %rd1;", 0xfffffffff0000000ull, 0, 0, 0xf0000000ull);
    gives("cvt.sat.u8.s32 %rd0, %rd1;", (uint64_t)-3, 0, 0, 0, LOW);
}

static void floats() {
    gives("add.rn.f32 %rd0, %rd1, %rd2;", f(1), f(0x1p-24f), 0, f(1));
    gives("add.rp.f32 %rd0, %rd1, %rd2;", f(1), f(0x1p-24f), 0, f(1 + 0x1p-23f));
    gives("add.rz.f32 %rd0, %rd1, %rd2;", f(-1), f(-0x1p-24f), 0, f(-1));
    gives("sub.rm.f64 %rd0, %rd1, %rd2;", d(1), d(1), 0, d(-0.0));
    gives("sub.rn.f32 %rd0, %rd1, %rd2;", f(inf), f(inf), 0, 0x7fffffff);
    gives("mul.rn.f32 %rd0, %rd1, %rd2;", f(0x1p-80f), f(0x1p-69f), 0, f(tiny));
    gives("mul.rn.ftz.f32 %rd0, %rd1, %rd2;", f(0x1p-80f), f(-0x1p-69f), 0, f(-0.0f));
    gives("add.rn.sat.f32 %rd0, %rd1, %rd2;", f(0.75f), f(0.75f), 0, f(1));
    gives("fma.rn.f32 %rd0, %rd1, %rd2, %rd3;", f(1 + 0x1p-12f), f(1 + 0x1p-12f), f(-1 - 0x1p-11f), f(0x1p-24f));
    gives("fma.rn.f64 %rd0, %rd1, %rd2, %rd3;", d(1 + 0x1p-30), d(1 + 0x1p-30), d(-1 - 0x1p-29), d(0x1p-60));
    gives("fma.rm.f32 %rd0, %rd1, %rd2, %rd3;", f(1), f(1), f(-0x1p-60f), f(1 - 0x1p-24f));
    gives("mul.rn.f32 %rd0, %rd1, %rd2; add.rn.f32 %rd0, %rd0, %rd3;", f(1 + 0x1p-12f), f(1 + 0x1p-12f), f(-1 - 0x1p-11f), f(0)); // not fused
    gives("div.rn.f32 %rd0, %rd1, %rd2;", f(1), f(3), 0, 0x3eaaaaab);
    gives("div.rn.f64 %rd0, %rd1, %rd2;", d(1), d(3), 0, 0x3fd5555555555555ull);
    gives("div.rn.f32 %rd0, %rd1, %rd2;", f(-1), f(0), 0, f(-inf));
    gives("rcp.rn.f32 %rd0, %rd1;", f(3), 0, 0, 0x3eaaaaab);
    gives("sqrt.rn.f32 %rd0, %rd1;", f(2), 0, 0, 0x3fb504f3);
    gives("sqrt.rn.f64 %rd0, %rd1;", d(2), 0, 0, 0x3ff6a09e667f3bcdull);
    gives("sqrt.rn.f32 %rd0, %rd1;", f(-2), 0, 0, 0x7fffffff);
    gives("min.f32 %rd0, %rd1, %rd2;", f(nan32), f(2), 0, f(2));
    gives("max.f32 %rd0, %rd1, %rd2;", f(2), f(nan32), 0, f(2));
    gives("max.f32 %rd0, %rd1, %rd2;", f(nan32), f(nan32), 0, 0x7fffffff);
    gives("min.f32 %rd0, %rd1, %rd2;", f(0), f(-0.0f), 0, f(-0.0f));
    gives("max.f64 %rd0, %rd1, %rd2;", d(-0.0), d(0), 0, d(0));
    gives("abs.f32 %rd0, %rd1;", f(-0.0f), 0, 0, f(0));
    gives("neg.f64 %rd0, %rd1;", d(0), 0, 0, d(-0.0));
    gives("copysign.f32 %rd0, %rd1, %rd2;", f(-1), f(5), 0, f(-5));
    const struct {
        const char* compare;
        bool less, equal, greater, nan;
    } table[] = {{"eq", 0, 1, 0, 0}, {"ne", 1, 0, 1, 0}, {"lt", 1, 0, 0, 0}, {"le", 1, 1, 0, 0}, {"gt", 0, 0, 1, 0}, {"ge", 0, 1, 1, 0}, {"num", 1, 1, 1, 0},
                 {"equ", 0, 1, 0, 1}, {"neu", 1, 0, 1, 1}, {"ltu", 1, 0, 0, 1}, {"leu", 1, 1, 0, 1}, {"gtu", 0, 0, 1, 1}, {"geu", 0, 1, 1, 1}, {"nan", 0, 0, 0, 1}};
    for (auto& t : table) {
        for (bool wide : {false, true}) {
            const std::string body = std::string("setp.") + t.compare + (wide ? ".f64" : ".f32") + " %p1, %rd1, %rd2; selp.u64 %rd0, 1, 0, %p1;";
            auto bits = [&](double v) { return wide ? d(v) : f((float)v); };
            gives(body, bits(1), bits(2), 0, t.less);
            gives(body, bits(-0.0), bits(0), 0, t.equal);
            gives(body, bits(3), bits(2), 0, t.greater);
            gives(body, bits(nan64), bits(2), 0, t.nan);
        }
    }
}

static void integers() {
    gives("add.s32 %rd0, %rd1, %rd2;", 0x7fffffff, 1, 0, 0x80000000u);
    gives("mul.lo.s32 %rd0, %rd1, %rd2;", 0x7fffffff, 0x7fffffff, 0, 1);
    gives("mul.hi.s32 %rd0, %rd1, %rd2;", 0xffffffffu, 2, 0, 0xffffffffu);
    gives("mul.hi.u64 %rd0, %rd1, %rd2;", ~0ull, ~0ull, 0, ~0ull - 1);
    gives("mul.hi.s64 %rd0, %rd1, %rd2;", ~0ull, ~0ull, 0, 0);
    gives("mul.wide.s32 %rd0, %rd1, %rd2;", 0xffffffffu, 3, 0, (uint64_t)-3);
    gives("mul.wide.u32 %rd0, %rd1, %rd2;", 0xffffffffu, 3, 0, 0x2fffffffdull);
    gives("mul.lo.s16 %rd0, %rd1, %rd2;", 0xffff, 0xffff, 0, 1, 0xffff);
    gives("mad.lo.s32 %rd0, %rd1, %rd2, %rd3;", 7, (uint64_t)-3, 1, (uint64_t)-20, LOW);
    gives("mad.wide.s32 %rd0, %rd1, %rd2, %rd3;", 7, 0xfffffffdu, 1, (uint64_t)-20);
    gives("div.s32 %rd0, %rd1, %rd2;", (uint64_t)-7, 2, 0, (uint64_t)-3, LOW);
    gives("rem.s64 %rd0, %rd1, %rd2;", (uint64_t)-7, 2, 0, (uint64_t)-1);
    gives("div.u32 %rd0, %rd1, %rd2;", 0xfffffff9u, 2, 0, 0x7ffffffc);
    gives("shr.s32 %rd0, %rd1, %rd2;", 0x80000000u, 40, 0, 0xffffffffu);
    gives("shr.u32 %rd0, %rd1, %rd2;", 0x80000000u, 32, 0, 0);
    gives("shl.b64 %rd0, %rd1, %rd2;", 1, 64, 0, 0);
    gives("shl.b32 %rd0, %rd1, %rd2;", 3, 31, 0, 0x80000000u);
    gives("shf.l.wrap.b32 %rd0, %rd1, %rd2, %rd3;", 0x80000000u, 1, 33, 3);
    gives("shf.r.clamp.b32 %rd0, %rd1, %rd2, %rd3;", 5, 7, 40, 7);
    gives("bfe.u32 %rd0, %rd1, %rd2, %rd3;", 0xabcd, 4, 8, 0xbc);
    gives("bfe.s32 %rd0, %rd1, %rd2, %rd3;", 0xabcd, 4, 8, 0xffffffbcu);
    gives("bfi.b32 %rd0, %rd1, %rd2, 8, %rd3;", 0xee, 0x11223344, 8, 0x1122ee44);
    gives("prmt.b32 %rd0, %rd1, %rd2, %rd3;", 0x44332281, 0x88776655, 0x8740, 0xff885581u);
    gives("clz.b32 %rd0, %rd1;", 0x00010000, 0, 0, 15);
    gives("popc.b64 %rd0, %rd1;", 0xff00ff00ff00ff00ull, 0, 0, 32);
    gives("brev.b32 %rd0, %rd1;", 1, 0, 0, 0x80000000u);
    gives("abs.s32 %rd0, %rd1;", 0x80000000u, 0, 0, 0x80000000u);
    gives("min.u32 %rd0, %rd1, %rd2;", 0xffffffffu, 1, 0, 1);
    gives("min.s32 %rd0, %rd1, %rd2;", 0xffffffffu, 1, 0, 0xffffffffu);
    gives("setp.lo.u32 %p1, %rd1, %rd2; selp.b64 %rd0, %rd1, %rd2, %p1;", 1, 0xffffffffu, 0, 1);
    gives("setp.lt.and.s32 %p1|%p2, %rd1, %rd2, !%p0; selp.b64 %rd0, 1, 0, %p2;", 2, 1, 0, 0);
    gives("mov.b64 {%r1, %r2}, %rd1; mov.b64 %rd0, {%r2, %r1};", 0x1122334455667788ull, 0, 0, 0x5566778811223344ull);
    gives("mov.u64 %rd0, 5; setp.eq.s64 %p1, %rd1, 0; @!%p1 bra $L1; mov.u64 %rd0, 6; $L1:", 1, 0, 0, 5);
    gives("st.global.u64 [%rd9+8], %rd1; atom.global.cas.b64 %rd0, [%rd9+8], %rd1, %rd2; ld.global.u64 %rd0, [%rd9+8];", 4, 9, 0, 9);
    gives("st.global.u32 [%rd9+8], %rd1; atom.global.max.s32 %rd0, [%rd9+8], %rd2; ld.global.s32 %rd0, [%rd9+8];", (uint64_t)-4, (uint64_t)-9, 0, (uint64_t)-4);
    gives("st.global.v2.f32 [%rd9+16], {%rd1, %rd2}; ld.global.v2.u32 {%r1, %r2}, [%rd9+16]; mov.b64 %rd0, {%r2, %r1};", f(1), f(2), 0, f(2) | f(1) << 32);
}

// 64 threads write shared memory and read each other's.
static std::string exchange(const std::string& between) {
    return program("mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r4, s; add.s32 %r5, %r4, %r2; st.shared.u32 [%r5], %r1;\n" + between +
                   "xor.b32 %r6, %r1, 33; shl.b32 %r6, %r6, 2; add.s32 %r6, %r4, %r6; ld.shared.u32 %r7, [%r6]; xor.b32 %r7, %r7, %r1; cvt.u64.u32 %rd0, %r7;");
}

// passes: no race is seen where there is none.
static void passes(const std::string& text, unsigned threads, unsigned blocks) {
    try {
        run(text, 0, 0, 0, threads, ptx::Order::Random, blocks);
    } catch (ptx::Fault& e) {
        printf("%s\n", e.text.c_str());
        failures++;
    }
}

static void races() {
    const std::string own = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd9, %rd4;\n", end = "ret;";
    const std::string other = "xor.b32 %r2, %r1, 1; mul.wide.u32 %rd5, %r2, 4; add.s64 %rd5, %rd9, %rd5;\n";
    passes(program(own + "st.global.u32 [%rd4], %r1; bar.sync 0;\n" + other + "ld.global.u32 %r3, [%rd5];" + end), 64, 1);
    passes(program("mov.u64 %rd4, 1; red.global.add.u64 [%rd9+8], %rd4;" + end), 64, 3);
    passes(program(own + "ld.global.u32 %r1, [%rd9+256];" + end), 64, 3);
    fails(program(own + "st.global.u32 [%rd4], %r1;\n" + other + "ld.global.u32 %r3, [%rd5];" + end), 700, "race: memory at", 64);
    fails(program(own + "ld.global.u32 %r1, [%rd9]; st.global.u32 [%rd4], %r1;" + end), 700, "race: memory at", 64, ptx::Order::Reverse);
    fails(program("st.global.u32 [%rd9], %r1; bar.sync 0;" + end), 700, "race: memory at", 1, ptx::Order::Forward, 2);
    fails(program("ld.global.u32 %r1, [%rd9]; bar.sync 0; st.global.u32 [%rd9+0], %r1;" + end), 700, "race: memory at", 1, ptx::Order::Forward, 2);
    fails(program("st.global.u8 [%rd9], 1; red.global.add.u32 [%rd9], 1;" + end), 700, "race: memory at", 2);
}

static void threads() {
    for (auto order : {ptx::Order::Forward, ptx::Order::Reverse, ptx::Order::Random}) {
        try {
            run(exchange("bar.sync 0;\n"), 0, 0, 0, 64, order);
            if (memory[0] != 33) printf("threads exchange %d\n", (int)memory[0]), failures++;
        } catch (ptx::Fault& e) {
            printf("%s\n", e.text.c_str());
            failures++;
        }
    }
    fails(exchange(""), 700, "shared memory at", 64);
    fails(exchange("bar.warp.sync -1;\n"), 700, "race: shared memory at", 64, ptx::Order::Reverse);
    fails(exchange("setp.eq.s32 %p1, %r1, 3; @%p1 ret; bar.sync 0;\n"), 719, "63 threads wait at this barrier, 0 for their warp, 1 ended", 64);
    fails(exchange("setp.eq.s32 %p1, %r1, 3; @%p1 bra $L1; bar.sync 0; bra $L2; $L1: bar.sync 0; $L2:\n"), 719, "different barriers", 64);
    fails(program("mov.u32 %r1, %tid.x; setp.eq.s32 %p1, %r1, 3; @%p1 ret; shfl.sync.bfly.b32 %r2, %r1, 1, 31, -1; cvt.u64.u32 %rd0, %r2;"), 719, "for their warp", 32);
    // Sums of a warp, down and by pairs.
    const std::string step = "shfl.sync.down.b32 %r2, %r1, D, 31, -1; add.s32 %r1, %r1, %r2;\n";
    std::string sum = "mov.u32 %r1, %tid.x; mov.u32 %r3, %r1;\n";
    for (const char* by : {"16", "8", "4", "2", "1"}) sum += std::string(step).replace(step.find('D'), 1, by);
    sum += "cvt.u64.u32 %rd0, %r1; setp.ne.s32 %p1, %r3, 0; @%p1 ret;";
    try {
        run(program(sum), 0, 0, 0, 32, ptx::Order::Random);
        if (memory[0] != 31 * 32 / 2) printf("a warp sums to %d\n", (int)memory[0]), failures++;
    } catch (ptx::Fault& e) {
        printf("%s\n", e.text.c_str());
        failures++;
    }
}

// counted runs what threads do from %tid.x in %r1 on, and compares what they ask of memory.
static void counted(const std::string& body, unsigned threads, unsigned blocks, const ptx::Counts& want) {
    for (auto order : {ptx::Order::Forward, ptx::Order::Random}) {
        ptx::Counts c;
        run(program("mov.u32 %r1, %tid.x;\n" + body + "ret;"), 0, 0, 0, threads, order, blocks, &c);
        if (c.requests == want.requests && c.loaded == want.loaded && c.stored == want.stored && c.atomic == want.atomic && c.least == want.least &&
            c.operations == want.operations && c.conflicts == want.conflicts && c.shared == want.shared && c.longest == want.longest) continue;
        printf("%s: %d requests, sectors %d %d %d, at least %d, %d operations, %d conflicts, %d of shared memory, %d loads\n", body.c_str(), (int)c.requests, (int)c.loaded, (int)c.stored,
               (int)c.atomic, (int)c.least, (int)c.operations, (int)c.conflicts, (int)c.shared, (int)c.longest);
        failures++;
    }
}

static void counts() {
    auto at = [](const char* stride) { return std::string("mul.wide.u32 %rd4, %r1, ") + stride + "; add.s64 %rd4, %rd9, %rd4;\n"; };
    const std::string load = "ld.global.u32 %r2, [%rd4];\n";
    // requests, loaded, stored, atomic, least, operations, conflicts, shared, longest
    counted(at("4") + load, 32, 1, {1, 4, 0, 0, 4, 0, 0, 0, 1});
    counted(at("4") + load, 64, 3, {6, 24, 0, 0, 8, 0, 0, 0, 1});
    counted(at("16") + load, 32, 1, {1, 16, 0, 0, 16, 0, 0, 0, 1});
    counted(at("4") + "add.s64 %rd4, %rd4, 16;" + load, 32, 1, {1, 5, 0, 0, 5, 0, 0, 0, 1});
    counted("mov.u64 %rd4, %rd9;" + load, 32, 1, {1, 1, 0, 0, 1, 0, 0, 0, 1});
    counted(at("8") + "ld.global.v2.u32 {%r2, %r3}, [%rd4]; st.global.v2.u32 [%rd4], {%r2, %r3};", 32, 1, {2, 8, 8, 0, 16, 0, 0, 0, 1});
    counted("and.b32 %r1, %r1, 7;" + at("4") + "red.global.add.u32 [%rd4], 1;", 32, 1, {1, 0, 0, 1, 1, 8, 24, 0, 0});
    // the third lane loads once, the others twice: what they load first, they load together
    counted(at("4") + "mov.u32 %r3, 0; $L1:" + load + "add.s32 %r3, %r3, 1; setp.ne.s32 %p1, %r1, 2; setp.lt.and.u32 %p1, %r3, 2, %p1; @%p1 bra $L1;", 32, 1, {2, 8, 0, 0, 4, 0, 0, 0, 2});
    // lanes that skip an instruction in one turn of a loop, or turn more often in another loop, are beside the others in the next turn
    const std::string again = "add.s32 %r3, %r3, 1; setp.ne.s32 %p1, %r3, 3; @%p1 bra $L1;";
    counted(at("4") + "mov.u32 %r3, 0; $L1: setp.eq.s32 %p1, %r1, %r3; @%p1 bra $L2;" + load + "$L2: " + again, 32, 1, {3, 12, 0, 0, 4, 0, 0, 0, 3});
    counted(at("4") + "mov.u32 %r3, 0; $L1: mov.u32 %r4, 0; $L2: add.s32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r1; @%p1 bra $L2;" + load + again, 32, 1, {3, 12, 0, 0, 4, 0, 0, 0, 3});
    // shared memory: side by side; all at one bank; atomics at one word
    counted("and.b32 %r2, %r1, 31; shl.b32 %r2, %r2, 2; mov.u32 %r3, s; add.s32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1;", 32, 1, {0, 0, 0, 0, 0, 0, 0, 1, 0});
    counted("and.b32 %r2, %r1, 1; shl.b32 %r2, %r2, 7; mov.u32 %r3, s; add.s32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1;", 2, 1, {0, 0, 0, 0, 0, 0, 0, 2, 0});
    counted("mov.u32 %r3, s; setp.ne.s32 %p1, %r1, 0; @!%p1 st.shared.u32 [%r3], 0; bar.sync 0; red.shared.add.u32 [%r3], 1;", 32, 1, {0, 0, 0, 0, 0, 0, 0, 33, 0});
}

static void refusals() {
    fails(program("add.f32 %rd0, %rd1, %rd2;"), 218, "PTX line 15: instruction add.f32 is not supported");
    fails(program("tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r4}, [s, {%r1, %r2}];"), 218, "tex.2d.v4.f32.f32 is not supported");
    fails(program("mov.u64 %rd0, %clock64;"), 218, "%clock64");
    fails(program("mov.u64 %rd0, %rd77;"), 218, "%rd77 is not declared");
    fails(program("bra $L9;"), 218, "no label $L9");
    fails(program("add.s32 %rd0, %rd1;"), 218, "line 15");
    fails(program(".local .align 4 .b8 depot[8];"), 218, ".local is not supported");
    fails(".version 8.0\n.target sm_70\n.entry x(", 218, ".param is expected");
    fails(program("ld.global.u64 %rd0, [%rd9+512];"), 700, "is not device memory");
    fails(program("ld.global.u64 %rd0, [%rd9+4];"), 716, "PTX line 15, ld.global.u64, block (0,0,0) thread (0,0,0): misaligned");
    fails(program("st.global.u64 [%rd1], %rd2;"), 700, "0 is not device memory");
    fails(program("ld.shared.u32 %r1, [s+256];"), 700, "there are 256 bytes");
    fails(program("ld.shared.u32 %r1, [s+4];"), 700, "before it is written");
    fails(program("div.s32 %rd0, %rd9, %rd1;"), 719, "division by zero");
}

// files are PTX that ships: all of it must be known.
static void files(int n, char** names) {
    size_t kernels = 0, instructions = 0;
    std::set<std::string> forms;
    for (int i = 0; i < n; i++) {
        std::ifstream file(names[i]);
        const std::string text((std::istreambuf_iterator<char>(file)), {});
        try {
            for (auto& k : ptx::parse(text.c_str())) {
                kernels++;
                instructions += k.code->instructions.size();
                for (auto& instruction : k.code->instructions) forms.insert(instruction.name);
            }
        } catch (ptx::Fault& e) {
            printf("%s: %s\n", names[i], e.text.c_str());
            failures++;
        }
    }
    printf("%d files, %zu kernels, %zu instructions in %zu forms, of %zu that are known\n", n, kernels, instructions, forms.size(), ptx::forms().size());
}

int main(int argc, char** argv) {
    files(argc - 1, argv + 1);
    conversions();
    floats();
    integers();
    threads();
    races();
    counts();
    refusals();
    if (!failures) puts("the interpreter is as the ISA says");
    return failures != 0;
}
