// A test double of libnvidia-ml.so.1: the part of NVML that pkg/gpu/nvml binds. It stands alone, as NVIDIA's does: it
// can be there without a driver's library. What it tells is in the file that CUEMU_NVML names, or that of the
// double of libcuda.so.1 as its knobs make it. README.md says more.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#ifdef EMU_CHECK_NVML_H // the compiler then compares every prototype with NVIDIA's
#include <nvml.h>
#else
typedef int nvmlReturn_t;
typedef struct nvmlDevice_st* nvmlDevice_t;
typedef int nvmlEnableState_t, nvmlComputeMode_t, nvmlTemperatureSensors_t;
struct nvmlMemory_t {
    unsigned long long total, free, used;
};
struct nvmlMemory_v2_t {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define nvmlMemory_v2 (unsigned)(sizeof(nvmlMemory_v2_t) | 2u << 24)
struct nvmlBAR1Memory_t {
    unsigned long long bar1Total, bar1Free, bar1Used;
};
struct nvmlPciInfo_t {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
};
struct nvmlProcessInfo_t {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
};
struct nvmlUtilization_t {
    unsigned gpu, memory;
};
#endif

// Results by their names in nvml.h.
enum : int {
    UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, VERSION_MISMATCH = 25,
};

// A GPU or an instance: its words by the name of what they are of.
struct nvmlDevice_st {
    std::map<std::string, std::vector<std::string>> facts;
    std::vector<std::vector<std::string>> processes;
    std::vector<nvmlDevice_st*> instances;
};

// Never destroyed: a Go -race binary leaves through exit().
static auto& mu = *new std::recursive_mutex;
static auto& gpus = *new std::vector<nvmlDevice_st*>;
static auto& known = *new std::map<nvmlDevice_t, bool>;
static auto& calls = *new std::map<std::string, int>;
static nvmlDevice_st& host = *new nvmlDevice_st;
static int references;

static const char* env(const char* key, const char* otherwise) {
    const char* v = getenv(key);
    return v && *v ? v : otherwise;
}

static long env_number(const char* key, long otherwise) {
    const char* v = env(key, nullptr);
    return v ? atol(v) : otherwise;
}

static int say(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));
static int say(int code, const char* format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "cuemu: %s -> %d\n", text, code);
    return code;
}

// CUEMU_FAIL="name:nth:code,…", as for the driver.
static int inject(const char* name) {
    const int n = ++calls[name];
    std::stringstream list(env("CUEMU_FAIL", ""));
    for (std::string item; std::getline(list, item, ',');) {
        char call[64];
        int nth, code;
        if (sscanf(item.c_str(), "%63[^:]:%d:%d", call, &nth, &code) == 3 && n == nth && !strcmp(call, name)) {
            return say(code, "injected in %s call %d", name, n);
        }
    }
    return 0;
}

static nvmlDevice_st* add(std::vector<nvmlDevice_st*>& to) {
    nvmlDevice_st* d = new nvmlDevice_st;
    to.push_back(d);
    known[d] = true;
    return d;
}

// describe reads the file, or makes up what the double of the driver is. Handles of before are known no more, and never
// those of others.
static void describe() {
    gpus.clear();
    known.clear();
    host = nvmlDevice_st();
    std::stringstream text;
    if (const char* path = env("CUEMU_NVML", nullptr)) {
        std::ifstream file(path);
        if (!file) say(0, "CUEMU_NVML: cannot read %s", path);
        text << file.rdbuf();
    } else {
        text << "driver 525.60.13\ncuda " << env_number("CUEMU_DRIVER", 12000) << "\n";
        const long capability = env_number("CUEMU_CC", 75);
        for (long i = 0; i < env_number("CUEMU_DEVICES", 1); i++) {
            char part[512];
            snprintf(part, sizeof part,
                "gpu\nname CUEMU\nuuid GPU-%02lx000000-0000-0000-0000-000000000000\npci 0 %ld 0\nmemory %ld 0\nbar1 268435456 2097152\nmode 0\n"
                "pcie 4 4 16 16\ncapability %ld %ld\nprocesses\n",
                i + 1, i + 1, env_number("CUEMU_MEM", 1L << 30), capability / 10, capability % 10);
            text << part;
        }
    }
    nvmlDevice_st *gpu = nullptr, *now = &host;
    for (std::string line; std::getline(text, line);) {
        std::stringstream words(line);
        std::string name, word;
        if (!(words >> name) || name[0] == '#') continue;
        std::vector<std::string> values;
        while (words >> word) values.push_back(word);
        if (name == "gpu") {
            now = gpu = add(gpus);
        } else if (name == "mig" && values.empty() && gpu) {
            now = add(gpu->instances);
        } else if (name == "process") {
            now->facts["processes"] = {};
            now->processes.push_back(values);
        } else {
            now->facts[name] = values;
        }
    }
}

