// Races between streams, and between streams and the host: two pieces of work that touch a byte, one of which writes
// it, must be ordered by a stream, by events, or by a wait of the host.
#include "emu.h"
#include <algorithm>
#include <cstring>
#include <sys/mman.h>

bool races_on = env_number("CUEMU_RACES", 0);

namespace {

const size_t PAGE = 4096;
const uint32_t ATOMIC = 1u << 31; // of a cell's write: all writes since the last other one were atomic

// What was queued, by its number. Kernels look entries up while calls append: entries do not move.
struct Entry {
    uint32_t slot, seq;
    VectorClock clock;
    std::string what;
};
const uint32_t CHUNK = 4096;
Entry* entries[1 << 14];
uint32_t used = 1; // 0: nobody
uint32_t slots = 1;

Entry& entry(uint32_t place) { return entries[place / CHUNK][place % CHUNK]; }

Participant& host() {
    static auto& p = *new Participant;
    return p;
}

uint32_t append(Participant& p, const char* what) {
    if (p.clock.size() <= p.slot) p.clock.resize(p.slot + 1);
    p.clock[p.slot]++;
    if (used % CHUNK == 0 || used == 1) {
        if (used / CHUNK >= sizeof entries / sizeof *entries) used = 1; // what is so old is waited for
        if (!entries[used / CHUNK]) entries[used / CHUNK] = new Entry[CHUNK];
    }
    entry(used) = Entry{p.slot, p.clock[p.slot], p.clock, what};
    return used++;
}

// Who touched a byte last: two readers, for streams that read the same table beside each other.
struct Cell {
    uint32_t write, read[2];
};

struct Shadow {
    uintptr_t from = 0, to = 0;
    Cell* cells = nullptr;
};
std::map<uintptr_t, Shadow>& shadows() {
    static auto& all = *new std::map<uintptr_t, Shadow>;
    return all;
}
std::atomic<uint64_t> generation{1}; // of the shadows

thread_local uint32_t now = 0; // the place of the work that runs

// Did a happen before b?
bool ordered(uint32_t a, uint32_t b) {
    const Entry &x = entry(a), &y = entry(b);
    return x.slot < y.clock.size() && y.clock[x.slot] >= x.seq;
}

Shadow shadow_of(uintptr_t p) {
    thread_local Shadow recent[4];
    thread_local uint64_t of = 0;
    thread_local unsigned oldest = 0;
    if (of != generation) {
        for (Shadow& s : recent) s = Shadow{};
        of = generation;
    }
    for (const Shadow& s : recent) {
        if (p >= s.from && p < s.to) return s;
    }
    Lock lock(mu);
    const Alloc* a = find(p);
    if (!a) return Shadow{};
    Shadow& s = shadows()[(uintptr_t)a->p];
    if (!s.cells) {
        void* m = mmap(nullptr, a->n * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m == MAP_FAILED) return Shadow{};
        s = Shadow{(uintptr_t)a->p, (uintptr_t)a->p + a->n, (Cell*)m};
    }
    oldest = (oldest + 1) % 4;
    return recent[oldest] = s;
}

void report(uintptr_t p, const Shadow& s, uint32_t other, const char* did, Touch how) {
    if (sticky()) return; // one is enough
    const Entry &a = entry(other & ~ATOMIC), &b = entry(now);
    auto who = [](const Entry& e) { return e.slot ? "stream " + std::to_string(e.slot) : std::string("the host"); };
    sticky() = say(ILLEGAL_ADDRESS, "race: byte %zu of %zu at %#lx is %s by %s on %s, and was %s by %s on %s, with no order between them", (size_t)(p - s.from),
                   (size_t)(s.to - s.from), (long)s.from, how == Touch::Read ? "read" : "written", b.what.c_str(), who(b).c_str(), did, a.what.c_str(), who(a).c_str());
}

void touch(uintptr_t p, const Shadow& s, Cell& c, Touch how) {
    const uint32_t writer = c.write & ~ATOMIC;
    if (writer && writer != now && !(how == Touch::Atomic && c.write & ATOMIC) && !ordered(writer, now)) report(p, s, writer, "written", how);
    if (how == Touch::Read) {
        if (c.read[0] == now || c.read[1] == now) return;
        const bool second = c.read[0] && !ordered(c.read[0], now);
        c.read[second] = now;
        return;
    }
    for (uint32_t reader : c.read) {
        if (reader && reader != now && !ordered(reader, now)) report(p, s, reader, "read", how);
    }
    c.write = now | (how == Touch::Atomic ? ATOMIC : 0);
}

uint64_t sum_of(const void* p, size_t n) { // FNV-1a by words
    uint64_t h = 0xcbf29ce484222325;
    const char* at = (const char*)p;
    for (; n >= 8; at += 8, n -= 8) {
        uint64_t w;
        memcpy(&w, at, 8);
        h = (h ^ w) * 0x100000001b3;
    }
    for (; n; at++, n--) h = (h ^ (unsigned char)*at) * 0x100000001b3;
    return h;
}

std::vector<Guard*>& guards() {
    static auto& all = *new std::vector<Guard*>;
    return all;
}

bool overlap(const Guard& g, uintptr_t p, size_t n) { return g.p < p + n && p < g.p + g.n; }

// Pages that lie wholly in a guard that looks for the host's reads are closed.
void close_pages(uintptr_t p, size_t n) {
    for (const Guard* g : guards()) {
        if (!g->down || !overlap(*g, p, n)) continue;
        const uintptr_t from = (g->p + PAGE - 1) / PAGE * PAGE, to = (g->p + g->n) / PAGE * PAGE;
        if (from < to) mprotect((void*)from, to - from, PROT_NONE);
    }
}

void open_pages(uintptr_t p, size_t n) {
    if (!n) return;
    const uintptr_t from = p / PAGE * PAGE, to = (p + n + PAGE - 1) / PAGE * PAGE;
    mprotect((void*)from, to - from, PROT_READ | PROT_WRITE);
}

} // namespace

