// Launches of interpreted kernels: blocks, threads, barriers, warps, and the checks of memory.
#include <algorithm>
#include <numeric>
#include <random>
#include "ptx_code.h"

namespace ptx {

namespace {

// Who touched a byte last. Times are counts of barriers, of the block and of the warp, which only go
// up while a launch runs.
struct Touch {
    uint32_t block = 0, time = 0, warp_time = 0; // time 0: nobody
    uint16_t thread = 0;
    bool many = false;   // not only that thread
    bool atomic = false;
};
const uint32_t BLOCKS = ~0u; // as a block: more than one

struct Byte {
    Touch write, read;
};

// Allocations above this are not looked at for races: 32 bytes are kept for each of theirs.
const size_t LARGEST = 8 << 20;

std::string where(const Kernel& k, const Size& block, const Thread& t) {
    char text[200];
    const Instruction& i = *(t.next - 1);
    snprintf(text, sizeof text, "kernel %s, PTX line %d, %s, block (%u,%u,%u) thread (%u,%u,%u)", k.name.c_str(), i.line, i.name, block.x, block.y, block.z, t.x, t.y, t.z);
    return text;
}

} // namespace

struct Block {
    const Code* code;
    std::vector<char> params;
    std::vector<char> shared;
    std::vector<Byte> bytes; // of shared
    uint32_t number = 0, start = 1, time = 1;
    std::vector<uint32_t> warp_times;

    struct Allocation {
        uint64_t from = 0, to = 0;
        Byte* bytes = nullptr;
    };
    Allocation recent[4];
    unsigned oldest = 0;
    std::map<uint64_t, std::vector<Byte>> global; // bytes of allocations, by their address
    Counter* counter = nullptr;

    const Allocation& allocation(uint64_t address, size_t n);
    void touch(const Thread& t, Byte* b, size_t n, Access access, bool is_shared, uint64_t address);
};

// touch sees two threads at one byte without a barrier between them, one of which writes, and reads
// of shared memory that nobody wrote.
void Block::touch(const Thread& t, Byte* b, size_t n, Access access, bool is_shared, uint64_t address) {
    const uint32_t now = warp_times[t.index / 32];
    const char* what = is_shared ? "shared memory" : "memory";
    auto apart = [&](const Touch& o) { // not ordered before this access
        if (!o.time || (is_shared && o.time < start)) return false;
        if (o.block != number) return true;
        if (o.time != time || (o.thread == t.index && !o.many)) return false;
        return o.many || o.thread / 32 != t.index / 32 || o.warp_time >= now;
    };
    const Touch me{number, time, now, (uint16_t)t.index, false, access == Access::Atomic};
    for (Byte* end = b + n; b < end; b++, address++) {
        if (is_shared && access != Access::Write && b->write.time < start) fail(700, "shared memory at %#llx is read before it is written", (unsigned long long)address);
        if (!(me.atomic && b->write.atomic) && apart(b->write)) {
            fail(700, "race: %s at %#llx was written by thread %u of block %u, with no barrier since", what, (unsigned long long)address, b->write.thread, b->write.block);
        }
        if (access == Access::Read) {
            const bool others = apart(b->read);
            const uint32_t block = others && b->read.block != number ? BLOCKS : number;
            b->read = me;
            b->read.many = others;
            b->read.block = block;
        } else {
            if (apart(b->read)) fail(700, "race: %s at %#llx was read by thread %u, with no barrier since", what, (unsigned long long)address, b->read.thread);
            b->write = me;
        }
    }
}

const Block::Allocation& Block::allocation(uint64_t address, size_t n) {
    for (const Allocation& a : recent) {
        if (address >= a.from && address + n <= a.to) return a;
    }
    Allocation a;
    if (!range(address, &a.from, &a.to)) fail(700, "%#llx is not device memory", (unsigned long long)address);
    if (address + n > a.to) fail(700, "%zu bytes at %#llx, %llu before the end of an allocation", n, (unsigned long long)address, (unsigned long long)(a.to - address));
    if (a.to - a.from <= LARGEST) {
        auto& bytes = global[a.from];
        bytes.resize(a.to - a.from);
        a.bytes = bytes.data();
    }
    Allocation& place = recent[oldest];
    oldest = (oldest + 1) % 4;
    return place = a;
}

char* at(Thread& t, const Instruction& i, Space space, uint64_t address, size_t n, Access access) {
    Block& b = *t.block;
    if (address % n) fail(716, "misaligned address %#llx", (unsigned long long)address);
    if (b.counter && space != Space::Param) b.counter->touch(t.index, &i - b.code->instructions.data(), space, access, address, n);
    switch (space) {
    case Space::Param:
        if (address + n > b.params.size()) fail(700, "reads parameters at %llu, there are %zu bytes", (unsigned long long)address, b.params.size());
        return &b.params[address];
    case Space::Shared:
        if (address > b.shared.size() || n > b.shared.size() - address) fail(700, "shared memory at %llu, there are %zu bytes", (unsigned long long)address, b.shared.size());
        b.touch(t, &b.bytes[address], n, access, true, address);
        return &b.shared[address];
    case Space::Global:
        break;
    }
    const Block::Allocation& a = b.allocation(address, n);
    if (a.bytes) b.touch(t, a.bytes + (address - a.from), n, access, false, address);
    seen(address, n, access != Access::Read, access == Access::Atomic);
    return (char*)address;
}

namespace {

class Grid {
    const Kernel& kernel;
    const Code& code;
    const Launch& launch;
    Block block;
    Counter counter;
    std::mt19937 random;
    std::vector<unsigned> order;
    std::vector<uint64_t> frames;
    std::vector<Thread> threads;
    Size at{};

