#!/usr/bin/env bash
# bench/run.sh: strata beside its peers and the floors of the machine. `make bench`
# builds first. Each part stores what it measured in bench/results and writes its own
# page from that, so that one can be run again without the others.
#
#   PARTS        arrays: reading and writing Zarr (docs/benchmarks-arrays.md); stages: the
#                programs (docs/benchmarks.md); chain: the workflow, a table of the same
#                page (needs Nextflow); remote: arrays behind HTTP and S3 servers
#                (docs/benchmarks-remote.md); files: the file layer with host memory
#                (docs/benchmarks-files.md); zarr: the outputs of docs/bench-zarr.md.
#                Default: arrays,stages
#   KVIKIO       for files: 1 installs KvikIO from PyPI (3 GB), else a Python that has it (default: build/venv-kvikio or
#                python3, if they have it)
#   LINUMPY      a checkout of linumpy with its environment, to run beside the stages
#   BENCH_DIR    where the data lies (24 GB for both; default build/bench)
#   BENCH_OUT    where the programs write (default: memory, if there is enough, else BENCH_DIR)
#   BENCH_SHAPE  shape of the arrays (default 512,1024,1024); another one writes no report to docs
#   BENCH_SMOKE  1: everything small and one round, to see that all of it runs; no report to docs
#   BENCH_ONLY   cases whose name contains this; no report to docs
#   BENCH_RUST   1: with the zarrs crate (bench/zarrs), which takes minutes to compile
set -euo pipefail
cd "$(dirname "$0")/.."

parts=,${PARTS:-arrays,stages},
smoke=${BENCH_SMOKE:-} only=${BENCH_ONLY:-}
if [ -n "$smoke" ] && [ -z "${PARTS:-}" ]; then parts=,arrays,stages,chain,remote,files,zarr,; fi
base=${BENCH_DIR:-build/bench}
tools=$base/tools
results=bench/results
mkdir -p "$tools" "$results"

wanted() { [[ $parts == *,$1,* ]]; }
for part in ${parts//,/ }; do
  case $part in arrays | stages | chain | remote | files | zarr) ;; *)
    echo "bench/run.sh: PARTS=$part: arrays, stages, chain, remote, files, zarr" >&2
    exit 2
    ;;
  esac
done

# the C floor
scripts/need.sh cc gcc
headers() { printf '#include <%s>\n' zstd.h blosc.h libdeflate.h | cc -E -x c - >/dev/null 2>&1; }
if ! headers; then
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  echo "installing libzstd-dev libblosc-dev libdeflate-dev (for the C floor)" >&2
  { "${as_root[@]}" apt-get -qq update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends libzstd-dev libblosc-dev libdeflate-dev; } >/dev/null 2>&1 || true
  headers || { echo "bench/run.sh: zstd.h, blosc.h or libdeflate.h is missing: install libzstd-dev libblosc-dev libdeflate-dev" >&2; exit 1; }
fi
cc -O3 -march=native -Wall -Wextra -o "$tools/floor" bench/floor.c -lzstd -lblosc -ldeflate -lpthread

# ours
export CGO_ENABLED=0
${GO:-go} build -trimpath -o "$tools/" ./bench/arrays ./bench/compare ./bench/remote
${GO:-go} build -trimpath -o "$tools/s3server" ./tests/s3emu/server

# a step of making data: a stamp says that it was finished
once() { # FOLDER NAME COMMAND...
  [ -e "$1/$2.made" ] && return
  rm -rf "${1:?}/$2"
  "${@:3}" >/dev/null
  touch "$1/$2.made"
}

out=${BENCH_OUT:-}
if [ -z "$out" ]; then
  out=$base/out
  # in memory what is timed is the program, not the disk; an array and what a peer needs fit
  free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1 || echo 0)
  memory=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
  if [ "$free" -gt 4194304 ] && [ "$memory" -gt 16777216 ]; then out=$(mktemp -d /dev/shm/strata-bench.XXXXXX); fi
fi
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT

# two processors for everybody
pin=()
if [ "$(nproc)" -gt 2 ] && command -v taskset >/dev/null; then pin=(taskset -c "0,1"); fi

