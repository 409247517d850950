// PTX as the interpreter runs it: instructions with the slots of their operands, and threads
// with a frame of slots. A slot holds a register, a constant or a special register (%tid.x …).
#pragma once
#include <cstring>
#include <map>
#include <tuple>
#include "ptx.h"

namespace ptx {

struct Thread;
struct Instruction;
typedef void (*Operation)(Thread&, const Instruction&);

struct Instruction {
    Operation run = nullptr;
    int guard = -1;       // slot of the predicate, if any
    bool unless = false;  // @!
    int d = -1, d2 = -1;  // destinations; d2 is the q of p|q, or -1
    int a = -1, b = -1, c = -1, e = -1;
    bool invert = false;  // the last source is !p
    int vector[4];        // slots of {…}
    int width = 0;        // how many they are
    int64_t offset = 0;   // of an address; target of a branch
    int line = 0;
    const char* name = "";
};

// Special registers, in the order of their slots from Code::special on.
enum Special { TidX, TidY, TidZ, NtidX, NtidY, NtidZ, CtaidX, CtaidY, CtaidZ, NctaidX, NctaidY, NctaidZ, LaneId, WarpId, Specials };

struct Code {
    std::vector<Instruction> instructions;
    std::vector<uint64_t> frame; // of a thread that starts: poison, constants, room for special registers
    int special = 0;
    size_t shared = 0;           // bytes of static shared memory
    size_t params = 0;           // bytes
    bool waits = false;          // for other threads: barriers, exchanges in a warp
};

enum class State { Ready, Barrier, Warp, Done };

struct Block;

struct Thread {
    uint64_t* slots;
    Block* block;
    const Instruction* next;
    State state;
    unsigned index; // in the block
    unsigned x, y, z;

    template <class T> T get(int slot) const {
        T v;
        memcpy(&v, &slots[slot], sizeof v);
        return v;
    }
    template <class T> void set(int slot, T v) {
        uint64_t bits = 0;
        memcpy(&bits, &v, sizeof v);
        slots[slot] = bits;
    }
};

enum class Space { Param, Global, Shared };
enum class Access { Read, Write, Atomic };

// Counter counts what a launch asks of memory, as a device's warps would ask: lanes that come to an instruction in the same turn of all loops
// around it ask together, whatever they did before.
class Counter {
public:
    void begin(const Code& code, size_t threads);
    void branch(unsigned thread, size_t from, size_t to); // back, to the beginning of a loop
    void touch(unsigned thread, size_t instruction, Space space, Access access, uint64_t address, size_t n);
    void end_block();
    Counts end();

private:
    struct Loop { // a natural one: of what comes back to its first instruction, through which all come
        size_t first;
        std::vector<bool> has;      // instructions
        std::vector<size_t> inside; // loops
    };
    void find_loops(const Code& code);
    struct Asked { // by a lane
        uint64_t address, turn;
        uint32_t instruction;
        uint16_t thread;
        uint8_t n;
        bool shared;
        Access access;
    };
    void request(const Asked* lanes, size_t n);
    void shared_request(const Asked* lanes, size_t n);

    Counts counts;
    std::vector<Loop> loops;
    std::vector<std::vector<size_t>> around; // the loops around an instruction
    std::vector<uint32_t> turns, loads;      // by thread and loop; by thread
    std::vector<Asked> asked;                // of a block
    std::vector<uint64_t> read, written;     // sectors
    size_t kept[2] = {};                     // how many they were when doubles were left out
};

// at is the memory that an instruction addresses, after all checks; it throws a Fault.
char* at(Thread& t, const Instruction& i, Space space, uint64_t address, size_t bytes, Access access);

// Exchanges of a warp, when the lanes that it names have all come to it.
void exchange(Thread* warp, unsigned lanes, const Instruction& i, uint32_t mask);

[[noreturn]] void fail(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// How an instruction is written.
struct Form {
    Operation run;
    enum Shape {
        Plain,   // d, a, b, c, e: as many sources as there are
        Load,    // d, [a]
        Store,   // [a], b
        Atomic,  // d, [a], b (, c)
        Reduce,  // [a], b
        Branch,  // label
        Pack,    // {…} or d, {…} or a
        Nothing, // no operands, or ones that mean nothing here
        Wait,    // a, b, …: no destination
        Two,     // d|d2, a, b (, c)
    } shape;
    int sources = 0;
    int vector = 1;
    bool waits = false;
};
const std::map<std::string, Form>& forms();

} // namespace ptx
