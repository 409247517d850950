// What kernels that are compiled with -fsanitize=thread call at every access (build.sh -DEMU_TRACE): here they tell the
// double instead of the sanitizer's library.
#ifdef EMU_TRACE
#include "emu.h"

// Elsewhere are the stacks of threads.
static void seen(uintptr_t p, size_t n, Touch how) {
    if (in_arena(p)) touched(p, n, how);
}

#define READ(n) \
    HOOK(__tsan_read##n, void* p) { seen((uintptr_t)p, n, Touch::Read); } \
    HOOK(__tsan_unaligned_read##n, void* p) { seen((uintptr_t)p, n, Touch::Read); }
#define WRITE(n) \
    HOOK(__tsan_write##n, void* p) { seen((uintptr_t)p, n, Touch::Write); } \
    HOOK(__tsan_unaligned_write##n, void* p) { seen((uintptr_t)p, n, Touch::Write); }
#define ADD(bits, T) \
    extern "C" T __tsan_atomic##bits##_fetch_add(volatile T* p, T v, int) { \
        seen((uintptr_t)p, sizeof(T), Touch::Atomic); \
        const T old = *p; \
        *p = old + v; \
        return old; \
    }
#define HOOK(name, ...) extern "C" void name(__VA_ARGS__)

HOOK(__tsan_init) {}
HOOK(__tsan_func_entry, void*) {}
HOOK(__tsan_func_exit) {}
READ(1) READ(2) READ(4) READ(8) READ(16)
WRITE(1) WRITE(2) WRITE(4) WRITE(8) WRITE(16)
HOOK(__tsan_read_range, void* p, size_t n) { seen((uintptr_t)p, n, Touch::Read); }
HOOK(__tsan_write_range, void* p, size_t n) { seen((uintptr_t)p, n, Touch::Write); }
ADD(32, uint32_t)
ADD(64, uint64_t)
#endif