arrays() {
  local shape=${BENCH_SHAPE:-512,1024,1024} rounds=(-least 3 -most 9 -patience 12s)
  local mosaic=(--tiles "6,6" --tile "200,256,256") shard=200,768,768
  if [ -n "$smoke" ]; then
    shape=64,256,256
    rounds=(-least 1 -most 1)
    mosaic=(--tiles "2,2" --tile "50,64,64")
    shard=50,128,128
  fi
  local data=$base/${shape//,/x} python large small
  mkdir -p "$data"
  python=$(scripts/venv.sh build/venv bench/requirements.txt)
  if [ -n "${BENCH_RUST:-}" ]; then
    scripts/need.sh cargo cargo
    cargo build --quiet --release --locked --manifest-path bench/zarrs/Cargo.toml --target-dir "$base/cargo"
    cp "$base/cargo/release/zarrs-bench" "$tools/"
  else
    rm -f "$tools/zarrs-bench"
  fi
  # The arrays are written by a peer, so that all read what libzstd, c-blosc and zlib
  # make; the mosaics by phantom.
  once "$data" plain "$tools/arrays" gen "$data" "$shape"
  large=$(tr , '\n' <<<"256,$shape" | sort -n | head -n 1)
  small=$((large / 4))
  make_array() { # NAME CODEC CHUNK [SHARD]
    once "$data" "$1.zarr" "$python" bench/peers.py tensorstore write "$data/plain.f32" --shape "$shape" --codec "$2" \
      --chunks "$3,$3,$3" ${4:+--shard "$4,$4,$4"} --out "$data/$1.zarr"
  }
  make_array raw raw "$large"
  make_array blosclz4 blosc-lz4:5 "$large"
  make_array blosczstdbit blosc-zstd-bit:3 "$large"
  make_array zstd zstd:3 "$large"
  make_array zstdsmall zstd:3 "$small"
  make_array shard zstd:3 "$small" "$large"
  make_array gzip gzip:5 "$large"
  make_mosaic() { # NAME FLAG...
    once "$data" "mosaic_$1" bin/phantom "$data/mosaic_$1" --noise -f -q --zarr_format 3 "${mosaic[@]}" --chunks "${mosaic[3]}" "${@:2}"
  }
  make_mosaic raw --codec raw
  make_mosaic zstd --codec zstd:3 --shard "$shard"
  make_mosaic blosc --codec blosc-zstd:1

  "${pin[@]}" "$tools/compare" run -tools "$tools" -data "$data" -out "$out" -python "$python" \
    -shape "$shape" -only "$only" "${rounds[@]}" >"$data/runs.jsonl.part"
  mv "$data/runs.jsonl.part" "$data/runs.jsonl"
  local report=$data
  if [ -z "$smoke$only" ] && [ "$shape" = 512,1024,1024 ]; then
    report=docs
    cp "$data/runs.jsonl" "$results/arrays.jsonl"
  fi
  "$tools/compare" report -runs "$data/runs.jsonl" -notes bench/notes-arrays.md -md "$report/benchmarks-arrays.md" -svg "$report/benchmarks-arrays.svg"
  echo "$report/benchmarks-arrays.md"
}

remote() {
  local data=$base/remote shape=256,512,512 rounds=(-least 3 -most 5 -patience 10s) python small=64 large=256
  if [ -n "$smoke" ]; then
    data=$base/remote-small shape=64,128,128 rounds=(-least 1 -most 1) small=16 large=64
  fi
  mkdir -p "$data/arrays"
  python=$(scripts/venv.sh build/venv bench/requirements.txt)
  once "$data" plain "$tools/arrays" gen "$data" "$shape"
  make_remote() { # NAME CODEC [SHARD]
    once "$data/arrays" "$1.zarr" "$python" bench/peers.py tensorstore write "$data/plain.f32" --shape "$shape" --codec "$2" \
      --chunks "$small,$small,$small" ${3:+--shard "$3,$3,$3"} --out "$data/arrays/$1.zarr"
  }
  make_remote raw raw
  make_remote zstd zstd:3
  make_remote shard zstd:3 "$large"
  "${pin[@]}" "$tools/compare" remote -tools "$tools" -data "$data" -out "$out" -python "$python" \
    -shape "$shape" -only "$only" "${rounds[@]}" >"$data/runs.jsonl.part"
  mv "$data/runs.jsonl.part" "$data/runs.jsonl"
  local report=$data
  if [ -z "$smoke$only" ]; then
    report=docs
    cp "$data/runs.jsonl" "$results/remote.jsonl"
  fi
  "$tools/compare" report -remote "$data/runs.jsonl" -notes bench/notes-remote.md -md "$report/benchmarks-remote.md" -svg "$report/benchmarks-remote.svg"
  echo "$report/benchmarks-remote.md"
}

stages() {
  local data=$base/stages rounds=(-least 5 -most 9 -patience 8s)
  local tiles=6,6 tile=200,256,256 shard=200,768,768 slice=(--tiles "6,6" --tile "60,240,240") python
  if [ -n "$smoke" ]; then
    data=$base/stages-small rounds=(-least 1 -most 1)
    tiles=3,3 tile=50,64,64 shard=50,64,64
    slice=(--tiles "3,3" --tile "60,64,64")
  fi
  mkdir -p "$data"
  python=$(PYTHON=${PYTHON:-python3.12 python3.11} scripts/venv.sh build/venv-stages bench/requirements-stages.txt)
  make_mosaic() { # NAME FLAG...
    bin/phantom "$data/make" -f -q --zarr_format 3 --tiles "$tiles" --tile "$tile" "${@:2}"
    rm -rf "$data/mosaic_$1.ome.zarr"
    mv "$data/make/mosaic_grid_3d_z00.ome.zarr" "$data/mosaic_$1.ome.zarr"
    rm -rf "$data/make"
  }
  once "$data" zstd make_mosaic zstd --codec zstd:3 --shard "$shard"
  once "$data" raw make_mosaic raw --codec raw
  once "$data" blosc make_mosaic blosc --codec blosc-zstd:1
  # six slices that each show twenty planes (70 µm) of the next
  make_slices() {
    bin/phantom "$data/make" -f -q --slices 6 "${slice[@]}" --interval 140 --water 0 --relief 0 --jitter 0 --shift 8 --glitch 0 --truth_slices
    rm -rf "$data/slices"
    mv "$data/make/truth" "$data/slices"
    mv "$data/make/shifts_xy.csv" "$data/"
    rm -rf "$data/make"
  }
  once "$data" slice make_slices

  "${pin[@]}" "$tools/compare" stages -tools "$tools" -data "$data" -out "$out" -python "$python" -linumpy "${LINUMPY:-}" \
    -only "$only" "${rounds[@]}" >"$data/runs.jsonl.part"
  mv "$data/runs.jsonl.part" "$data/stages.jsonl"
  if [ -z "$smoke$only" ]; then
    cp "$data/stages.jsonl" "$results/"
    page "$results" docs
  elif [ -z "$only" ]; then
    page "$data" "$data"
  fi
}

page() { # RESULTS FOLDER: the page of stages, chain and large input
  "$tools/compare" report -results "$1" -notes bench/notes-stages.md -md "$2/benchmarks.md" -svg "$2/benchmarks.svg"
  echo "$2/benchmarks.md"
}

files() {
  local data=$base/files bytes=1073741824 rounds=(-least 3 -most 7 -patience 20s) python='' nocuda=''
  if [ -n "$smoke" ]; then
    data=$base/files-small bytes=16777216 rounds=(-least 1 -most 1)
  fi
  mkdir -p "$data/out"
  ${GO:-go} build -trimpath -o "$tools/" ./bench/gds
  cc -O3 -march=native -Wall -Wextra -o "$tools/gds-floor" bench/gds-floor.c -lpthread
  case ${KVIKIO:-} in
    1) python=$(scripts/venv.sh build/venv-kvikio bench/requirements-kvikio.txt) ;;
    ?*) python=$KVIKIO ;;
    *) for p in build/venv-kvikio/bin/python python3; do
      if [ -z "$python" ] && "$p" -c 'import importlib.metadata as m; m.version("kvikio-cu12"); m.version("numpy")' 2>/dev/null; then python=$p; fi
    done ;;
  esac
  if [ -n "$python" ] && ! "$python" -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then
    nocuda=$tools/nocuda
    mkdir -p "$nocuda"
    cc -shared -fPIC -Wall -Wextra -Wl,-soname,libcuda.so.1 -o "$nocuda/libcuda.so.1" bench/gds-cuda.c
  fi
  make_files() {
    mkdir -p "$data/files"
    "$tools/gds" gen-files "$data/files" "$bytes" 2 1048576 1 0 0 0
  }
  once "$data" file "$tools/gds" gen "$data/file" "$bytes" 2 4194304 1 0 0 0
  once "$data" files make_files
  "${pin[@]}" "$tools/compare" files -tools "$tools" -data "$data" -out "$data/out" -kvikio "$python" -nocuda "$nocuda" -bytes "$bytes" \
    -only "$only" "${rounds[@]}" >"$data/runs.jsonl.part"
  mv "$data/runs.jsonl.part" "$data/runs.jsonl"
  local report=$data
  if [ -z "$smoke$only" ]; then
    report=docs
    cp "$data/runs.jsonl" "$results/files.jsonl"
  fi
  "$tools/compare" report -files "$data/runs.jsonl" -notes bench/notes-files.md -md "$report/benchmarks-files.md" -svg "$report/benchmarks-files.svg"
  echo "$report/benchmarks-files.md"
}

if wanted stages; then stages; fi
if wanted chain; then
  if [ -n "$smoke" ]; then
    mkdir -p "$base/stages-small"
    bench/chain.sh "$base/chain-small" "$base/stages-small/chain.json"
    [ ! -e "$base/stages-small/stages.jsonl" ] || page "$base/stages-small" "$base/stages-small"
  else
    bench/chain.sh "$base/chain" "$results/chain.json"
    [ ! -e "$results/stages.jsonl" ] || page "$results" docs
  fi
fi
if wanted arrays; then arrays; fi
if wanted remote; then remote; fi
if wanted zarr; then
  scripts/venv.sh build/venv bench/requirements.txt >/dev/null
  if [ -n "$smoke" ]; then
    "${pin[@]}" bench/zarr.sh "$base/zarr-small" build/venv "$base/bench-zarr.md"
  else
    "${pin[@]}" bench/zarr.sh "$base/zarr" build/venv docs/bench-zarr.md docs/bench-zarr.png
  fi
fi
if wanted files; then files; fi
if [ -z "$smoke$only" ] && [ -e "$results/stages.jsonl" ] && { wanted remote || wanted files; }; then
  page "$results" docs # it has their targets
fi
