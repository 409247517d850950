// What the parts of the double share. Its state is that of one process; mu guards it.
// Globals are never destroyed: a Go -race binary leaves through exit(), which would run their
// destructors under the feet of the device thread.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>
#include <cstdint>
#include "ptx.h"
#include "registry.h"

#ifdef EMU_CHECK_CUDA_H // the compiler then compares every prototype with NVIDIA's
#include <cuda.h>
#else
typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef struct CUstream_st* CUstream;
typedef struct CUevent_st* CUevent;
typedef struct CUmemPoolHandle_st* CUmemoryPool;
typedef void (*CUhostFn)(void*);
typedef int CUdevice_attribute, CUjit_option, CUmemPool_attribute, CUfunction_attribute;
struct CUuuid_t {
    char bytes[16];
};
typedef CUuuid_t CUuuid;
#endif

#define API(name, ...) extern "C" __attribute__((visibility("default"))) CUresult name(__VA_ARGS__)
#define R(x) ((CUresult)(x))
#define IMMORTAL(type, name) type& name = *new type

// Results of calls, by their names in cuda.h.
enum : int {
    INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_IMAGE = 200, INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209, INVALID_PTX = 218, JIT_COMPILER_NOT_FOUND = 221, UNSUPPORTED_PTX_VERSION = 222, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
    ILLEGAL_ADDRESS = 700, CONTEXT_IS_DESTROYED = 709, HOST_MEMORY_ALREADY_REGISTERED = 712, HOST_MEMORY_NOT_REGISTERED = 713,
    MISALIGNED_ADDRESS = 716, LAUNCH_FAILED = 719, NOT_PERMITTED = 800,
};

typedef std::lock_guard<std::recursive_mutex> Lock;
extern std::recursive_mutex& mu;

// ---- device.cpp

const char* env(const char* key, const char* otherwise);
long env_number(const char* key, long otherwise);
// say prints a line about the caller's mistake and returns the code.
int say(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));
// inject is the code with which CUEMU_FAIL wants this call of that name to fail, or 0.
int inject(const char* name);

int device_now(); // of the context that is current, and on the devices' thread of the stream that runs
struct As { // on the devices' thread: the work that follows is that device's
    explicit As(int device);
    ~As();
    int before;
};
std::atomic<int>& sticky(); // an error of the device: all calls fail with it from then on
int entered(const char* call, bool context); // what a call returns before it does anything, or 0
// at_release lets another library's double say what was not given back when the last context
// is released; nothing, if all was.
void at_release(std::function<std::string()> leak);

// Call is a call of the API from its beginning to its end.
struct Call {
    Call(const char* call, bool context);
    ~Call();
    int error; // what it returns before it does anything, or 0
};
#define ENTER() const Call call_(__func__, false); if (call_.error) return R(call_.error)
#define ENTER_CTX() const Call call_(__func__, true); if (call_.error) return R(call_.error)

// ---- memory.cpp

struct Alloc {
    char* map; // pages
    size_t map_length;
    char* p;   // what the caller got; ends as close to the guard page above as its alignment allows
    size_t n, pad;
    bool host, registered; // registered: memory of the caller
    int device;
};
extern std::map<uintptr_t, Alloc>& live; // by p
bool reserve();                          // the address space of all memory
const Alloc* find(uintptr_t p);          // the allocation that p lies in; under mu
bool device_range(uintptr_t p, size_t n);
// before_free lets another library's double look at device memory that is about to be freed.
void before_free(std::function<void(uintptr_t p, size_t n)> look);

bool in_arena(uintptr_t p);

class Open { // opens memory of the device for its lifetime
public:
    Open();                                       // all of it
    Open(std::initializer_list<uintptr_t> touched); // the allocations that these addresses lie in
    ~Open();
    int close(); // 700 if an allocation's margins were written

private:
    void open(const Alloc& a);
    std::vector<uintptr_t> opened; // by their keys
};

// ---- streams.cpp

