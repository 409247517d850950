#!/usr/bin/env bash
# usage: check.sh   (make test-cuda-double)   SHORT=1: without NVIDIA's other libraries, stages, races and sanitizers
# Is the double what it claims to be? Its prototypes are NVIDIA's, as those of the bindings of cuFile, whose real
# libraries are opened, and of NVML; the interpreter is as the PTX
# ISA says and knows all PTX that ships; the kernels' tests pass in other orders of threads, with buffers that end
# at their guard pages, and under AddressSanitizer and UndefinedBehaviorSanitizer; ThreadSanitizer finds no race in shared
# memory; and bugs that are planted are found.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kernels=pkg/gpu/kernels here=tests/cudaemu
plain=build/cudaemu asan=build/cudaemu-asan tsan=build/cudaemu-tsan
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cxx=${CXX:-g++}
flags=(-std=c++17 -O1 -g -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas -Wno-unused-parameter -Wno-unused-but-set-variable -I"$here/double")

say() { echo "--- $*"; }
# finds WHAT COMMAND…: a planted bug ends the command with an error that says WHAT.
finds() {
  local what=$1
  shift
  if "$@" >"$log" 2>&1; then
    echo "not found: $what" >&2
    return 1
  fi
  grep -q -e "$what" "$log" || { cat "$log" >&2; echo "does not say: $what" >&2; return 1; }
  echo "found: $(grep -m 1 -e "$what" "$log")"
}

scripts/need.sh g++ g++
say "prototypes: cuda.h 12.0"
python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-cuda $kernels/requirements.txt)
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cuda_runtime/include
for part in device memory streams modules races clock; do
  "$cxx" "${flags[@]}" -DEMU_FIGURES='""' -fsyntax-only -DEMU_CHECK_CUDA_H -I"$include" "$here/double/$part.cpp"
done
sed 's/cuMemGetInfo_v2, size_t\* free/cuMemGetInfo_v2, unsigned* free/' $here/double/memory.cpp >"$log.cpp"
finds "conflicting declaration" "$cxx" "${flags[@]}" -fsyntax-only -DEMU_CHECK_CUDA_H -I"$include" "$log.cpp"
rm "$log.cpp"

mkdir -p $plain

# What NVIDIA's other libraries declare, and what they do without a device.
libraries() {
  local major nvcomp check site root cufile nvml folder
  say "prototypes: nvCOMP 5 and 6; their libraries, as far as they go without a device"
  stub=$(mktemp -d)
  trap 'rm -rf "$log" "$stub"' EXIT
  echo 'typedef struct CUstream_st* cudaStream_t;' >"$stub/cuda_runtime.h" # all of it that the headers need
  for major in 5 6; do
    python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-nvcomp$major pkg/gpu/nvcomp/requirements$major.txt)
    nvcomp=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/libnvcomp
    check=("$cxx" "${flags[@]}" -fsyntax-only -DEMU_CHECK_NVCOMP_H -I"$stub" -I"$nvcomp/include")
    "${check[@]}" -DNVCOMP_DOUBLE=$major $here/double/nvcomp/nvcomp.cpp
    sed 's/const size_t\* room, size_t\* out_bytes/const size_t* room, unsigned* out_bytes/' $here/double/nvcomp/nvcomp.cpp >"$stub/wrong.cpp"
    finds "conflicting declaration" "${check[@]}" -DNVCOMP_DOUBLE=$major -I$here/double/nvcomp "$stub/wrong.cpp"
    STRATA_TEST_LIBNVCOMP=$nvcomp/lib64/libnvcomp.so.$major "${GO:-go}" test -count=1 -run '^TestRealLibrary$' ./pkg/gpu/nvcomp
  done
  "$cxx" "${flags[@]}" -shared -fPIC -o $plain/formats.so $here/selftest/formats.cpp $here/double/nvcomp/{zstd,lz4,inflate}.cpp
  "$(scripts/venv.sh build/venv tests/requirements.txt)" $here/selftest/formats.py $plain/formats.so "$nvcomp/lib64/libnvcomp_cpu.so.$major"

  say "cuFile: cufile.h and the libraries of CUDA 12 and 13"
  python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-cufile pkg/gpu/cufile/requirements.txt)
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  for root in "$site"/nvidia/{cufile,cu13}; do
    "$cxx" "${flags[@]}" -fsyntax-only -DEMU_CHECK_CUDA_H -I"$include" -I"$root/include" $here/double/cufile/cufile.cpp
  done
  cufile=("$site"/nvidia/cufile/lib/libcufile.so.0)
  CGO_ENABLED=0 STRATA_TEST_LIBCUFILE=${cufile[0]} STRATA_TEST_LIBNVCOMP=$nvcomp/lib64/libnvcomp.so.$major \
    "${GO:-go}" test -count=1 -run '^TestRealLibraries$' ./pkg/gpu
  CGO_ENABLED=0 STRATA_TEST_CUFILE=$site/nvidia/cufile:$site/nvidia/cu13 STRATA_TEST_CUDA_INCLUDE=$include \
    "${GO:-go}" test -count=1 -run '^(TestLayout|TestReal)$' ./pkg/gpu/cufile

  say "NVML: nvml.h of CUDA 12 and 13"
  python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-nvml pkg/gpu/nvml/requirements.txt)
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  nvml=("$site"/nvidia/{nvml_dev,cu13}/include)
  for folder in "${nvml[@]}"; do
    "$cxx" "${flags[@]}" -fsyntax-only -DEMU_CHECK_NVML_H -I"$folder" $here/double/nvml/nvml.cpp
  done
  sed 's/nvmlDeviceGetComputeMode, nvmlDevice_t device, nvmlComputeMode_t/nvmlDeviceGetComputeMode, nvmlDevice_t device, unsigned/' $here/double/nvml/nvml.cpp >"$stub/wrong.cpp"
  finds "conflicting declaration" "$cxx" "${flags[@]}" -fsyntax-only -DEMU_CHECK_NVML_H -I"${nvml[0]}" "$stub/wrong.cpp"
  CGO_ENABLED=0 STRATA_TEST_NVML_INCLUDE=${nvml[0]}:${nvml[1]} "${GO:-go}" test -count=1 -run '^TestLayout$' ./pkg/gpu/nvml
}
[ -n "${SHORT:-}" ] || libraries

