// DEFLATE.
#include "formats.h"
#include <cstring>

namespace {

struct Bits {
    const uint8_t *in, *end;
    uint32_t held = 0;
    int n = 0;
    bool bad = false;

    int get(int k) {
        while (n < k) {
            if (in == end) {
                bad = true;
                return 0;
            }
            held |= (uint32_t)*in++ << n;
            n += 8;
        }
        const int v = held & ((1u << k) - 1);
        held >>= k;
        n -= k;
        return v;
    }
};

// A canonical code: how many codes there are of each length, and their symbols in order.
struct Code {
    uint16_t count[16] = {}, symbol[320];

    // make wants a complete code; of one symbol, or none, an incomplete one (section 3.2.7).
    bool make(const uint8_t* lengths, int n) {
        for (int i = 0; i < n; i++) count[lengths[i]]++;
        count[0] = 0;
        int left = 1, used = 0;
        for (int i = 1; i < 16; i++) {
            left = left * 2 - count[i];
            used += count[i];
            if (left < 0) return false;
        }
        uint16_t at[16] = {};
        for (int i = 1; i < 15; i++) at[i + 1] = at[i] + count[i];
        for (int i = 0; i < n; i++) {
            if (lengths[i]) symbol[at[lengths[i]]++] = (uint16_t)i;
        }
        return left == 0 || (used <= 1 && count[1] == used);
    }

    int get(Bits& bits) const {
        int code = 0, first = 0, index = 0;
        for (int i = 1; i < 16; i++) {
            code |= bits.get(1);
            if (bits.bad) return -1;
            if (code - count[i] < first) return symbol[index + code - first];
            index += count[i];
            first = (first + count[i]) * 2;
            code *= 2;
        }
        return -1;
    }
};

struct Output {
    uint8_t* out;
    size_t room, at = 0;
};

bool stored(Bits& bits, Output& o) {
    bits.held = 0;
    bits.n = 0;
    if (bits.end - bits.in < 4) return false;
    const size_t n = bits.in[0] | bits.in[1] << 8, not_n = bits.in[2] | bits.in[3] << 8;
    bits.in += 4;
    if ((n ^ not_n) != 0xffff || n > (size_t)(bits.end - bits.in) || n > o.room - o.at) return false;
    memcpy(o.out + o.at, bits.in, n);
    bits.in += n;
    o.at += n;
    return true;
}

bool compressed(Bits& bits, Output& o, const Code& literals, const Code& distances) {
    static const uint16_t base[29] = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    for (;;) {
        const int symbol = literals.get(bits);
        if (symbol < 0 || symbol > 285) return false;
        if (symbol == 256) return true;
        if (symbol < 256) {
            if (o.at == o.room) return false;
            o.out[o.at++] = (uint8_t)symbol;
            continue;
        }
        const size_t length = base[symbol - 257] + bits.get(extra[symbol - 257]);
        const int d = distances.get(bits);
        if (d < 0 || d > 29) return false;
        const int low = d < 2 ? 0 : d / 2 - 1;
        const size_t distance = d < 2 ? d + 1 : ((size_t)(2 + d % 2) << low) + bits.get(low) + 1;
        if (bits.bad || distance > o.at || length > o.room - o.at) return false;
        for (size_t i = 0; i < length; i++, o.at++) o.out[o.at] = o.out[o.at - distance];
    }
}

bool fixed(Bits& bits, Output& o) {
    uint8_t lengths[288 + 30];
    for (int i = 0; i < 288; i++) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    for (int i = 0; i < 30; i++) lengths[288 + i] = 5;
    Code literals, distances;
    literals.make(lengths, 288);
    distances.make(lengths + 288, 30); // two of 32 codes do not occur
    return compressed(bits, o, literals, distances);
}

bool dynamic(Bits& bits, Output& o) {
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const int n = bits.get(5) + 257, m = bits.get(5) + 1, k = bits.get(4) + 4;
    if (bits.bad || n > 286 || m > 30) return false;
    uint8_t lengths[320] = {};
    for (int i = 0; i < k; i++) lengths[order[i]] = (uint8_t)bits.get(3);
    Code of_lengths;
    if (!of_lengths.make(lengths, 19)) return false;
    for (int i = 0; i < n + m;) {
        const int symbol = of_lengths.get(bits);
        if (symbol < 0) return false;
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && i == 0) return false;
        const uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
        int times = symbol == 16 ? 3 + bits.get(2) : symbol == 17 ? 3 + bits.get(3) : 11 + bits.get(7);
        if (i + times > n + m) return false;
        while (times--) lengths[i++] = value;
    }
    Code literals, distances;
    return lengths[256] && literals.make(lengths, n) && distances.make(lengths + n, m) && compressed(bits, o, literals, distances);
}

} // namespace

long inflate_decode(uint8_t* out, size_t room, const uint8_t* in, size_t n) {
    Bits bits{in, in + n};
    Output o{out, room};
    for (bool last = false; !last;) {
        last = bits.get(1);
        const int type = bits.get(2);
        const bool good = !bits.bad && type != 3 && (type == 0 ? stored(bits, o) : type == 1 ? fixed(bits, o) : dynamic(bits, o));
        if (!good || bits.bad) return FAILED;
    }
    return bits.in == bits.end ? (long)o.at : FAILED;
}
