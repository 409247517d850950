// A test double of libnvcomp.so.6, or of libnvcomp.so.5 (-DNVCOMP_DOUBLE=5): the part of the low-level batched API that the
// Go side binds, on the memory and the streams of the double of libcuda.so.1. Work is done when somebody waits
// for the stream. What NVIDIA calls undefined is found: pointers that are not device memory, too little
// temporary memory, misaligned buffers, options that are not the ones that we mean.
#include "../emu.h"
#include "formats.h"
#include <algorithm>
#include <cstring>

#ifndef NVCOMP_DOUBLE
#define NVCOMP_DOUBLE 6
#endif

#ifdef EMU_CHECK_NVCOMP_H // the compiler then compares every prototype with NVIDIA's
#include <nvcomp/deflate.h>
#include <nvcomp/lz4.h>
#include <nvcomp/zstd.h>
#else
typedef int nvcompStatus_t;
typedef CUstream cudaStream_t;
struct nvcompProperties_t {
    uint32_t version, cudart_version;
};
struct nvcompAlignmentRequirements_t {
    size_t input, output, temp;
};
struct Options {
    int word[16];
};
typedef Options nvcompBatchedZstdCompressOpts_t, nvcompBatchedZstdDecompressOpts_t, nvcompBatchedLZ4CompressOpts_t, nvcompBatchedLZ4DecompressOpts_t,
    nvcompBatchedDeflateDecompressOpts_t;
#endif

#define NVCOMP(name, ...) extern "C" __attribute__((visibility("default"))) nvcompStatus_t name(__VA_ARGS__)
#define S(x) ((nvcompStatus_t)(x))

namespace {

enum : int { SUCCESS = 0, INVALID = 10, CANNOT_DECOMPRESS = 12, CHUNK_TOO_LARGE = 18, CUDA_ERROR = 1000 };

struct Format {
    const char* name; // of its figures in the virtual clock's table
    long (*decode)(uint8_t*, size_t, const uint8_t*, size_t);
    size_t (*encode)(uint8_t*, const uint8_t*, size_t);
    size_t (*bound)(size_t);
    size_t largest;                 // chunk to encode
    size_t decode_input, encode_input; // alignments, as NVIDIA's library gives them
    size_t decode_temp, decode_block; // temporary bytes for a decoded byte, and for a block of 128 KiB or a chunk
    size_t encode_temp; // bytes a chunk
    bool* decoded; // whether its kernels are loaded
    bool* encoded;
};
bool loaded[5];
// NVIDIA's 6.0.0 asks for the same, but to encode Zstandard: for that it asks the device (see encode_temp).
const Format Zstd{"zstd", zstd_decode, zstd_encode, zstd_bound, 16 << 20, 1, 4, 3, 6936, 2048, &loaded[0], &loaded[1]};
const Format LZ4{"lz4", lz4_decode, lz4_encode, lz4_bound, 16 << 20, 1, 1, 0, 0, 32768, &loaded[2], &loaded[3]};
const Format Deflate{"deflate", inflate_decode, nullptr, nullptr, 0, 4, 8, 0, 0, 0, &loaded[4], nullptr};
const size_t TEMP_ALIGNMENT = 8;

// All options are 64 bytes; the first four are the backend of a decoder.
int options(const char* call, const void* p, bool decoder) {
    int word[16];
    memcpy(word, p, sizeof word);
    for (int i = decoder; i < 16; i++) {
        if (word[i]) return say(INVALID, "%s: word %d of the options is %d", call, i, word[i]);
    }
    if (decoder && word[0] != 2) return say(INVALID, "%s: backend %d, we mean CUDA's", call, word[0]);
    return 0;
}

// What a call returns before it does anything: CUEMU_FAIL's code, or that CUDA failed.
int begin(const char* call) {
    if (int e = inject(call)) return e;
    return entered("", true) ? CUDA_ERROR : 0;
}

int fault(const char* call, const char* what, size_t chunk) {
    sticky() = ILLEGAL_ADDRESS;
    return say(ILLEGAL_ADDRESS, "%s: chunk %zu: %s", call, chunk, what);
}

// CUEMU_CHUNK="nth:status,…": the nth chunk that is decoded or encoded ends with that status, with WRONG in
// success with a wrong byte.
const int WRONG = -1;
int inject_chunk() { // on the devices' thread
    static int chunks = 0;
    static auto& before = *new std::string;
    const char* p = env("CUEMU_CHUNK", "");
    if (before != p) {
        before = p;
        chunks = 0;
    }
    const int n = ++chunks;
    for (; *p; p++) {
        int nth, status;
        if (sscanf(p, "%d:%d", &nth, &status) == 2 && nth == n) return say(status, "injected in chunk %d", n);
        if (!(p = strchr(p, ','))) break;
    }
    return 0;
}

// encode_temp is the temporary memory of n chunks. To encode Zstandard, NVIDIA's 6.0.0 wants up to 1.1 GiB on an H100, however few chunks
// there are: CUEMU_NVCOMP_SCRATCH says how much more than the chunks' own it is here.
size_t encode_temp(const Format& f, size_t n) { return f.encode_temp * n + (&f == &Zstd ? (size_t)env_number("CUEMU_NVCOMP_SCRATCH", 0) : 0); }

size_t decode_temp(const Format& f, size_t n, size_t decoded) { return f.decode_temp * decoded + f.decode_block * std::max(n, decoded >> 17); }

struct Batch {
    const char* call;
    const Format* format;
    bool decodes;
    const uint8_t* const* in;
    const size_t* in_bytes;
    const size_t* room; // of decoders
    size_t* out_bytes;
    size_t n;
    uint8_t* temp;
    size_t temp_bytes;
    uint8_t* const* out;
    int* status;

