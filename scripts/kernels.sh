#!/usr/bin/env bash
# usage: kernels.sh [check]   (make kernels, make kernels-check)
# Compiles pkg/gpu/kernels/*.cu to the PTX beside them. check: compares it with what is
# there instead, lets the assemblers of the oldest and of the newest CUDA that we promise make machine
# code of it without spills and local memory, and lists the registers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=${1:-write}
case $mode in write | check) ;; *) echo "usage: kernels.sh [check]" >&2; exit 2 ;; esac
python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-cuda pkg/gpu/kernels/requirements.txt)
site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
nvrtc=$site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

for cu in pkg/gpu/kernels/*.cu; do
  ptx=$(basename "$cu" .cu).ptx
  # No product is fused with a sum: the CPU rounds between them.
  "$python" scripts/nvrtc.py "$nvrtc" compute_70 "$out/$ptx" "$cu" --std=c++17 --fmad=false
done
if [ "$mode" = write ]; then
  cp "$out"/*.ptx pkg/gpu/kernels/
  exit
fi
for ptx in pkg/gpu/kernels/*.ptx; do
  cmp -s "$ptx" "$out/$(basename "$ptx")" || { echo "$ptx is not what its source compiles to: run make kernels" >&2; exit 1; }
done

# assemble PTXAS ARCH…
assemble() {
  local ptxas=$1 arch ptx
  shift
  for arch in "$@"; do
    for ptx in pkg/gpu/kernels/*.ptx; do
      "$ptxas" "-arch=sm_$arch" -v -warn-spills -warn-lmem-usage -Werror "$ptx" -o /dev/null 2>"$out/log" ||
        { echo "$ptx, sm_$arch: $("$ptxas" --version | sed -n 's/.*release //p'):" >&2; cat "$out/log" >&2; exit 1; }
      # Function properties, then "Used N registers": one line a kernel.
      awk -v arch="$arch" '/Compiling entry function/ { name = $0; sub(/.*function .\047?/, "", name); sub(/\047.*/, "", name) }
        /Used [0-9]+ registers/ { match($0, /Used [0-9]+/); printf "%s %s %s\n", name, arch, substr($0, RSTART + 5, RLENGTH - 5) }' "$out/log" >>"$out/registers"
    done
  done
}
assemble "$site/nvidia/cuda_nvcc/bin/ptxas" 70 75 80 86 89 90
assemble "$site/nvidia/cu13/bin/ptxas" 75 80 86 89 90 100 120
echo "registers a thread, the most of all devices (sm_70 to sm_120):"
sort "$out/registers" | awk '{ if (!($1 in most) || $3 > most[$1]) most[$1] = $3 } END { for (k in most) printf "  %-32s %d\n", k, most[k] }' | sort
