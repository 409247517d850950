#!/usr/bin/env bash
# usage: build.sh OUT [g++ OPTION…]   Builds the test double of libcuda.so.1 with all of
# pkg/gpu/kernels in it into the folder OUT, unless it is there and newer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$1
shift
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
here=tests/cudaemu/double kernels=pkg/gpu/kernels
sources=("$here"/*.cpp "$here"/*.h tests/cudaemu/build.sh "$kernels"/*.cu* "$kernels"/*.ptx)
newer=$(find "${sources[@]}" -newer "$out/libcuda.so.1" 2>/dev/null || echo yes)
[ -n "$newer" ] || exit 0
scripts/need.sh g++ g++
flags=(-std=c++17 -O1 -g -fPIC -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-parameter -I"$here" "$@")
cxx=${CXX:-g++}
objects=()
for cpp in "$here"/*.cpp; do
  o=$out/$(basename "$cpp" .cpp).o
  "$cxx" "${flags[@]}" -ffp-contract=off -frounding-math -c -o "$o" "$cpp"
  objects+=("$o")
done
for cu in "$kernels"/*.cu; do
  # The kernels of a file, by the names of its PTX entries.
  name=$(basename "$cu" .cu)
  {
    echo '#include "registry.h"'
    echo "#include \"$PWD/$cu\""
    sed -n 's/^.*\.entry \([A-Za-z0-9_]*\)(.*$/static Kernel<\&\1> reg_\1("\1");/p' "${cu%.cu}.ptx"
  } >"$out/kernels_$name.cpp"
  "$cxx" "${flags[@]}" -ffp-contract=off -c -o "$out/kernels_$name.o" "$out/kernels_$name.cpp"
  objects+=("$out/kernels_$name.o")
done
"$cxx" "$@" -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs -o "$out/libcuda.so.1.part" "${objects[@]}" -lpthread
mv "$out/libcuda.so.1.part" "$out/libcuda.so.1"
