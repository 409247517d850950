// A test double of libcuda.so.1: the driver API subset that the Go side binds,
// running kernels that were compiled for the host from the same .cu files.
// What it checks is listed in README.md. Knobs: environment CUEMU_*.
#include <atomic>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>
#include <sys/mman.h>
#include <ucontext.h>
#include "ptx.h"
#include "registry.h"
#if defined(EMU_TSAN)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#if defined(__SANITIZE_ADDRESS__) // exact bounds: the slack beside a buffer is poisoned
#define FENCE(p, n) __asan_poison_memory_region(p, n)
#define NOASAN __attribute__((no_sanitize_address))
#else
#define FENCE(p, n) (void)0
#define NOASAN
#endif

#ifdef EMU_CHECK_CUDA_H // the compiler then compares every prototype with NVIDIA's
#include <cuda.h>
#else
typedef int CUresult; typedef int CUdevice; typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext; typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction; typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent; typedef struct CUmemPoolHandle_st* CUmemoryPool;
typedef int CUdevice_attribute, CUjit_option, CUmemPool_attribute, CUfunction_attribute;
struct CUuuid_t { char bytes[16]; }; typedef CUuuid_t CUuuid;
#define CUDAAPI
#endif
#define API(name, ...) extern "C" __attribute__((visibility("default"))) CUresult name(__VA_ARGS__)
#define R(x) ((CUresult)(x))

// ---------------------------------------------------------------- knobs, log
static const char* env(const char* k, const char* d) { const char* v = getenv(k); return v && *v ? v : d; }
static long envl(const char* k, long d) { return atol(env(k, std::to_string(d).c_str())); }
// Globals are never destroyed: a Go -race binary leaves through exit(), which
// would run their destructors under the feet of the device thread.
#define IMMORTAL(type, name) static type& name = *new type
IMMORTAL(std::recursive_mutex, mu);
static std::atomic<int> sticky{0};
static int say(int code, const char* f, ...) {
    va_list a; va_start(a, f); char b[512]; vsnprintf(b, sizeof b, f, a); va_end(a);
    fprintf(stderr, "cuemu: %s -> %d\n", b, code); return code;
}
// CUEMU_FAIL="name:nth:code[s],..." ; s makes the error sticky
static int inject(const char* name) {
    static std::map<std::string, int> calls;
    std::lock_guard<std::recursive_mutex> l(mu);
    int n = ++calls[name];
    const char* p = env("CUEMU_FAIL", "");
    while (*p) {
        char f[64]; int nth, code, used = 0;
        if (sscanf(p, "%63[^:]:%d:%d%n", f, &nth, &code, &used) == 3) {
            bool st = p[used] == 's';
            if (n == nth && !strcmp(f, name)) { if (st) sticky = code; return say(code, "injected in %s call %d", name, n); }
            p += used + st;
        } else p++;
        if (*p == ',') p++;
    }
    return 0;
}
static bool inited; static thread_local CUcontext cur;
static const CUcontext PRIMARY = (CUcontext)0x1000;
static int ctx_refs;
#define ENTER() do { if (int e_ = inject(__func__)) return R(e_); if (sticky) return R(sticky.load()); if (!inited) return R(3); } while (0)
#define ENTER_CTX() do { ENTER(); if (!cur) return R(say(201, "%s: no context current on this OS thread", __func__)); if (!ctx_refs) return R(say(709, "%s: context destroyed", __func__)); } while (0)

