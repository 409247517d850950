// The device's thread, on which all work of the device runs, streams and events.
#include "emu.h"
#include <condition_variable>
#include <csignal>
#include <deque>
#include <thread>

typedef std::function<void()> Work;

struct Stream {
    int device = device_now();
    std::deque<Work> queue;
    bool draining = false; // of the device's thread
};

struct Event {
    int device = device_now();
    Stream* stream = nullptr;
    std::atomic<uint64_t> want{0}, done{0}; // records: asked for, run
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

static bool pop(Stream* s, Work* f) {
    Lock lock(mu);
    if (s->queue.empty()) return false;
    *f = std::move(s->queue.front());
    s->queue.pop_front();
    return true;
}

static void drain(Stream* s) { // device thread
    const As as(s->device);
    if (s->draining) return;
    s->draining = true;
    Work f;
    while (pop(s, &f)) {
        if (!sticky()) f();
        f = nullptr;
    }
    s->draining = false;
}

static void until(Event* e, uint64_t record) { // device thread
    if (!e->stream) return;
    const As as(e->stream->device);
    Work f;
    while (e->done < record && e->stream && !sticky() && pop(e->stream, &f)) f();
}

bool known(CUstream stream) { return stream_of(stream); }

int push(CUstream handle, Work f) {
    Stream* s;
    {
        Lock lock(mu);
        s = stream_of(handle);
        if (!s) return say(INVALID_HANDLE, "bad stream handle");
        s->queue.push_back(std::move(f));
    }
    static const bool eager = env_number("CUEMU_EAGER", 0);
    if (eager || !handle) on_device([=] { drain(s); });
    return 0;
}

void finish(CUstream stream) {
    Stream* s = stream_of(stream);
    on_device([=] { drain(s); });
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
    return R(s->queue.empty() ? 0 : NOT_READY);
}

API(cuLaunchHostFunc, CUstream stream, CUhostFn f, void* data) {
    ENTER_CTX();
    if (!f) return R(say(INVALID_VALUE, "cuLaunchHostFunc: no function"));
    return R(push(stream, [=] {
        on_host = true;
        f(data);
        on_host = false;
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
    const uint64_t record = e->want;
    return R(push(stream, [=] { until(e, record); }));
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
    }
    return R(push(stream, [=] { e->done = record; }));
}

API(cuEventSynchronize, CUevent event) {
    ENTER_CTX();
    Event* e = event_of(event);
    if (!e) return R(INVALID_HANDLE);
    on_device([=] { until(e, e->want); });
    return R(sticky().load());
}

API(cuEventQuery, CUevent event) {
    ENTER_CTX();
    Event* e = event_of(event);
    if (!e) return R(INVALID_HANDLE);
    return R(e->done < e->want ? NOT_READY : 0);
}

API(cuEventElapsedTime, float* milliseconds, CUevent from, CUevent to) {
    ENTER_CTX();
    for (CUevent event : {from, to}) {
        Event* e = event_of(event);
        if (!e || !e->timed) return R(INVALID_HANDLE);
        if (e->done < e->want) return R(NOT_READY);
    }
    *milliseconds = 0.5f;
    return R(0);
}

API(cuEventDestroy_v2, CUevent event) {
    ENTER_CTX();
    Lock lock(mu);
    if (!events.erase((Event*)event)) return R(INVALID_HANDLE);
    return R(0); // not deleted: work that is queued may name it
}
