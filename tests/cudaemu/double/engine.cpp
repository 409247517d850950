// Kernels that are compiled for the host. They run on the device's thread; the threads of a block
// whose kernel waits for others are fibers, the others' are calls in a loop.
#include "emu.h"
#include "fiber.h"
#include <algorithm>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <random>
#include <sys/mman.h>
#if defined(EMU_TSAN)
#include <sanitizer/tsan_interface.h>
#define TSAN(...) __VA_ARGS__ // every thread of a block is one to the sanitizer
#else
#define TSAN(...)
#endif

// What kernels see (cudaemu.h).
extern "C" {
uint3 emu_tid, emu_bid;
dim3 emu_bdim, emu_gdim;
// The section of all shared memory.
extern char __start_emu_shared[] __attribute__((weak));
extern char __stop_emu_shared[] __attribute__((weak));
}

enum class State { Ready, Barrier, Shuffle, Done };

struct Fiber {
    Context context;
    State state;
    uint3 tid;
    unsigned mask; // of its shuffle
    int phase;     // of its shuffles, 0 and 1 in turn
    TSAN(void* sanitizer;)
};

static IMMORTAL(std::vector<Fiber>, fibers);
static Context scheduler;
static int running = -1; // the fiber, or -1: no fibers
static auto slots = new std::vector<uint64_t>[2]; // what is shuffled, by phase
static auto filled = new std::vector<uint8_t>[2];
static const KernelEntry* kernel;
static void** arguments;
static const size_t STACK = 256 << 10;

static sigjmp_buf fault_jump;
static volatile sig_atomic_t in_kernel;
static void* fault_address;
static int fault_signal;
static struct sigaction before[32]; // what handled signals

TSAN(static void* main_fiber; static char at_barrier, at_start, at_end;)

static void to_scheduler() {
    TSAN(__tsan_switch_to_fiber(main_fiber, 1);)
    change_context(fibers[running].context, scheduler);
}

static void fiber_main() {
    TSAN(__tsan_acquire(&at_start);)
    kernel->invoke(arguments);
    TSAN(__tsan_release(&at_end);)
    fibers[running].state = State::Done;
    to_scheduler();
}

extern "C" unsigned emu_lane() { return (emu_tid.x + emu_bdim.x * (emu_tid.y + emu_bdim.y * emu_tid.z)) & 31; }

extern "C" void emu_barrier() {
    if (running < 0) abort(); // the PTX has no barrier in this kernel
    TSAN(__tsan_release(&at_barrier);)
    fibers[running].state = State::Barrier;
    to_scheduler();
    TSAN(__tsan_acquire(&at_barrier);)
}

extern "C" uint64_t emu_shfl(unsigned mask, uint64_t value, int source) {
    if (running < 0) abort();
    Fiber& f = fibers[running];
    const int phase = f.phase ^= 1, me = running;
    slots[phase][me] = value;
    filled[phase][me] = 1;
    f.mask = mask;
    f.state = State::Shuffle;
    to_scheduler();
    filled[phase ^ 1][me] = 0;
    const int from = (me & ~31) + (source & 31);
    if (from >= (int)fibers.size() || !(mask >> (source & 31) & 1)) return value; // undefined on a GPU
    return slots[phase][from];
}

static uint3 thread_at(size_t i) { return uint3{unsigned(i % emu_bdim.x), unsigned(i / emu_bdim.x % emu_bdim.y), unsigned(i / emu_bdim.x / emu_bdim.y)}; }

// Have all lanes that a fiber's shuffle names come to it?
static bool complete(const Fiber& f, size_t warp, size_t end) {
    for (size_t j = warp; j < end; j++) {
        if (!(f.mask >> (j - warp) & 1)) continue;
        const Fiber& o = fibers[j];
        if (!filled[f.phase][j]) return false;
        if (o.state != State::Shuffle && o.phase == f.phase && o.state != State::Ready) return false;
    }
    return true;
}

static void release_shuffles() {
    for (size_t warp = 0; warp < fibers.size(); warp += 32) {
        const size_t end = std::min(fibers.size(), warp + 32);
        for (size_t i = warp; i < end; i++) {
            const Fiber& f = fibers[i];
            if (f.state != State::Shuffle || !complete(f, warp, end)) continue;
            const unsigned mask = f.mask;
            const int phase = f.phase;
            for (size_t j = warp; j < end; j++) {
                Fiber& o = fibers[j];
                if (o.state == State::Shuffle && o.mask == mask && o.phase == phase) o.state = State::Ready;
            }
        }
    }
}