// fact is what a call tells of a device: its words, or the code that the call returns, which is that of "!CODE".
static int fact(const char* call, nvmlDevice_t d, const char* name, std::vector<std::string>& words) {
    if (!references) return say(UNINITIALIZED, "%s: the library is not initialised", call);
    if (d != &host && !known.count(d)) return say(INVALID_ARGUMENT, "%s: no device", call);
    if (int e = inject(call)) return e;
    auto found = d->facts.find(name);
    if (found == d->facts.end()) return NOT_SUPPORTED;
    words = found->second;
    if (!words.empty() && words[0][0] == '!') return atoi(words[0].c_str() + 1);
    return 0;
}

static unsigned long long number(const std::vector<std::string>& words, size_t i, int base = 10) {
    return i < words.size() ? strtoull(words[i].c_str(), nullptr, base) : 0;
}

#define NVML(name, ...) extern "C" __attribute__((visibility("default"))) nvmlReturn_t name(__VA_ARGS__)
#define R(x) ((nvmlReturn_t)(x))
// What a call begins with: the words that it tells, or its end.
#define TELL(device, what) \
    std::lock_guard<std::recursive_mutex> lock_(mu); \
    std::vector<std::string> words; \
    if (int e_ = fact(__func__, device, what, words)) return R(e_)
#define NEED(pointer) do { if (!(pointer)) return R(say(INVALID_ARGUMENT, "%s: a null pointer", __func__)); } while (0)

static nvmlReturn_t copy(const char* call, const std::vector<std::string>& words, char* to, unsigned length) {
    std::string text;
    for (auto& w : words) text += (text.empty() ? "" : " ") + w;
    if (!to) return R(say(INVALID_ARGUMENT, "%s: a null pointer", call));
    if (text.size() >= length) return R(INSUFFICIENT_SIZE);
    strcpy(to, text.c_str());
    return R(0);
}

NVML(nvmlInit_v2, void) {
    std::lock_guard<std::recursive_mutex> lock(mu);
    if (int e = inject(__func__)) return R(e);
    if (!references++) describe();
    return R(0);
}

NVML(nvmlShutdown, void) {
    std::lock_guard<std::recursive_mutex> lock(mu);
    if (int e = inject(__func__)) return R(e);
    if (!references) return R(say(UNINITIALIZED, "nvmlShutdown: the library is not initialised"));
    references--;
    return R(0);
}

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(nvmlReturn_t code) {
    return (int)code == 999 ? "Unknown Error" : "an error of the double";
}

NVML(nvmlSystemGetDriverVersion, char* version, unsigned length) {
    TELL(&host, "driver");
    return copy(__func__, words, version, length);
}

NVML(nvmlDeviceGetCount_v2, unsigned* count) {
    std::lock_guard<std::recursive_mutex> lock(mu);
    NEED(count);
    if (!references) return R(say(UNINITIALIZED, "%s: the library is not initialised", __func__));
    if (int e = inject(__func__)) return R(e);
    *count = gpus.size();
    return R(0);
}

NVML(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvmlDevice_t* device) {
    NEED(device);
    if (index >= gpus.size()) return R(INVALID_ARGUMENT);
    gpus[index]->facts.insert({"handle", {}});
    TELL(gpus[index], "handle");
    *device = gpus[index];
    return R(0);
}

NVML(nvmlDeviceGetName, nvmlDevice_t device, char* name, unsigned length) {
    TELL(device, "name");
    return copy(__func__, words, name, length);
}

NVML(nvmlDeviceGetUUID, nvmlDevice_t device, char* uuid, unsigned length) {
    TELL(device, "uuid");
    return copy(__func__, words, uuid, length);
}

NVML(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t* pci) {
    TELL(device, "pci"); // domain, bus and device, hexadecimal
    NEED(pci);
    memset(pci, 0, sizeof *pci);
    pci->domain = number(words, 0, 16);
    pci->bus = number(words, 1, 16);
    pci->device = number(words, 2, 16);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus & 255, pci->device & 255);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 255, pci->device & 255);
    return R(0);
}

NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t device, nvmlMemory_t* memory) {
    TELL(device, "memory"); // total, used, reserved
    NEED(memory);
    memory->total = number(words, 0);
    memory->used = number(words, 1) + number(words, 2);
    memory->free = memory->total - memory->used;
    return R(0);
}

NVML(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t device, nvmlBAR1Memory_t* memory) {
    TELL(device, "bar1"); // total, used
    NEED(memory);
    memory->bar1Total = number(words, 0);
    memory->bar1Used = number(words, 1);
    memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return R(0);
}

NVML(nvmlDeviceGetComputeMode, nvmlDevice_t device, nvmlComputeMode_t* mode) {
    TELL(device, "mode");
    NEED(mode);
    *mode = (nvmlComputeMode_t)number(words, 0);
    return R(0);
}