say "the interpreter"
$here/build.sh $plain
"$cxx" "${flags[@]}" -o $plain/ptx_test $here/selftest/ptx_test.cpp $plain/ptx_*.o
$plain/ptx_test $plain/ptx/*.ptx

say "what ships is what runs"
# A sum in the PTX of the mean becomes a difference: the sources compiled for the host do not see it, the interpreter does.
CGO_ENABLED=0 "${GO:-go}" build -o $plain/kernelpack ./tests/kernelpack
sed 's/add\.rn\.f64/sub.rn.f64/' $plain/ptx.all >$plain/wrong.ptx
$plain/kernelpack $plain/wrong.ptx $plain/wrong.zst
echo "{\"Replace\": {\"$PWD/$kernels/code/ptx.zst\": \"$PWD/$plain/wrong.zst\"}}" >$plain/overlay.json
CGO_ENABLED=0 "${GO:-go}" test -c -overlay $plain/overlay.json -o $plain/wrong.test ./$kernels
(cd $kernels && env STRATA_LIBCUDA="$OLDPWD/$plain/libcuda.so.1" "$OLDPWD/$plain/wrong.test" -test.run '^TestMean$' >/dev/null)
finds "FAIL: TestMean" env CUEMU_PTX=1 STRATA_LIBCUDA="$PWD/$plain/libcuda.so.1" $plain/wrong.test -test.run '^TestMean$'

say "other orders of threads, tight buffers"
tests=$plain/kernels.test
CGO_ENABLED=0 "${GO:-go}" test -c -o $tests ./$kernels
# run NAME=VALUE…: the kernels' tests with these knobs
run() {
  echo "${*//"$PWD"\//}"
  (cd $kernels && env "$@" "$OLDPWD/$tests" -test.short) >"$log" 2>&1 || { cat "$log"; return 1; }
}
# The random order is that of the sanitizers, below.
for ptx in 0 1; do run STRATA_LIBCUDA="$PWD/$plain/libcuda.so.1" CUEMU_ORDER=rev CUEMU_ALIGN=16 CUEMU_PTX=$ptx; done
[ -z "${SHORT:-}" ] || { echo "the double is in order, as far as it was looked at"; exit; }

