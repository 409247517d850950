// What a launch asks of memory: see Counter.
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

void Counter::begin(const Code& code, size_t threads) {
    find_loops(code);
    turns.assign(threads * loops.size(), 0);
    loads.assign(threads, 0);
}

void Counter::find_loops(const Code& code) {
    const size_t n = code.instructions.size(), nowhere = n;
    std::vector<std::vector<size_t>> next(n), before(n);
    for (size_t i = 0; i < n; i++) {
        const Instruction& at = code.instructions[i];
        const bool branch = !strncmp(at.name, "bra", 3), ends = !strcmp(at.name, "ret") || !strcmp(at.name, "exit") || !strcmp(at.name, "trap");
        if (branch) next[i].push_back(i + at.offset);
        if (i + 1 < n && (at.guard >= 0 || !(branch || ends))) next[i].push_back(i + 1);
        for (size_t k : next[i]) before[k].push_back(i);
    }
    // Instructions in an order in which all come behind one of those before them, from the last.
    std::vector<size_t> order, number(n, nowhere), path{0}, tried(n, 0);
    std::vector<bool> seen(n);
    seen[0] = true;
    while (!path.empty()) {
        const size_t i = path.back();
        if (tried[i] == next[i].size()) {
            number[i] = order.size();
            order.push_back(i);
            path.pop_back();
        } else if (const size_t k = next[i][tried[i]++]; !seen[k]) {
            seen[k] = true;
            path.push_back(k);
        }
    }
    // The last instruction through which all come to this one (Cooper, Harvey, Kennedy: A simple, fast dominance algorithm).
    std::vector<size_t> over(n, nowhere);
    over[0] = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t o = order.size() - 1; o-- > 0;) {
            size_t common = nowhere;
            for (size_t k : before[order[o]]) {
                if (over[k] == nowhere) continue;
                for (size_t a = k; common != nowhere && a != common;) {
                    while (number[a] < number[common]) a = over[a];
                    while (number[common] < number[a]) common = over[common];
                }
                if (common == nowhere) common = k;
            }
            changed |= over[order[o]] != common;
            over[order[o]] = common;
        }
    }
    for (size_t i : order) {
        for (size_t first : next[i]) {
            size_t a = i;
            while (a != first && a != over[a]) a = over[a];
            if (a != first) continue; // not back
            auto loop = std::find_if(loops.begin(), loops.end(), [=](const Loop& l) { return l.first == first; });
            if (loop == loops.end()) loop = loops.insert(loop, Loop{first, std::vector<bool>(n), {}});
            loop->has[first] = true;
            for (std::vector<size_t> left{i}; !left.empty();) {
                const size_t k = left.back();
                left.pop_back();
                if (loop->has[k]) continue;
                loop->has[k] = true;
                left.insert(left.end(), before[k].begin(), before[k].end());
            }
        }
    }
    around.resize(n);
    for (size_t l = 0; l < loops.size(); l++) {
        for (size_t k = 0; k < loops.size(); k++) {
            if (k != l && loops[l].has[loops[k].first]) loops[l].inside.push_back(k);
        }
        for (size_t i = 0; i < n; i++) {
            if (loops[l].has[i]) around[i].push_back(l);
        }
    }
}

void Counter::branch(unsigned thread, size_t from, size_t to) {
    uint32_t* own = &turns[thread * loops.size()];
    for (size_t l = 0; l < loops.size(); l++) {
        if (loops[l].first != to || !loops[l].has[from]) continue;
        own[l]++;
        for (size_t k : loops[l].inside) own[k] = 0;
    }
}

void Counter::touch(unsigned thread, size_t instruction, Space space, Access access, uint64_t address, size_t n) {
    uint64_t turn = 0;
    for (size_t l : around[instruction]) turn = (turn + turns[thread * loops.size() + l]) * 0x9e3779b97f4a7c15ull + 1;
    asked.push_back(Asked{address, turn, (uint32_t)instruction, (uint16_t)thread, (uint8_t)n, space == Space::Shared, access});
    if (space == Space::Global && access == Access::Read) counts.longest = std::max(counts.longest, (uint64_t)++loads[thread]);
}

void Counter::end_block() {
    std::sort(asked.begin(), asked.end(), [](const Asked& a, const Asked& b) {
        const int warp_a = a.thread / 32, warp_b = b.thread / 32;
        return std::tie(warp_a, a.instruction, a.turn, a.address) < std::tie(warp_b, b.instruction, b.turn, b.address);
    });
    for (size_t i = 0; i < asked.size();) {
        size_t j = i;
        while (j < asked.size() && asked[j].thread / 32 == asked[i].thread / 32 && asked[j].instruction == asked[i].instruction && asked[j].turn == asked[i].turn) j++;
        if (asked[i].shared) shared_request(&asked[i], j - i);
        else request(&asked[i], j - i);
        i = j;
    }
    asked.clear();
    std::fill(turns.begin(), turns.end(), 0);
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
