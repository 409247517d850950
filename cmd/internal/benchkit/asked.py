"""What the scripts have in common that bench-* tools start for each of their peers: requests come as
lines of JSON on the standard input, answers go out as such lines. The tool makes this the module
"asked" before it runs the script, whose arguments are

    WHO THREADS IN_FLIGHT

{"do": "hello"} is answered by {"version": …}, or {"missing": …} where a package is; a request that
fails by {"error": …}. What is measured is answered by {"s": …, "cpu": …, "hwm": bytes}. Imports come
before the clock starts, and so does what looks at the result.
"""

import json
import os
import sys
import time

WHOLE_STEP, BOX_STEP = 65537, 4097


def environment(threads, *names):
    """Sets what libraries take their number of threads from."""
    for name in ("OMP_NUM_THREADS", "NUMCODECS_NUM_THREADS", "KVIKIO_NTHREADS", *names):
        os.environ[name] = str(threads)


class Clock:
    def __enter__(self):
        try:  # from here on the process's peak is a new one, where the system lets it be
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")
        except OSError:
            pass
        self.t, self.c = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        self.s, self.cpu = time.perf_counter() - self.t, time.process_time() - self.c

    def answer(self):
        hwm = 0
        with open("/proc/self/status") as f:
            for line in f:
                if line.startswith("VmHWM:"):
                    hwm = int(line.split()[1]) << 10
        return {"s": self.s, "cpu": self.cpu, "hwm": hwm}


def samples(data, index):
    """The bytes of elements as unsigned numbers."""
    flat = data.reshape(-1)[index]
    size = flat.dtype.itemsize
    flat = numpy.ascontiguousarray(flat.astype(flat.dtype.newbyteorder("<")))
    if size > 8:
        return flat.view("<u8").reshape(-1, 2).sum(axis=1, dtype=numpy.uint64)
    return flat.view(f"<u{size}").astype(numpy.uint64)


def checksum(q, read):
    """The checksum of the boxes of a request, as the documentation of bench-zarr defines it. read
    returns the elements of the box that begins at start and has a shape."""
    total = numpy.uint64(0)
    if q["whole"]:
        every = numpy.arange(0, int(numpy.prod(q["shape"], dtype=numpy.int64)), WHOLE_STEP, dtype=numpy.int64)
        at = numpy.unravel_index(every, q["shape"])
    for start, shape in q["boxes"]:
        data = read(start, shape)
        data = data.get() if hasattr(data, "get") else numpy.asarray(data)  # from a device
        if list(data.shape) != list(shape):
            raise ValueError(f"returns an array of shape {list(data.shape)} in place of {list(shape)}")
        if q["whole"]:
            inside = numpy.ones(len(every), bool)
            for x, a, n in zip(at, start, shape):
                inside &= (x >= a) & (x < a + n)
            k = numpy.nonzero(inside)[0]
            index = numpy.ravel_multi_index([x[k] - a for x, a in zip(at, start)], shape)
        else:
            index = numpy.arange(0, data.size, BOX_STEP)
            k = numpy.arange(len(index))
        with numpy.errstate(over="ignore"):
            total += ((k.astype(numpy.uint64) + numpy.uint64(1)) * samples(data, index)).sum(dtype=numpy.uint64)
    n = int(total)
    return (n ^ n >> 32) & 0xFFFFFFFF


def serve(library, **verbs):
    """Answers requests. library makes the peer of WHO, THREADS and IN_FLIGHT; verbs are what it is
    asked to do, functions of the peer and the request."""
    global numpy
    peer = None
    for line in sys.stdin:
        q = json.loads(line)
        try:
            if q["do"] == "hello":
                import numpy

                peer = library(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
                answer = {"version": peer.version}
            else:
                answer = verbs[q["do"]](peer, q)
        except ImportError as e:
            answer = {"missing": str(e)}
        except KeyError as e:
            answer = {"error": f"has no {e.args[0]}"}
        except Exception as e:  # whatever a library raises is its answer
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)
