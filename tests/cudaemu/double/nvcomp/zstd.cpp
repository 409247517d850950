// Frames of Zstandard, as RFC 8878 has them. A content checksum is not looked at.
#include "formats.h"
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace {

const size_t BLOCK_MAX = 128 << 10;

int log2_of(uint32_t x) { return 31 - __builtin_clz(x); }

struct Bad {}; // thrown for what the RFC forbids

void need(bool good) {
    if (!good) throw Bad();
}

struct Bytes {
    const uint8_t *p, *end;

    size_t left() const { return end - p; }
    uint64_t get(int n) { // little-endian
        need(left() >= (size_t)n);
        uint64_t v = 0;
        for (int i = 0; i < n; i++) v |= (uint64_t)*p++ << 8 * i;
        return v;
    }
    Bytes take(size_t n) {
        need(left() >= n);
        p += n;
        return Bytes{p - n, p};
    }
};

// Bits from the end of the input to its beginning; the highest set bit of the last byte is the mark before them.
struct Backward {
    const uint8_t* p;
    long at; // bits that are left; less than none once too many were read

    explicit Backward(Bytes b) : p(b.p) {
        need(b.left() > 0 && b.end[-1]);
        at = (long)(b.left() - 1) * 8 + log2_of(b.end[-1]);
    }
    uint32_t get(int n) {
        uint32_t v = 0;
        for (int i = 0; i < n; i++) {
            at--;
            v = v << 1 | (at >= 0 ? p[at >> 3] >> (at & 7) & 1 : 0);
        }
        return v;
    }
};

// ---- Finite state entropy, section 4.1

struct State {
    uint8_t symbol, bits;
    uint16_t base;
};

struct Table {
    int log = -1; // none
    std::vector<State> states;

    void build(const int* share, int n, int accuracy) {
        const int size = 1 << accuracy;
        log = accuracy;
        states.assign(size, State{});
        int high = size, at = 0;
        uint16_t next[256];
        for (int s = 0; s < n; s++) {
            next[s] = share[s] < 0 ? 1 : share[s];
            if (share[s] < 0) states[--high].symbol = (uint8_t)s;
        }
        const int step = size / 2 + size / 8 + 3;
        for (int s = 0; s < n; s++) {
            for (int i = 0; i < share[s]; i++) {
                states[at].symbol = (uint8_t)s;
                do {
                    at = (at + step) % size;
                } while (at >= high);
            }
        }
        need(at == 0);
        for (State& s : states) {
            const int x = next[s.symbol]++;
            s.bits = (uint8_t)(accuracy - log2_of(x));
            s.base = (uint16_t)((x << s.bits) - size);
        }
    }

    void always(int symbol) {
        log = 0;
        states.assign(1, State{(uint8_t)symbol, 0, 0});
    }

    void read(Bytes& in, int most_symbols, int most_log) {
        size_t at = 0; // bits
        const auto peek = [&](int n) {
            uint32_t v = 0;
            for (int i = 0; i < n; i++) {
                const size_t b = at + i;
                if (b / 8 < in.left()) v |= (uint32_t)(in.p[b / 8] >> b % 8 & 1) << i;
            }
            return v;
        };
        const int accuracy = (int)peek(4) + 5;
        at += 4;
        need(accuracy <= most_log);
        int remaining = 1 << accuracy, n = 0, share[256];
        while (remaining > 0) {
            need(n < most_symbols);
            const int bits = log2_of(remaining + 1) + 1, half = (1 << (bits - 1)) - 1, spare = (1 << bits) - 2 - remaining;
            int v = (int)peek(bits);
            if ((v & half) < spare) {
                v &= half;
                at += bits - 1;
            } else {
                if (v > half) v -= spare;
                at += bits;
            }
            const int s = v - 1;
            remaining -= s < 0 ? 1 : s;
            share[n++] = s;
            if (s == 0) {
                int zeros;
                do {
                    zeros = (int)peek(2);
                    at += 2;
                    need(n + zeros <= most_symbols);
                    for (int i = 0; i < zeros; i++) share[n++] = 0;
                } while (zeros == 3);
            }
        }
        need(remaining == 0 && (at + 7) / 8 <= in.left());
        in.p += (at + 7) / 8;
        build(share, n, accuracy);
    }
};

struct Decoder {
    const Table& table;
    uint32_t state;

    Decoder(const Table& t, Backward& bits) : table(t), state(bits.get(t.log)) {}
    int symbol() const { return table.states[state].symbol; }
    void next(Backward& bits) {
        const State& s = table.states[state];
        state = s.base + bits.get(s.bits);
    }
};

// ---- Huffman codes, section 4.2

struct Huffman {
    int log = 0; // 0: none
    uint8_t symbol[1 << 11], bits[1 << 11];

    void read(Bytes& in) {
        uint8_t weight[256] = {};
        int n = 0;
        const int head = (int)in.get(1);
        if (head >= 128) {
            n = head - 127;
            Bytes b = in.take((n + 1) / 2);
            for (int i = 0; i < n; i++) weight[i] = i % 2 ? b.p[i / 2] & 15 : b.p[i / 2] >> 4;
        } else {
            Bytes b = in.take(head);
            Table t;
            t.read(b, 256, 6);
            Backward stream(b);
            Decoder one(t, stream), two(t, stream);
            for (Decoder *a = &one, *other = &two;; std::swap(a, other)) {
                need(n < 254);
                weight[n++] = (uint8_t)a->symbol();
                a->next(stream);
                if (stream.at < 0) {
                    weight[n++] = (uint8_t)other->symbol();
                    break;
                }
            }
        }
        uint32_t sum = 0;
        for (int i = 0; i < n; i++) {
            need(weight[i] <= 11);
            if (weight[i]) sum += 1u << (weight[i] - 1);
        }
        need(sum > 0);
        log = log2_of(sum) + 1;
        const uint32_t rest = (1u << log) - sum;
        need(log <= 11 && (rest & (rest - 1)) == 0);
        weight[n++] = (uint8_t)(log2_of(rest) + 1);
        need(std::count(weight, weight + n, 1) >= 2); // the longest codes differ in their last bit
        int at = 0;
        for (int w = 1; w <= log; w++) {
            for (int s = 0; s < n; s++) {
                if (weight[s] != w) continue;
                for (int i = 0; i < 1 << (w - 1); i++, at++) {
                    symbol[at] = (uint8_t)s;
                    bits[at] = (uint8_t)(log + 1 - w);
                }
            }
        }
        need(at == 1 << log);
    }

    void decode(Bytes in, uint8_t* out, size_t n) const {
        Backward stream(in);
        uint32_t window = stream.get(log);
        for (size_t i = 0; i < n; i++) {
            out[i] = symbol[window];
            const int used = bits[window];
            need(stream.at + log >= used);
            window = (window << used & ((1u << log) - 1)) | stream.get(used);
        }
        need(stream.at + log == 0);
    }
};

// ---- Blocks, section 3.1.1.3

const int16_t literal_shares[36] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
const int16_t match_shares[53] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
const int16_t offset_shares[29] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
const uint8_t literal_bits[36] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
const uint8_t match_bits[53] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// Each code's first value follows from the bits of those before it.
uint32_t first_of(const uint8_t* bits, int code, uint32_t first) {
    for (int i = 0; i < code; i++) first += 1u << bits[i];
    return first;
}

struct Frame {
    uint8_t* out = nullptr;
    size_t room = 0, at = 0;
    Huffman huffman;
    Table literals, offsets, matches;
    uint32_t repeat[3] = {1, 4, 8};

    void put(const uint8_t* from, size_t n) {
        need(n <= room - at);
        if (n) memcpy(out + at, from, n);
        at += n;
    }

    std::vector<uint8_t> read_literals(Bytes& in) {
        need(in.left() > 0);
        const int type = *in.p & 3, format = *in.p >> 2 & 3;
        std::vector<uint8_t> v;
        if (type < 2) {
            const int bytes = format == 1 ? 2 : format == 3 ? 3 : 1;
            const size_t n = in.get(bytes) >> (bytes == 1 ? 3 : 4);
            need(n <= BLOCK_MAX);
            if (type == 0) {
                Bytes b = in.take(n);
                v.assign(b.p, b.end);
            } else {
                v.assign(n, (uint8_t)in.get(1));
            }
            return v;
        }
        const int bytes = format < 2 ? 3 : format + 2, width = format < 2 ? 10 : format == 2 ? 14 : 18;
        const uint64_t head = in.get(bytes) >> 4;
        const size_t n = head & ((1u << width) - 1), packed = head >> width;
        need(n <= BLOCK_MAX);
        Bytes b = in.take(packed);
        if (type == 2) huffman.read(b);
        need(huffman.log > 0);
        v.resize(n);
        if (format == 0) {
            huffman.decode(b, v.data(), n);
            return v;
        }
        size_t size[4] = {b.get(2), b.get(2), b.get(2), 0}, each = (n + 3) / 4;
        need(size[0] + size[1] + size[2] <= b.left() && 3 * each <= n);
        size[3] = b.left() - size[0] - size[1] - size[2];
        for (int i = 0; i < 4; i++) huffman.decode(b.take(size[i]), v.data() + i * each, i < 3 ? each : n - 3 * each);
        return v;
    }

    static void read_table(Bytes& in, int mode, Table& t, const int16_t* shares, int n, int log, int most_log) {
        switch (mode) {
        case 0: {
            int wide[64];
            for (int i = 0; i < n; i++) wide[i] = shares[i];
            t.build(wide, n, log);
            break;
        }
        case 1: {
            const int symbol = (int)in.get(1);
            need(symbol < n + (most_log == 8 ? 3 : 0)); // offsets up to 2^31
            t.always(symbol);
            break;
        }
        case 2: t.read(in, n + (most_log == 8 ? 3 : 0), most_log); break;
        default: need(t.log >= 0);
        }
    }

    uint32_t distance(int code, uint32_t extra, bool no_literals) { // section 3.1.1.5
        const uint64_t value = (1ull << code) + extra;
        if (value > 3) {
            need(value - 3 <= UINT32_MAX);
            repeat[2] = repeat[1];
            repeat[1] = repeat[0];
            return repeat[0] = (uint32_t)(value - 3);
        }
        const int i = (int)value - 1 + no_literals;
        if (i == 0) return repeat[0];
        const uint32_t d = i < 3 ? repeat[i] : repeat[0] - 1;
        need(d > 0);
        if (i > 1) repeat[2] = repeat[1];
        repeat[1] = repeat[0];
        return repeat[0] = d;
    }

    void compressed(Bytes in) {
        const std::vector<uint8_t> v = read_literals(in);
        const size_t start = at;
        size_t used = 0;
        uint32_t n = (uint32_t)in.get(1);
        if (n >= 128) n = n == 255 ? (uint32_t)in.get(2) + 0x7f00 : (n - 128) << 8 | (uint32_t)in.get(1);
        if (n == 0) need(in.left() == 0);
        if (n > 0) {
            const int modes = (int)in.get(1);
            need((modes & 3) == 0);
            read_table(in, modes >> 6, literals, literal_shares, 36, 6, 9);
            read_table(in, modes >> 4 & 3, offsets, offset_shares, 29, 5, 8);
            read_table(in, modes >> 2 & 3, matches, match_shares, 53, 6, 9);
            Backward bits(in);
            Decoder l(literals, bits), o(offsets, bits), m(matches, bits);
            for (uint32_t i = 0; i < n; i++) {
                const int oc = o.symbol(), mc = m.symbol(), lc = l.symbol();
                need(oc < 32 && mc < 53 && lc < 36);
                const uint32_t extra = bits.get(oc);
                const size_t match = first_of(match_bits, mc, 3) + bits.get(match_bits[mc]);
                const size_t run = first_of(literal_bits, lc, 0) + bits.get(literal_bits[lc]);
                const size_t d = distance(oc, extra, run == 0);
                need(bits.at >= 0 && run <= v.size() - used);
                put(v.data() + used, run);
                used += run;
                need(d <= at && match <= room - at);
                for (size_t k = 0; k < match; k++, at++) out[at] = out[at - d];
                if (i + 1 < n) {
                    l.next(bits);
                    m.next(bits);
                    o.next(bits);
                }
            }
            need(bits.at == 0);
        }
        put(v.data() + used, v.size() - used);
        need(at - start <= BLOCK_MAX);
    }

    void decode(Bytes in) {
        need(in.get(4) == 0xfd2fb528);
        const int d = (int)in.get(1);
        const bool single = d & 0x20, sum = d & 4;
        need((d & 8) == 0 && (d & 3) == 0); // reserved; no dictionaries
        if (!single) in.get(1);             // the window: memory is no concern here
        const int width = d >> 6 ? 1 << (d >> 6) : single;
        const uint64_t content = in.get(width) + (width == 2 ? 256 : 0);
        for (bool last = false; !last;) {
            const uint32_t head = (uint32_t)in.get(3), n = head >> 3;
            last = head & 1;
            need(n <= BLOCK_MAX);
            switch (head >> 1 & 3) {
            case 0: {
                const Bytes b = in.take(n);
                put(b.p, n);
                break;
            }
            case 1: {
                const uint8_t byte = (uint8_t)in.get(1);
                need(n <= room - at);
                memset(out + at, byte, n);
                at += n;
                break;
            }
            case 2: compressed(in.take(n)); break;
            default: need(false);
            }
        }
        if (sum) in.get(4);
        need(in.left() == 0 && (width == 0 || content == at));
    }
};

} // namespace