NVML(nvmlDeviceGetEccMode, nvmlDevice_t device, nvmlEnableState_t* current, nvmlEnableState_t* pending) {
    TELL(device, "ecc");
    NEED(current && pending);
    *current = (nvmlEnableState_t)number(words, 0);
    *pending = (nvmlEnableState_t)number(words, 1);
    return R(0);
}

// pcie: generation and most, width and most
NVML(nvmlDeviceGetCurrPcieLinkGeneration, nvmlDevice_t device, unsigned* generation) {
    TELL(device, "pcie");
    NEED(generation);
    *generation = number(words, 0);
    return R(0);
}

NVML(nvmlDeviceGetMaxPcieLinkGeneration, nvmlDevice_t device, unsigned* generation) {
    TELL(device, "pcie");
    NEED(generation);
    *generation = number(words, 1);
    return R(0);
}

NVML(nvmlDeviceGetCurrPcieLinkWidth, nvmlDevice_t device, unsigned* width) {
    TELL(device, "pcie");
    NEED(width);
    *width = number(words, 2);
    return R(0);
}

NVML(nvmlDeviceGetMaxPcieLinkWidth, nvmlDevice_t device, unsigned* width) {
    TELL(device, "pcie");
    NEED(width);
    *width = number(words, 3);
    return R(0);
}

NVML(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t* utilization) {
    TELL(device, "utilization");
    NEED(utilization);
    utilization->gpu = number(words, 0);
    utilization->memory = number(words, 1);
    return R(0);
}

NVML(nvmlDeviceGetPersistenceMode, nvmlDevice_t device, nvmlEnableState_t* mode) {
    TELL(device, "persistence");
    NEED(mode);
    *mode = (nvmlEnableState_t)number(words, 0);
    return R(0);
}

NVML(nvmlDeviceGetPowerUsage, nvmlDevice_t device, unsigned* power) {
    TELL(device, "power"); // mW
    NEED(power);
    *power = number(words, 0);
    return R(0);
}

NVML(nvmlDeviceGetTemperature, nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned* temperature) {
    TELL(device, "temperature");
    NEED(temperature);
    if (sensor != 0) return R(INVALID_ARGUMENT);
    *temperature = number(words, 0);
    return R(0);
}

#ifndef NVML_DOUBLE_OLD // what libraries of CUDA 12.0 may lack
NVML(nvmlSystemGetCudaDriverVersion_v2, int* version) {
    TELL(&host, "cuda");
    NEED(version);
    *version = number(words, 0);
    return R(0);
}

NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t device, nvmlMemory_v2_t* memory) {
    TELL(device, "memory");
    NEED(memory);
    if (memory->version != nvmlMemory_v2) return R(say(VERSION_MISMATCH, "%s: version %#x", __func__, memory->version));
    memory->total = number(words, 0);
    memory->used = number(words, 1);
    memory->reserved = number(words, 2);
    memory->free = memory->total - memory->used - memory->reserved;
    return R(0);
}

NVML(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int* major, int* minor) {
    TELL(device, "capability");
    NEED(major && minor);
    *major = number(words, 0);
    *minor = number(words, 1);
    return R(0);
}

NVML(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t* infos) {
    TELL(device, "processes"); // each "process": its number, bytes
    NEED(count);
    const unsigned room = *count;
    *count = device->processes.size();
    if (room < *count) return R(INSUFFICIENT_SIZE);
    for (unsigned i = 0; i < *count; i++) {
        memset(&infos[i], 0, sizeof infos[i]);
        infos[i].pid = number(device->processes[i], 0);
        infos[i].usedGpuMemory = device->processes[i].size() > 1 ? number(device->processes[i], 1) : ~0ULL;
        infos[i].gpuInstanceId = infos[i].computeInstanceId = ~0U;
    }
    return R(0);
}

NVML(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned* current, unsigned* pending) {
    TELL(device, "mig");
    NEED(current && pending);
    *current = number(words, 0);
    *pending = number(words, 1);
    return R(0);
}

NVML(nvmlDeviceGetMaxMigDeviceCount, nvmlDevice_t device, unsigned* count) {
    TELL(device, "mig");
    NEED(count);
    *count = number(words, 0) ? 7 : 0;
    return R(0);
}

// The first place is free, as one is that was given back.
NVML(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, unsigned index, nvmlDevice_t* instance) {
    TELL(device, "mig");
    NEED(instance);
    if (index == 0 || index > device->instances.size()) return R(NOT_FOUND);
    *instance = device->instances[index - 1];
    return R(0);
}

NVML(nvmlDeviceGetGpuInstanceId, nvmlDevice_t device, unsigned* id) {
    TELL(device, "ids");
    NEED(id);
    *id = number(words, 0);
    return R(0);
}

NVML(nvmlDeviceGetComputeInstanceId, nvmlDevice_t device, unsigned* id) {
    TELL(device, "ids");
    NEED(id);
    *id = number(words, 1);
    return R(0);
}
#endif
