// What a launch asks of memory, counted as warps of a device would ask: lanes that run an instruction for the same time ask together.
// Lanes that went different ways before are counted as if they had met again, as they do where the compiler lets them.
#include <algorithm>
#include "ptx_code.h"

namespace ptx {

namespace {

const size_t UNIQUE_FROM = 1 << 20; // sectors that are kept before doubles are left out

void leave_out_doubles(std::vector<uint64_t>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
}

} // namespace

void Counter::begin(size_t threads, size_t instructions) {
    many = instructions;
    times.assign(threads * instructions, 0);
    loads.assign(threads, 0);
}

void Counter::touch(unsigned thread, size_t instruction, Space space, Access access, uint64_t address, size_t n) {
    uint32_t& time = times[thread * many + instruction];
    asked.push_back(Asked{address, time++, (uint32_t)instruction, (uint16_t)thread, (uint8_t)n, space == Space::Shared, access});
    if (space == Space::Global && access == Access::Read) counts.longest = std::max(counts.longest, (uint64_t)++loads[thread]);
}

void Counter::end_block() {
    std::sort(asked.begin(), asked.end(), [](const Asked& a, const Asked& b) {
        const int warp_a = a.thread / 32, warp_b = b.thread / 32;
        return std::tie(warp_a, a.instruction, a.time, a.address) < std::tie(warp_b, b.instruction, b.time, b.address);
    });
    for (size_t i = 0; i < asked.size();) {
        size_t j = i;
        while (j < asked.size() && asked[j].thread / 32 == asked[i].thread / 32 && asked[j].instruction == asked[i].instruction && asked[j].time == asked[i].time) j++;
        if (asked[i].shared) shared_request(&asked[i], j - i);
        else request(&asked[i], j - i);
        i = j;
    }
    for (const Asked& a : asked) times[a.thread * many + a.instruction] = 0;
    asked.clear();
    std::fill(loads.begin(), loads.end(), 0);
}

void Counter::request(const Asked* lanes, size_t n) {
    const Access access = lanes->access;
    auto& all = access == Access::Read ? read : written;
    uint64_t sectors = 0, next = 0; // next: the first sector behind those that are counted; lanes are in order
    uint64_t different = 0;
    for (size_t l = 0; l < n; l++) {
        different += !l || lanes[l].address != lanes[l - 1].address;
        for (uint64_t s = std::max(next, lanes[l].address / 32); s <= (lanes[l].address + lanes[l].n - 1) / 32; s++) {
            sectors++;
            next = s + 1;
            all.push_back(s);
        }
    }
    if (all.size() > UNIQUE_FROM && all.size() > 2 * kept[access == Access::Read]) {
        leave_out_doubles(all);
        kept[access == Access::Read] = all.size();
    }
    counts.requests++;
    if (access == Access::Read) counts.loaded += sectors;
    if (access == Access::Write) counts.stored += sectors;
    if (access == Access::Atomic) {
        counts.atomic += sectors;
        counts.operations += different;
        counts.conflicts += n - different;
    }
}

// A bank gives a word of 4 bytes at a time, to all lanes that read it; atomics take turns at one word.
void Counter::shared_request(const Asked* lanes, size_t n) {
    std::vector<uint64_t> words;
    for (size_t l = 0; l < n; l++) {
        for (uint64_t w = lanes[l].address / 4; w <= (lanes[l].address + lanes[l].n - 1) / 4; w++) words.push_back(w);
    }
    if (lanes->access != Access::Atomic) leave_out_doubles(words);
    uint64_t banks[32] = {};
    for (uint64_t w : words) banks[w % 32]++;
    counts.shared += *std::max_element(banks, banks + 32);
}

Counts Counter::end() {
    leave_out_doubles(read);
    leave_out_doubles(written);
    counts.least = read.size() + written.size();
    return counts;
}

} // namespace ptx