// -------------------------------------------------------------- device memory
// Reserved PROT_NONE; opened only while a copy, a memset or a kernel runs.
// Every allocation has a guard page on both sides, ends as close to the upper
// one as its alignment allows, starts life poisoned, and is never reused.
struct Alloc { char* map; size_t maplen; char* p; size_t n, pad; bool host, open; };
typedef std::map<uintptr_t, Alloc> AllocMap;
IMMORTAL(AllocMap, live);           // by p
static char *arena, *arena_end, *arena_top;
static size_t used_bytes;
static const size_t PG = 4096;
static Alloc* find(uintptr_t p) {
    auto i = live.upper_bound(p); if (i == live.begin()) return nullptr; --i;
    Alloc& a = i->second; return p < (uintptr_t)a.p + std::max<size_t>(a.n, 1) ? &a : nullptr;
}
static int mem_new(size_t n, bool host, void** out) {
    std::lock_guard<std::recursive_mutex> l(mu);
    static const size_t total = envl("CUEMU_MEM", 1L << 30), al = envl("CUEMU_ALIGN", 256);
    if (!n) return 1;
    if (!host && used_bytes + n > total) return 2;
    size_t r = (n + al - 1) / al * al, len = (r + PG - 1) / PG * PG;
    char* m = arena_top + PG; if (m + len + PG > arena_end) return 2;
    arena_top = m + len;
    mprotect(m, len, PROT_READ | PROT_WRITE); memset(m, 0xff, len);
    Alloc a{m, len, m + len - r, n, r - n, host, false};
    if (!host) { used_bytes += n; mprotect(m, len, PROT_NONE); }
    FENCE(a.p + n, a.pad); FENCE(m, a.p - m);
    live[(uintptr_t)a.p] = a; *out = a.p; return 0;
}
NOASAN static int pad_bad(Alloc& a) { // the memory must be open
    for (size_t i = 0; i < a.pad; i++) if ((unsigned char)a.p[a.n + i] != 0xff) return 1;
    for (char* q = a.map; q < a.p; q++) if ((unsigned char)*q != 0xff) return 1;
    return 0;
}
static int mem_del(uintptr_t p, bool host) {
    std::lock_guard<std::recursive_mutex> l(mu);
    auto i = live.find(p); if (i == live.end() || i->second.host != host) return say(1, "free of %#lx: not allocated", (long)p);
    Alloc& a = i->second; if (!host) used_bytes -= a.n;
    FENCE(a.map, a.maplen);
    madvise(a.map, a.maplen, MADV_DONTNEED); mprotect(a.map, a.maplen, PROT_NONE); live.erase(i); return 0;
}
struct Open { // opens all of device memory for its lifetime
    Open() { std::lock_guard<std::recursive_mutex> l(mu); for (auto& k : live) if (!k.second.host) mprotect(k.second.map, k.second.maplen, PROT_READ | PROT_WRITE), k.second.open = true; }
    ~Open() { close(); }
    int close() {
        std::lock_guard<std::recursive_mutex> l(mu); int bad = 0;
        for (auto& k : live) if (k.second.open) {
            if (pad_bad(k.second)) bad = say(700, "write outside the %zu-byte allocation at %p", k.second.n, k.second.p);
            mprotect(k.second.map, k.second.maplen, PROT_NONE), k.second.open = false; }
        return bad;
    }
};
static bool dev_range(uintptr_t p, size_t n) { Alloc* a = find(p); return a && !a->host && p + n <= (uintptr_t)a->p + a->n; }

// ------------------------------------------------------------- kernel engine
extern "C" { uint3 emu_tid, emu_bid; dim3 emu_bdim, emu_gdim; }
extern "C" char __start_emu_shared[] __attribute__((weak)); extern "C" char __stop_emu_shared[] __attribute__((weak));
enum St { READY, BAR, SHFL, DONE };
struct Fiber { ucontext_t c; St st; uint3 tid; unsigned mask; int phase; char* stack;
#if defined(EMU_TSAN)
    void* ts;
#endif
};
IMMORTAL(std::vector<Fiber>, fib); static ucontext_t sched; static int curf = -1;
static auto slots = new std::vector<uint64_t>[2]; static auto filled = new std::vector<uint8_t>[2];
static const KernelEntry* cur_k; static void** cur_args; static const size_t STK = 256 << 10;
static sigjmp_buf fault_jmp; static volatile sig_atomic_t in_kernel; static void* fault_addr; static int fault_sig;
static struct sigaction old_sa[32];
#if defined(EMU_TSAN)
static void* ts_main; static char ts_bar, ts_start, ts_end;
#define TS(x) x
#else
#define TS(x)
#endif

