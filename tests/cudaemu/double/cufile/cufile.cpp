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
    NOT_OPEN = 5001, CUDA_DRIVER_ERROR = 5011, POINTER_INVALID = 5012, RANGE_ERROR = 5014, MAPPING_RANGE = 5017, INVALID_FILE_TYPE = 5018,
    DIO_NOT_SET = 5020, VALUE = 5022, MEMORY_REGISTERED = 5023, ALREADY_OPEN = 5026, NOT_REGISTERED = 5027, ALREADY_REGISTERED = 5028,
    PINNING_FAILED = 5036,
};
enum : unsigned { FIXED_BUF_OFFSET = 1, FIXED_FILE_OFFSET = 2, FIXED_FILE_SIZE = 4, PAGE_ALIGNED = 8 }; // flags of a stream
static const int ALLOW_COMPAT = 1, FORCE_COMPAT = 2, PARAMETERS = 12, FD = 1;

struct File {
    int fd, cached; // the caller's; the same file without direct I/O
};
static IMMORTAL(std::set<File*>, files);
typedef std::map<uintptr_t, size_t> Buffers;
static IMMORTAL(Buffers, buffers); // memory that is registered
typedef std::map<CUstream, unsigned> StreamFlags;
static IMMORTAL(StreamFlags, registered_streams);
static int references;
static bool parameters[PARAMETERS] = {false, true};

static std::string leaks() {
    if (files.empty() && buffers.empty() && registered_streams.empty() && !references) return "";
    return std::to_string(files.size()) + " files, " + std::to_string(buffers.size()) + " buffers, " + std::to_string(registered_streams.size()) +
           " streams registered with cuFile, whose driver is " + (references ? "open" : "closed");
}

// The registered buffer that a byte lies in; under mu.
static Buffers::iterator buffer_of(uintptr_t p) {
    auto i = buffers.upper_bound(p);
    if (i == buffers.begin()) return buffers.end();
    --i;
    return p < i->first + i->second ? i : buffers.end();
}

__attribute__((constructor)) static void loaded() {
    at_release(leaks);
    before_free([](uintptr_t p, size_t n) {
        auto i = buffers.lower_bound(p);
        if (i != buffers.end() && i->first < p + n) say(VALUE, "free of %#lx: it is registered with cuFile", (long)p);
    });
    before_destroy([](CUstream stream) {
        if (registered_streams.count(stream)) say(VALUE, "a stream ends that is registered with cuFile");
    });
}

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

// CUEMU_CUFILE_PINNED: the bytes that can be registered.
static size_t pinned_limit() { return env_number("CUEMU_CUFILE_PINNED", 1L << 30); }

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
    const Call border(__func__, true);
    if (border.error >= 5000) return failed(border.error);
    if (border.error) return cuda_failed(border.error);
    clock_spend("gds_open", clock_figure("gds_open"), 0); // also where it refuses then
    Lock lock(mu);
    if (!moves() && !parameters[ALLOW_COMPAT]) return failed(NOT_OPEN);
    references++;
    return failed(0);
}