Participant new_participant() {
    Participant p;
    if (races_on) p.slot = slots++;
    return p;
}

void join(VectorClock& into, const VectorClock& from) {
    if (into.size() < from.size()) into.resize(from.size());
    for (size_t i = 0; i < from.size(); i++) into[i] = std::max(into[i], from[i]);
}

uint32_t place(Participant& stream, const char* what) {
    if (!races_on) return 0;
    Lock lock(mu);
    join(stream.clock, host().clock);
    return append(stream, what);
}

uint32_t host_place(const char* what) {
    if (!races_on) return 0;
    Lock lock(mu);
    return append(host(), what);
}

void host_knows(const VectorClock& of) {
    if (!races_on) return;
    Lock lock(mu);
    join(host().clock, of);
}

Place::Place(uint32_t place) : before(now) { now = place; }
Place::~Place() { now = before; }

void host_function(const std::function<void()>& f) {
    if (!races_on) return f();
    {
        Lock lock(mu);
        if (now) host_knows(entry(now).clock);
        for (Guard* g : guards()) { // copies that are queued behind the function may be of what it writes, or leave what it reads
            g->compare = false;
            open_pages(g->p, g->n);
        }
    }
    f();
    Lock lock(mu);
    for (Guard* g : guards()) close_pages(g->p, g->n);
}

void touched(uintptr_t p, size_t n, Touch how) {
    if (!n) return;
    if (clock_on) clock_touched(p, n);
    if (!races_on || !now) return;
    const Shadow s = shadow_of(p);
    if (!s.cells) return;
    const uintptr_t end = std::min(p + n, s.to);
    for (; p < end; p++) touch(p, s, s.cells[p - s.from], how);
}

void ptx::seen(uint64_t address, size_t n, bool write, bool atomic) { touched(address, n, atomic ? Touch::Atomic : write ? Touch::Write : Touch::Read); }

void forget(uintptr_t p) {
    clock_forget(p);
    Lock lock(mu);
    generation++;
    auto i = shadows().find(p);
    if (i == shadows().end()) return;
    munmap(i->second.cells, (i->second.to - i->second.from) * sizeof(Cell));
    shadows().erase(i);
}

// A guard ends when its copy has run, or is dropped because the device is lost.
static void unguard(Guard* g) {
    Lock lock(mu);
    guards().erase(std::remove(guards().begin(), guards().end(), g), guards().end());
    open_pages(g->p, g->n);
    close_pages(g->p, g->n);
    delete g;
}

std::shared_ptr<Guard> guard(const void* p, size_t n, bool down) {
    if (!races_on) return nullptr;
    Lock lock(mu);
    const std::shared_ptr<Guard> g(new Guard{(uintptr_t)p, n, down, false, 0}, unguard);
    // What another copy has yet to bring may still change it.
    const bool arriving = std::any_of(guards().begin(), guards().end(), [&](const Guard* o) { return o->down && overlap(*o, g->p, n); });
    if (!down && !arriving) {
        g->compare = true;
        g->sum = sum_of(p, n);
    }
    guards().push_back(g.get());
    if (down) close_pages(g->p, n);
    return g;
}

void guarded(const std::shared_ptr<Guard>& g, const std::function<void()>& copy) {
    if (!g) return copy();
    Lock lock(mu);
    open_pages(g->p, g->n);
    if (g->compare && sum_of((void*)g->p, g->n) != g->sum) {
        sticky() = say(ILLEGAL_ADDRESS, "race: the host wrote to %zu bytes at %#lx while %s to the device was queued", g->n, (long)g->p, entry(now).what.c_str());
        return;
    }
    copy();
    for (Guard* o : guards()) { // what is queued to go up from there was not what is there now
        if (g->down && !o->down && overlap(*o, g->p, g->n)) o->compare = false;
    }
}

bool is_guarded(uintptr_t p, size_t n) {
    Lock lock(mu);
    return std::any_of(guards().begin(), guards().end(), [&](const Guard* g) { return overlap(*g, p, n); });
}

bool end_guards(uintptr_t p, size_t n) {
    Lock lock(mu);
    const auto rest = std::stable_partition(guards().begin(), guards().end(), [&](const Guard* g) { return !overlap(*g, p, n); });
    const bool any = rest != guards().end();
    for (auto i = rest; i != guards().end(); i++) {
        open_pages((*i)->p, (*i)->n);
        (*i)->n = 0;
        (*i)->compare = false;
    }
    guards().erase(rest, guards().end());
    return any;
}
