// A test double of libcufile.so.0: the part of cuFile that pkg/gpu/cufile binds. It moves bytes between real
// files and the memory of the double of libcuda.so.1, on which it is built, and fails what a program
// must not do. README.md says more.
#include "../emu.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef EMU_CHECK_CUDA_H // the compiler then compares every prototype with NVIDIA's
#include <cufile.h>
#undef cuFileDriverClose
#else
struct CUfileError_t {
    int err;
    CUresult cu_err;
};
struct CUfileDescr_t {
    int type;
    union {
        int fd;
        void* handle;
    } handle;
    const void* fs_ops;
};
struct CUfileDrvProps_t {
    struct {
        unsigned major_version, minor_version;
        size_t poll_thresh_size, max_direct_io_size;
        unsigned dstatusflags, dcontrolflags;
    } nvfs;
    unsigned fflags, max_device_cache_size, per_buffer_cache_size, max_device_pinned_mem_size, max_batch_io_size, max_batch_io_timeout_msecs;
};
typedef void* CUfileHandle_t;
typedef int CUFileBoolConfigParameter_t;
#endif

// Results by their names in cufile.h.
enum : int {
    NOT_OPEN = 5001, CUDA_DRIVER_ERROR = 5011, RANGE_ERROR = 5014, INVALID_FILE_TYPE = 5018, DIO_NOT_SET = 5020, VALUE = 5022,
    ALREADY_OPEN = 5026, NOT_REGISTERED = 5027, ALREADY_REGISTERED = 5028,
};
static const int ALLOW_COMPAT = 1, FORCE_COMPAT = 2, PARAMETERS = 12, FD = 1;

struct File {
    int fd, cached; // the caller's; the same file without direct I/O
};
static IMMORTAL(std::set<File*>, files);
static int references;
static bool parameters[PARAMETERS] = {false, true};

static std::string leaks() {
    if (files.empty() && !references) return "";
    return std::to_string(files.size()) + " files registered with cuFile, whose driver is " + (references ? "open" : "closed");
}

__attribute__((constructor)) static void loaded() { at_release(leaks); }

#define CUFILE(type, name, ...) extern "C" __attribute__((visibility("default"))) type name(__VA_ARGS__)

static CUfileError_t failed(int code) {
    CUfileError_t e;
    memset(&e, 0, sizeof e);
    memcpy(&e.err, &code, sizeof e.err);
    return e;
}

static CUfileError_t cuda_failed(int code) {
    CUfileError_t e = failed(CUDA_DRIVER_ERROR);
    e.cu_err = (CUresult)code;
    return e;
}

// What a call returns before it does anything: an injected cuFile error, or one of the device.
#define BEFORE(context) \
    do { \
        const int e_ = entered(__func__, context); \
        if (e_ >= 5000) return failed(e_); \
        if (e_) return cuda_failed(e_); \
    } while (0)

// CUEMU_CUFILE=native: the kernel module nvidia-fs is there; p2p: PCI peer-to-peer transfers; compat: neither.
static const char* mode() { return env("CUEMU_CUFILE", "native"); }
static bool moves() { return strcmp(mode(), "compat") && !parameters[FORCE_COMPAT]; }

CUFILE(CUfileError_t, cuFileGetVersion, int* version) {
    if (int e = inject(__func__)) return failed(e);
    *version = env_number("CUEMU_CUFILE_VERSION", 1140);
    return failed(0);
}

CUFILE(CUfileError_t, cuFileSetParameterBool, CUFileBoolConfigParameter_t parameter, bool value) {
    if (int e = inject(__func__)) return failed(e);
    Lock lock(mu);
    if (references) return failed(ALREADY_OPEN);
    if ((unsigned)parameter >= PARAMETERS) return failed(VALUE);
    parameters[parameter] = value;
    return failed(0);
}

CUFILE(CUfileError_t, cuFileGetParameterBool, CUFileBoolConfigParameter_t parameter, bool* value) {
    if (int e = inject(__func__)) return failed(e);
    Lock lock(mu);
    if ((unsigned)parameter >= PARAMETERS) return failed(VALUE);
    *value = parameters[parameter] || (parameter == FORCE_COMPAT && env_number("CUEMU_CUFILE_FORCE_COMPAT", 0));
    return failed(0);
}

CUFILE(CUfileError_t, cuFileDriverOpen, void) {
    BEFORE(true);
    Lock lock(mu);
    if (!moves() && !parameters[ALLOW_COMPAT]) return failed(NOT_OPEN);
    references++;
    return failed(0);
}

static CUfileError_t close_driver() {
    Lock lock(mu);
    if (!references) return failed(say(NOT_OPEN, "cuFileDriverClose: the driver is not open"));
    if (!--references && !files.empty()) say(0, "LEAK: cuFile's driver is closed with %zu files registered", files.size());
    return failed(0);
}

CUFILE(CUfileError_t, cuFileDriverClose_v2, void) {
    if (int e = inject(__func__)) return failed(e);
    return close_driver();
}

