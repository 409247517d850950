// A test double of libcuda.so.1: the driver API subset that the Go side binds, running
// kernels on the host. README.md says what it checks. Here: knobs, errors, devices and the context.
#include "emu.h"
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

IMMORTAL(std::recursive_mutex, mu);

static const int MOST_DEVICES = 16;
static std::atomic<bool> initialised{false};
static std::atomic<int> references[MOST_DEVICES]; // to the primary contexts
static std::atomic<int> faults[MOST_DEVICES];
static thread_local CUcontext current;
static thread_local int running = -1;

static CUcontext primary(int device) { return (CUcontext)(uintptr_t)(0x1000 + device); }

int device_now() {
    if (running >= 0) return running;
    return current ? (int)((uintptr_t)current - 0x1000) : 0;
}

As::As(int device) : before(running) { running = device; }
As::~As() { running = before; }

std::atomic<int>& sticky() { return faults[device_now()]; }

const char* env(const char* key, const char* otherwise) {
    const char* v = getenv(key);
    return v && *v ? v : otherwise;
}

long env_number(const char* key, long otherwise) {
    const char* v = env(key, nullptr);
    return v ? atol(v) : otherwise;
}

int say(int code, const char* format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "cuemu: %s -> %d\n", text, code);
    return code;
}

// An error that shows at a later call than the one whose fault it is.
struct Late {
    int code = 0, calls = 0; // that still succeed
};
static Late late[MOST_DEVICES];

// CUEMU_FAIL="name:nth:code[s|+n],…"; calls count from when it has that value.
int inject(const char* name) {
    static auto& calls = *new std::map<std::string, int>;
    static auto& before = *new std::string;
    Lock lock(mu);
    const char* p = env("CUEMU_FAIL", "");
    if (before != p) {
        before = p;
        calls.clear();
    }
    const int n = ++calls[name];
    while (*p) {
        char call[64];
        int nth, code, used = 0;
        if (sscanf(p, "%63[^:]:%d:%d%n", call, &nth, &code, &used) == 3) {
            const bool stays = p[used] == 's', shows_late = p[used] == '+';
            if (n == nth && !strcmp(call, name)) {
                if (shows_late) {
                    late[device_now()] = Late{code, atoi(p + used + 1)};
                    return 0;
                }
                if (stays) sticky() = code;
                return say(code, "injected in %s call %d", name, n);
            }
            p += used + stays;
            if (shows_late) p += 1 + strspn(p + 1, "0123456789");
        } else {
            p++;
        }
        if (*p == ',') p++;
    }
    return 0;
}

int entered(const char* call, bool context) {
    if (in_host_function()) return say(NOT_PERMITTED, "%s: called by a function that a stream runs on the host", call);
    {
        Lock lock(mu);
        Late& l = late[device_now()];
        if (l.code && l.calls-- <= 0) {
            sticky() = say(l.code, "shows in %s what an earlier call did", call);
            l.code = 0;
        }
    }
    if (int e = inject(call)) return e;
    if (int e = sticky()) return e;
    if (!initialised) return NOT_INITIALIZED;
    if (!context) return 0;
    if (!current) return say(INVALID_CONTEXT, "%s: no context current on this OS thread", call);
    if (!references[device_now()]) return say(CONTEXT_IS_DESTROYED, "%s: context destroyed", call);
    return 0;
}

static IMMORTAL(std::vector<std::function<std::string()>>, others);

void at_release(std::function<std::string()> leak) {
    Lock lock(mu);
    others.push_back(leak);
}

static int devices() { return std::min<int>(env_number("CUEMU_DEVICES", 1), MOST_DEVICES); }
static bool is_device(int device) { return device >= 0 && device < devices(); }

API(cuInit, unsigned) {
    const Call call("", false); // which nothing has to be initialised for
    if (int e = inject(__func__)) return R(e);
    Lock lock(mu);
    if (initialised) return R(0);
    if (!devices()) return R(NO_DEVICE);
    if (!reserve()) return R(OUT_OF_MEMORY);
    start_device();
    initialised = true;
    clock_spend("init", clock_figure("init"));
    return R(0);
}

