// The formats of nvCOMP's double for formats.py.
#include "nvcomp/formats.h"

#define C_CALL extern "C" __attribute__((visibility("default")))
#define DECODER(name) C_CALL long name(uint8_t* out, size_t room, const uint8_t* in, size_t n) { return name##_decode(out, room, in, n); }
#define ENCODER(name)                                                                                                        \
    C_CALL size_t name##_pack(uint8_t* out, const uint8_t* in, size_t n) { return name##_encode(out, in, n); }             \
    C_CALL size_t name##_room(size_t n) { return name##_bound(n); }
DECODER(zstd)
DECODER(lz4)
DECODER(inflate)
ENCODER(zstd)
ENCODER(lz4)
