#!/usr/bin/env bash
# bench/run.sh: strata, its peers and the C floor on the same arrays, in one run;
# writes docs/benchmarks.md and docs/benchmarks.svg. `make bench` builds first.
#
#   BENCH_DIR    where the data lies (16 GB; default build/bench)
#   BENCH_OUT    where the programs write (default: memory, if there is enough, else BENCH_DIR)
#   BENCH_SHAPE  shape of the arrays (default 512,1024,1024); another one writes no report to docs
#   BENCH_SMOKE  1: small arrays and one round, to see that all of it runs; no report to docs
#   BENCH_ONLY   cases whose name contains this; no report to docs
#   BENCH_RUST   1: with the zarrs crate (bench/zarrs), which takes minutes to compile
set -euo pipefail
cd "$(dirname "$0")/.."

smoke=${BENCH_SMOKE:-} only=${BENCH_ONLY:-}
shape=${BENCH_SHAPE:-512,1024,1024}
base=${BENCH_DIR:-build/bench}
rounds=(-least 3 -most 9 -patience 12s)
mosaic=(--tiles "6,6" --tile "200,256,256")
shard=200,768,768
if [ -n "$smoke" ]; then
  shape=64,256,256
  rounds=(-least 1 -most 1)
  mosaic=(--tiles "2,2" --tile "50,64,64")
  shard=50,128,128
fi
data=$base/${shape//,/x} tools=$base/tools
mkdir -p "$data" "$tools"

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

# the peers
python=$(scripts/venv.sh build/venv bench/requirements.txt)
if [ -n "${BENCH_RUST:-}" ]; then
  scripts/need.sh cargo cargo
  cargo build --quiet --release --locked --manifest-path bench/zarrs/Cargo.toml --target-dir "$base/cargo"
  cp "$base/cargo/release/zarrs-bench" "$tools/"
else
  rm -f "$tools/zarrs-bench"
fi

# ours
export CGO_ENABLED=0
${GO:-go} build -trimpath -o "$tools/" ./bench/arrays ./bench/compare

# The data. The arrays are written by a peer, so that all read what libzstd, c-blosc and
# zlib make; the mosaics by phantom. A stamp says that a step was finished.
once() { # NAME COMMAND...
  [ -e "$data/$1.made" ] && return
  rm -rf "${data:?}/$1"
  "${@:2}" >/dev/null
  touch "$data/$1.made"
}
once plain "$tools/arrays" gen "$data" "$shape"
large=$(tr , '\n' <<<"256,$shape" | sort -n | head -n 1)
small=$((large / 4))
make_array() { # NAME CODEC CHUNK [SHARD]
  once "$1.zarr" "$python" bench/peers.py tensorstore write "$data/plain.f32" --shape "$shape" --codec "$2" \
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
  once "mosaic_$1" bin/phantom "$data/mosaic_$1" --noise -f -q --zarr_format 3 "${mosaic[@]}" --chunks "${mosaic[3]}" "${@:2}"
}
make_mosaic raw --codec raw
make_mosaic zstd --codec zstd:3 --shard "$shard"
make_mosaic blosc --codec blosc-zstd:1

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
"${pin[@]}" "$tools/compare" run -tools "$tools" -data "$data" -out "$out" -python "$python" \
  -shape "$shape" -only "$only" "${rounds[@]}" >"$data/runs.jsonl.part"
mv "$data/runs.jsonl.part" "$data/runs.jsonl"

report=$data
if [ -z "$smoke$only" ] && [ "$shape" = 512,1024,1024 ]; then report=docs; fi
"$tools/compare" report -runs "$data/runs.jsonl" -notes bench/notes.md -md "$report/benchmarks.md" -svg "$report/benchmarks.svg"
echo "$report/benchmarks.md"
