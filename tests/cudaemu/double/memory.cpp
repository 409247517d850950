// Memory of the device, and page-locked memory of the host. The device's is reserved without access and
// opened only while a copy, a memset or a kernel runs. Every allocation has a guard page on both
// sides, ends as close to the upper one as its alignment allows, starts life poisoned, and its addresses
// are never used again, or, with CUEMU_REUSE=1, at once.
#include "emu.h"
#include <algorithm>
#include <cstring>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__) // exact bounds: the slack beside a buffer is poisoned
#include <sanitizer/asan_interface.h>
#define FENCE(p, n) __asan_poison_memory_region(p, n)
#define FENCE_OFF(p, n) __asan_unpoison_memory_region(p, n)
#define UNFENCED __attribute__((no_sanitize_address))
#else
#define FENCE(p, n) (void)0
#define FENCE_OFF(p, n) (void)0
#define UNFENCED
#endif

typedef std::map<uintptr_t, Alloc> Allocs;
IMMORTAL(Allocs, live);

static const size_t PAGE = 4096;
static const unsigned char POISON = 0xff;
static char *arena_start, *arena_top, *arena_end;
struct Freed {
    char* map;
    size_t length;
};
static IMMORTAL(std::vector<Freed>, freed); // with CUEMU_REUSE
typedef std::map<int, size_t> Bytes;
static IMMORTAL(Bytes, used); // bytes of each device

bool reserve() {
    const size_t size = 1ull << 38;
    char* p = (char*)mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    arena_start = arena_top = p;
    arena_end = p + size;
    return true;
}

bool in_arena(uintptr_t p) { return p >= (uintptr_t)arena_start && p < (uintptr_t)arena_end; }

const Alloc* find(uintptr_t p) {
    auto i = live.upper_bound(p);
    if (i == live.begin()) return nullptr;
    const Alloc& a = (--i)->second;
    return p < (uintptr_t)a.p + a.n ? &a : nullptr;
}

static bool inside(uintptr_t p, size_t n, bool host) {
    Lock lock(mu);
    const Alloc* a = find(p);
    return a && a->host == host && (host || a->device == device_now()) && n <= a->n - (p - (uintptr_t)a->p);
}

bool device_range(uintptr_t p, size_t n) { return inside(p, n, false); }
static bool pinned(const void* p, size_t n) { return inside((uintptr_t)p, n, true); }

bool ptx::range(uint64_t address, uint64_t* from, uint64_t* to) {
    Lock lock(mu);
    const Alloc* a = find(address);
    if (!a || (!a->host && a->device != device_now())) return false;
    *from = (uint64_t)a->p;
    *to = *from + a->n;
    return true;
}

static size_t up(size_t n, size_t step) { return (n + step - 1) / step * step; }

// pages finds a place for so many bytes: what was freed last, if its pages are enough and not twice as many.
static char* pages(size_t* length) {
    for (size_t i = freed.size(); i-- > 0;) {
        const Freed f = freed[i];
        if (f.length < *length || f.length >= 2 * *length) continue;
        freed.erase(freed.begin() + i);
        *length = f.length;
        return f.map;
    }
    char* map = arena_top + PAGE;
    if (map + *length + PAGE > arena_end) return nullptr;
    arena_top = map + *length;
    return map;
}

// shut keeps the host from the device's memory. With a clock it does not: changing the protection of all pages for each kernel
// would be counted as the host's work.
static void shut(const Alloc& a) {
    if (!clock_on) mprotect(a.map, a.map_length, PROT_NONE);
}

static int allocate(size_t n, bool host, void** out) {
    Lock lock(mu);
    static const size_t total = env_number("CUEMU_MEM", 1L << 30), align = env_number("CUEMU_ALIGN", 256);
    if (!n) return INVALID_VALUE;
    const int device = device_now();
    if (!host && used[device] + n > total) return OUT_OF_MEMORY;
    const size_t rounded = up(n, align);
    size_t length = up(rounded, PAGE);
    char* map = pages(&length);
    if (!map) return OUT_OF_MEMORY;
    FENCE_OFF(map, length);
    mprotect(map, length, PROT_READ | PROT_WRITE);
    memset(map, POISON, length);
    Alloc a{map, length, map + length - rounded, n, rounded - n, host, false, device};
    if (!host) {
        used[device] += n;
        shut(a);
    }
    FENCE(a.p + n, a.pad);
    FENCE(map, a.p - map);
    live[(uintptr_t)a.p] = a;
    *out = a.p;
    return 0;
}

typedef std::vector<std::function<void(uintptr_t, size_t)>> Looks;
static IMMORTAL(Looks, looks);