long zstd_decode(uint8_t* out, size_t room, const uint8_t* in, size_t n) {
    auto frame = new Frame;
    frame->out = out;
    frame->room = room;
    long wrote = FAILED;
    try {
        frame->decode(Bytes{in, in + n});
        wrote = (long)frame->at;
    } catch (const Bad&) {
    }
    delete frame;
    return wrote;
}

size_t zstd_bound(size_t n) { return n + n / 65536 * 3 + 13; }

// Blocks of one byte for runs, blocks as they are for the rest.
size_t zstd_encode(uint8_t* out, const uint8_t* in, size_t n) {
    uint8_t* const start = out;
    const auto put = [&](uint64_t v, int bytes) {
        for (int i = 0; i < bytes; i++) *out++ = (uint8_t)(v >> 8 * i);
    };
    put(0xfd2fb528, 4);
    put(0xa0, 1); // a single segment, its size in four bytes
    put(n, 4);
    size_t at = 0;
    do {
        size_t run = 0, plain = 0;
        const auto run_at = [&](size_t i) {
            size_t k = i + 1;
            while (k < n && k - i < BLOCK_MAX && in[k] == in[i]) k++;
            return i < n ? k - i : 0;
        };
        while (at + plain < n && plain < 65536 && (run = run_at(at + plain)) < 16) plain += run;
        if (plain > 65536) plain = 65536;
        const size_t size = plain ? plain : run;
        put((at + size == n) | (plain || !n ? 0 : 2) | size << 3, 3);
        if (plain) {
            memcpy(out, in + at, plain);
            out += plain;
        } else if (n) {
            *out++ = in[at];
        }
        at += size;
    } while (at < n);
    return out - start;
}
