"""Two versions of lab/arrays beside each other: pairs.py BEFORE NOW DATA [PAIRS]

BEFORE and NOW are builds of lab/arrays (bench/arrays up to 0.12), DATA the folder of arrays that `PARTS=arrays make bench` made. Runs the
operations of docs/benchmarks-arrays.md alternately, PAIRS times (20), and prints the median of each and its quartiles, in ms, and their ratio.

    git worktree add /tmp/before COMMIT && (cd /tmp/before && go build -o /tmp/arrays-before ./bench/arrays)
    go build -o /tmp/arrays-now ./lab/arrays
    python3 lab/pairs.py /tmp/arrays-before /tmp/arrays-now build/bench/512x512x512
"""

import json
import os
import statistics
import subprocess
import sys

OPERATIONS = [
    ("stream", ["-again", "3", "-piece", "1048576"], ["raw", "zstdsmall", "shard", "blosclz4"]),
    ("full", ["-again", "2"], ["raw", "zstdsmall", "shard", "blosclz4", "blosczstdbit"]),
    ("random", ["-edge", "64", "-again", "2"], ["raw", "zstdsmall", "shard"]),
    ("slab", ["-again", "2"], ["raw", "zstdsmall", "shard"]),
]


def seconds(program, *args):
    return json.loads(subprocess.run([program, *args], capture_output=True, text=True, check=True).stdout.splitlines()[-1])["s"]


def main():
    programs, data, pairs = sys.argv[1:3], sys.argv[3], int((sys.argv[4:] or ["20"])[0])
    print("| operation | before | now | ratio |\n|---|---:|---:|---:|")
    for op, flags, arrays in OPERATIONS:
        for array in arrays:
            times = [[], []]
            for i in range(pairs):
                for k in (0, 1) if i % 2 else (1, 0):
                    times[k].append(1000 * seconds(programs[k], op, os.path.join(data, array + ".zarr"), *flags))
            middle = [statistics.median(t) for t in times]
            cells = ["%.4g (%.4g–%.4g)" % (m, q[0], q[2]) for m, q in zip(middle, map(statistics.quantiles, times))]
            print(f"| {op}, {array} | {cells[0]} | {cells[1]} | {middle[1] / middle[0]:.2f} |", flush=True)


main()
