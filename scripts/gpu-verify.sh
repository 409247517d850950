#!/usr/bin/env bash
# usage: gpu-verify.sh [run]   (make gpu-verify)
# Packs what a bare machine with a GPU needs to check this tree there: build/gpu-verify.tar.xz
# with programs, tests, nvCOMP and this script; no Go, Python or network needed. Unpack it
# there and call ./gpu-verify.sh run: it runs the kernel tests on the GPU, measures the
# kernels and nvCOMP, runs the stages on the GPU and the CPU, and CuPy beside them where Python has
# it, and leaves gpu-verify.json and gpu-verify.md. Here the pack is tried on the tests'
# double of a GPU.
set -euo pipefail
if [ "${1:-}" = run ]; then
  cd "$(dirname "${BASH_SOURCE[0]}")"
  # The kernel tests take the driver of the machine instead of the double.
  export STRATA_LIBCUDA=${STRATA_LIBCUDA:-libcuda.so.1}
  export STRATA_LIBNVCOMP=${STRATA_LIBNVCOMP:-$PWD/lib/libnvcomp.so.6}
  export PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH} # KvikIO, for peers.py
  # What one of them finds does not keep the others from looking. The corpus stayed where the pack was made.
  failed=()
  : >gpu-verify.log
  for tests in ./*.test; do
    echo "$tests" | tee -a gpu-verify.log
    # shellcheck disable=SC2086 # words
    "$tests" -test.v ${FLAGS:-} -test.skip '^TestCorpus$' 2>&1 | grep -E '^ *--- |^(PASS|FAIL|panic)|_test\.go:' | tee -a gpu-verify.log || failed+=("$tests")
  done
  for question in "" gpus "bench ."; do
    # shellcheck disable=SC2086 # words
    bin/doctor $question 2>&1 | tee -a gpu-verify.log || failed+=("doctor $question")
  done
  if command -v compute-sanitizer >/dev/null; then
    compute-sanitizer --error-exitcode 1 ./kernels.test 2>&1 | tee -a gpu-verify.log || failed+=(compute-sanitizer)
  fi
  ./gpuverify -bin bin -json gpu-verify.json -mib "${MIB:-512}" -repeat "${REPEAT:-20}" -tile "${TILE:-100,256,256}" \
    -peers peers.py -module "${PEER:-cupy}" | tee gpu-verify.md || failed+=(gpuverify)
  echo | tee -a gpu-verify.md
  [ ${#failed[@]} = 0 ] || { echo "failed: ${failed[*]}" | tee -a gpu-verify.md; exit 1; }
  echo "all tests passed" | tee -a gpu-verify.md
  exit
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/need.sh xz xz-utils
pack=build/gpu-verify
rm -rf "$pack"
mkdir -p "$pack"/{bin,lib}
commit=$(git describe --always --dirty=+dirty --exclude='*' --abbrev=40 2>/dev/null || echo unknown)
export CGO_ENABLED=0
cp bin/{aip,resample,focal,crop,stitch,stack,phantom,doctor} "$pack/bin/"
go build -trimpath -ldflags "-s -w -X main.commit=$commit" -o "$pack/" ./tests/gpuverify
for package in pkg/gpu/{kernels,cufile,nvcomp,nvml} pkg/gds pkg/zarr/zarrgpu/{pack,unpack}; do
  go test -c -trimpath -ldflags '-s -w' -o "$pack/$(basename "$package").test" "./$package"
done
cp scripts/gpu-verify.sh tests/gpuverify/peers.py "$pack/"
python=$(PIP_NO_DEPS=1 scripts/venv.sh build/venv-gpu tests/gpuverify/requirements.txt)
wheels=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp "$wheels"/nvidia/libnvcomp/lib64/libnvcomp.so.6 "$pack/lib/"
cp "$wheels"/nvidia/libnvcomp/LICENSE "$pack/lib/LICENSE.nvcomp"
mkdir "$pack/python"
cp -r "$wheels"/{kvikio,libkvikio,libkvikio_cu13.libs} "$pack/python/"
find "$pack/python" -name __pycache__ -prune -exec rm -r {} +
rm -rf build/gpu-verify-tried
cp -al "$pack" build/gpu-verify-tried # before tar reads: a link more is a change
# What makes it small is a dictionary as large as several programs, which have most of their code in common, not effort. It is made while a copy is tried.
tar -C build -cf - gpu-verify | xz -T1 --lzma2=preset=0,dict=128MiB >build/gpu-verify.tar.xz &
packing=$!
trap 'kill $packing 2>/dev/null || true' EXIT
tests/cudaemu/build.sh build/cudaemu
# Briefly: make test runs the same tests in full.
(cd build/gpu-verify-tried && STRATA_LIBCUDA=$OLDPWD/build/cudaemu/libcuda.so.1 STRATA_LIBNVCOMP=$OLDPWD/build/cudaemu/libnvcomp.so.6 FLAGS=-test.short MIB=8 REPEAT=1 TILE=24,48,48 ./gpu-verify.sh run >run.log 2>&1) ||
  { cat build/gpu-verify-tried/run.log >&2; exit 1; }
wait $packing
size=$(stat -c %s build/gpu-verify.tar.xz)
echo "build/gpu-verify.tar.xz: $((size / 1048576)) MiB"
[ "$size" -le 62914560 ] || { echo "it must stay under 60 MiB" >&2; exit 1; }
echo "tried on the double of a GPU: passed"