    void start(Thread& t, unsigned index) {
        const Size& n = launch.block;
        t.next = code.instructions.data();
        t.state = State::Ready;
        t.index = index;
        t.x = index % n.x;
        t.y = index / n.x % n.y;
        t.z = index / n.x / n.y;
        std::copy(code.frame.begin(), code.frame.end(), t.slots);
        const unsigned values[Specials] = {t.x, t.y, t.z, n.x, n.y, n.z, at.x, at.y, at.z, launch.grid.x, launch.grid.y, launch.grid.z, index % 32, index / 32};
        for (int k = 0; k < Specials; k++) t.slots[code.special + k] = values[k];
    }

    void go(Thread& t) {
        try {
            while (t.state == State::Ready) {
                const Instruction& i = *t.next++;
                if (i.guard >= 0 && bool(t.slots[i.guard]) == i.unless) continue;
                i.run(t, i);
                if (launch.counts && t.next != &i + 1) counter.branch(t.index, &i - code.instructions.data(), t.next - code.instructions.data());
            }
        } catch (Fault& f) {
            throw Fault{f.code, where(kernel, at, t) + ": " + f.text};
        }
    }

    static uint32_t mask(const Thread& t) {
        const Instruction& i = *(t.next - 1);
        const int slot = i.e >= 0 ? i.e : i.b >= 0 ? i.b : i.a; // of a shuffle, a vote, a barrier of the warp
        return t.get<uint32_t>(slot);
    }

    // Warps of which all named lanes are at the same instruction go on.
    bool exchanges() {
        bool any = false;
        for (size_t w = 0; w < threads.size(); w += 32) {
            const unsigned count = std::min<size_t>(32, threads.size() - w);
            for (unsigned l = 0; l < count; l++) {
                Thread& t = threads[w + l];
                if (t.state != State::Warp) continue;
                const uint32_t m = mask(t);
                bool all = true;
                for (unsigned k = 0; k < count; k++) {
                    const Thread& o = threads[w + k];
                    if (m >> k & 1) all &= o.state == State::Warp && o.next == t.next && mask(o) == m;
                }
                if (!(m >> l & 1)) throw Fault{719, where(kernel, at, t) + ": the mask does not name the thread itself"};
                if (!all) continue;
                const Instruction& i = *(t.next - 1);
                exchange(&threads[w], count, i, m);
                if (i.b < 0) block.warp_times[w / 32]++; // bar.warp.sync
                for (unsigned k = 0; k < count; k++) {
                    if (m >> k & 1) threads[w + k].state = State::Ready;
                }
                any = true;
            }
        }
        return any;
    }

    void run_block() {
        if (launch.order == Order::Random) std::shuffle(order.begin(), order.end(), random);
        block.start = ++block.time;
        if (!code.waits) {
            for (unsigned index : order) {
                Thread& t = threads[0];
                start(t, index);
                go(t);
            }
            return;
        }
        for (unsigned index : order) start(threads[index], index);
        for (;;) {
            for (unsigned index : order) {
                if (threads[index].state == State::Ready) go(threads[index]);
            }
            if (exchanges()) continue;
            size_t barrier = 0, warp = 0, done = 0;
            const Thread* first = nullptr;
            bool same = true;
            for (auto& t : threads) {
                done += t.state == State::Done;
                warp += t.state == State::Warp;
                barrier += t.state == State::Barrier;
                if (t.state == State::Done) continue;
                if (first) same &= first->next == t.next;
                else first = &t;
            }
            if (done == threads.size()) return;
            if (warp || done || !same) {
                char text[200];
                snprintf(text, sizeof text, ": %zu threads wait at %s, %zu for their warp, %zu ended", barrier, same ? "this barrier" : "different barriers", warp, done);
                throw Fault{719, where(kernel, at, *first) + text};
            }
            for (auto& t : threads) t.state = State::Ready;
            block.time++;
        }
    }

public:
    Grid(const Kernel& k, const std::vector<std::vector<char>>& params, const Launch& l) : kernel(k), code(*k.code), launch(l), random(l.seed) {
        const size_t n = (size_t)l.block.x * l.block.y * l.block.z, count = code.waits ? n : 1;
        block.code = &code;
        block.params.resize(code.params);
        for (size_t i = 0; i < params.size(); i++) std::copy(params[i].begin(), params[i].end(), block.params.begin() + k.params[i].offset);
        block.shared.resize(l.shared ? (code.shared + 15) / 16 * 16 + l.shared : code.shared);
        block.bytes.resize(block.shared.size());
        block.warp_times.assign((n + 31) / 32, 1);
        order.resize(n);
        std::iota(order.begin(), order.end(), 0u);
        if (l.order == Order::Reverse) std::reverse(order.begin(), order.end());
        frames.resize(count * code.frame.size());
        threads.resize(count);
        for (size_t i = 0; i < count; i++) {
            threads[i].slots = &frames[i * code.frame.size()];
            threads[i].block = &block;
        }
    }

    void run() {
        if (launch.counts) {
            counter.begin(code, order.size());
            block.counter = &counter;
        }
        const Size& g = launch.grid;
        const uint64_t blocks = (uint64_t)g.x * g.y * g.z;
        for (uint64_t q = 0; q < blocks; q++) {
            const uint64_t i = launch.order == Order::Forward ? q : blocks - 1 - q;
            at = Size{unsigned(i % g.x), unsigned(i / g.x % g.y), unsigned(i / g.x / g.y)};
            block.number = (uint32_t)q;
            run_block();
            if (launch.counts) counter.end_block();
        }
        if (launch.counts) *launch.counts = counter.end();
    }
};

} // namespace

void run(const Kernel& kernel, const std::vector<std::vector<char>>& params, const Launch& launch) { Grid(kernel, params, launch).run(); }

} // namespace ptx
