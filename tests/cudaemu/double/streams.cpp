// The device's thread, on which all work of the device runs, streams and events.
#include "emu.h"
#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <deque>
#include <random>
#include <thread>

typedef std::function<void()> Work;

struct Event;
struct Item {
    Work run;
    uint32_t place = 0;
    Event* follows = nullptr; // runs after this record of it
    uint64_t record = 0;
    Event* marks = nullptr; // is recorded by this
    double queued = clock_now();
};

static unsigned serials;

struct Stream {
    int device = device_now();
    const unsigned serial = ++serials; // by which an order is drawn that a seed repeats
    std::deque<Item> queue;
    bool running = false; // the device's thread runs something of it
    Participant order = new_participant();
    double end = 0; // of what it ran, on the virtual clock
};

struct Event {
    int device = device_now();
    Stream* stream = nullptr;
    std::atomic<uint64_t> want{0}, done{0}; // records: asked for, run
    VectorClock order;                      // of the last record
    double at = 0;                          // of the last record that was run, on the virtual clock
    bool timed = true;
};

static IMMORTAL(std::deque<Work>, work);
static IMMORTAL(std::mutex, work_mutex);
static IMMORTAL(std::condition_variable, work_there);
static IMMORTAL(std::set<Stream*>, streams);
static IMMORTAL(std::set<Event*>, events);
typedef std::map<int, Stream*> Streams;
static IMMORTAL(Streams, default_streams); // by device
static std::thread::id device_thread;

static void device_main() {
    static char stack[64 << 10]; // for signals
    stack_t alternative{};
    alternative.ss_sp = stack;
    alternative.ss_size = sizeof stack;
    sigaltstack(&alternative, nullptr);
    clock_is_device();
    for (;;) {
        Work f;
        {
            std::unique_lock<std::mutex> lock(work_mutex);
            work_there.wait(lock, [] { return !work.empty(); });
            f = std::move(work.front());
            work.pop_front();
        }
        f();
    }
}