say "stages: by the PTX that ships, in another order of threads, with work that does not wait to be waited for"
for stage in aip focal crop stack stitch; do
  CGO_ENABLED=0 "${GO:-go}" test -c -o "$plain/$stage.test" ./pkg/oct/$stage
  (cd pkg/oct/$stage && env CUEMU_PTX=1 CUEMU_ORDER=rand CUEMU_EAGER=1 "$OLDPWD/$plain/$stage.test" -test.short -test.run Device) >"$log" 2>&1 ||
    { cat "$log"; exit 1; }
done

say "streams that interleave, addresses that are used again, races between streams, by kernels that tell their accesses"
traced=build/cudaemu-traced
$here/build.sh $traced -DEMU_TRACE
for package in pkg/filelayer pkg/zarr/zarrgpu pkg/zarr/zarrgpu/pack pkg/ngff/ngffgpu pkg/oct/aip pkg/oct/focal pkg/oct/stitch; do
  CGO_ENABLED=0 "${GO:-go}" test -c -o $plain/one.test ./$package
  case $package in pkg/oct/*) seeds=1 ;; *) seeds='1 2' ;; esac # stages take longer
  for seed in $seeds; do
    (cd $package && env STRATA_LIBCUDA="$OLDPWD/$traced/libcuda.so.1" CUEMU_RACES=1 CUEMU_INTERLEAVE=1 CUEMU_REUSE=1 CUEMU_SEED="$seed" "$OLDPWD/$plain/one.test" -test.short) >"$log" 2>&1 ||
      { echo "$package, seed $seed"; cat "$log"; exit 1; }
  done
done

say "AddressSanitizer, UndefinedBehaviorSanitizer"
# Shifts of negative numbers are defined since C++20, and by CUDA.
$here/build.sh $asan -fsanitize=address,undefined -fno-sanitize=shift-base -fno-sanitize-recover=undefined
# Faults of kernels are the double's to catch; fibers have stacks of their own.
export ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:allow_user_segv_handler=1:detect_stack_use_after_return=0
run LD_PRELOAD="$("$cxx" -print-file-name=libasan.so)" STRATA_LIBCUDA="$PWD/$asan/libcuda.so.1" CUEMU_ORDER=rand
"$cxx" "${flags[@]}" -fsanitize=address,undefined -fno-sanitize=shift-base -fno-sanitize-recover=undefined -o $asan/ptx_test $here/selftest/ptx_test.cpp $asan/ptx_*.o
$asan/ptx_test $asan/ptx/*.ptx
CGO_ENABLED=0 "${GO:-go}" test -c -o $plain/nvcomp.test ./pkg/gpu/nvcomp
LD_PRELOAD="$("$cxx" -print-file-name=libasan.so) $("$cxx" -print-file-name=libstdc++.so)" STRATA_LIBCUDA="$PWD/$asan/libcuda.so.1" $plain/nvcomp.test >"$log" 2>&1 || { cat "$log"; exit 1; }
"$cxx" "${flags[@]}" -fsanitize=address,undefined -o $asan/selftest $here/selftest/selftest.cpp $asan/*.o -lpthread
$asan/selftest $plain/ptx/select.ptx
finds "AddressSanitizer: use-after-poison" $asan/selftest $plain/ptx/select.ptx oob
finds "PTX line .* device memory\|before the end of an allocation" env CUEMU_PTX=1 $asan/selftest $plain/ptx/select.ptx oob

say "ThreadSanitizer"
# The double's own parts are not instrumented: fibers share them by design.
mkdir -p $tsan
"$cxx" "${flags[@]}" -DEMU_TSAN -c -o $tsan/engine.o $here/double/engine.cpp
for bug in "" -DEMU_NO_BARRIER; do
  "$cxx" "${flags[@]}" -fsanitize=thread $bug -c -o $tsan/kernels.o $plain/kernels_select.cpp
  "$cxx" "${flags[@]}" -fsanitize=thread -o "$tsan/selftest$bug" $here/selftest/selftest.cpp $tsan/*.o $plain/{device,memory,streams,modules,races,clock,traced,ptx_ops,ptx_parse,ptx_run,ptx_count}.o -lpthread
done
setarch -R $tsan/selftest $plain/ptx/select.ptx
finds "data race" setarch -R $tsan/selftest-DEMU_NO_BARRIER $plain/ptx/select.ptx
grep -v 'bar\.sync' $plain/ptx/select.ptx >$tsan/no_barrier.ptx
finds "race\|before it is written" env CUEMU_PTX=1 setarch -R $tsan/selftest $tsan/no_barrier.ptx
echo "the double is in order"
