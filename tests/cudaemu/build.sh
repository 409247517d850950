#!/usr/bin/env bash
# usage: build.sh OUT [g++ OPTION…]   Builds the test double of libcuda.so.1 with all of
# pkg/gpu/kernels in it, and those of libcufile, libnvcomp and libnvidia-ml, into the folder OUT, unless they are there and newer. OUT is for
# these options only. OUT/ptx gets the PTX that ships, a file for each source. With -DEMU_TRACE kernels tell the double every access to memory (races, traffic), which takes time.
set -euo pipefail
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
shift
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
here=tests/cudaemu/double kernels=pkg/gpu/kernels
sources=("$here"/*.cpp "$here"/*.h "$here"/{cufile,nvcomp,nvml}/* tests/cudaemu/build.sh "$kernels"/*.cu* "$kernels"/code/ptx.zst)
# old FILE SOURCE…: is it not there, or older than one of them?
old() { [ -n "$(find "${@:2}" -newer "$1" 2>/dev/null || echo yes)" ]; }
echo "nvidia_fs 1 0 - Live 0x0" >"$out/modules" # is loaded, as far as the double of cuFile is asked
old "$out/libcuda.so.1" "${sources[@]}" || exit 0
scripts/need.sh g++ g++
# No product is fused with a sum that the source does not fuse.
flags=(-std=c++17 -O1 -g -fPIC -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-parameter -Wno-unused-but-set-variable -I"$here" "-DEMU_FIGURES=\"$PWD/pkg/gpu/cost/figures.tsv\"" "$@")
cxx=${CXX:-g++}
traced=() # options for kernels
case " $* " in *" -DEMU_TRACE "*) traced=(-fsanitize=thread) ;; esac
objects=()
for cpp in "$here"/*.cpp; do
  object=$out/$(basename "$cpp" .cpp).o
  if old "$object" "$cpp" "$here"/*.h tests/cudaemu/build.sh; then
    "$cxx" "${flags[@]}" -frounding-math -c -o "$object" "$cpp"
  fi
  objects+=("$object")
done
# All kernels that ship, which have to be those of the sources.
mkdir -p "$out/ptx"
all=$out/ptx.all
env -u GOOS -u GOARCH CGO_ENABLED=0 "${GO:-go}" run ./tests/kernelpack -unpack "$all" "$kernels/code/ptx.zst"
# kernels_of SOURCE: the names of its kernels, a line each
kernels_of() { "$cxx" -x c++ -E -P "$1" | grep -oE '__global__ void( __launch_bounds__\([^)]*\))? \w+' | sed 's/.* //'; }
names=()
for cu in "$kernels"/*.cu; do
  mapfile -t own < <(kernels_of "$cu")
  names+=("${own[@]}")
  awk -v own="${own[*]}" '
    BEGIN { for (n = split(own, list, " "); n; n--) wanted[list[n]] = 1; take = 1 }
    match($0, /\.entry [A-Za-z0-9_]+/) { take = substr($0, RSTART + 7, RLENGTH - 7) in wanted }
    take' "$all" >"$out/ptx.part"
  ptx=$out/ptx/$(basename "$cu" .cu).ptx
  cmp -s "$out/ptx.part" "$ptx" || mv "$out/ptx.part" "$ptx"
done
diff <(grep -oE '\.entry \w+' "$all" | sed 's/.* //' | sort) <(printf '%s\n' "${names[@]}" | sort) >&2 ||
  { echo "$kernels/code has other kernels than the sources: run make kernels" >&2; exit 1; }
for cu in "$kernels"/*.cu; do
  ptx=$out/ptx/$(basename "$cu" .cu).ptx object=$out/kernels_$(basename "$cu" .cu).o
  if old "$object" "$cu" "$ptx" "$kernels"/*.cuh "$here"/{registry,cudaemu}.h tests/cudaemu/build.sh; then
    # The kernels of a file, by the names of its PTX entries, and whether their threads wait for each other.
    {
      echo '#include "registry.h"'
      echo "#include \"$PWD/$cu\""
      awk '
        match($0, /\.entry [A-Za-z0-9_]+/) { name = substr($0, RSTART + 7, RLENGTH - 7); waits = 0 }
        name && /[ \t](bar|barrier|shfl|vote)\./ { waits = 1 }
        name && /^}/ { printf "static Kernel<&%s> reg_%s(\"%s\", %d);\n", name, name, name, waits; name = "" }' "$ptx"
    } >"${object%.o}.cpp"
    "$cxx" "${flags[@]}" "${traced[@]}" -c -o "$object" "${object%.o}.cpp"
  fi
  objects+=("$object")
done
"$cxx" "$@" -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs -o "$out/libcuda.so.1.part" "${objects[@]}" -lpthread
# Libraries that work on the double of the driver find it as the one that is loaded already, by its name.
if old "$out/libcufile.so.0" "$here"/cufile/* "$here"/*.h tests/cudaemu/build.sh; then
  "$cxx" "${flags[@]}" -shared -Wl,-soname,libcufile.so.0 -Wl,-z,defs -o "$out/libcufile.so.0.part" "$here"/cufile/*.cpp "$out/libcuda.so.1.part" -lpthread
  mv "$out/libcufile.so.0.part" "$out/libcufile.so.0"
fi
if old "$out/libnvidia-ml.so.1" "$here"/nvml/* tests/cudaemu/build.sh; then
  "$cxx" "${flags[@]}" -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs -o "$out/libnvidia-ml.so.1.part" "$here"/nvml/*.cpp
  mv "$out/libnvidia-ml.so.1.part" "$out/libnvidia-ml.so.1"
fi
for major in 5 6; do
  lib=libnvcomp.so.$major
  if old "$out/$lib" "$here"/nvcomp/* "$here"/*.h tests/cudaemu/build.sh; then
    "$cxx" "${flags[@]}" -DNVCOMP_DOUBLE=$major -shared "-Wl,-soname,$lib" -Wl,-z,defs -o "$out/$lib.part" "$here"/nvcomp/*.cpp "$out/libcuda.so.1.part" -lpthread
    mv "$out/$lib.part" "$out/$lib"
  fi
done
mv "$out/libcuda.so.1.part" "$out/libcuda.so.1"
