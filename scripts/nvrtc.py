#!/usr/bin/env python3
"""usage: nvrtc.py LIBNVRTC ARCH OUT.ptx SOURCE.cu [OPTION...]

Compiles CUDA C++ to PTX with NVRTC, NVIDIA's run-time compiler, called as a library:
it needs no headers and no host compiler."""
import ctypes
import os
import sys


def main(lib, arch, out, source, *options):
    nvrtc = ctypes.CDLL(lib)
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    program, n = ctypes.c_void_p(), ctypes.c_size_t()

    def call(name, *args):
        code = getattr(nvrtc, name)(*args)
        if code == 0:
            return
        if name == "nvrtcCompileProgram":
            sys.stderr.write(text("nvrtcGetProgramLog"))
        sys.exit(f"{source}: {name}: {nvrtc.nvrtcGetErrorString(code).decode()}")

    def text(name):
        call(name + "Size", program, ctypes.byref(n))
        buffer = ctypes.create_string_buffer(n.value)
        call(name, program, buffer)
        return buffer.value.decode()

    # Included files are resolved here: NVRTC would look for them in the working folder.
    folder = os.path.dirname(os.path.abspath(source))
    with open(source, "rb") as f:
        code = f.read()
    call("nvrtcCreateProgram", ctypes.byref(program), code, os.path.basename(source).encode(), 0, None, None)
    flags = [f"--gpu-architecture={arch}", f"--include-path={folder}", *options]
    call("nvrtcCompileProgram", program, len(flags), (ctypes.c_char_p * len(flags))(*[f.encode() for f in flags]))
    # NVRTC declares what <nv/target> would need in every program; nothing uses it.
    lines = [line for line in text("nvrtcGetPTX").splitlines() if "2nv6target" not in line]
    with open(out, "w", encoding="ascii") as f:
        f.write("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
