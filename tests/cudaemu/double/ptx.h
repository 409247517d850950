// An interpreter of PTX: what the driver is given is what runs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ptx {

// Fault ends the loading of a module or a kernel; code is CUDA's.
struct Fault {
    int code;
    std::string text;
};

struct Param {
    size_t offset, size;
};

struct Code; // instructions: ptx_code.h

struct Kernel {
    std::string name;
    std::vector<Param> params;
    int max_threads = 1024; // .maxntid
    std::shared_ptr<Code> code;
};

// parse throws a Fault (218: CUDA_ERROR_INVALID_PTX) for what it does not know, by name and line.
std::vector<Kernel> parse(const char* text);

struct Size {
    unsigned x, y, z;
};

// Counts is what a launch asks of memory; sectors have 32 bytes. A request is an instruction of a warp.
struct Counts {
    uint64_t requests = 0;                        // of global memory
    uint64_t loaded = 0, stored = 0, atomic = 0;  // sectors, each counted for each request that touches it
    uint64_t least = 0;                           // different sectors that are read, and different ones that are written
    uint64_t operations = 0, conflicts = 0;       // atomics of global memory: addresses of a request; lanes that share one
    uint64_t shared = 0;                          // accesses to shared memory, in which each bank gives a word
    uint64_t longest = 0;                         // loads, one after the other, of the thread that has most
};

// In which order blocks and threads run.
enum class Order { Forward, Reverse, Random };

struct Launch {
    Size grid, block;
    size_t shared; // bytes of dynamic shared memory
    Order order;
    unsigned seed;
    Counts* counts = nullptr; // counts, or nothing is counted
};

// run interprets a launch to its end; params holds the bytes of each parameter. It throws a
// Fault that names the kernel, the line of the PTX, the block and the thread.
void run(const Kernel& kernel, const std::vector<std::vector<char>>& params, const Launch& launch);

// range finds the allocation that an address lies in; the double's memory defines it.
bool range(uint64_t address, uint64_t* from, uint64_t* to);

// seen is told of every access to an allocation; the double's races are looked for there.
void seen(uint64_t address, size_t n, bool write, bool atomic);

} // namespace ptx
