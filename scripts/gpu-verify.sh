#!/usr/bin/env bash
# usage: gpu-verify.sh                     (make gpu-verify)
#        gpu-verify.sh look|stages|run     in the unpacked pack, on a machine with a GPU
# Packs what a bare machine with a GPU needs to check this tree there: build/gpu-verify.tar.xz with programs, tests and this
# script; no Go, Python or network needed. NVIDIA's nvCOMP and KvikIO, which make it large, are apart:
# build/gpu-verify-nvcomp.tar.xz and build/gpu-verify-kvikio.tar.xz. Unpack them there into one folder and call the two
# commands, each of which takes five minutes at most, or run, which is both:
#   look     tests, the stages' voxels beside the CPU's; then start, copies, kernels and nvCOMP are measured
#   stages   the driver's calls of a start that take long; stages are timed on tiles of real size
# What matters most comes first. Each part has a limit of time, and gpu-verify.json has what was found as soon as it was
# found; gpu-verify.md is the same for people. Here the pack is tried on the tests' double of a GPU.
set -euo pipefail

# part NAME SECONDS COMMAND…: what fails, or takes too long, does not keep the others from looking. No part begins when the
# command's time is over.
part() {
  local name=$1 limit=$2 left=$((${END:-290} - (SECONDS - begun))) status=0 from=$SECONDS
  shift 2
  ((limit < left)) || limit=$left
  ((limit > 0)) || { failed+=("$name: no time left"); return 0; }
  timeout --kill-after=3 "$limit" "$@" >part.log 2>&1 || status=$?
  { echo "===== $name: exit code $status, $((SECONDS - from)) s"; cat part.log; } >>gpu-verify.log
  echo "[$((SECONDS - begun))] $name: exit code $status; $(grep -c -- '--- PASS' part.log || true) passed, $(grep -c -- '--- FAIL' part.log || true) failed, $(grep -c -- '--- SKIP' part.log || true) skipped"
  [ "$status" = 0 ] && return
  grep -E -- '--- FAIL|_test\.go:|^panic|^gpuverify:|^fatal' part.log | head -n 8 | cut -c 1-300 || true
  tail -n 3 part.log | cut -c 1-300
  failed+=("$name: exit code $status")
}
# tests SECONDS NAME…
tests() {
  local limit=$1 name
  shift
  # The corpus and the sources of kernels stayed where the pack was made.
  # shellcheck disable=SC2086 # words
  for name in "$@"; do part "$name.test" "$limit" "./$name.test" -test.v ${FLAGS:-} -test.skip '^(TestCorpus|TestPacked)$'; done
}
look() {
  { nvidia-smi; nproc; free -g; df -h /dev/shm .; uname -a; } >machine.txt 2>&1 || true
  part doctor 20 bin/doctor
  # What the driver has compiled before would hide how long it takes.
  part start 40 env CUDA_CACHE_DISABLE=1 "${verify[@]}" -section start
  tests 60 nvcomp pack unpack kernels
  part voxels 75 "${verify[@]}" -tile "${TILE:-48,160,160}" -section correctness
  part copies 30 "${verify[@]}" -section copies
  part kernels 40 "${verify[@]}" -repeat "${REPEAT:-7}" -section kernels
  tests 30 cufile gds nvml
  part nvcomp 40 "${verify[@]}" -mib "${MIB:-512}" -repeat "${REPEAT:-8}" -section nvcomp
  if command -v compute-sanitizer >/dev/null; then
    part sanitizer 30 compute-sanitizer --error-exitcode 1 ./kernels.test -test.v -test.short -test.run '^(TestCopyPieces|TestMix|TestCorrect|TestChecksums|TestRoll)$'
  fi
  part peers 60 "${verify[@]}" -tile "${TILE:-48,160,160}" -section peers -peers peers.py -module "${PEER:-cupy}"
}
# traced NAME PROGRAM…: the driver's calls of a run that take more than 2 ms.
traced() {
  local name=$1
  shift
  rm -f shim.log
  part "trace of $name" 20 env REAL_LIBCUDA="$STRATA_LIBCUDA" STRATA_LIBCUDA="$PWD/shim.so" SHIM_LOG="$PWD/shim.log" "$@" --require_gpu -q -f
  { echo "== $name"; cat shim.log || true; } >>traces.txt
}
stages() {
  local codec
  : >traces.txt
  for codec in blosc raw; do
    part "data, $codec" 60 bin/phantom "$data/$codec" -q -f --tiles 2,2 --tile "${TILE:-48,160,160}" --codec "${codec/#blosc/blosc-zstd:1}"
    for stage in aip resample focal stitch; do traced "$stage, $codec" "bin/$stage" "$data/$codec/mosaic_grid_3d_z00.ome.zarr" "$data/out.ome.zarr"; done
    rm -r "${data:?}"/*
  done
  part stages "${END:-290}" "${verify[@]}" -large "${LARGE:-200,512,512}" -across "${ACROSS:-6}" -place "$data" -section stages -limit "$((${END:-290} - (SECONDS - begun) - 5))s"
}

case ${1:-pack} in
  pack) ;;
  look | stages | run)
    cd "$(dirname "${BASH_SOURCE[0]}")"
    # The tests take the driver of the machine instead of the double.
    export STRATA_LIBCUDA=${STRATA_LIBCUDA:-libcuda.so.1}
    [ ! -e lib/libnvcomp.so.6 ] || export STRATA_LIBNVCOMP=${STRATA_LIBNVCOMP:-$PWD/lib/libnvcomp.so.6}
    export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH} # KvikIO, for peers.py
    verify=(./gpuverify -bin bin -json gpu-verify.json -mib "${MIB:-1024}")
    data=$(mktemp -d "${PLACE:-/dev/shm}/gpu-verify.XXXXXX")
    trap 'rm -rf "$data"' EXIT
    failed=()
    for command in ${1/run/look stages}; do
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
scripts/need.sh gcc gcc
pack=build/gpu-verify
rm -rf "$pack" build/gpu-verify-apart
mkdir -p "$pack"/bin build/gpu-verify-apart/gpu-verify/{lib,python}
commit=$(git describe --always --dirty=+dirty --exclude='*' --abbrev=40 2>/dev/null || echo unknown)
export CGO_ENABLED=0
cp -P bin/{strata,aip,resample,focal,crop,stitch,stack,phantom,doctor} "$pack/bin/"
go build -trimpath -ldflags "-s -w -X main.commit=$commit" -o "$pack/" ./tests/gpuverify
for package in pkg/gpu/{kernels,cufile,nvcomp,nvml} pkg/filelayer pkg/zarr/zarrgpu/{pack,unpack}; do
  go test -c -trimpath -ldflags '-s -w' -o "$pack/$(basename "$package").test" "./$package"
done
"$pack/gpuverify" -shim pkg/gpu/driver.go >build/gpu-verify-apart/shim.c
gcc -O1 -Wno-builtin-declaration-mismatch -shared -fPIC -o "$pack/shim.so" build/gpu-verify-apart/shim.c -ldl
cp scripts/gpu-verify.sh tests/gpuverify/peers.py tests/gpuverify/README.md "$pack/"
# packed FOLDER ARCHIVE MOST: an archive of at most MOST MiB. What makes it small is a dictionary as large as several programs,
# which have most of their code in common, not effort.
packed() {
  tar -C "$1" -cf - gpu-verify | xz -T1 --lzma2=preset="${4:-0}",dict=128MiB >"$2"
  local size
  size=$(stat -c %s "$2")
  echo "$2: $((size / 1048576)) MiB"
  [ "$size" -le $(($3 << 20)) ] || { echo "it must stay under $3 MiB" >&2; return 1; }
}
apart=build/gpu-verify-apart/gpu-verify
python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-gpu tests/gpuverify/requirements.txt)
wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp "$wheels"/nvidia/libnvcomp/lib64/libnvcomp.so.6 "$apart/lib/"
cp "$wheels"/nvidia/libnvcomp/LICENSE "$apart/lib/LICENSE.nvcomp"
packed build/gpu-verify-apart build/gpu-verify-nvcomp.tar.xz 60
rm -r "${apart:?}/lib"
cp -r "$wheels"/{kvikio,libkvikio,libkvikio_cu12.libs} "$apart/python/"
find "$apart/python" -name __pycache__ -prune -exec rm -r {} +
packed build/gpu-verify-apart build/gpu-verify-kvikio.tar.xz 60
rm -r build/gpu-verify-apart
packed build build/gpu-verify.tar.xz 30
# Briefly: make test runs the same tests in full. The double has 1 GiB.
tests/cudaemu/build.sh build/cudaemu
rm -rf build/gpu-verify-tried
mkdir build/gpu-verify-tried
tar -C build/gpu-verify-tried -xJf build/gpu-verify.tar.xz
(cd build/gpu-verify-tried/gpu-verify && STRATA_LIBCUDA=$OLDPWD/build/cudaemu/libcuda.so.1 STRATA_LIBNVCOMP=$OLDPWD/build/cudaemu/libnvcomp.so.6 PLACE=$PWD \
  FLAGS=-test.short MIB=8 REPEAT=1 TILE=24,48,48 LARGE=24,48,48 ACROSS=3 ./gpu-verify.sh run >run.log 2>&1) ||
  { cat build/gpu-verify-tried/gpu-verify/run.log >&2; exit 1; }
go run ./tests/gpuverify -print -json build/gpu-verify-tried/gpu-verify/gpu-verify.json >/dev/null
grep -q '^== stitch, raw' build/gpu-verify-tried/gpu-verify/traces.txt
echo "tried on the double of a GPU: passed"