API(cuDriverGetVersion, int* version) {
    if (int e = inject(__func__)) return R(e);
    *version = env_number("CUEMU_DRIVER", 12000);
    return R(0);
}

API(cuDeviceGetCount, int* n) {
    ENTER();
    *n = devices();
    return R(0);
}

API(cuDeviceGet, CUdevice* device, int ordinal) {
    ENTER();
    if (!is_device(ordinal)) return R(INVALID_DEVICE);
    *device = ordinal;
    return R(0);
}

API(cuDeviceGetName, char* name, int n, CUdevice) {
    ENTER();
    snprintf(name, n, "CUEMU");
    return R(0);
}

API(cuDeviceGetUuid_v2, CUuuid* uuid, CUdevice device) {
    ENTER();
    memset(uuid, 0, 16);
    uuid->bytes[0] = (char)(device + 1);
    return R(0);
}

API(cuDeviceTotalMem_v2, size_t* n, CUdevice) {
    ENTER();
    *n = env_number("CUEMU_MEM", 1L << 30);
    return R(0);
}

API(cuDeviceGetAttribute, int* value, CUdevice_attribute attribute, CUdevice device) {
    ENTER();
    const int compute = env_number("CUEMU_CC", 75);
    switch ((int)attribute) {
    case 1: *value = 1024; break;         // MAX_THREADS_PER_BLOCK
    case 8: *value = 49152; break;        // MAX_SHARED_MEMORY_PER_BLOCK
    case 10: *value = 32; break;          // WARP_SIZE
    case 16: *value = 4; break;           // MULTIPROCESSOR_COUNT
    case 33: *value = device + 1; break;  // PCI_BUS_ID
    case 75: *value = compute / 10; break; // COMPUTE_CAPABILITY_MAJOR
    case 76: *value = compute % 10; break; // COMPUTE_CAPABILITY_MINOR
    case 115: *value = 1; break;          // MEMORY_POOLS_SUPPORTED
    default: *value = 0;
    }
    return R(0);
}

API(cuDevicePrimaryCtxSetFlags_v2, CUdevice, unsigned) {
    ENTER();
    return R(0);
}

API(cuDevicePrimaryCtxRetain, CUcontext* context, CUdevice device) {
    ENTER();
    if (!is_device(device)) return R(INVALID_DEVICE);
    if (!references[device]++) clock_spend("context", clock_figure("context"));
    *context = primary(device);
    return R(0);
}

API(cuDevicePrimaryCtxRelease_v2, CUdevice device) {
    if (int e = inject(__func__)) return R(e);
    Lock lock(mu);
    if (!is_device(device)) return R(INVALID_DEVICE);
    if (references[device] <= 0) return R(INVALID_CONTEXT);
    if (--references[device]) return R(0);
    clock_write();
    size_t there = 0, host = 0;
    for (auto& k : live) {
        if (k.second.device == device) (k.second.host ? host : there)++;
    }
    const size_t streams = count_streams(device), events = count_events(device), modules = count_modules(device);
    if (there + host + streams + events + modules) {
        say(0, "LEAK: device %d: %zu device, %zu host allocations, %zu streams, %zu events, %zu modules", device, there, host, streams, events, modules);
    }
    for (auto& count : references) {
        if (count) return R(0);
    }
    for (auto& other : others) {
        const std::string leak = other();
        if (!leak.empty()) say(0, "LEAK: %s", leak.c_str());
    }
    return R(0);
}

API(cuCtxSetCurrent, CUcontext context) {
    ENTER();
    if (context && !is_device((int)((intptr_t)context - 0x1000))) return R(INVALID_CONTEXT);
    current = context;
    return R(0);
}

API(cuCtxGetCurrent, CUcontext* context) {
    ENTER();
    *context = current;
    return R(0);
}

API(cuCtxSynchronize, void) {
    ENTER_CTX();
    finish_all();
    return R(sticky().load());
}

API(cuGetErrorString, CUresult code, const char** text) {
    static thread_local char buffer[32];
    snprintf(buffer, sizeof buffer, "CUDA error %d", (int)code);
    *text = buffer;
    return R(0);
}

API(cuGetErrorName, CUresult code, const char** text) { return cuGetErrorString(code, text); }
