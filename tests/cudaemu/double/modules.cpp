// Modules of PTX and cubins, their kernels, and launches.
#include "emu.h"
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <elf.h>

struct Function {
    int device = device_now();
    std::string name;
    const KernelEntry* native;
    int max_threads;
    std::shared_ptr<ptx::Kernel> interpreted; // with CUEMU_PTX
};

struct Module {
    int device = device_now();
    std::vector<std::unique_ptr<Function>> functions;
};

static IMMORTAL(std::set<Module*>, modules);
static IMMORTAL(std::set<Function*>, functions);

// Filled by constructors, in no order that is known.
static std::map<std::string, KernelEntry*>& registry() {
    static auto& all = *new std::map<std::string, KernelEntry*>;
    return all;
}

void registry_add(KernelEntry* e) { registry()[e->name] = e; }

const KernelEntry* registry_find(const char* name) {
    auto i = registry().find(name);
    return i == registry().end() ? nullptr : i->second;
}

size_t count_modules(int device) {
    return std::count_if(modules.begin(), modules.end(), [=](Module* m) { return m->device == device; });
}

static int check_header(const char* text) {
    const char *version = strstr(text, ".version"), *target = strstr(text, ".target sm_");
    int major = 0, minor = 0, compute = 0;
    if (!version || !target || sscanf(version, ".version %d.%d", &major, &minor) != 2 || sscanf(target, ".target sm_%d", &compute) != 1) return say(INVALID_PTX, "not PTX");
    // CUDA 12.0-12.5 read ISA 8.0-8.5, 12.6-12.9 read 8.5-8.8, 13.n reads 9.n
    const int driver = env_number("CUEMU_DRIVER", 12000), n = driver % 1000 / 10;
    const int most = (driver / 1000 - 4) * 10 + n - (driver / 1000 == 12 && n > 5);
    if (major * 10 + minor > most) return say(UNSUPPORTED_PTX_VERSION, "PTX ISA %d.%d, driver %d reads up to %d.%d", major, minor, driver, most / 10, most % 10);
    if (compute > env_number("CUEMU_CC", 75)) return say(INVALID_PTX, "PTX target sm_%d above the device", compute);
    int depth = 0;
    for (const char* p = text; *p; p++) {
        depth += *p == '{';
        depth -= *p == '}';
        if ((unsigned char)*p > 126) return say(INVALID_PTX, "binary garbage after the PTX: is it NUL-terminated?");
    }
    if (depth) return say(INVALID_PTX, "unbalanced braces");
    return 0;
}

// The sizes of the parameters between from and to, as KernelEntry::sizes writes them.
static std::string parameter_sizes(const char* from, const char* to) {
    std::string out;
    for (const char* p = from; (p = strstr(p, ".param ")) && p < to; p += 7) {
        const std::string one(p, strcspn(p, ",)"));
        int bits = 0;
        for (size_t i = 0; i + 2 < one.size() && !bits; i++) {
            if (one[i] == '.' && strchr("usfb", one[i + 1]) && isdigit((unsigned char)one[i + 2])) bits = atoi(&one[i + 2]);
        }
        const size_t bracket = one.find('[');
        const int count = bracket == std::string::npos ? 1 : atoi(&one[bracket + 1]);
        out += std::to_string(bits / 8 * count) + " ";
    }
    return out;
}

static int load(const char* text, Module* module) {
    if (int e = check_header(text)) return e;
    std::vector<ptx::Kernel> parsed;
    if (env_number("CUEMU_PTX", 0)) {
        try {
            parsed = ptx::parse(text);
        } catch (ptx::Fault& f) {
            return say(f.code, "%s", f.text.c_str());
        }
    }
    for (const char* p = text; (p = strstr(p, ".entry "));) {
        p += strlen(".entry ");
        auto f = std::make_unique<Function>();
        while (*p && *p != '(' && *p > ' ') f->name += *p++;
        f->native = registry_find(f->name.c_str());
        f->max_threads = 1024;
        if (!f->native) return say(NOT_FOUND, "PTX entry %s has no host-compiled twin", f->name.c_str());
        const char* end = strchr(p, ')');
        const char* body = end ? strchr(end, '{') : nullptr;
        if (!body) return say(INVALID_PTX, "entry %s has no body", f->name.c_str());
        const std::string sizes = parameter_sizes(p, end);
        if (sizes != f->native->sizes()) {
            return say(INVALID_PTX, "entry %s: PTX parameters [%s] but source has [%s]: stale PTX?", f->name.c_str(), sizes.c_str(), f->native->sizes().c_str());
        }
        const char* limit = strstr(end, ".maxntid ");
        if (limit && limit < body) {
            int x = 1, y = 1, z = 1;
            sscanf(limit, ".maxntid %d, %d, %d", &x, &y, &z);
            f->max_threads = x * y * z;
        }
        for (auto& k : parsed) {
            if (k.name == f->name) f->interpreted = std::make_shared<ptx::Kernel>(std::move(k));
        }
        module->functions.push_back(std::move(f));
    }
    return 0;
}