// schedule runs the fibers in an order until all are done.
static int schedule(const std::vector<int>& order) {
    for (;;) {
        bool ran = false;
        for (int i : order) {
            if (fibers[i].state != State::Ready) continue;
            ran = true;
            running = i;
            emu_tid = fibers[i].tid;
            TSAN(__tsan_switch_to_fiber(fibers[i].sanitizer, 1);)
            change_context(scheduler, fibers[i].context);
        }
        if (ran) {
            release_shuffles();
            if (std::any_of(fibers.begin(), fibers.end(), [](const Fiber& f) { return f.state == State::Ready; })) continue;
        }
        size_t barrier = 0, shuffle = 0, done = 0;
        for (auto& f : fibers) {
            barrier += f.state == State::Barrier;
            shuffle += f.state == State::Shuffle;
            done += f.state == State::Done;
        }
        if (done == fibers.size()) return 0;
        if (shuffle || done) {
            return say(LAUNCH_FAILED, "kernel %s: block (%u,%u,%u): %zu threads at a barrier, %zu in a shuffle, %zu exited", kernel->name, emu_bid.x, emu_bid.y, emu_bid.z, barrier, shuffle, done);
        }
        for (auto& f : fibers) f.state = State::Ready;
    }
}

static int run_fibers(const std::vector<int>& order) {
    const size_t n = order.size();
    static auto& stacks = *new std::vector<char*>;
    while (stacks.size() < n) stacks.push_back((char*)mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    fibers.resize(n);
    for (int phase : {0, 1}) {
        slots[phase].assign(n, 0);
        filled[phase].assign(n, 0);
    }
    TSAN(main_fiber = __tsan_get_current_fiber(); __tsan_release(&at_start);)
    for (size_t i = 0; i < n; i++) {
        Fiber& f = fibers[i];
        begin_context(f.context, stacks[i], STACK, fiber_main);
        f.state = State::Ready;
        f.tid = thread_at(i);
        f.phase = 0;
        TSAN(f.sanitizer = __tsan_create_fiber(0);)
    }
    const int e = schedule(order);
    TSAN(__tsan_acquire(&at_end); for (auto& f : fibers) __tsan_destroy_fiber(f.sanitizer);)
    running = -1;
    return e;
}

enum class Order { Forward, Reverse, Random };

static int run_block(std::mt19937& random, Order how) {
    const size_t n = (size_t)emu_bdim.x * emu_bdim.y * emu_bdim.z;
    const size_t shared = __stop_emu_shared - __start_emu_shared;
    if (shared) memset(__start_emu_shared, 0xff, shared);
    std::vector<int> order(n);
    for (size_t i = 0; i < n; i++) order[i] = how == Order::Reverse ? n - 1 - i : i;
    if (how == Order::Random) std::shuffle(order.begin(), order.end(), random);
#if !defined(EMU_TSAN)
    if (!kernel->syncs) {
        running = -1;
        for (int i : order) {
            emu_tid = thread_at(i);
            kernel->invoke(arguments);
        }
        return 0;
    }
#endif
    return run_fibers(order);
}

// Faults of kernels end the kernel; others are whose they were.
static void on_signal(int signal_number, siginfo_t* info, void* context) {
    if (on_device_thread() && in_kernel) {
        fault_address = info->si_addr;
        fault_signal = signal_number;
        siglongjmp(fault_jump, 1);
    }
    const struct sigaction& old = before[signal_number];
    if (old.sa_flags & SA_SIGINFO) {
        old.sa_sigaction(signal_number, info, context);
    } else {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

static void catch_signals(bool on) {
    for (int s : {SIGSEGV, SIGBUS, SIGFPE}) {
        struct sigaction ours{};
        ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        ours.sa_sigaction = on_signal;
        if (on) sigaction(s, &ours, &before[s]);
        else sigaction(s, &before[s], nullptr);
    }
}

int run_native(const KernelEntry* k, void** args, dim3 grid, dim3 block) {
    static const std::string name = env("CUEMU_ORDER", "fwd");
    const Order order = name == "rev" ? Order::Reverse : name == "rand" ? Order::Random : Order::Forward;
    std::mt19937 random(env_number("CUEMU_SEED", 1));
    Open open;
    kernel = k;
    arguments = args;
    emu_gdim = grid;
    emu_bdim = block;
    const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
    volatile int e = 0;
    catch_signals(true);
    if (sigsetjmp(fault_jump, 1) == 0) {
        in_kernel = 1;
        for (uint64_t q = 0; q < blocks && !e; q++) {
            const uint64_t i = order == Order::Forward ? q : blocks - 1 - q;
            emu_bid = uint3{unsigned(i % grid.x), unsigned(i / grid.x % grid.y), unsigned(i / grid.x / grid.y)};
            e = run_block(random, order);
        }
    } else {
        const bool arithmetic = fault_signal == SIGFPE;
        e = say(arithmetic ? LAUNCH_FAILED : ILLEGAL_ADDRESS, "kernel %s: %s at %p, block (%u,%u,%u) thread (%u,%u,%u)", k->name, arithmetic ? "SIGFPE" : "illegal address", fault_address,
                emu_bid.x, emu_bid.y, emu_bid.z, emu_tid.x, emu_tid.y, emu_tid.z);
        running = -1;
    }
    in_kernel = 0;
    catch_signals(false);
    const int margins = open.close();
    if (!e) e = margins;
    if (e) sticky() = e;
    return e;
}