    int check() const {
        for (const void* p : {(const void*)in, (const void*)in_bytes, (const void*)out_bytes, (const void*)out, decodes ? (const void*)room : in}) {
            if ((uintptr_t)p % 8 || !device_range((uintptr_t)p, 8 * n)) return say(INVALID, "%s: %p is no array of %zu words of the device", call, p, n);
        }
        if ((uintptr_t)status % 4 || !device_range((uintptr_t)status, 4 * n)) return say(INVALID, "%s: %p has no room for statuses", call, (void*)status);
        if (temp_bytes && ((uintptr_t)temp % TEMP_ALIGNMENT || !device_range((uintptr_t)temp, temp_bytes))) return say(INVALID, "%s: bad temporary memory", call);
        const size_t want = decodes ? 0 : encode_temp(*format, n);
        if (temp_bytes < want) return say(INVALID, "%s: %zu bytes of temporary memory, %zu are needed", call, temp_bytes, want);
        return 0;
    }

    void run() const { // the device's thread
        Open open;
        for (const void* p : {(const void*)in, (const void*)in_bytes, (const void*)out, decodes ? (const void*)room : in}) touched((uintptr_t)p, 8 * n, Touch::Read);
        touched((uintptr_t)out_bytes, 8 * n, Touch::Write);
        touched((uintptr_t)status, 4 * n, Touch::Write);
        touched((uintptr_t)temp, temp_bytes, Touch::Write);
        if (temp_bytes) memset(temp, 0xa5, std::min<size_t>(temp_bytes, 64 << 20));
        uint64_t bytes = 0, longest = 0; // decoded
        for (size_t i = 0; i < n; i++) {
            const size_t one = decodes ? room[i] : in_bytes[i];
            bytes += one;
            longest = std::max<uint64_t>(longest, one);
        }
        if (decodes && temp_bytes < decode_temp(*format, n, bytes)) {
            fault(call, "the batch decodes to more bytes than its temporary memory is for", 0);
            return;
        }
        for (size_t i = 0; i < n; i++) {
            if (!chunk(i)) return;
        }
        clock_batch(std::string(format->name) + (decodes ? "_decode" : "_encode"), n, longest, bytes);
    }

    bool chunk(size_t i) const {
        const size_t align = decodes ? format->decode_input : format->encode_input;
        if ((uintptr_t)in[i] % align) return fault(call, "misaligned input", i), false;
        if (!device_range((uintptr_t)in[i], in_bytes[i])) return fault(call, "its input is not device memory", i), false;
        const size_t most = decodes ? room[i] : format->bound(in_bytes[i]);
        if (!device_range((uintptr_t)out[i], most)) return fault(call, "its output is not device memory", i), false;
        if (!decodes && in_bytes[i] > format->largest) return fault(call, "too large", i), false;
        touched((uintptr_t)in[i], in_bytes[i], Touch::Read);
        touched((uintptr_t)out[i], most, Touch::Write);
        std::vector<uint8_t> from(in[i], in[i] + in_bytes[i]), to(most, 0xee); // the rest of the room is not left alone
        long wrote = 0;
        int e = inject_chunk();
        const bool wrong = e == WRONG;
        if (!e || wrong) {
            e = 0;
            wrote = decodes ? format->decode(to.data(), most, from.data(), from.size()) : (long)format->encode(to.data(), from.data(), from.size());
            if (wrote < 0) e = CANNOT_DECOMPRESS;
        }
        if (wrong && wrote > 0) to[wrote / 2] ^= 1;
        std::copy(to.begin(), to.end(), out[i]);
        status[i] = e;
        out_bytes[i] = e ? 0 : wrote;
        return true;
    }
};

int queue(const Batch& b, cudaStream_t stream) {
    const Call border("", true); // for the clock
    if (border.error) return CUDA_ERROR;
    if (int e = b.check()) return e;
    if (bool& there = *(b.decodes ? b.format->decoded : b.format->encoded); clock_on && !there) {
        there = true; // a first call loads the kernels
        const char* first = b.decodes ? "decode_first" : "encode_first";
        clock_spend(first, clock_figure(first), 0);
    }
    return push((CUstream)stream, b.call, [=] { b.run(); }) ? CUDA_ERROR : 0;
}

int temp_size(const char* call, size_t n, size_t bytes, size_t* temp) {
    if (int e = begin(call)) return e;
    if (!n) return INVALID;
    *temp = bytes;
    return 0;
}

} // namespace

