"""KvikIO's host path: gds-kvikio.py OP FILE BYTES THREADS PIECE REPS COLD SYNC SHIFT, and what it prints, as gds-floor.c has it.

read and write go as KvikIO does without settings; direct and write-cached have direct I/O switched on and off.
"""
import json
import mmap
import os
import resource
import sys
import time

import kvikio
import kvikio.defaults
import numpy

CALLS = 100_000

if sys.argv[1:] == ["version"]:
    print(f"KvikIO {kvikio.__version__}")
    sys.exit()
op, path = sys.argv[1:3]
size, threads, piece, reps, cold, sync, shift = map(int, sys.argv[3:10])
kvikio.defaults.set({"num_threads": threads, "task_size": piece if op not in ("calls", "files") else 4 << 20})
if op == "direct":
    kvikio.defaults.set({"auto_direct_io_read": True})
if op == "write-cached":
    kvikio.defaults.set({"auto_direct_io_write": False})

# on huge pages, as the others' memory and numpy's
HUGE = 2 << 20
area = mmap.mmap(-1, (size + shift + 2 * HUGE - 1) // HUGE * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
area.madvise(mmap.MADV_HUGEPAGE)
memory = numpy.frombuffer(area, numpy.uint8)
start = -memory.ctypes.data % HUGE + shift
memory = memory[start : start + size]
if op.startswith("write"):  # what the others write
    with open(os.environ["FILES_CONTENT"], "rb") as content:
        content.readinto(memory)
else:
    memory[:] = 1  # the pages are there


def processor():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def run():
    if op == "calls":
        x, buf = 1, memory[:piece]
        with kvikio.CuFile(path, "r") as f:
            for _ in range(CALLS):
                x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
                f.read(buf, file_offset=(x >> 33) % (size // piece) * piece)
        return size
    if op == "files":
        files = [kvikio.CuFile(f"{path}/{i}", "r") for i in range(size // piece)]
        reads = [f.pread(memory[i * piece : (i + 1) * piece]) for i, f in enumerate(files)]
        n = sum(r.get() for r in reads)
        for f in files:
            f.close()
        return n
    if op == "mmap":
        m = kvikio.Mmap(path)
        n = m.pread(memory).get()
        m.close()
        return n
    if op.startswith("write"):
        with kvikio.CuFile(path, "w") as f:
            n = f.write(memory)
            if sync:
                os.fdatasync(f.fileno())
        return n
    with kvikio.CuFile(path, "r") as f:
        return f.read(memory)


seconds, cpu = [], []
for _ in range(reps):
    if op.startswith("write") and os.path.exists(path):
        os.remove(path)
    if cold:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)
    used, start = processor(), time.perf_counter()
    moved = run()
    seconds.append(time.perf_counter() - start)
    cpu.append(processor() - used)
    if moved != size:
        sys.exit(f"gds-kvikio.py: {path}: {moved} bytes of {size}")


def middle(v):
    return sorted(v)[len(v) // 2]


if op.startswith("write"):
    memory = numpy.memmap(path, numpy.uint8, "r")
check = 0
for b in memory[: piece if op == "calls" else size : 4093].tolist():
    check = (check * 31 + b) & 0xFFFFFFFFFFFFFFFF
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
out = {"bytes": CALLS * piece if op == "calls" else size, "hwm_kb": peak, "ck": check}
if reps > 1:  # the first pass of the process is told apart
    out["first_s"] = seconds[0]
    seconds, cpu = seconds[1:], cpu[1:]
print(json.dumps(out | {"s": middle(seconds), "cpu_s": middle(cpu)}))