void before_free(std::function<void(uintptr_t, size_t)> look) {
    Lock lock(mu);
    looks.push_back(look);
}

static int release(uintptr_t p, bool host) {
    Lock lock(mu);
    auto i = live.find(p);
    if (i == live.end() || i->second.host != host || i->second.registered) return say(INVALID_VALUE, "free of %#lx: not allocated", (long)p);
    Alloc& a = i->second;
    if (host && is_guarded(p, a.n)) return say(sticky() = ILLEGAL_ADDRESS, "race: %zu bytes of page-locked memory at %#lx are freed while their copy is queued", a.n, (long)p);
    if (!host) {
        for (auto& look : looks) look(p, a.n);
    }
    if (!host) used[a.device] -= a.n;
    FENCE(a.map, a.map_length);
    madvise(a.map, a.map_length, MADV_DONTNEED);
    mprotect(a.map, a.map_length, PROT_NONE);
    forget(p);
    static const bool reuse = env_number("CUEMU_REUSE", 0);
    if (reuse) freed.push_back(Freed{a.map, a.map_length});
    live.erase(i);
    return 0;
}

UNFENCED static bool margins_written(const Alloc& a) { // the memory must be open
    for (size_t i = 0; i < a.pad; i++) {
        if ((unsigned char)a.p[a.n + i] != POISON) return true;
    }
    for (char* q = a.map; q < a.p; q++) {
        if ((unsigned char)*q != POISON) return true;
    }
    return false;
}

void Open::open(const Alloc& a) {
    if (a.host || a.device != device_now()) return;
    if (!clock_on) mprotect(a.map, a.map_length, PROT_READ | PROT_WRITE);
    opened.push_back((uintptr_t)a.p);
}

Open::Open() {
    Lock lock(mu);
    for (auto& k : live) open(k.second);
}

Open::Open(std::initializer_list<uintptr_t> touched) {
    Lock lock(mu);
    for (uintptr_t p : touched) {
        const Alloc* a = find(p);
        if (a && !std::count(opened.begin(), opened.end(), (uintptr_t)a->p)) open(*a);
    }
}

Open::~Open() { close(); }

int Open::close() {
    Lock lock(mu);
    int bad = 0;
    for (uintptr_t p : opened) {
        auto i = live.find(p);
        if (i == live.end()) continue; // freed meanwhile
        const Alloc& a = i->second;
        if (margins_written(a)) bad = say(ILLEGAL_ADDRESS, "write outside the %zu-byte allocation at %p", a.n, a.p);
        shut(a);
    }
    opened.clear();
    return bad;
}

API(cuMemGetInfo_v2, size_t* free, size_t* total) {
    ENTER_CTX();
    Lock lock(mu);
    *total = env_number("CUEMU_MEM", 1L << 30);
    *free = *total - used[device_now()];
    return R(0);
}

static int allocate_device(CUdeviceptr* p, size_t n) {
    void* q;
    if (int e = allocate(n, false, &q)) return e;
    *p = (CUdeviceptr)q;
    return 0;
}

API(cuMemAlloc_v2, CUdeviceptr* p, size_t n) {
    ENTER_CTX();
    clock_spend("allocate", clock_figure("allocate"), n);
    return R(allocate_device(p, n));
}

API(cuMemFree_v2, CUdeviceptr p) {
    ENTER_CTX();
    if (!p) return R(0);
    finish_all(); // as the driver does
    clock_spend("free", clock_figure("allocate"));
    return R(release(p, false));
}

API(cuMemHostAlloc, void** p, size_t n, unsigned) {
    ENTER_CTX();
    clock_spend("pin", clock_figure("allocate") + n / clock_figure("pin"), n);
    return R(allocate(n, true, p));
}

API(cuMemFreeHost, void* p) {
    ENTER_CTX();
    return R(release((uintptr_t)p, true));
}

API(cuMemHostRegister_v2, void* p, size_t n, unsigned) {
    ENTER_CTX();
    clock_spend("pin", clock_figure("allocate") + n / clock_figure("pin"), n);
    Lock lock(mu);
    if (!p || !n) return R(INVALID_VALUE);
    auto next = live.lower_bound((uintptr_t)p + n);
    if (next != live.begin() && (--next, next->first + next->second.n > (uintptr_t)p)) return R(say(HOST_MEMORY_ALREADY_REGISTERED, "register %zu bytes at %p", n, p));
    for (size_t i = 0; i < n; i += PAGE) (void)((volatile char*)p)[i]; // faults where there is no memory
    live[(uintptr_t)p] = Alloc{(char*)p, n, (char*)p, n, 0, true, true, device_now()};
    return R(0);
}

