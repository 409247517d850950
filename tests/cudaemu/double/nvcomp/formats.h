// The compressed formats of the nvCOMP double, on host memory. They are written from the formats'
// specifications, so that they judge our codecs. A decoder gives the number of bytes that it wrote, or FAILED
// for what its specification forbids, for what is truncated or followed by more, and for what does not fit.
#pragma once
#include <cstddef>
#include <cstdint>

const long FAILED = -1;

long zstd_decode(uint8_t* out, size_t room, const uint8_t* in, size_t n);    // one frame; RFC 8878
long lz4_decode(uint8_t* out, size_t room, const uint8_t* in, size_t n);     // one block; lz4_Block_format.md
long inflate_decode(uint8_t* out, size_t room, const uint8_t* in, size_t n); // one stream; RFC 1951

// An encoder gives the number of bytes that it wrote; the bound is the most that they can be.
size_t zstd_bound(size_t n);
size_t zstd_encode(uint8_t* out, const uint8_t* in, size_t n);
size_t lz4_bound(size_t n);
size_t lz4_encode(uint8_t* out, const uint8_t* in, size_t n);
