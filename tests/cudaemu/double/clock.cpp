// A virtual clock: how long a run would take on a GPU of which pkg/gpu/cost/figures.tsv says what it takes for what.
//
// Work runs as soon as it is queued, so that what it moves is known, and is put on a timeline: it begins when the host has queued it, when
// what its stream holds before, and what it follows, has ended, and when an engine is free: one for each direction of the bus and one
// for kernels. A thread of the host goes on at the end of what it waits for; between calls its time goes on as processor time of the process does,
// without the double's own, divided by CUEMU_CLOCK_CORES, or by CUEMU_CLOCK_HOST seconds a call.
#include "emu.h"
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <pthread.h>
#include <set>
#include <sstream>

bool clock_on = *env("CUEMU_CLOCK", "");

namespace {

typedef std::map<std::string, double> Figures;

// The column of the table that CUEMU_GPU names. What cannot be read is said, and ends the process: a clock that
// is wrong is worse than none.
Figures read_figures() {
    const char *file = env("CUEMU_CLOCK_FIGURES", EMU_FIGURES), *gpu = env("CUEMU_GPU", "A100");
    std::ifstream in(file);
    std::string line, cell;
    int column = -1;
    Figures out;
    while (std::getline(in, line)) {
        if (line.empty() || line[0] == '#') continue;
        std::vector<std::string> cells;
        for (std::istringstream cut(line); std::getline(cut, cell, '\t');) cells.push_back(cell);
        if (column < 0) {
            column = std::find(cells.begin(), cells.end(), gpu) - cells.begin();
            if (column >= (int)cells.size()) break;
            continue;
        }
        if (column < (int)cells.size()) out[cells[0]] = atof(cells[column].c_str()) * (cells[1] == "GB/s" ? 1e9 : 1);
    }
    if (out.empty()) {
        fprintf(stderr, "cuemu: CUEMU_CLOCK: %s has no figures of a GPU called %s\n", file, gpu);
        abort();
    }
    return out;
}

double figure(const std::string& name) {
    static const Figures& all = *new Figures(read_figures());
    const auto i = all.find(name);
    if (i == all.end()) {
        fprintf(stderr, "cuemu: CUEMU_CLOCK: there is no figure %s\n", name.c_str());
        abort();
    }
    return i->second;
}

double seconds_of(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

// An engine works on one thing at a time; gaps are used.
struct Engine {
    std::map<double, double> busy; // from, to
    double seconds = 0;

    double begin(double at, double n) {
        auto i = busy.upper_bound(at);
        if (i != busy.begin()) at = std::max(at, std::prev(i)->second);
        while (i != busy.end() && i->first < at + n) at = std::max(at, (i++)->second);
        seconds += n;
        if (n <= 0) return at;
        double end = at + n;
        if (i != busy.end() && i->first == end) {
            end = i->second;
            i = busy.erase(i);
        }
        if (i != busy.begin() && std::prev(i)->second == at) std::prev(i)->second = end;
        else busy[at] = end;
        return at;
    }
};

struct Thread {
    double at = -1, seen = 0; // its time; the host's work when it was in a call last
    bool streams = false;     // it owns one
    clockid_t clock = 0;      // of its processor time, while it is in a call
    double entered = 0;       // what that said at the start of the call
};
thread_local Thread me;

struct Sum {
    uint64_t calls = 0, bytes = 0;
    double seconds = 0;
};

struct State {
    Engine up, down, kernels;
    std::map<std::string, Sum> sums, kernel;
    double end = 0;      // of all that is on the timeline
    std::set<Thread*> inside; // threads that are in a call
    double called = 0;   // processor time of the calls that have returned
    clockid_t device = 0; // of the device's thread
    double waited = 0;   // by threads of the host
    double worked = 0;   // by threads of the host, where CUEMU_CLOCK_HOST says how long
    Thread* last = nullptr;
    double last_at = 0;  // of the thread that called last
    bool last_streams = false;
    uint64_t calls = 0, streams = 0;
};
State& state() {
    static auto& s = *new State;
    return s;
}

thread_local int depth = 0; // of calls in calls

// host_work is the processor time of the process without the device's thread, on which kernels run, and without threads
// while they are in a call.
double host_work() {
    const State& s = state();
    double n = s.called + (s.device ? seconds_of(s.device) : 0);
    for (const Thread* t : s.inside) n += seconds_of(t->clock) - t->entered;
    return seconds_of(CLOCK_PROCESS_CPUTIME_ID) - n;
}

void move_to(double at) {
    me.at = std::max(me.at, at);
    state().end = std::max(state().end, me.at);
}

// Traffic of the kernel that runs: sectors of 32 bytes, each once.
struct Stamps {
    uintptr_t from = 0, to = 0;
    std::vector<uint32_t>* of = nullptr;
};
std::map<uintptr_t, std::vector<uint32_t>>& stamps() {
    static auto& all = *new std::map<uintptr_t, std::vector<uint32_t>>;
    return all;
}
uint32_t launch = 0; // that runs, on the devices' thread
bool in_launch = false;
uint64_t sectors = 0;
Stamps recent[4];
unsigned oldest = 0;

std::vector<Charge>& charges() {
    static auto& all = *new std::vector<Charge>;
    return all;
}

} // namespace

Call::Call(const char* call, bool context) {
    if (clock_on && !depth++) {
        Lock lock(mu);
        State& s = state();
        pthread_getcpuclockid(pthread_self(), &me.clock);
        me.entered = seconds_of(me.clock);
        s.inside.insert(&me);
        const char* fixed = env("CUEMU_CLOCK_HOST", nullptr);
        const double work = fixed ? 0 : host_work();
        const double gap = fixed ? atof(fixed) : std::max(0.0, work - me.seen) / env_number("CUEMU_CLOCK_CORES", 1);
        if (me.at < 0) {
            me.at = s.last_at + (fixed ? gap : 0); // it was started by the one that called last
        } else {
            me.at += gap;
            if (fixed) s.worked += gap;
        }
        // A thread that owns no stream works for the one that called before it, and that goes on when it is done.
        if (s.last != &me && (!me.streams || !s.last_streams)) me.at = std::max(me.at, s.last_at);
        s.calls++;
        move_to(me.at);
    }
    error = entered(call, context);
}

Call::~Call() {
    if (!clock_on || --depth) return;
    Lock lock(mu);
    State& s = state();
    s.inside.erase(&me);
    s.called += seconds_of(me.clock) - me.entered;
    me.seen = host_work();
    s.last = &me;
    s.last_at = me.at;
    s.last_streams = me.streams;
}

void clock_is_device() {
    if (clock_on) pthread_getcpuclockid(pthread_self(), &state().device);
}

void clock_owns_stream() {
    if (!clock_on) return;
    me.streams = true;
    state().streams++;
}

double clock_now() { return me.at; }

void clock_spend(const char* what, double n, uint64_t bytes) {
    if (!clock_on) return;
    Lock lock(mu);
    Sum& sum = state().sums[what];
    sum.calls++;
    sum.bytes += bytes;
    sum.seconds += n;
    move_to(me.at + n);
}

double clock_figure(const char* name) { return clock_on ? figure(name) : 1; }

void clock_wait(double end) {
    if (!clock_on || end <= me.at) return;
    Lock lock(mu);
    state().waited += end - me.at;
    move_to(end + figure("wait"));
}

void charge(const Charge& c) {
    if (clock_on) charges().push_back(c);
}

double clock_run(double queued, double before, const std::function<void()>& work) {
    charges().clear();
    work();
    Lock lock(mu);
    State& s = state();
    double at = std::max(queued, before);
    for (const Charge& c : charges()) {
        Sum& sum = s.sums[c.what];
        sum.calls++;
        sum.bytes += c.bytes;
        sum.seconds += c.seconds;
        Engine& e = c.engine == Charge::Up ? s.up : c.engine == Charge::Down ? s.down : s.kernels;
        at = e.begin(at, c.seconds * c.share) + c.seconds;
    }
    s.end = std::max(s.end, at);
    return at;
}

void clock_copy(Charge::Engine engine, size_t n, bool pinned) {
    if (!clock_on) return;
    const bool up = engine == Charge::Up;
    charge({engine, up ? "up" : "down", n, figure("copy_latency") + n / figure(pinned ? (up ? "up" : "down") : "pageable")});
}

void clock_memory(const char* what, size_t n) {
    if (clock_on) charge({Charge::Kernels, what, n, figure("kernel") + n / (figure("memory") * figure("memory_share"))});
}

void clock_batch(const std::string& what, uint64_t streams, uint64_t longest, uint64_t bytes) {
    if (!clock_on || !streams) return;
    const double each = figure(what + "_stream"), all = figure(what);
    const double n = figure("kernel") + std::max(longest / each, bytes / all);
    // A few streams leave the rest of the device to others.
    charge({Charge::Kernels, what, bytes, n, std::min(1.0, bytes / all / n)});
    Lock lock(mu);
    state().sums[what + "_streams"].calls += streams;
}

void clock_kernel(const char* name, const std::function<void()>& run) {
    if (!clock_on) return run();
    launch++;
    sectors = 0;
    in_launch = true;
    run();
    in_launch = false;
    const uint64_t bytes = sectors * 32;
    clock_memory("kernels", bytes);
    Sum& k = state().kernel[name];
    k.calls++;
    k.bytes += bytes;
    k.seconds += charges().back().seconds;
}

void clock_touched(uintptr_t p, size_t n) {
    if (!in_launch) return;
    static uintptr_t last = 0;
    static uint32_t last_launch = 0;
    const uintptr_t sector = p / 32;
    if (sector == last && last_launch == launch && (p + n - 1) / 32 == sector) return;
    const Stamps* s = nullptr;
    for (const Stamps& r : recent) {
        if (p >= r.from && p < r.to) s = &r;
    }
    if (!s) {
        Lock lock(mu);
        const Alloc* a = find(p);
        if (!a) return;
        auto& of = stamps()[(uintptr_t)a->p];
        of.resize(a->n / 32 + 2);
        s = &(recent[oldest = (oldest + 1) % 4] = Stamps{(uintptr_t)a->p, (uintptr_t)a->p + a->n, &of});
    }
    for (uintptr_t at = sector; at <= (p + n - 1) / 32; at++) {
        uint32_t& stamp = (*s->of)[std::min<size_t>(at - s->from / 32, s->of->size() - 1)];
        sectors += stamp != launch;
        stamp = launch;
    }
    last = sector;
    last_launch = launch;
}

void clock_forget(uintptr_t p) {
    if (!clock_on) return;
    Lock lock(mu);
    stamps().erase(p);
    for (Stamps& r : recent) r = Stamps{};
}

static void sums(FILE* f, const char* name, const std::map<std::string, Sum>& all) {
    fprintf(f, "  \"%s\": {", name);
    const char* comma = "";
    for (auto& k : all) {
        fprintf(f, "%s\n    \"%s\": {\"calls\": %llu, \"bytes\": %llu, \"seconds\": %.9g}", comma, k.first.c_str(), (unsigned long long)k.second.calls,
                (unsigned long long)k.second.bytes, k.second.seconds);
        comma = ",";
    }
    fprintf(f, "\n  }");
}

void clock_write() {
    if (!clock_on) return;
    Lock lock(mu);
    const State& s = state();
    FILE* f = fopen(env("CUEMU_CLOCK", ""), "w");
    if (!f) {
        say(0, "CUEMU_CLOCK: %s cannot be written", env("CUEMU_CLOCK", ""));
        return;
    }
    fprintf(f, "{\n  \"gpu\": \"%s\",\n  \"seconds\": %.9g,\n  \"host\": {\"worked\": %.9g, \"waited\": %.9g, \"calls\": %llu, \"streams\": %llu},\n", env("CUEMU_GPU", "A100"), s.end,
            env("CUEMU_CLOCK_HOST", nullptr) ? s.worked : host_work(), s.waited, (unsigned long long)s.calls, (unsigned long long)s.streams);
    fprintf(f, "  \"busy\": {\"up\": %.9g, \"down\": %.9g, \"kernels\": %.9g},\n", s.up.seconds, s.down.seconds, s.kernels.seconds);
    sums(f, "work", s.sums);
    fprintf(f, ",\n");
    sums(f, "kernels", s.kernel);
    fprintf(f, "\n}\n");
    fclose(f);
}