static CUfileError_t close_driver() {
    Lock lock(mu);
    if (!references) return failed(say(NOT_OPEN, "cuFileDriverClose: the driver is not open"));
    if (!--references && files.size() + buffers.size() + registered_streams.size()) {
        say(0, "LEAK: cuFile's driver is closed with %zu files, %zu buffers, %zu streams registered", files.size(), buffers.size(), registered_streams.size());
    }
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
    p->max_device_pinned_mem_size = (unsigned)(pinned_limit() >> 10);
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

CUFILE(CUfileError_t, cuFileBufRegister, const void* base, size_t n, int flags) {
    BEFORE(true);
    Lock lock(mu);
    const uintptr_t p = (uintptr_t)base;
    if (!references) return failed(say(NOT_OPEN, "cuFileBufRegister: the driver is not open"));
    if (flags || !n) return failed(say(VALUE, "cuFileBufRegister: flags %d, %zu bytes", flags, n));
    if (!device_range(p, n)) return failed(say(POINTER_INVALID, "cuFileBufRegister: %zu bytes at %#lx are not device memory", n, (long)p));
    auto i = buffers.lower_bound(p);
    if (buffer_of(p) != buffers.end() || (i != buffers.end() && i->first < p + n)) return failed(MEMORY_REGISTERED);
    size_t pinned = n;
    for (auto& b : buffers) pinned += b.second;
    if (pinned > pinned_limit()) return failed(PINNING_FAILED);
    buffers[p] = n;
    return failed(0);
}

CUFILE(CUfileError_t, cuFileBufDeregister, const void* base) {
    if (int e = inject(__func__)) return failed(e);
    Lock lock(mu);
    if (!buffers.erase((uintptr_t)base)) return failed(say(VALUE, "cuFileBufDeregister: %p is not registered", base));
    return failed(0);
}

// What a call wants to move, once its arguments are looked at: the file, and where in the memory. Negative: an error.
struct Move {
    int fd;
    uintptr_t at;
    size_t n;
    off_t off;
    bool read;
};

static int arguments(Move* m, const char* call, CUfileHandle_t handle, const void* base, size_t n, off_t off, off_t base_off, bool read) {
    Lock lock(mu);
    if (!references) return -say(NOT_OPEN, "%s: the driver is not open", call);
    if (!files.count((File*)handle)) return -say(NOT_REGISTERED, "%s: the file is not registered", call);
    if (off < 0 || base_off < 0) return -say(VALUE, "%s: a position is negative", call);
    *m = Move{((File*)handle)->cached, (uintptr_t)base + base_off, n, off, read};
    if (!device_range(m->at, n)) return -say(RANGE_ERROR, "%s: %zu bytes at %#lx are not device memory", call, n, (long)m->at);
    if (env_number("CUEMU_CUFILE_ALIGNED", 0) && n >= 4096 && (m->at - off) % 4096) {
        return -say(VALUE, "%s: %zu bytes at %#lx lie in a page otherwise than at byte %ld of the file: they would not go straight", call, n, (long)m->at, (long)off);
    }
    const auto b = buffer_of(m->at);
    if (b == buffers.end()) return 0;
    if (b->first != (uintptr_t)base) return -say(VALUE, "%s: %#lx is registered from %#lx on, which has to be the base", call, (long)m->at, (long)b->first);
    if (m->at + n > b->first + b->second) return -say(MAPPING_RANGE, "%s: %zu bytes at %#lx go beyond what is registered", call, n, (long)m->at);
    return 0;
}

// move is the bytes that were moved, or −1 and errno.
static ssize_t move(const Move& m) {
    std::vector<char> host(m.n);
    const int device = device_now();
    auto copy = [&](void* to, const void* from, size_t bytes) {
        auto f = [&] {
            As as(device);
            touched(m.at, bytes, m.read ? Touch::Write : Touch::Read);
            Open open;
            memcpy(to, from, bytes);
        };
        if (on_device_thread()) return f();
        const uint32_t call = host_place(m.read ? "cuFileRead" : "cuFileWrite");
        on_device([&] {
            const Place at(call);
            f();
        });
    };
    if (!m.read) copy(host.data(), (void*)m.at, m.n);
    size_t done = 0;
    while (done < m.n) {
        const ssize_t k = m.read ? pread(m.fd, host.data() + done, m.n - done, m.off + done) : pwrite(m.fd, host.data() + done, m.n - done, m.off + done);
        if (k < 0) return -1;
        if (!k) break;
        done += k;
    }
    if (m.read && done) copy((void*)m.at, host.data(), done);
    return done;
}

// A call's injected code: of 5000 and more it is the error, of less an errno; what is negative lets the
// call move no more than that many bytes.
static ssize_t transfer(const char* call, CUfileHandle_t handle, const void* base, size_t n, off_t off, off_t base_off, bool read) {
    const Call border(call, true);
    const int e = border.error;
    if (e >= 5000) return -e;
    if (sticky() || e == INVALID_CONTEXT || e == NOT_INITIALIZED || e == CONTEXT_IS_DESTROYED || e == NOT_PERMITTED) return -CUDA_DRIVER_ERROR;
    if (e > 0) {
        errno = e;
        return -1;
    }
    if (e < 0 && (size_t)-e < n) n = -e;
    Move m;
    if (int bad = arguments(&m, call, handle, base, n, off, base_off, read)) return bad;
    clock_spend("gds", n / clock_figure("gds"), n);
    return move(m);
}

CUFILE(ssize_t, cuFileRead, CUfileHandle_t handle, void* base, size_t n, off_t off, off_t base_off) {
    return transfer(__func__, handle, base, n, off, base_off, true);
}

CUFILE(ssize_t, cuFileWrite, CUfileHandle_t handle, const void* base, size_t n, off_t off, off_t base_off) {
    return transfer(__func__, handle, base, n, off, base_off, false);
}

CUFILE(CUfileError_t, cuFileStreamRegister, CUstream stream, unsigned flags) {
    BEFORE(true);
    Lock lock(mu);
    if (!references) return failed(say(NOT_OPEN, "cuFileStreamRegister: the driver is not open"));
    if (!known(stream) || flags > 15) return failed(say(VALUE, "cuFileStreamRegister: no stream, or flags %u", flags));
    if (!registered_streams.insert({stream, flags}).second) return failed(say(VALUE, "cuFileStreamRegister: the stream is registered"));
    return failed(0);
}

CUFILE(CUfileError_t, cuFileStreamDeregister, CUstream stream) {
    if (int e = inject(__func__)) return failed(e);
    Lock lock(mu);
    if (!registered_streams.erase(stream)) return failed(say(VALUE, "cuFileStreamDeregister: the stream is not registered"));
    return failed(0);
}

// What is pointed to is looked at when the stream comes to it, unless the stream was registered with flags that
// say it is there at the call; the number of bytes is stored in either case when it was done. CUEMU_FAIL's code for
// "cuFileReadAsync" fails the call, and for "cuFileReadAsync.run" what the stream does, as with cuFileRead.
static CUfileError_t queue(const char* call, CUfileHandle_t handle, void* base, size_t* n, off_t* off, off_t* base_off, ssize_t* done, CUstream stream, bool read) {
    const Call border(call, true);
    const int e = border.error;
    if (e >= 5000) return failed(e);
    if (e) return cuda_failed(e);
    std::unique_lock<std::recursive_mutex> lock(mu);
    if (!n || !off || !base_off || !done) return failed(say(VALUE, "%s: a pointer is null", call));
    if (!stream || !known(stream)) return failed(say(VALUE, "%s: no stream", call));
    Move now;
    if (int bad = arguments(&now, call, handle, base, *n, *off, *base_off, read)) return failed(-bad);
    const auto s = registered_streams.find(stream);
    const unsigned flags = s == registered_streams.end() ? 0 : s->second;
    if (flags & PAGE_ALIGNED && (*n | *off | *base_off) % 4096) return failed(say(VALUE, "%s: the stream is registered for whole pages", call));
    const size_t n_now = *n;
    const off_t off_now = *off, base_off_now = *base_off;
    const std::string run = std::string(call) + ".run";
    lock.unlock(); // the devices' thread may run it now
    push(stream, call, [=] {
        const off_t o = flags & FIXED_FILE_OFFSET ? off_now : *off, b = flags & FIXED_BUF_OFFSET ? base_off_now : *base_off;
        size_t bytes = flags & FIXED_FILE_SIZE ? n_now : *n;
        if (bytes > n_now) { // a call states the most that it will move
            *done = -say(VALUE, "%s: %zu bytes where the call said %zu", run.c_str(), bytes, n_now);
            return;
        }
        const int fault = inject(run.c_str());
        if (fault >= 5000) {
            *done = -fault;
            return;
        }
        if (fault > 0) {
            *done = -1;
            return;
        }
        if (fault < 0 && (size_t)-fault < bytes) bytes = -fault;
        Move m;
        const int bad = arguments(&m, call, handle, base, bytes, o, b, read);
        if (!bad) charge({read ? Charge::Up : Charge::Down, "gds", bytes, bytes / clock_figure("gds")});
        *done = bad ? bad : move(m);
    });
    return failed(0);
}

CUFILE(CUfileError_t, cuFileReadAsync, CUfileHandle_t handle, void* base, size_t* n, off_t* off, off_t* base_off, ssize_t* done, CUstream stream) {
    return queue(__func__, handle, base, n, off, base_off, done, stream, true);
}

CUFILE(CUfileError_t, cuFileWriteAsync, CUfileHandle_t handle, void* base, size_t* n, off_t* off, off_t* base_off, ssize_t* done, CUstream stream) {
    return queue(__func__, handle, base, n, off, base_off, done, stream, false);
}