NVCOMP(nvcompGetProperties, nvcompProperties_t* p) {
    p->version = env_number("CUEMU_NVCOMP_VERSION", NVCOMP_DOUBLE == 5 ? 5100 : 6000);
    p->cudart_version = 12000;
    return S(0);
}

#if NVCOMP_DOUBLE >= 6
#define TEMP_SIZE(F, WAY) NVCOMP(nvcompBatched##F##WAY##GetTempSize, size_t n, size_t largest, nvcompBatched##F##WAY##Opts_t o, size_t* temp, size_t total, cudaStream_t stream)
#else
#define TEMP_SIZE(F, WAY) NVCOMP(nvcompBatched##F##WAY##GetTempSizeAsync, size_t n, size_t largest, nvcompBatched##F##WAY##Opts_t o, size_t* temp, size_t total)
#endif

#define DECODER(F)                                                                                                              \
    NVCOMP(nvcompBatched##F##DecompressGetRequiredAlignments, nvcompBatched##F##DecompressOpts_t o, nvcompAlignmentRequirements_t* a) { \
        if (int e = inject(__func__)) return S(e);                                                                              \
        if (int e = options(__func__, &o, true)) return S(e);                                                                   \
        *a = {F.decode_input, 1, F.decode_temp ? TEMP_ALIGNMENT : 1};                                                           \
        return S(0);                                                                                                            \
    }                                                                                                                           \
    TEMP_SIZE(F, Decompress) {                                                                                                  \
        if (int e = options(__func__, &o, true)) return S(e);                                                                   \
        return S(temp_size(__func__, n, decode_temp(F, n, std::min(n * largest, total)), temp));                                    \
    }                                                                                                                           \
    NVCOMP(nvcompBatched##F##DecompressAsync, const void* const* in, const size_t* in_bytes, const size_t* room, size_t* out_bytes, size_t n, \
        void* const temp, size_t temp_bytes, void* const* out, nvcompBatched##F##DecompressOpts_t o, nvcompStatus_t* status, cudaStream_t stream) { \
        if (int e = begin(__func__)) return S(e);                                                                               \
        if (int e = options(__func__, &o, true)) return S(e);                                                                   \
        return S(queue({__func__, &F, true, (const uint8_t* const*)in, in_bytes, room, out_bytes, n, (uint8_t*)temp, temp_bytes, \
            (uint8_t* const*)out, (int*)status}, stream));                                                                      \
    }

#define ENCODER(F)                                                                                                              \
    NVCOMP(nvcompBatched##F##CompressGetRequiredAlignments, nvcompBatched##F##CompressOpts_t o, nvcompAlignmentRequirements_t* a) { \
        if (int e = inject(__func__)) return S(e);                                                                              \
        if (int e = options(__func__, &o, false)) return S(e);                                                                  \
        *a = {F.encode_input, 1, F.encode_temp ? TEMP_ALIGNMENT : 1};                                                           \
        return S(0);                                                                                                            \
    }                                                                                                                           \
    TEMP_SIZE(F, Compress) {                                                                                                    \
        if (int e = options(__func__, &o, false)) return S(e);                                                                  \
        if (largest > F.largest) return S(CHUNK_TOO_LARGE);                                                                     \
        return S(temp_size(__func__, n, encode_temp(F, n), temp));                                                              \
    }                                                                                                                           \
    NVCOMP(nvcompBatched##F##CompressGetMaxOutputChunkSize, size_t largest, nvcompBatched##F##CompressOpts_t o, size_t* most) { \
        if (int e = inject(__func__)) return S(e);                                                                              \
        if (int e = options(__func__, &o, false)) return S(e);                                                                  \
        if (largest > F.largest) return S(CHUNK_TOO_LARGE);                                                                     \
        *most = F.bound(largest);                                                                                               \
        return S(0);                                                                                                            \
    }                                                                                                                           \
    NVCOMP(nvcompBatched##F##CompressAsync, const void* const* in, const size_t* in_bytes, size_t largest, size_t n, void* temp, size_t temp_bytes, \
        void* const* out, size_t* out_bytes, nvcompBatched##F##CompressOpts_t o, nvcompStatus_t* status, cudaStream_t stream) { \
        if (int e = begin(__func__)) return S(e);                                                                               \
        if (int e = options(__func__, &o, false)) return S(e);                                                                  \
        if (largest > F.largest) return S(CHUNK_TOO_LARGE);                                                                     \
        return S(queue({__func__, &F, false, (const uint8_t* const*)in, in_bytes, nullptr, out_bytes, n, (uint8_t*)temp, temp_bytes, \
            (uint8_t* const*)out, (int*)status}, stream));                                                                      \
    }

DECODER(Zstd)
DECODER(LZ4)
DECODER(Deflate)
ENCODER(Zstd)
ENCODER(LZ4)
