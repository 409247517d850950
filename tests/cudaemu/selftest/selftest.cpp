// usage: selftest SELECT.ptx [oob]
// A kernel with shared memory, barriers and atomics in one executable with the double, which can be built
// whole with sanitizers. oob: the kernel is told of one column more than there is.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>
#include "emu.h"

extern "C" {
CUresult cuInit(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxSynchronize(void);
CUresult cuMemAlloc_v2(CUdeviceptr*, size_t);
CUresult cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr, const void*, size_t, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void*, CUdeviceptr, size_t, CUstream);
CUresult cuModuleLoadDataEx(CUmodule*, const void*, unsigned, CUjit_option*, void**);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void**, void**);
}

static void check(const char* what, CUresult code) {
    if (!code) return;
    printf("%s: %d\n", what, (int)code);
    exit(1);
}
#define CHECK(call) check(#call, call)

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    std::ifstream file(argv[1]);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    CUcontext context;
    CUmodule module;
    CUfunction digits;
    CHECK(cuInit(0));
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr));
    CHECK(cuModuleGetFunction(&digits, module, "select_digits"));

    const size_t bins = 2 * 2048, width = 500, height = 4, pick_bytes = 40;
    std::vector<float> v(width * height);
    std::vector<unsigned long long> want(bins), got(bins);
    for (size_t i = 0; i < v.size(); i++) {
        v[i] = (float)(i * 7919 % 1000) - 300;
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        if (v[i] > 0) want[(bits | 0x80000000u) >> 21]++;
    }
    CUdeviceptr in, hist, picks;
    CHECK(cuMemAlloc_v2(&in, v.size() * 4));
    CHECK(cuMemAlloc_v2(&hist, bins * 8));
    CHECK(cuMemAlloc_v2(&picks, pick_bytes));
    CHECK(cuMemcpyHtoDAsync_v2(in, v.data(), v.size() * 4, nullptr));
    CHECK(cuMemsetD8Async(hist, 0, bins * 8, nullptr));
    CHECK(cuMemsetD8Async(picks, 0, pick_bytes, nullptr));
    int nz = 1, ny = height, nx = width + (argc > 2), each = 0, finite = 0, shift = 21, bits = 11;
    long long pitch = width, stride = v.size();
    void* params[] = {&in, &in, &hist, &picks, &nz, &ny, &nx, &pitch, &stride, &pitch, &stride, &each, &finite, &shift, &bits};
    CHECK(cuLaunchKernel(digits, 1, 3, 1, 256, 1, 1, 0, nullptr, params, nullptr));
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpyDtoHAsync_v2(got.data(), hist, bins * 8, nullptr));
    CHECK(cuCtxSynchronize());
    if (got != want) {
        puts("wrong counts");
        return 1;
    }
    puts("counts are right");
    return 0;
}
