package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
)

// symbols are the driver's calls in the binding's source.
var symbols = regexp.MustCompile(`sym:"([^"]+)"`)

// shim writes the C source of a library that stands before libcuda: each call that driver, the binding's source,
// binds goes through to the library that REAL_LIBCUDA names, and one that takes more than 2 ms is a line in SHIM_LOG.
// That shows where the start of a program goes, and where nothing is called.
func shim(w io.Writer, driver string) error {
	b, err := os.ReadFile(driver)
	if err != nil {
		return err
	}
	var names []string
	for _, m := range symbols.FindAllStringSubmatch(string(b), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return fmt.Errorf("%s binds no calls", driver)
	}
	if _, err := io.WriteString(w, shimHead); err != nil {
		return err
	}
	for _, n := range names {
		fmt.Fprintf(w, "CALL(%s)\n", n)
	}
	return nil
}

const shimHead = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *real;
static FILE *out;
static double begun;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((constructor)) static void start(void) {
    const char *lib = getenv("REAL_LIBCUDA"), *log = getenv("SHIM_LOG");
    begun = now();
    out = log ? fopen(log, "w") : stderr;
    if (!out) out = stderr;
    setvbuf(out, NULL, _IOLBF, BUFSIZ);
    real = dlopen(lib ? lib : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!real) fprintf(out, "%s\n", dlerror());
}

typedef long word;
typedef word (*call)(word, word, word, word, word, word, word, word, word, word, word, word);

// The driver's calls take at most twelve arguments, all of them integers and pointers. What it lacks returns
// CUDA_ERROR_NOT_FOUND.
#define CALL(name) \
    word name(word a, word b, word c, word d, word e, word f, word g, word h, word i, word j, word k, word l) { \
        static call to; \
        if (!to && !(to = real ? (call)dlsym(real, #name) : NULL)) return 500; \
        const double from = now(); \
        const word result = to(a, b, c, d, e, f, g, h, i, j, k, l); \
        const double took = now() - from; \
        if (took > 2e-3) fprintf(out, "[%.3f] " #name " %.1f ms (%ld)\n", from - begun, took * 1e3, b); \
        return result; \
    }
`