CUFILE(CUfileError_t, cuFileDriverClose, void) {
    if (int e = inject(__func__)) return failed(e);
    return close_driver();
}

CUFILE(CUfileError_t, cuFileDriverGetProperties, CUfileDrvProps_t* p) {
    BEFORE(false);
    memset(p, 0, sizeof *p);
    if (!strcmp(mode(), "native") && moves()) {
        p->nvfs.major_version = 2;
        p->nvfs.minor_version = 20;
    }
    if (!strcmp(mode(), "p2p") && moves()) p->fflags |= 1u << 4;
    p->nvfs.dcontrolflags = (unsigned)parameters[ALLOW_COMPAT] << 1;
    p->fflags |= 7;
    return failed(0);
}

CUFILE(CUfileError_t, cuFileHandleRegister, CUfileHandle_t* handle, CUfileDescr_t* d) {
    BEFORE(false);
    Lock lock(mu);
    if (!references) return failed(say(NOT_OPEN, "cuFileHandleRegister: the driver is not open"));
    struct stat s;
    const int flags = d->type == FD ? fcntl(d->handle.fd, F_GETFL) : -1;
    if (flags < 0 || d->fs_ops) return failed(say(VALUE, "cuFileHandleRegister: not a file descriptor that is open"));
    if (fstat(d->handle.fd, &s) || !S_ISREG(s.st_mode)) return failed(say(INVALID_FILE_TYPE, "cuFileHandleRegister: not a regular file"));
    if (!(flags & O_DIRECT)) return failed(say(DIO_NOT_SET, "cuFileHandleRegister: the file is not open for direct I/O"));
    for (auto f : files) {
        if (f->fd == d->handle.fd) return failed(say(ALREADY_REGISTERED, "cuFileHandleRegister: descriptor %d is registered", f->fd));
    }
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", d->handle.fd);
    const int cached = open(path, (flags & O_ACCMODE) | O_CLOEXEC);
    if (cached < 0) return failed(VALUE);
    auto f = new File{d->handle.fd, cached};
    files.insert(f);
    *handle = f;
    return failed(0);
}

CUFILE(void, cuFileHandleDeregister, CUfileHandle_t handle) {
    Lock lock(mu);
    auto f = (File*)handle;
    if (!files.erase(f)) {
        say(NOT_REGISTERED, "cuFileHandleDeregister: the file is not registered");
        return;
    }
    struct stat a, b; // the caller has to close the file after this
    if (fstat(f->fd, &a) || fstat(f->cached, &b) || a.st_ino != b.st_ino) say(VALUE, "cuFileHandleDeregister: the file was closed before");
    close(f->cached);
    delete f;
}

// A call's injected code: of 5000 and more it is the error, of less an errno; what is negative lets the
// call move no more than that many bytes.
static ssize_t transfer(const char* call, CUfileHandle_t handle, const void* base, size_t n, off_t off, off_t base_off, bool read) {
    const int e = entered(call, true);
    if (e >= 5000) return -e;
    if (sticky() || e == INVALID_CONTEXT || e == NOT_INITIALIZED || e == CONTEXT_IS_DESTROYED) return -CUDA_DRIVER_ERROR;
    if (e > 0) {
        errno = e;
        return -1;
    }
    if (e < 0 && (size_t)-e < n) n = -e;
    int fd;
    {
        Lock lock(mu);
        if (!references) return -say(NOT_OPEN, "%s: the driver is not open", call);
        if (!files.count((File*)handle)) return -say(NOT_REGISTERED, "%s: the file is not registered", call);
        fd = ((File*)handle)->cached;
    }
    const uintptr_t at = (uintptr_t)base + base_off;
    if (off < 0 || base_off < 0) return -say(VALUE, "%s: a position is negative", call);
    if (!device_range(at, n)) return -say(RANGE_ERROR, "%s: %zu bytes at %#lx are not device memory", call, n, (long)at);
    std::vector<char> host(n);
    const int device = device_now();
    auto copy = [&](void* to, const void* from, size_t bytes) {
        on_device([&] {
            As as(device);
            Open open;
            memcpy(to, from, bytes);
        });
    };
    if (!read) copy(host.data(), (void*)at, n);
    size_t done = 0;
    while (done < n) {
        const ssize_t k = read ? pread(fd, host.data() + done, n - done, off + done) : pwrite(fd, host.data() + done, n - done, off + done);
        if (k < 0) return -1;
        if (!k) break;
        done += k;
    }
    if (read && done) copy((void*)at, host.data(), done);
    return done;
}

CUFILE(ssize_t, cuFileRead, CUfileHandle_t handle, void* base, size_t n, off_t off, off_t base_off) {
    return transfer(__func__, handle, base, n, off, base_off, true);
}

CUFILE(ssize_t, cuFileWrite, CUfileHandle_t handle, const void* base, size_t n, off_t off, off_t base_off) {
    return transfer(__func__, handle, base, n, off, base_off, false);
}