static bool starts(const char* s, const char* with) { return !strncmp(s, with, strlen(with)); }

// read_info takes what a kernel's section .nv.info says of its parameters and of its launch bounds.
static int read_info(const char* p, size_t n, Function* f) {
    enum { HAS_SIZE = 4, MAX_THREADS = 0x05, PARAMETER = 0x17 }; // EIFMT_SVAL, EIATTR_MAX_THREADS, EIATTR_KPARAM_INFO
    std::map<unsigned, unsigned> parameters;                     // size by number
    for (const char* end = p + n; p < end;) {
        const unsigned char format = p[0], what = p[1];
        uint16_t length;
        memcpy(&length, p + 2, sizeof length);
        p += 4;
        if (format != HAS_SIZE) continue; // the value is in the header
        uint32_t words[3] = {};
        memcpy(words, p, std::min<size_t>(sizeof words, length));
        if (what == PARAMETER) parameters[words[1] & 0xffff] = words[2] >> 18;
        if (what == MAX_THREADS) f->max_threads = words[0] * words[1] * words[2];
        p += length;
    }
    std::string sizes;
    for (auto& one : parameters) sizes += std::to_string(one.second) + " ";
    if (sizes == f->native->sizes()) return 0;
    return say(INVALID_IMAGE, "%s: parameters of the cubin [%s] but source has [%s]: stale cubin?", f->name.c_str(), sizes.c_str(), f->native->sizes().c_str());
}

// load_cubin takes the kernels of an ELF image by the names of their sections, and what they are called with; their code only a GPU can run.
static int load_cubin(const char* image, Module* module) {
    const auto& header = *(const Elf64_Ehdr*)image;
    const int EM_CUDA_ = 190, compute = env_number("CUEMU_CC", 75);
    // The architecture is in the flags' lowest byte, or in the second one of newer assemblers' files.
    const int arch = header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_CUDA_ || header.e_shentsize != sizeof(Elf64_Shdr)) return say(INVALID_IMAGE, "an ELF file that is no cubin");
    if (arch / 10 != compute / 10 || arch > compute) return say(NO_BINARY_FOR_GPU, "cubin for sm_%d, the device is sm_%d", arch, compute);
    const auto* sections = (const Elf64_Shdr*)(image + header.e_shoff);
    const char* names = image + sections[header.e_shstrndx].sh_offset;
    std::map<std::string, const Elf64_Shdr*> infos; // by the kernel
    for (int i = 0; i < header.e_shnum; i++) {
        const char* name = names + sections[i].sh_name;
        if (starts(name, ".nv.info.")) infos[name + strlen(".nv.info.")] = &sections[i];
    }
    for (int i = 0; i < header.e_shnum; i++) {
        const char* name = names + sections[i].sh_name;
        if (!starts(name, ".text.")) continue;
        auto f = std::make_unique<Function>();
        f->name = name + strlen(".text.");
        f->native = registry_find(f->name.c_str());
        f->max_threads = 1024;
        if (!f->native) return say(NOT_FOUND, "the cubin's kernel %s has no host-compiled twin", f->name.c_str());
        const Elf64_Shdr* info = infos[f->name];
        if (!info) return say(INVALID_IMAGE, "the cubin's kernel %s has no .nv.info", f->name.c_str());
        if (int e = read_info(image + info->sh_offset, info->sh_size, f.get())) return e;
        module->functions.push_back(std::move(f));
    }
    return module->functions.empty() ? say(INVALID_IMAGE, "a cubin without kernels") : 0;
}

static int load_image(const char* image, Module* module) {
    uint32_t magic;
    memcpy(&magic, image, sizeof magic);
    if (magic == 0xba55ed50) return say(NO_BINARY_FOR_GPU, "a fatbin; the double reads PTX and cubins");
    if (!memcmp(image, ELFMAG, SELFMAG)) return env_number("CUEMU_PTX", 0) ? NO_BINARY_FOR_GPU : load_cubin(image, module);
    if (env_number("CUEMU_NO_JIT", 0)) return say(JIT_COMPILER_NOT_FOUND, "PTX given, and libnvidia-ptxjitcompiler is missing");
    return load(image, module);
}

// write_counts appends what a launch asked of memory to the file that CUEMU_COUNT names: a line of JSON.
static void write_counts(const char* file, const std::string& kernel, const ptx::Counts& c) {
    FILE* f = fopen(file, "a");
    if (!f) {
        say(0, "CUEMU_COUNT: %s cannot be written", file);
        return;
    }
    fprintf(f, "{\"kernel\": \"%s\"", kernel.c_str());
    for (auto& v : {std::pair<const char*, uint64_t>{"requests", c.requests}, {"loaded", c.loaded}, {"stored", c.stored}, {"atomic", c.atomic}, {"least", c.least},
             {"operations", c.operations}, {"conflicts", c.conflicts}, {"shared", c.shared}, {"longest", c.longest}}) {
        fprintf(f, ", \"%s\": %llu", v.first, (unsigned long long)v.second);
    }
    fprintf(f, "}\n");
    fclose(f);
}

