#!/usr/bin/env bash
# usage: kernels.sh [check]   (make kernels, make kernels-check)
# Compiles pkg/gpu/kernels/*.cu to PTX in build/kernels, assembles it with the oldest and the newest CUDA
# that we promise, without spills and local memory, and lists the resources that kernels need in
# docs/gpu-kernels.csv and docs/gpu-kernels.md, whose sections below the table it keeps. What ships is packed into
# pkg/gpu/kernels/code: the PTX of all kernels, and their machine code for one device of each major version. check:
# compares both with what git has instead.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=${1:-write}
case $mode in write | check) ;; *) echo "usage: kernels.sh [check]" >&2; exit 2 ;; esac
python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-cuda pkg/gpu/kernels/requirements.txt)
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
nvrtc=$site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
out=build/kernels
rm -rf "$out"
mkdir -p "$out/code"

for cu in pkg/gpu/kernels/*.cu; do
  ptx=$(basename "$cu" .cu).ptx
  # No product is fused with a sum: the CPU rounds between them.
  "$python" scripts/nvrtc.py "$nvrtc" compute_70 "$out/$ptx" "$cu" --std=c++17 --fmad=false -default-device
done
# assemble PTXAS ARCH…
assemble() {
  local ptxas=$1 arch ptx
  shift
  for arch in "$@"; do
    for ptx in "$out"/*.ptx; do
      "$ptxas" "-arch=sm_$arch" -v -warn-spills -warn-lmem-usage -Werror "$ptx" -o "$out/cubin" 2>"$out/log" ||
        { echo "$(basename "$ptx"), sm_$arch: $("$ptxas" --version | sed -n 's/.*release //p'):" >&2; cat "$out/log" >&2; exit 1; }
      # Function properties, then "Used N registers": one line a kernel.
      awk -v arch="$arch" '/Compiling entry function/ { name = $0; sub(/.*function .\047?/, "", name); sub(/\047.*/, "", name) }
        /Used [0-9]+ registers/ {
          match($0, /Used [0-9]+/); used = substr($0, RSTART + 5, RLENGTH - 5)
          shared = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH - 11) : 0
          print file, name, arch, used, shared
        }' file="$(basename "$ptx" .ptx)" "$out/log" >>"$out/used"
    done
  done
}
assemble "$site/nvidia/cuda_nvcc/bin/ptxas" 70 75 80 86 89 90
assemble "$site/nvidia/cu13/bin/ptxas" 75 80 86 89 90 100 120
# What ships: the kernels of all files as one module. Machine code runs on devices of its major version and a minor
# one that is not older; that of CUDA 12.0 on all drivers that we promise, that of 13 on drivers of 13.
for ptx in "$out"/*.ptx; do
  [ -s "$out/code/ptx" ] || sed '/^\.address_size/q; /^\/\//d' "$ptx" >"$out/code/ptx"
  sed '1,/^\.address_size/d; /^[[:space:]]*\/\//d' "$ptx" >>"$out/code/ptx"
done
for arch in 70 80 90; do "$site/nvidia/cuda_nvcc/bin/ptxas" -arch=sm_$arch "$out/code/ptx" -o "$out/code/sm_$arch"; done
for arch in 100 120; do "$site/nvidia/cu13/bin/ptxas" -arch=sm_$arch "$out/code/ptx" -o "$out/code/sm_$arch"; done
CGO_ENABLED=0 "${GO:-go}" build -o "$out/kernelpack" ./tests/kernelpack
# A row for the kernels of one name, whatever their type: the most that one of them takes. The page has those that take more
# than 40 registers or shared memory.
echo 'file,kernel,types,sm_70,sm_80,sm_90,sm_120,shared' >"$out/gpu-kernels.csv"
awk -v OFS=, '{
    sub(/_[uif](8|16|32|64)$/, "", $2)
    k = $1 OFS $2
    if (!seen[k, $3]++) if (!known[k]++) names[++n] = k
    types[k, $3]++
    if ($4 > most[k, $3]) most[k, $3] = $4
    if ($5 > shared[k]) shared[k] = $5
  }
  END { for (i = 1; i <= n; i++) { k = names[i]; print k, types[k, 70], most[k, 70], most[k, 80], most[k, 90], most[k, 120], shared[k] + 0 } }' "$out/used" >>"$out/gpu-kernels.csv"
{
  cat <<'END'
# GPU kernels

What does each kernel take of a GPU, and which are slower than a copy? No kernel spills registers or uses local memory:
either is an error of the assemblers. The table has kernels with more than 60 registers per thread or 8 KiB of shared
memory per block, the maximum over element types, by the assemblers of CUDA 12.0 and 13.5 (sm_120);
[gpu-kernels.csv](gpu-kernels.csv) has all. `make kernels` writes both and keeps the sections below.

| file | kernel | sm_70 | sm_80 | sm_90 | sm_120 | shared |
|---|---|--:|--:|--:|--:|--:|
END
  awk -F, 'NR > 1 && ($4 > 60 || $5 > 60 || $6 > 60 || $7 > 60 || $8 > 8192) { printf "| %s | `%s` | %d | %d | %d | %d | %d |\n", $1, $2, $4, $5, $6, $7, $8 }' "$out/gpu-kernels.csv"
  echo
  sed -n '/^## /,$p' docs/gpu-kernels.md # written by hand
} >"$out/gpu-kernels.md"

if [ "$mode" = write ]; then
  cp "$out/gpu-kernels.md" "$out/gpu-kernels.csv" docs/
  rm -f pkg/gpu/kernels/code/*.zst
  for code in "$out"/code/*; do "$out/kernelpack" "$code" "pkg/gpu/kernels/code/$(basename "$code").zst"; done
  exit
fi
stale() { echo "$*: run make kernels" >&2; exit 1; }
for code in "$out"/code/*; do
  "$out/kernelpack" -check "$code" "pkg/gpu/kernels/code/$(basename "$code").zst" || stale "pkg/gpu/kernels/code is not what the sources compile to"
done
for list in gpu-kernels.csv gpu-kernels.md; do
  cmp -s "docs/$list" "$out/$list" || { diff "docs/$list" "$out/$list" >&2; stale "docs/$list is not what the assemblers say"; }
done
echo "$(wc -l <"$out/used") times a kernel was assembled, none spills: the packed PTX, the machine code and docs/gpu-kernels.md are those of the sources"