static void to_sched() { TS(__tsan_switch_to_fiber(ts_main, 1)); swapcontext(&fib[curf].c, &sched); }
static void tramp() { TS(__tsan_acquire(&ts_start)); cur_k->invoke(cur_args); TS(__tsan_release(&ts_end)); fib[curf].st = DONE; to_sched(); }
extern "C" unsigned emu_lane() { return (emu_tid.x + emu_bdim.x * (emu_tid.y + emu_bdim.y * emu_tid.z)) & 31; }
extern "C" void emu_barrier() {
    if (curf < 0) abort(); // PTX said: no barrier in this kernel
    TS(__tsan_release(&ts_bar)); fib[curf].st = BAR; to_sched(); TS(__tsan_acquire(&ts_bar));
}
extern "C" uint64_t emu_shfl(unsigned mask, uint64_t v, int src) {
    if (curf < 0) abort();
    Fiber& f = fib[curf]; int ph = f.phase ^= 1, me = curf, w = me & ~31;
    slots[ph][me] = v; filled[ph][me] = 1; f.mask = mask; f.st = SHFL; to_sched();
    filled[ph ^ 1][me] = 0;
    int s = w + (src & 31);
    if (s >= (int)fib.size() || !(mask >> (src & 31) & 1)) return v; // undefined on a GPU
    return slots[ph][s];
}
static int run_block(std::mt19937& rng, int order) {
    size_t n = (size_t)emu_bdim.x * emu_bdim.y * emu_bdim.z;
    if (__stop_emu_shared > (char*)__start_emu_shared) memset(__start_emu_shared, 0xff, __stop_emu_shared - __start_emu_shared);
    auto tid = [](size_t i) { return uint3{unsigned(i % emu_bdim.x), unsigned(i / emu_bdim.x % emu_bdim.y), unsigned(i / emu_bdim.x / emu_bdim.y)}; };
    std::vector<int> ord(n); for (size_t i = 0; i < n; i++) ord[i] = order == 1 ? n - 1 - i : i;
    if (order == 2) std::shuffle(ord.begin(), ord.end(), rng);
#if !defined(EMU_TSAN)
    if (!cur_k->syncs) { curf = -1; for (int i : ord) { emu_tid = tid(i); cur_k->invoke(cur_args); } return 0; }
#endif
    static std::vector<char*> pool;
    while (pool.size() < n) pool.push_back((char*)mmap(0, STK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    fib.resize(n); for (int p : {0, 1}) slots[p].assign(n, 0), filled[p].assign(n, 0);
    TS(ts_main = __tsan_get_current_fiber(); __tsan_release(&ts_start));
    for (size_t i = 0; i < n; i++) {
        Fiber& f = fib[i]; getcontext(&f.c); f.c.uc_stack.ss_sp = f.stack = pool[i]; f.c.uc_stack.ss_size = STK; f.c.uc_link = 0;
        makecontext(&f.c, tramp, 0); f.st = READY; f.tid = tid(i); f.phase = 0; TS(f.ts = __tsan_create_fiber(0));
    }
    int err = 0;
    for (;;) {
        bool ran = false;
        for (int i : ord) if (fib[i].st == READY) {
            ran = true; curf = i; emu_tid = fib[i].tid;
            TS(__tsan_switch_to_fiber(fib[i].ts, 1)); swapcontext(&sched, &fib[i].c);
        }
        if (ran) { // warps whose named lanes have all arrived may go on
            for (size_t w = 0; w < n; w += 32) for (size_t i = w; i < std::min(n, w + 32); i++) if (fib[i].st == SHFL) {
                bool all = true;
                for (size_t j = w; j < std::min(n, w + 32); j++) if (fib[i].mask >> (j - w) & 1) all &= filled[fib[i].phase][j] && (fib[j].st == SHFL || fib[j].phase != fib[i].phase || fib[j].st == READY);
                if (all) for (size_t j = w; j < std::min(n, w + 32); j++) if (fib[j].st == SHFL && fib[j].mask == fib[i].mask && fib[j].phase == fib[i].phase) fib[j].st = READY;
            }
            bool any = false; for (auto& f : fib) any |= f.st == READY; if (any) continue;
        }
        size_t bar = 0, done = 0, sh = 0; for (auto& f : fib) bar += f.st == BAR, done += f.st == DONE, sh += f.st == SHFL;
        if (done == n) break;
        if (sh || done) {
            err = say(719, "kernel %s: block (%u,%u,%u): %zu threads at a barrier, %zu in a shuffle, %zu exited", cur_k->name, emu_bid.x, emu_bid.y, emu_bid.z, bar, sh, done); break; }
        for (auto& f : fib) f.st = READY;
    }
    TS(__tsan_acquire(&ts_end); for (auto& f : fib) __tsan_destroy_fiber(f.ts));
    curf = -1; return err;
}
static void on_fault(int sig, siginfo_t* si, void* uc) {
    if (in_kernel) { fault_addr = si->si_addr; fault_sig = sig; siglongjmp(fault_jmp, 1); }
    if (old_sa[sig].sa_flags & SA_SIGINFO) old_sa[sig].sa_sigaction(sig, si, uc); else { signal(sig, SIG_DFL); raise(sig); }
}
static std::thread::id dev_id;
static void hook(bool on) {
    for (int s : {SIGSEGV, SIGBUS, SIGFPE}) {
        if (on) { struct sigaction a{}; a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
            a.sa_sigaction = [](int g, siginfo_t* i, void* u) { if (std::this_thread::get_id() == dev_id) on_fault(g, i, u); else if (old_sa[g].sa_flags & SA_SIGINFO) old_sa[g].sa_sigaction(g, i, u); else { signal(g, SIG_DFL); raise(g); } };
            sigaction(s, &a, &old_sa[s]); }
        else sigaction(s, &old_sa[s], 0);
    }
}
static int run_grid(const KernelEntry* k, void** args, dim3 g, dim3 b) {
    static const std::string o = env("CUEMU_ORDER", "fwd"); int order = o == "rev" ? 1 : o == "rand" ? 2 : 0;
    std::mt19937 rng(envl("CUEMU_SEED", 1)); int err = 0; Open open;
    cur_k = k; cur_args = args; emu_gdim = g; emu_bdim = b;
    uint64_t nb = (uint64_t)g.x * g.y * g.z; hook(true);
    if (sigsetjmp(fault_jmp, 1) == 0) {
        in_kernel = 1;
        for (uint64_t q = 0; q < nb && !err; q++) {
            uint64_t i = order ? nb - 1 - q : q;
            emu_bid = uint3{unsigned(i % g.x), unsigned(i / g.x % g.y), unsigned(i / g.x / g.y)};
            err = run_block(rng, order);
        }
    } else {
        err = say(fault_sig == SIGFPE ? 719 : 700, "kernel %s: %s at %p, block (%u,%u,%u) thread (%u,%u,%u)", k->name, fault_sig == SIGFPE ? "SIGFPE" : "illegal address", fault_addr,
                  emu_bid.x, emu_bid.y, emu_bid.z, emu_tid.x, emu_tid.y, emu_tid.z);
        curf = -1;
    }
    in_kernel = 0; hook(false); int pad = open.close(); if (!err) err = pad;
    if (err) sticky = err;
    return err;
}

// --------------------------------------------------- device thread and queues
IMMORTAL(std::deque<std::function<void()>>, work); IMMORTAL(std::mutex, wm); IMMORTAL(std::condition_variable, wc);
static void dev_main() {
    static char alt[64 << 10]; stack_t ss{}; ss.ss_sp = alt; ss.ss_size = sizeof alt; sigaltstack(&ss, 0); dev_id = std::this_thread::get_id();
    for (;;) { std::function<void()> f; { std::unique_lock<std::mutex> l(wm); wc.wait(l, [] { return !work.empty(); }); f = std::move(work.front()); work.pop_front(); } f(); }
}
static void on_device(const std::function<void()>& f) { // runs f there and waits
    bool done = false; std::mutex m; std::condition_variable c;
    { std::lock_guard<std::mutex> l(wm); work.push_back([&] { f(); std::lock_guard<std::mutex> l2(m); done = true; c.notify_one(); }); } wc.notify_one();
    std::unique_lock<std::mutex> l(m); c.wait(l, [&] { return done; });
}
// A stream holds its work back until somebody waits for it, and then only that
// stream (and what it waits for) advances: forgotten synchronisation shows up
// as stale data every time instead of once a month. CUEMU_EAGER=1 turns it off.
struct Stream { std::deque<std::function<void()>> q; bool draining = false; };
struct Event { Stream* s = nullptr; uint64_t want = 0, done = 0; };
IMMORTAL(std::set<Stream*>, streams); IMMORTAL(std::set<Event*>, events); IMMORTAL(Stream, null_stream);
static void drain(Stream* s) { // device thread
    if (s->draining) return;
    s->draining = true;
    for (;;) { std::function<void()> f; { std::lock_guard<std::recursive_mutex> l(mu); if (s->q.empty()) break; f = std::move(s->q.front()); s->q.pop_front(); } if (!sticky) f(); }
    s->draining = false;
}
static void until(Event* e, uint64_t w) { while (e->done < w && e->s && !sticky) { std::function<void()> f; { std::lock_guard<std::recursive_mutex> l(mu); if (e->s->q.empty()) break; f = std::move(e->s->q.front()); e->s->q.pop_front(); } f(); } }
static Stream* str(CUstream h) { if (!h) return &null_stream; auto s = (Stream*)h; return streams.count(s) ? s : nullptr; }
static int push(CUstream h, std::function<void()> f) {
    Stream* s; { std::lock_guard<std::recursive_mutex> l(mu); s = str(h); if (!s) return say(400, "bad stream handle"); s->q.push_back(std::move(f)); }
    static const bool eager = envl("CUEMU_EAGER", 0); if (eager || !h) on_device([=] { drain(s); }); return 0;
}

// ------------------------------------------------------- kernels of the host
typedef std::map<std::string, KernelEntry*> Registry;
static Registry& registry() { static auto& t = *new Registry; return t; }
void registry_add(KernelEntry* e) { registry()[e->name] = e; }
const KernelEntry* registry_find(const char* n) { auto i = registry().find(n); return i == registry().end() ? nullptr : i->second; }

// ------------------------------------------------------------------------ PTX
struct Fn { std::string name; const KernelEntry* k; int maxthreads; std::shared_ptr<ptx::Kernel> interpreted; };
static bool interpret() { static const bool on = envl("CUEMU_PTX", 0); return on; }
bool ptx::range(uint64_t address, uint64_t* from, uint64_t* to) {
    std::lock_guard<std::recursive_mutex> l(mu); Alloc* a = find(address); if (!a) return false;
    *from = (uint64_t)a->p; *to = *from + a->n; return true;
}
static ptx::Order ptx_order() { const std::string o = env("CUEMU_ORDER", "fwd"); return o == "rev" ? ptx::Order::Reverse : o == "rand" ? ptx::Order::Random : ptx::Order::Forward; }
static int run_ptx(const ptx::Kernel& k, const std::vector<std::vector<char>>& args, const ptx::Launch& l) {
    Open open; int err = 0;
    try { ptx::run(k, args, l); } catch (ptx::Fault& f) { err = say(f.code, "%s", f.text.c_str()); }
    int pad = open.close(); if (!err) err = pad;
    if (err) sticky = err;
    return err;
}
struct Mod { std::vector<std::unique_ptr<Fn>> fns; };
IMMORTAL(std::set<Mod*>, mods); IMMORTAL(std::set<Fn*>, fns);
static int load_ptx(const char* t, Mod* m) {
    const char* v = strstr(t, ".version"); const char* tg = strstr(t, ".target sm_"); int a = 0, b = 0, cc = 0;
    if (!v || !tg || sscanf(v, ".version %d.%d", &a, &b) != 2 || sscanf(tg, ".target sm_%d", &cc) != 1) return say(218, "not PTX");
    // CUDA 12.0-12.5 read ISA 8.0-8.5, 12.6-12.9 read 8.5-8.8, 13.n reads 9.n
    int drv = envl("CUEMU_DRIVER", 12000), minor = drv % 1000 / 10, maxv = (drv / 1000 - 4) * 10 + minor - (drv / 1000 == 12 && minor > 5);
    if (a * 10 + b > maxv) return say(222, "PTX ISA %d.%d, driver %d reads up to %d.%d", a, b, drv, maxv / 10, maxv % 10);
    if (cc > envl("CUEMU_CC", 75)) return say(218, "PTX target sm_%d above the device", cc);
    int depth = 0; for (const char* p = t; *p; p++) { depth += *p == '{'; depth -= *p == '}'; if ((unsigned char)*p > 126) return say(218, "binary garbage after the PTX: is it NUL-terminated?"); }
    if (depth) return say(218, "unbalanced braces");
    std::vector<ptx::Kernel> parsed;
    if (interpret()) try { parsed = ptx::parse(t); } catch (ptx::Fault& f) { return say(f.code, "%s", f.text.c_str()); }
    for (const char* e = t; (e = strstr(e, ".entry ")); ) {
        e += 7; auto f = std::make_unique<Fn>(); while (*e && *e != '(' && *e > ' ') f->name += *e++;
        f->k = registry_find(f->name.c_str()); f->maxthreads = 1024;
        if (!f->k) return say(500, "PTX entry %s has no host-compiled twin", f->name.c_str());
        const char* end = strchr(e, ')'); std::string got;
        for (const char* p = e; (p = strstr(p, ".param ")) && p < end; p += 7) {
            int bits = 0;
            std::string one(p, strcspn(p, ",)")); 
            for (size_t i = 0; i < one.size(); i++) if (one[i] == '.' && strchr("usfb", one[i + 1]) && one[i + 1] && isdigit(one[i + 2])) { bits = atoi(&one[i + 2]); break; }
            auto br = one.find('['); int cnt = br == std::string::npos ? 1 : atoi(&one[br + 1]);
            got += std::to_string(bits / 8 * cnt) + " ";
        }
        if (got != f->k->sizes()) return say(218, "entry %s: PTX parameters [%s] but source has [%s]: stale PTX?", f->name.c_str(), got.c_str(), f->k->sizes().c_str());
        const char* body = strchr(end, '{'); if (const char* mx = strstr(end, ".maxntid ")) if (mx < body) { int x = 1, y = 1, z = 1; sscanf(mx, ".maxntid %d, %d, %d", &x, &y, &z); f->maxthreads = x * y * z; }
        const char* fin = strstr(body, "\n}"); std::string bs(body, fin ? fin - body : strlen(body));
        bool s = bs.find("bar.") != std::string::npos || bs.find("barrier.") != std::string::npos || bs.find("shfl.") != std::string::npos || bs.find("vote.") != std::string::npos;
        const_cast<KernelEntry*>(f->k)->syncs = s;
        for (auto& k : parsed) if (k.name == f->name) f->interpreted = std::make_shared<ptx::Kernel>(std::move(k));
        m->fns.push_back(std::move(f));
    }
    return 0;
}

// ------------------------------------------------------------------------ API
API(cuInit, unsigned) { if (int e = inject(__func__)) return R(e); if (inited) return R(0);
    if (!envl("CUEMU_DEVICES", 1)) return R(100);
    size_t sz = 1ull << 38; arena = (char*)mmap(0, sz, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); if (arena == MAP_FAILED) return R(2);
    arena_top = arena; arena_end = arena + sz; inited = true;
    sigset_t all, old; sigfillset(&all); for (int s : {SIGSEGV, SIGBUS, SIGFPE}) sigdelset(&all, s); pthread_sigmask(SIG_SETMASK, &all, &old);
    std::thread(dev_main).detach(); pthread_sigmask(SIG_SETMASK, &old, 0); return R(0); }
API(cuDriverGetVersion, int* v) { if (int e = inject(__func__)) return R(e); *v = envl("CUEMU_DRIVER", 12000); return R(0); }
API(cuDeviceGetCount, int* n) { ENTER(); *n = envl("CUEMU_DEVICES", 1); return R(0); }
API(cuDeviceGet, CUdevice* d, int i) { ENTER(); if (i < 0 || i >= envl("CUEMU_DEVICES", 1)) return R(101); *d = i; return R(0); }
API(cuDeviceGetName, char* s, int n, CUdevice) { ENTER(); snprintf(s, n, "CUEMU"); return R(0); }
API(cuDeviceGetUuid_v2, CUuuid* u, CUdevice d) { ENTER(); memset(u, 0, 16); u->bytes[0] = (char)(d + 1); return R(0); }
API(cuDeviceTotalMem_v2, size_t* n, CUdevice) { ENTER(); *n = envl("CUEMU_MEM", 1L << 30); return R(0); }
API(cuDeviceGetAttribute, int* v, CUdevice_attribute a, CUdevice) { ENTER(); int cc = envl("CUEMU_CC", 75);
    switch ((int)a) { case 75: *v = cc / 10; break; case 76: *v = cc % 10; break; case 1: *v = 1024; break; case 8: *v = 49152; break; case 10: *v = 32; break; case 16: *v = 4; break; case 115: *v = 1; break; default: *v = 0; } return R(0); }
API(cuDevicePrimaryCtxRetain, CUcontext* c, CUdevice) { ENTER(); std::lock_guard<std::recursive_mutex> l(mu); ctx_refs++; *c = PRIMARY; return R(0); }
API(cuDevicePrimaryCtxRelease_v2, CUdevice) { if (int e = inject(__func__)) return R(e); std::lock_guard<std::recursive_mutex> l(mu); if (ctx_refs <= 0) return R(201);
    if (--ctx_refs == 0) { size_t d = 0, h = 0; for (auto& k : live) (k.second.host ? h : d)++; if (d + h + streams.size() + events.size() + mods.size()) say(0, "LEAK: %zu device, %zu host allocations, %zu streams, %zu events, %zu modules", d, h, streams.size(), events.size(), mods.size()); } return R(0); }
API(cuCtxSetCurrent, CUcontext c) { ENTER(); if (c && c != PRIMARY) return R(201); cur = c; return R(0); }
API(cuCtxGetCurrent, CUcontext* c) { ENTER(); *c = cur; return R(0); }
API(cuCtxSynchronize, void) { ENTER_CTX(); std::vector<Stream*> all; { std::lock_guard<std::recursive_mutex> l(mu); all.assign(streams.begin(), streams.end()); } on_device([&] { drain(&null_stream); for (auto s : all) drain(s); }); return R(sticky.load()); }
API(cuMemGetInfo_v2, size_t* f, size_t* t) { ENTER_CTX(); *t = envl("CUEMU_MEM", 1L << 30); *f = *t - used_bytes; return R(0); }
API(cuMemAlloc_v2, CUdeviceptr* p, size_t n) { ENTER_CTX(); void* q; int e = mem_new(n, false, &q); if (!e) *p = (CUdeviceptr)q; return R(e); }
API(cuMemFree_v2, CUdeviceptr p) { ENTER_CTX(); if (!p) return R(0); cuCtxSynchronize(); return R(mem_del(p, false)); }
API(cuMemHostAlloc, void** p, size_t n, unsigned) { ENTER_CTX(); return R(mem_new(n, true, p)); }
API(cuMemFreeHost, void* p) { ENTER_CTX(); return R(mem_del((uintptr_t)p, true)); }
// Pageable host memory: staged at the call (HtoD), or copied before the call
// returns (DtoH), as the driver does; CUEMU_PINNED=1 refuses it instead.
static bool pinned(const void* p, size_t n) { Alloc* a = find((uintptr_t)p); return a && a->host && (uintptr_t)p + n <= (uintptr_t)a->p + a->n; }
API(cuMemcpyHtoDAsync_v2, CUdeviceptr d, const void* s, size_t n, CUstream st) { ENTER_CTX(); if (!dev_range(d, n)) return R(say(1, "HtoD: %zu bytes at %#llx are not device memory", n, d));
    if (pinned(s, n)) return R(push(st, [=] { Open o; memcpy((void*)d, s, n); }));
    if (envl("CUEMU_PINNED", 0)) return R(say(1, "HtoD: host memory is not pinned"));
    auto b = std::make_shared<std::vector<char>>((const char*)s, (const char*)s + n); return R(push(st, [=] { Open o; memcpy((void*)d, b->data(), n); })); }
API(cuMemcpyDtoHAsync_v2, void* d, CUdeviceptr s, size_t n, CUstream st) { ENTER_CTX(); if (!dev_range(s, n)) return R(say(1, "DtoH: %zu bytes at %#llx are not device memory", n, s));
    bool pin = pinned(d, n); if (!pin && envl("CUEMU_PINNED", 0)) return R(say(1, "DtoH: host memory is not pinned"));
    int e = push(st, [=] { Open o; memcpy(d, (void*)s, n); }); if (!e && !pin) { Stream* q = str(st); on_device([=] { drain(q); }); e = sticky; } return R(e); }
API(cuMemcpyDtoDAsync_v2, CUdeviceptr d, CUdeviceptr s, size_t n, CUstream st) { ENTER_CTX(); if (!dev_range(s, n) || !dev_range(d, n)) return R(1); return R(push(st, [=] { Open o; memmove((void*)d, (void*)s, n); })); }
API(cuMemsetD8Async, CUdeviceptr d, unsigned char v, size_t n, CUstream st) { ENTER_CTX(); if (!dev_range(d, n)) return R(1); return R(push(st, [=] { Open o; memset((void*)d, v, n); })); }
API(cuDeviceGetDefaultMemPool, CUmemoryPool* p, CUdevice) { ENTER(); *p = (CUmemoryPool)0x2000; return R(0); }
API(cuMemPoolSetAttribute, CUmemoryPool, CUmemPool_attribute, void*) { ENTER(); return R(0); }
API(cuMemAllocAsync, CUdeviceptr* p, size_t n, CUstream st) { ENTER_CTX(); if (!str(st)) return R(400); void* q; int e = mem_new(n, false, &q); if (!e) *p = (CUdeviceptr)q; return R(e); }
API(cuMemFreeAsync, CUdeviceptr p, CUstream st) { ENTER_CTX(); if (!find(p)) return R(1); return R(push(st, [=] { mem_del(p, false); })); }
API(cuStreamCreate, CUstream* s, unsigned) { ENTER_CTX(); std::lock_guard<std::recursive_mutex> l(mu); auto p = new Stream; streams.insert(p); *s = (CUstream)p; return R(0); }
API(cuStreamSynchronize, CUstream h) { ENTER_CTX(); Stream* s = str(h); if (!s) return R(400); on_device([=] { drain(s); }); return R(sticky.load()); }
API(cuStreamQuery, CUstream h) { ENTER_CTX(); Stream* s = str(h); if (!s) return R(400); return R(s->q.empty() ? 0 : 600); }
API(cuStreamDestroy_v2, CUstream h) { ENTER_CTX(); Stream* s = str(h); if (!s || !h) return R(400); on_device([=] { drain(s); }); std::lock_guard<std::recursive_mutex> l(mu); for (auto e : events) if (e->s == s) e->s = nullptr; streams.erase(s); delete s; return R(0); }
API(cuEventCreate, CUevent* e, unsigned) { ENTER_CTX(); std::lock_guard<std::recursive_mutex> l(mu); auto p = new Event; events.insert(p); *e = (CUevent)p; return R(0); }
API(cuEventRecord, CUevent e, CUstream st) { ENTER_CTX(); auto ev = (Event*)e; if (!events.count(ev) || !str(st)) return R(400); ev->s = str(st); uint64_t w = ++ev->want; return R(push(st, [=] { ev->done = w; })); }
API(cuEventSynchronize, CUevent e) { ENTER_CTX(); auto ev = (Event*)e; if (!events.count(ev)) return R(400); on_device([=] { until(ev, ev->want); }); return R(sticky.load()); }
API(cuEventQuery, CUevent e) { ENTER_CTX(); auto ev = (Event*)e; if (!events.count(ev)) return R(400); return R(ev->done < ev->want ? 600 : 0); }
API(cuEventElapsedTime, float* ms, CUevent a, CUevent b) { ENTER_CTX(); for (auto e : {a, b}) if (((Event*)e)->done < ((Event*)e)->want) return R(600); *ms = 0.5f; return R(0); }
API(cuEventDestroy_v2, CUevent e) { ENTER_CTX(); std::lock_guard<std::recursive_mutex> l(mu); if (!events.erase((Event*)e)) return R(400); return R(0); }
API(cuStreamWaitEvent, CUstream st, CUevent e, unsigned) { ENTER_CTX(); auto ev = (Event*)e; if (!events.count(ev)) return R(400); uint64_t w = ev->want; return R(push(st, [=] { until(ev, w); })); }
API(cuModuleLoadDataEx, CUmodule* m, const void* img, unsigned, CUjit_option*, void**) { ENTER_CTX(); uint32_t magic; memcpy(&magic, img, 4);
    if (magic == 0xba55ed50 || magic == 0x464c457f) return R(say(209, "fatbin/cubin given; the double reads PTX only"));
    auto p = std::make_unique<Mod>(); if (int e = load_ptx((const char*)img, p.get())) return R(e);
    std::lock_guard<std::recursive_mutex> l(mu); for (auto& f : p->fns) fns.insert(f.get()); mods.insert(p.get()); *m = (CUmodule)p.release(); return R(0); }
API(cuModuleGetFunction, CUfunction* f, CUmodule m, const char* n) { ENTER_CTX(); if (!mods.count((Mod*)m)) return R(400); for (auto& x : ((Mod*)m)->fns) if (x->name == n) { *f = (CUfunction)x.get(); return R(0); } return R(say(500, "no entry %s", n)); }
API(cuModuleUnload, CUmodule m) { ENTER_CTX(); std::lock_guard<std::recursive_mutex> l(mu); if (!mods.erase((Mod*)m)) return R(400); for (auto& f : ((Mod*)m)->fns) fns.erase(f.get()); delete (Mod*)m; return R(0); }
API(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int) { ENTER_CTX(); return R(0); }
API(cuLaunchKernel, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned sh, CUstream st, void** params, void** extra) { ENTER_CTX();
    auto fn = (Fn*)f; if (!fns.count(fn)) return R(400); if (extra) return R(1);
    uint64_t bt = (uint64_t)bx * by * bz;
    if (!gx || !gy || !gz || !bt || gy > 65535 || gz > 65535 || gx > 0x7fffffffu || bx > 1024 || by > 1024 || bz > 64 || bt > 1024 || sh > 49152) return R(say(1, "launch %s: bad shape grid %u,%u,%u block %u,%u,%u shared %u", fn->name.c_str(), gx, gy, gz, bx, by, bz, sh));
    if (bt > (uint64_t)fn->maxthreads) return R(say(1, "launch %s: %lu threads, __launch_bounds__ %d", fn->name.c_str(), (long)bt, fn->maxthreads));
    auto args = std::make_shared<std::vector<std::vector<char>>>();
    for (size_t i = 0; i < fn->k->args.size(); i++) { auto& a = fn->k->args[i]; args->emplace_back((char*)params[i], (char*)params[i] + a.size);
        if (a.ptr) { uintptr_t v; memcpy(&v, params[i], 8); if (v && !find(v)) return R(say(sticky = 700, "launch %s: parameter %zu = %#lx is not device memory", fn->name.c_str(), i, (long)v)); if (v % a.align) return R(say(sticky = 716, "launch %s: parameter %zu misaligned", fn->name.c_str(), i)); } }
    if (auto k = fn->interpreted) {
        std::vector<std::vector<char>> bytes;
        for (size_t i = 0; i < k->params.size(); i++) bytes.emplace_back((char*)params[i], (char*)params[i] + k->params[i].size);
        ptx::Launch launch{{gx, gy, gz}, {bx, by, bz}, sh, ptx_order(), (unsigned)envl("CUEMU_SEED", 1)};
        return R(push(st, [=] { run_ptx(*k, bytes, launch); }));
    }
    auto k = fn->k;
    return R(push(st, [=] { std::vector<void*> pv; for (auto& a : *args) pv.push_back(a.data()); run_grid(k, pv.data(), dim3{gx, gy, gz}, dim3{bx, by, bz}); })); }
API(cuGetErrorString, CUresult e, const char** s) { static thread_local char b[32]; snprintf(b, sizeof b, "CUDA error %d", (int)e); *s = b; return R(0); }
API(cuGetErrorName, CUresult e, const char** s) { return cuGetErrorString(e, s); }
API(cuDevicePrimaryCtxSetFlags_v2, CUdevice, unsigned) { ENTER(); return R(0); }
