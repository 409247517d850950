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
    INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_DEVICE = 101, INVALID_CONTEXT = 201,
    INVALID_IMAGE = 200, NO_BINARY_FOR_GPU = 209, INVALID_PTX = 218, JIT_COMPILER_NOT_FOUND = 221, UNSUPPORTED_PTX_VERSION = 222, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600,
    ILLEGAL_ADDRESS = 700, CONTEXT_IS_DESTROYED = 709, HOST_MEMORY_ALREADY_REGISTERED = 712, HOST_MEMORY_NOT_REGISTERED = 713, MISALIGNED_ADDRESS = 716, LAUNCH_FAILED = 719, NOT_PERMITTED = 800,
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

#define ENTER() do { if (int e_ = entered(__func__, false)) return R(e_); } while (0)
#define ENTER_CTX() do { if (int e_ = entered(__func__, true)) return R(e_); } while (0)

// ---- memory.cpp

struct Alloc {
    char* map; // pages
    size_t map_length;
    char* p;   // what the caller got; ends as close to the guard page above as its alignment allows
    size_t n, pad;
    bool host;
    int device;
};
extern std::map<uintptr_t, Alloc>& live; // by p
bool reserve();                          // the address space of all memory
const Alloc* find(uintptr_t p);          // the allocation that p lies in; under mu
bool device_range(uintptr_t p, size_t n);
// before_free lets another library's double look at device memory that is about to be freed.
void before_free(std::function<void(uintptr_t p, size_t n)> look);

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
size_t count_registered(); // pieces of the caller's memory

// ---- streams.cpp

// A stream holds its work back until somebody waits for it, and then only that stream (and
// what it waits for) advances: forgotten synchronisation shows up as stale data every time instead of
// once a month. CUEMU_EAGER=1 turns it off.
int push(CUstream stream, std::function<void()> work);
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

// ---- engine.cpp

// run_native runs a kernel that is compiled for the host; a fault becomes sticky.
int run_native(const KernelEntry* kernel, void** args, dim3 grid, dim3 block);

// ---- modules.cpp

size_t count_modules(int device);