static void run_interpreted(const ptx::Kernel& kernel, const std::vector<std::vector<char>>& args, ptx::Launch launch) {
    int e = 0;
    Open open;
    ptx::Counts counts;
    const char* file = env("CUEMU_COUNT", nullptr);
    if (file) launch.counts = &counts;
    try {
        ptx::run(kernel, args, launch);
        if (file) write_counts(file, kernel.name, counts);
    } catch (ptx::Fault& f) {
        e = say(f.code, "%s", f.text.c_str());
    }
    const int margins = open.close();
    if (!e) e = margins;
    if (e) sticky() = e;
}

API(cuModuleLoadDataEx, CUmodule* handle, const void* image, unsigned, CUjit_option*, void**) {
    ENTER_CTX();
    Lock lock(mu);
    auto m = std::make_unique<Module>();
    const bool jit = memcmp(image, ELFMAG, SELFMAG);
    if (int e = load_image((const char*)image, m.get())) return R(e);
    clock_spend(jit ? "jit" : "cubin", clock_figure(jit ? "jit" : "cubin") * m->functions.size());
    for (auto& f : m->functions) functions.insert(f.get());
    modules.insert(m.get());
    *handle = (CUmodule)m.release();
    return R(0);
}

API(cuModuleGetFunction, CUfunction* function, CUmodule handle, const char* name) {
    ENTER_CTX();
    Lock lock(mu);
    auto m = (Module*)handle;
    if (!modules.count(m) || m->device != device_now()) return R(INVALID_HANDLE);
    for (auto& f : m->functions) {
        if (f->name != name) continue;
        *function = (CUfunction)f.get();
        clock_spend("function", 0);
        return R(0);
    }
    return R(say(NOT_FOUND, "no entry %s", name));
}

API(cuModuleUnload, CUmodule handle) {
    ENTER_CTX();
    Lock lock(mu);
    auto m = (Module*)handle;
    if (!modules.erase(m)) return R(INVALID_HANDLE);
    for (auto& f : m->functions) functions.erase(f.get());
    delete m;
    return R(0);
}

API(cuFuncSetAttribute, CUfunction, CUfunction_attribute, int) {
    ENTER_CTX();
    return R(0);
}

API(cuLaunchKernel, CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void** params, void** extra) {
    ENTER_CTX();
    std::unique_lock<std::recursive_mutex> lock(mu);
    auto f = (Function*)handle;
    if (!functions.count(f) || f->device != device_now()) return R(say(INVALID_HANDLE, "launch: no kernel of this context"));
    if (extra) return R(INVALID_VALUE);
    const char* name = f->native->name;
    const uint64_t threads = (uint64_t)bx * by * bz;
    if (!gx || !gy || !gz || !threads || gy > 65535 || gz > 65535 || gx > 0x7fffffffu || bx > 1024 || by > 1024 || bz > 64 || threads > 1024 || shared > 49152) {
        return R(say(INVALID_VALUE, "launch %s: bad shape grid %u,%u,%u block %u,%u,%u shared %u", name, gx, gy, gz, bx, by, bz, shared));
    }
    if (threads > (uint64_t)f->max_threads) return R(say(INVALID_VALUE, "launch %s: %lu threads, __launch_bounds__ %d", name, (long)threads, f->max_threads));
    auto args = std::make_shared<std::vector<std::vector<char>>>();
    for (size_t i = 0; i < f->native->args.size(); i++) {
        const ArgInfo& a = f->native->args[i];
        args->emplace_back((char*)params[i], (char*)params[i] + a.size);
        if (!a.ptr) continue;
        uintptr_t p;
        memcpy(&p, params[i], sizeof p);
        const Alloc* at = p ? find(p) : nullptr;
        if (p && (!at || (!at->host && at->device != device_now()))) return R(say(sticky() = ILLEGAL_ADDRESS, "launch %s: parameter %zu = %#lx is not device memory", name, i, (long)p));
        if (p % a.align) return R(say(sticky() = MISALIGNED_ADDRESS, "launch %s: parameter %zu misaligned", name, i));
    }
    const std::shared_ptr<ptx::Kernel> interpreted = f->interpreted;
    const KernelEntry* native = f->native;
    clock_spend("launch", clock_figure("launch"));
    lock.unlock(); // work of the default stream is waited for
    if (interpreted) {
        const std::string order = env("CUEMU_ORDER", "fwd");
        ptx::Launch launch{{gx, gy, gz}, {bx, by, bz}, shared, ptx::Order::Forward, (unsigned)env_number("CUEMU_SEED", 1)};
        if (order == "rev") launch.order = ptx::Order::Reverse;
        if (order == "rand") launch.order = ptx::Order::Random;
        return R(push(stream, name, [=] { clock_kernel(name, [&] { run_interpreted(*interpreted, *args, launch); }); }));
    }
    return R(push(stream, name, [=] {
        std::vector<void*> values;
        for (auto& a : *args) values.push_back(a.data());
        clock_kernel(name, [&] { run_native(native, values.data(), dim3{gx, gy, gz}, dim3{bx, by, bz}); });
    }));
}
