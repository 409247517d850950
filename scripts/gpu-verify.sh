#!/usr/bin/env bash
# usage: gpu-verify.sh [run]   (make gpu-verify)
# Packs what a bare machine with a GPU needs to check this tree there: build/gpu-verify.tar.gz
# with programs, tests and this script; no Go, Python or network needed. Unpack it
# there and call ./gpu-verify.sh run: it runs the kernel tests on the GPU, measures the
# kernels, runs the stages on the GPU and the CPU, and leaves gpu-verify.json and
# gpu-verify.md. Here the pack is tried on the tests' double of a GPU.
set -euo pipefail
if [ "${1:-}" = run ]; then
  cd "$(dirname "${BASH_SOURCE[0]}")"
  # The kernel tests take the driver of the machine instead of the double.
  export STRATA_LIBCUDA=${STRATA_LIBCUDA:-libcuda.so.1}
  {
    ./kernels.test -test.v | grep -E '^(---|===|PASS|FAIL|ok)' | grep -E '^(--- |PASS|FAIL)'
    if command -v compute-sanitizer >/dev/null; then compute-sanitizer --error-exitcode 1 ./kernels.test; fi
  } | tee gpu-verify.log
  ./gpuverify -bin bin -json gpu-verify.json -mib "${MIB:-512}" -repeat "${REPEAT:-20}" | tee gpu-verify.md
  exit
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
pack=build/gpu-verify
rm -rf "$pack"
mkdir -p "$pack/bin"
commit=$(git describe --always --dirty=+dirty --exclude='*' --abbrev=40 2>/dev/null || echo unknown)
export CGO_ENABLED=0
go build -trimpath -tags urfave_cli_no_docs -ldflags '-s -w' -o "$pack/bin/" ./cmd/aip ./cmd/resample ./cmd/phantom ./cmd/doctor
go build -trimpath -ldflags "-s -w -X main.commit=$commit" -o "$pack/" ./tests/gpuverify
go test -c -trimpath -o "$pack/kernels.test" ./pkg/gpu/kernels
cp scripts/gpu-verify.sh "$pack/"
tar -C build -czf build/gpu-verify.tar.gz gpu-verify
size=$(stat -c %s build/gpu-verify.tar.gz)
echo "build/gpu-verify.tar.gz: $((size / 1048576)) MiB"
[ "$size" -le 62914560 ] || { echo "it must stay under 60 MiB" >&2; exit 1; }
tests/cudaemu/build.sh build/cudaemu
(cd "$pack" && STRATA_LIBCUDA=$OLDPWD/build/cudaemu/libcuda.so.1 MIB=8 REPEAT=1 ./gpu-verify.sh run >run.log 2>&1) || { cat "$pack/run.log" >&2; exit 1; }
echo "tried on the double of a GPU: passed"