// unguard_registered ends the guards of memory that its owner unmaps next, whatever the call returns, and tells whether there were any.
static bool unguard_registered(void* p) {
    Lock lock(mu);
    auto i = live.find((uintptr_t)p);
    return i != live.end() && i->second.registered && end_guards((uintptr_t)p, i->second.n);
}

API(cuMemHostUnregister, void* p) {
    const bool queued = unguard_registered(p);
    ENTER_CTX();
    if (queued) return R(say(sticky() = ILLEGAL_ADDRESS, "race: page-locked memory at %p is unregistered while its copy is queued", p));
    finish_all(); // as the driver does
    Lock lock(mu);
    auto i = live.find((uintptr_t)p);
    if (i == live.end() || !i->second.registered) return R(say(HOST_MEMORY_NOT_REGISTERED, "unregister %p", p));
    forget((uintptr_t)p);
    live.erase(i);
    return R(0);
}

API(cuDeviceGetDefaultMemPool, CUmemoryPool* pool, CUdevice) {
    ENTER();
    *pool = (CUmemoryPool)0x2000;
    return R(0);
}

API(cuMemPoolSetAttribute, CUmemoryPool, CUmemPool_attribute, void*) {
    ENTER();
    return R(0);
}

API(cuMemAllocAsync, CUdeviceptr* p, size_t n, CUstream stream) {
    ENTER_CTX();
    if (!known(stream)) return R(INVALID_HANDLE);
    return R(allocate_device(p, n));
}

API(cuMemFreeAsync, CUdeviceptr p, CUstream stream) {
    ENTER_CTX();
    if (!device_range(p, 1)) return R(INVALID_VALUE);
    return R(push(stream, __func__, [=] { release(p, false); }));
}

// A piece of work that copies; what it touches is looked at when it runs.
static void move(uintptr_t to, uintptr_t from, size_t n) {
    touched(from, n, Touch::Read);
    touched(to, n, Touch::Write);
    Open open{to, from};
    memmove((void*)to, (void*)from, n);
}

// Pageable host memory is staged at the call (to the device), or copied before the call returns
// (from it), as the driver does; CUEMU_PINNED=1 refuses it instead.
API(cuMemcpyHtoDAsync_v2, CUdeviceptr to, const void* from, size_t n, CUstream stream) {
    ENTER_CTX();
    if (!device_range(to, n)) return R(say(INVALID_VALUE, "HtoD: %zu bytes at %#llx are not device memory", n, to));
    if (pinned(from, n)) {
        const auto g = guard(from, n, false);
        return R(push(stream, __func__, [=] {
            clock_copy(Charge::Up, n, true);
            guarded(g, [=] { move(to, (uintptr_t)from, n); });
        }));
    }
    if (env_number("CUEMU_PINNED", 0)) return R(say(INVALID_VALUE, "HtoD: host memory is not pinned"));
    auto staged = std::make_shared<std::vector<char>>((const char*)from, (const char*)from + n);
    return R(push(stream, __func__, [=] {
        clock_copy(Charge::Up, n, false);
        move(to, (uintptr_t)staged->data(), n);
    }));
}

API(cuMemcpyDtoHAsync_v2, void* to, CUdeviceptr from, size_t n, CUstream stream) {
    ENTER_CTX();
    if (!device_range(from, n)) return R(say(INVALID_VALUE, "DtoH: %zu bytes at %#llx are not device memory", n, from));
    const bool waits = !pinned(to, n);
    if (waits && env_number("CUEMU_PINNED", 0)) return R(say(INVALID_VALUE, "DtoH: host memory is not pinned"));
    const auto g = waits ? nullptr : guard(to, n, true);
    const int e = push(stream, __func__, [=] {
        clock_copy(Charge::Down, n, !waits);
        guarded(g, [=] { move((uintptr_t)to, from, n); });
    });
    if (e || !waits) return R(e);
    finish(stream);
    return R(sticky().load());
}

API(cuMemcpyDtoDAsync_v2, CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
    ENTER_CTX();
    if (!device_range(from, n) || !device_range(to, n)) return R(INVALID_VALUE);
    return R(push(stream, __func__, [=] {
        clock_memory("across", 2 * n);
        move(to, from, n);
    }));
}

API(cuMemsetD8Async, CUdeviceptr p, unsigned char value, size_t n, CUstream stream) {
    ENTER_CTX();
    if (!device_range(p, n)) return R(INVALID_VALUE);
    return R(push(stream, __func__, [=] {
        clock_memory("memset", n);
        touched(p, n, Touch::Write);
        Open open{p};
        memset((void*)p, value, n);
    }));
}
