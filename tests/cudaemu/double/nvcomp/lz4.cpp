// Blocks of LZ4.
#include "formats.h"
#include <cstring>
#include <vector>

// The rest of a length whose four bits are full.
static bool more(const uint8_t*& in, const uint8_t* end, size_t& length) {
    for (;;) {
        if (in == end) return false;
        const uint8_t b = *in++;
        length += b;
        if (b != 255) return true;
    }
}

long lz4_decode(uint8_t* out, size_t room, const uint8_t* in, size_t n) {
    const uint8_t* const end = in + n;
    size_t at = 0;
    while (in < end) {
        const uint8_t token = *in++;
        size_t literals = token >> 4;
        if (literals == 15 && !more(in, end, literals)) return FAILED;
        if (literals > (size_t)(end - in) || literals > room - at) return FAILED;
        memcpy(out + at, in, literals);
        at += literals;
        in += literals;
        if (in == end) return (long)at; // the last sequence ends here, whatever match its token has
        if (end - in < 2) return FAILED;
        const size_t distance = in[0] | in[1] << 8;
        in += 2;
        size_t match = token & 15;
        if (match == 15 && !more(in, end, match)) return FAILED;
        match += 4;
        if (!distance || distance > at || match > room - at) return FAILED;
        for (size_t i = 0; i < match; i++, at++) out[at] = out[at - distance];
    }
    return n ? (long)at : FAILED; // or with its match
}

size_t lz4_bound(size_t n) { return n + n / 255 + 16; }

static uint8_t* put_length(uint8_t* out, size_t length) {
    for (; length >= 255; length -= 255) *out++ = 255;
    *out++ = (uint8_t)length;
    return out;
}

static uint8_t* put_sequence(uint8_t* out, const uint8_t* literals, size_t n, size_t match, size_t distance) {
    const size_t m = match ? match - 4 : 0;
    *out++ = (uint8_t)((n < 15 ? n : 15) << 4 | (m < 15 ? m : 15));
    if (n >= 15) out = put_length(out, n - 15);
    memcpy(out, literals, n);
    out += n;
    if (!match) return out;
    *out++ = (uint8_t)distance;
    *out++ = (uint8_t)(distance >> 8);
    if (m >= 15) out = put_length(out, m - 15);
    return out;
}

// Greedy, with the last place of each hash of four bytes.
size_t lz4_encode(uint8_t* out, const uint8_t* in, size_t n) {
    uint8_t* const start = out;
    std::vector<uint32_t> last(4096, UINT32_MAX);
    size_t from = 0, i = 0;
    while (n >= 13 && i + 12 < n) { // the last match begins 12 bytes before the end, the last 5 bytes are literals
        uint32_t word;
        memcpy(&word, in + i, 4);
        uint32_t& place = last[word * 2654435761u >> 20];
        const size_t seen = place;
        place = (uint32_t)i;
        if (seen == UINT32_MAX || i - seen > 65535 || memcmp(in + seen, in + i, 4)) {
            i++;
            continue;
        }
        size_t match = 4;
        while (i + match < n - 5 && in[seen + match] == in[i + match]) match++;
        out = put_sequence(out, in + from, i - from, match, i - seen);
        from = i += match;
    }
    uint8_t* const last_token = out;
    out = put_sequence(out, in + from, n - from, 0, 0);
    *last_token |= 12; // NVIDIA's encoder writes the length of a match of 0 bytes, less 4
    return out - start;
}