// A stream holds its work back until somebody waits for it, and then only that stream (and
// what it waits for) advances: forgotten synchronisation shows up as stale data every time instead of
// once a month. CUEMU_EAGER=1 turns it off. With CUEMU_INTERLEAVE=1 all streams advance, in an order that
// is drawn (CUEMU_SEED) among those that events allow. what names the work in reports: a literal, or a kernel's name.
int push(CUstream stream, const char* what, std::function<void()> work);
bool known(CUstream stream);
void finish(CUstream stream); // runs what it holds
void finish_all(); // of the device
void start_device();
bool on_device_thread();
bool in_host_function(); // on the device's thread, where calls of CUDA are mistakes
// before_destroy lets another library's double look at a stream that is about to be destroyed.
void before_destroy(std::function<void(CUstream stream)> look);
void on_device(const std::function<void()>& work); // runs it on the device's thread and waits
size_t count_streams(int device);
size_t count_events(int device);

// ---- races.cpp

// With CUEMU_RACES=1 every piece of work has a place in the order of happening, which streams, events and waits
// of the host make: a vector clock of the streams and of the host, which is one (what its threads tell each other is not seen).
// Places are made when work is queued, so that races do not depend on what ran first.
typedef std::vector<uint32_t> VectorClock; // by participant
struct Participant {
    uint32_t slot = 0; // 0: the host
    VectorClock clock;
};
extern bool races_on;
Participant new_participant();
uint32_t place(Participant& stream, const char* what); // of work that is queued now
uint32_t host_place(const char* what);                 // of what the host does to memory of the device now
void join(VectorClock& into, const VectorClock& from);
void host_knows(const VectorClock& of); // the host has waited for this
void host_function(const std::function<void()>& f); // runs it, as work of a stream
struct Place { // what the work that runs next on the devices' thread is
    explicit Place(uint32_t place);
    ~Place();
    uint32_t before;
};
enum class Touch { Read, Write, Atomic };
// touched looks at bytes that the work that runs now reads or writes.
void touched(uintptr_t p, size_t n, Touch how);
void forget(uintptr_t p); // the allocation is freed

// A copy's page-locked memory, from the call on: writes of the host to what is on its way up are found when the copy runs,
// and reads of what is on its way down stop at its pages.
struct Guard {
    uintptr_t p;
    size_t n;
    bool down, compare;
    uint64_t sum;
};
std::shared_ptr<Guard> guard(const void* p, size_t n, bool down);
void guarded(const std::shared_ptr<Guard>& g, const std::function<void()>& copy); // runs it
bool is_guarded(uintptr_t p, size_t n);
bool end_guards(uintptr_t p, size_t n); // were there any?

// ---- clock.cpp, with CUEMU_CLOCK=FILE

extern bool clock_on;
double clock_figure(const char* name);
double clock_now(); // of the thread that calls
void clock_is_device();  // the thread that asks is the device's
void clock_owns_stream();
void clock_spend(const char* what, double seconds, uint64_t bytes = 0); // of the thread that calls
void clock_wait(double end);
struct Charge { // of a piece of work, while it runs
    enum Engine { Up, Down, Kernels } engine;
    std::string what;
    uint64_t bytes;
    double seconds, share = 1; // of the engine
};
void charge(const Charge& c);
void clock_copy(Charge::Engine engine, size_t n, bool pinned);
void clock_memory(const char* what, size_t n); // bytes that the device's memory moves
// clock_batch is nvCOMP's: what is the figure's name, longest the most bytes of one stream.
void clock_batch(const std::string& what, uint64_t streams, uint64_t longest, uint64_t bytes);
void clock_kernel(const char* name, const std::function<void()>& run);
void clock_touched(uintptr_t p, size_t n);
void clock_forget(uintptr_t p);
// clock_run runs work that was queued at that time behind what ends before; it returns when the work ends.
double clock_run(double queued, double before, const std::function<void()>& work);
void clock_write();

// ---- engine.cpp

// run_native runs a kernel that is compiled for the host; a fault becomes sticky.
int run_native(const KernelEntry* kernel, void** args, dim3 grid, dim3 block);

// ---- modules.cpp

size_t count_modules(int device);