void start_device() {
    sigset_t all, before;
    sigfillset(&all);
    for (int s : {SIGSEGV, SIGBUS, SIGFPE}) sigdelset(&all, s);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(device_main);
    device_thread = thread.get_id();
    thread.detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool on_device_thread() { return std::this_thread::get_id() == device_thread; }

static thread_local bool on_host = false;
bool in_host_function() { return on_host; }

void on_device(const Work& f) {
    bool done = false;
    std::mutex m;
    std::condition_variable c;
    {
        std::lock_guard<std::mutex> lock(work_mutex);
        work.push_back([&] {
            f();
            std::lock_guard<std::mutex> inner(m);
            done = true;
            c.notify_one();
        });
    }
    work_there.notify_one();
    std::unique_lock<std::mutex> lock(m);
    c.wait(lock, [&] { return done; });
}

static Stream* stream_of(CUstream handle) { // nullptr: none
    Lock lock(mu);
    if (!handle) {
        Stream*& s = default_streams[device_now()];
        return s ? s : s = new Stream;
    }
    auto s = (Stream*)handle;
    return streams.count(s) && s->device == device_now() ? s : nullptr;
}

static Event* event_of(CUevent handle) {
    Lock lock(mu);
    auto e = (Event*)handle;
    return events.count(e) ? e : nullptr;
}

static bool arrived(const Event* e, uint64_t record) { return e->done >= record || !e->stream; }

// step runs what a stream holds first, unless that has to wait for an event. On the device's thread.
static bool step(Stream* s) {
    Item i;
    {
        Lock lock(mu);
        if (s->running || s->queue.empty()) return false;
        i = std::move(s->queue.front());
        if (i.follows && !arrived(i.follows, i.record) && !sticky()) {
            s->queue.front() = std::move(i);
            return false;
        }
        s->queue.pop_front();
    }
    const As as(s->device);
    const Place at(i.place);
    s->running = true;
    if (sticky()) {
        // is dropped
    } else if (clock_on) {
        s->end = clock_run(i.queued, i.follows ? std::max(s->end, i.follows->at) : s->end, i.run);
        if (i.marks) i.marks->at = s->end;
    } else {
        i.run();
    }
    s->running = false;
    return true;
}

// blocked is what a stream's first work waits for.
static bool blocked(Stream* s, Event** e, uint64_t* record) {
    Lock lock(mu);
    if (s->queue.empty()) return false;
    *e = s->queue.front().follows;
    *record = s->queue.front().record;
    return *e;
}

static bool interleaves() {
    static const bool on = env_number("CUEMU_INTERLEAVE", 0);
    return on;
}

static std::mt19937& chance() {
    static auto& engine = *new std::mt19937(env_number("CUEMU_SEED", 1));
    return engine;
}

// wander runs work of all streams in an order that is drawn, until done, or until nothing can run.
static void wander(const std::function<bool()>& done) {
    while (!done()) {
        std::vector<Stream*> all;
        {
            Lock lock(mu);
            all.assign(streams.begin(), streams.end());
            for (auto& s : default_streams) all.push_back(s.second);
        }
        std::sort(all.begin(), all.end(), [](const Stream* a, const Stream* b) { return a->serial < b->serial; });
        std::shuffle(all.begin(), all.end(), chance());
        if (std::none_of(all.begin(), all.end(), step)) return;
    }
}

static void until(Event* e, uint64_t record);

static void drain(Stream* s) { // device thread
    if (interleaves()) return wander([=] {
        Lock lock(mu);
        return s->queue.empty();
    });
    const As as(s->device);
    for (;;) {
        Event* e;
        uint64_t record;
        if (step(s)) continue;
        if (s->running || !blocked(s, &e, &record)) return;
        until(e, record);
        if (!arrived(e, record) && !sticky()) return;
    }
}

static void until(Event* e, uint64_t record) { // device thread
    if (interleaves()) return wander([=] { return arrived(e, record); });
    while (!arrived(e, record)) {
        Stream* s = e->stream;
        const As as(s->device);
        if (sticky()) return;
        Event* other;
        uint64_t its;
        if (step(s)) continue;
        if (s->running || !blocked(s, &other, &its)) return;
        until(other, its);
    }
}

bool known(CUstream stream) { return stream_of(stream); }

static int queue(CUstream handle, const char* what, Work f, Event* follows, uint64_t record, Event* marks) {
    Stream* s;
    {
        Lock lock(mu);
        s = stream_of(handle);
        if (!s) return say(INVALID_HANDLE, "bad stream handle");
        if (follows) join(s->order.clock, follows->order);
        s->queue.push_back(Item{std::move(f), place(s->order, what), follows, record, marks});
    }
    static const bool eager = env_number("CUEMU_EAGER", 0) || clock_on;
    if (eager || !handle) {
        on_device([=] { drain(s); });
    } else if (interleaves()) {
        on_device([] {
            int some = chance()() % 4;
            wander([&] { return some-- <= 0; });
        });
    }
    return 0;
}

int push(CUstream stream, const char* what, Work f) { return queue(stream, what, std::move(f), nullptr, 0, nullptr); }

// The host has waited for all that a stream held.
static void waited(Stream* s) {
    Lock lock(mu);
    if (!s->queue.empty()) return;
    host_knows(s->order.clock);
    clock_wait(s->end);
}

void finish(CUstream stream) {
    Stream* s = stream_of(stream);
    on_device([=] { drain(s); });
    waited(s);
}

void finish_all() {
    std::vector<Stream*> all{stream_of(nullptr)};
    {
        Lock lock(mu);
        for (auto s : streams) {
            if (s->device == device_now()) all.push_back(s);
        }
    }
    on_device([&] {
        for (auto s : all) drain(s);
    });
    for (auto s : all) waited(s);
}

template <class T> static size_t count(const std::set<T*>& all, int device) {
    size_t n = 0;
    for (auto x : all) n += x->device == device;
    return n;
}

size_t count_streams(int device) { return count(streams, device); }
size_t count_events(int device) { return count(events, device); }

API(cuStreamCreate, CUstream* stream, unsigned) {
    ENTER_CTX();
    Lock lock(mu);
    clock_owns_stream();
    auto s = new Stream;
    streams.insert(s);
    *stream = (CUstream)s;
    return R(0);
}

API(cuStreamSynchronize, CUstream stream) {
    ENTER_CTX();
    if (!known(stream)) return R(INVALID_HANDLE);
    finish(stream);
    return R(sticky().load());
}

API(cuStreamQuery, CUstream stream) {
    ENTER_CTX();
    Lock lock(mu);
    Stream* s = stream_of(stream);
    if (!s) return R(INVALID_HANDLE);
    if (!s->queue.empty() || (clock_on && s->end > clock_now())) return R(NOT_READY);
    waited(s);
    return R(0);
}

API(cuLaunchHostFunc, CUstream stream, CUhostFn f, void* data) {
    ENTER_CTX();
    if (!f) return R(say(INVALID_VALUE, "cuLaunchHostFunc: no function"));
    return R(push(stream, __func__, [=] {
        host_function([=] {
            on_host = true;
            f(data);
            on_host = false;
        });
    }));
}

typedef std::vector<std::function<void(CUstream)>> Looks;
static IMMORTAL(Looks, looks);

void before_destroy(std::function<void(CUstream)> look) {
    Lock lock(mu);
    looks.push_back(look);
}

API(cuStreamDestroy_v2, CUstream stream) {
    ENTER_CTX();
    Stream* s = stream_of(stream);
    if (!s || !stream) return R(INVALID_HANDLE);
    finish(stream);
    Lock lock(mu);
    for (auto& look : looks) look(stream);
    for (auto e : events) {
        if (e->stream == s) e->stream = nullptr;
    }
    streams.erase(s);
    delete s;
    return R(0);
}

API(cuStreamWaitEvent, CUstream stream, CUevent event, unsigned) {
    ENTER_CTX();
    Event* e = event_of(event);
    if (!e) return R(INVALID_HANDLE);
    if (!known(stream)) return R(INVALID_HANDLE);
    return R(queue(stream, __func__, [] {}, e, e->want, nullptr));
}

API(cuEventCreate, CUevent* event, unsigned flags) {
    ENTER_CTX();
    Lock lock(mu);
    auto e = new Event;
    e->timed = !(flags & 2); // CU_EVENT_DISABLE_TIMING
    events.insert(e);
    *event = (CUevent)e;
    return R(0);
}

API(cuEventRecord, CUevent event, CUstream stream) {
    ENTER_CTX();
    Event* e = event_of(event);
    if (!e || !known(stream)) return R(INVALID_HANDLE);
    uint64_t record;
    {
        Lock lock(mu);
        e->stream = stream_of(stream);
        record = ++e->want;
        e->order = e->stream->order.clock;
    }
    return R(queue(stream, __func__, [=] { e->done = record; }, nullptr, 0, e));
}

API(cuEventSynchronize, CUevent event) {
    ENTER_CTX();
    Event* e = event_of(event);
    if (!e) return R(INVALID_HANDLE);
    const VectorClock order = e->order;
    on_device([=] { until(e, e->want); });
    host_knows(order);
    clock_wait(e->at);
    return R(sticky().load());
}

API(cuEventQuery, CUevent event) {
    ENTER_CTX();
    Event* e = event_of(event);
    if (!e) return R(INVALID_HANDLE);
    if (e->done < e->want || (clock_on && e->at > clock_now())) return R(NOT_READY);
    host_knows(e->order);
    return R(0);
}

API(cuEventElapsedTime, float* milliseconds, CUevent from, CUevent to) {
    ENTER_CTX();
    for (CUevent event : {from, to}) {
        Event* e = event_of(event);
        if (!e || !e->timed) return R(INVALID_HANDLE);
        if (e->done < e->want) return R(NOT_READY);
    }
    *milliseconds = clock_on ? (float)((((Event*)to)->at - ((Event*)from)->at) * 1e3) : 0.5f;
    return R(0);
}

API(cuEventDestroy_v2, CUevent event) {
    ENTER_CTX();
    Lock lock(mu);
    if (!events.erase((Event*)event)) return R(INVALID_HANDLE);
    return R(0); // not deleted: work that is queued may name it
}
