// Where a fiber, or the thread that runs them, goes on. swapcontext asks the kernel about signals at each change, which is most of
// the time that kernels with barriers take; sanitizers know it, and nothing else.
#pragma once
#include <cstddef>
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(EMU_TSAN)

struct Context {
    void* stack;
};

// Leaves what the ABI says that a call preserves on this stack, and goes on with what is on the other.
extern "C" void emu_change(void** left, void* other);
asm(R"(
    .pushsection .text
    .type emu_change, @function
emu_change:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .size emu_change, . - emu_change
    .popsection
)");

// The context begins with f, which does not return, on a stack that is aligned to 16 bytes.
static void begin_context(Context& c, char* stack, size_t size, void (*f)()) {
    void** top = (void**)(stack + size);
    *--top = nullptr; // f's return address, after which the ABI wants the alignment
    *--top = (void*)f;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    c.stack = top;
}

static void change_context(Context& from, Context& to) { emu_change(&from.stack, to.stack); }

#else
#include <ucontext.h>

typedef ucontext_t Context;

static void begin_context(Context& c, char* stack, size_t size, void (*f)()) {
    getcontext(&c);
    c.uc_stack.ss_sp = stack;
    c.uc_stack.ss_size = size;
    c.uc_link = nullptr;
    makecontext(&c, f, 0);
}

static void change_context(Context& from, Context& to) { swapcontext(&from, &to); }
#endif
