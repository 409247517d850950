#!/usr/bin/env bash
# usage: gpu-verify.sh                                   (make gpu-verify)
#        gpu-verify.sh micro|stages|correctness|run      in the unpacked pack, on a machine with a GPU
# Packs what a bare machine with a GPU needs to check this tree there: build/gpu-verify.tar.xz
# with programs, tests, nvCOMP and this script; no Go, Python or network needed. Unpack it there and call the
# three commands, each of which takes nine minutes at most, or run, which is all three:
#   micro        start, copies, kernels and nvCOMP are measured
#   stages       stages are timed on the GPU and the CPU, on data in memory and on the disk
#   correctness  stages' voxels are compared, tests run, CuPy works beside us, compute-sanitizer looks at the kernels
# Each part has a limit of time, and gpu-verify.json has what was found as soon as it was found; gpu-verify.md is the
# same for people. Here the pack is tried on the tests' double of a GPU.
set -euo pipefail

# part NAME SECONDS COMMAND…: what fails, or takes too long, does not keep the others from looking. No part begins
# when the command's nine minutes are over.
part() {
  local name=$1 limit=$2 left=$((${MINUTES:-9} * 60 - (SECONDS - begun) - 5)) status=0
  shift 2
  ((limit < left)) || limit=$left
  echo "--- $name: ${limit} s at most" | tee -a gpu-verify.log
  ((limit > 0)) || { failed+=("$name: no time left"); return 0; }
  timeout --kill-after=5 "$limit" "$@" >part.log 2>&1 || status=$?
  grep -E '^ *--- |^(PASS|FAIL|panic|gpuverify)|_test\.go:|ERROR SUMMARY' part.log | tee -a gpu-verify.log || true
  [ "$status" = 0 ] && return
  tail -n 20 part.log | tee -a gpu-verify.log
  failed+=("$name: exit code $status")
}
micro() {
  # What the driver has compiled before would hide how long it takes.
  part start 60 env CUDA_CACHE_DISABLE=1 "${verify[@]}" -section start
  part copies 60 "${verify[@]}" -section copies
  part kernels 150 "${verify[@]}" -section kernels
  part nvcomp 240 "${verify[@]}" -section nvcomp
}
stages() {
  part stages 525 "${verify[@]}" -tiles "${TILES:-8,8}" -places "${PLACES:-/dev/shm,.}" -section stages -limit "${STAGES_LIMIT:-510s}"
}
correctness() {
  part voxels 150 "${verify[@]}" -section correctness
  local tests question
  # The corpus and the sources of kernels stayed where the pack was made.
  # shellcheck disable=SC2086 # words
  for tests in ./*.test; do part "$tests" 60 "$tests" -test.v ${FLAGS:-} -test.skip '^(TestCorpus|TestPacked)$'; done
  # shellcheck disable=SC2086 # words
  for question in "" gpus "bench ."; do part "doctor $question" 30 bin/doctor $question; done
  part peers 90 "${verify[@]}" -section peers -peers peers.py -module "${PEER:-cupy}"
  if command -v compute-sanitizer >/dev/null; then
    part sanitizer 200 compute-sanitizer --error-exitcode 1 ./kernels.test
  fi
}

case ${1:-pack} in
  pack) ;;
  micro | stages | correctness | run)
    cd "$(dirname "${BASH_SOURCE[0]}")"
    # The tests take the driver of the machine instead of the double.
    export STRATA_LIBCUDA=${STRATA_LIBCUDA:-libcuda.so.1}
    export STRATA_LIBNVCOMP=${STRATA_LIBNVCOMP:-$PWD/lib/libnvcomp.so.6}
    export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH} # KvikIO, for peers.py
    verify=(./gpuverify -bin bin -json gpu-verify.json -mib "${MIB:-2048}" -repeat "${REPEAT:-20}" -tile "${TILE:-100,256,256}")
    failed=()
    for command in ${1/run/micro stages correctness}; do
      begun=$SECONDS
      "$command"
    done
    "${verify[@]}" -print >gpu-verify.md || failed+=("the record")
    printf '\n%s\n' "${failed[@]/#/failed: }" >>gpu-verify.md
    [ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
    echo "all passed" | tee -a gpu-verify.md
    exit
    ;;
  *) sed -n 's/^# //p' "$0" | head -n 2 >&2; exit 2 ;;
esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/need.sh xz xz-utils
pack=build/gpu-verify
rm -rf "$pack"
mkdir -p "$pack"/{bin,lib}
commit=$(git describe --always --dirty=+dirty --exclude='*' --abbrev=40 2>/dev/null || echo unknown)
export CGO_ENABLED=0
cp -P bin/{strata,aip,resample,focal,crop,stitch,stack,phantom,doctor} "$pack/bin/"
go build -trimpath -ldflags "-s -w -X main.commit=$commit" -o "$pack/" ./tests/gpuverify
for package in pkg/gpu/{kernels,cufile,nvcomp,nvml} pkg/gds pkg/zarr/zarrgpu/{pack,unpack}; do
  go test -c -trimpath -ldflags '-s -w' -o "$pack/$(basename "$package").test" "./$package"
done
cp scripts/gpu-verify.sh tests/gpuverify/peers.py tests/gpuverify/README.md "$pack/"
python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-gpu tests/gpuverify/requirements.txt)
wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp "$wheels"/nvidia/libnvcomp/lib64/libnvcomp.so.6 "$pack/lib/"
cp "$wheels"/nvidia/libnvcomp/LICENSE "$pack/lib/LICENSE.nvcomp"
mkdir "$pack/python"
cp -r "$wheels"/{kvikio,libkvikio,libkvikio_cu12.libs} "$pack/python/"
find "$pack/python" -name __pycache__ -prune -exec rm -r {} +
rm -rf build/gpu-verify-tried
cp -al "$pack" build/gpu-verify-tried # before tar reads: a link more is a change
# What makes it small is a dictionary as large as several programs, which have most of their code in common, not effort. It is made while a copy is tried.
tar -C build -cf - gpu-verify | xz -T1 --lzma2=preset=0,dict=128MiB >build/gpu-verify.tar.xz &
packing=$!
trap 'kill $packing 2>/dev/null || true' EXIT
tests/cudaemu/build.sh build/cudaemu
# Briefly: make test runs the same tests in full. The double has 1 GiB.
(cd build/gpu-verify-tried && STRATA_LIBCUDA=$OLDPWD/build/cudaemu/libcuda.so.1 STRATA_LIBNVCOMP=$OLDPWD/build/cudaemu/libnvcomp.so.6 \
  FLAGS=-test.short MIB=8 REPEAT=1 TILE=24,48,48 TILES=2,2 PLACES=. STAGES_LIMIT=300s ./gpu-verify.sh run >run.log 2>&1) ||
  { cat build/gpu-verify-tried/run.log >&2; exit 1; }
wait $packing
size=$(stat -c %s build/gpu-verify.tar.xz)
echo "build/gpu-verify.tar.xz: $((size / 1048576)) MiB"
[ "$size" -le 62914560 ] || { echo "it must stay under 60 MiB" >&2; exit 1; }
echo "tried on the double of a GPU: passed"
