#!/usr/bin/env bash
# usage: lab/large.sh OUT   every stage on an input of 20 GB and on the one of the
# stages' benchmark, for what it needs of memory; OUT is the record that becomes a table
# in docs/benchmarks.md. `PARTS=large make bench` calls it: it takes 35 GB of disk and a
# quarter of an hour.
#
#   BENCH_DIR   where the data lies (default build/bench); what the stages write goes there too
#   KEEP        1: keep the large input
set -euo pipefail
cd "$(dirname "$0")/.."
record=$1
base=${BENCH_DIR:+$BENCH_DIR/strata-bench} # a folder of its own, in which names are removed
base=${base:-build/bench}
small=$base/stages large=$base/large out=$base/large-out
free=$(df --output=avail -k "$(dirname "$base")" | tail -n 1)
if [ ! -e "$large/made" ] && [ "$free" -lt 36700160 ]; then
  echo "lab/large.sh: needs 35 GB in $base, there are $((free / 1048576)) GiB" >&2
  exit 1
fi
[ -e "$small/slice.made" ] || PARTS=stages BENCH_ONLY=start/ lab/run.sh
mkdir -p "$base/tools" "$large" "$out"
CGO_ENABLED=0 ${GO:-go} build -trimpath -o "$base/tools/" ./lab/compare
trap 'rm -rf "$out"' EXIT

if [ ! -e "$large/made" ]; then
  rm -rf "$large"
  mkdir -p "$large"
  bin/phantom "$large/make" -f -q --anatomy 0 --tiles 20,20 --tile 200,256,256
  mv "$large/make/mosaic_grid_3d_z00.ome.zarr" "$large/mosaic_blosc.ome.zarr"
  rm -rf "$large/make"
  # the six slices ten times over: what grows is their number
  mkdir "$large/slices"
  for i in $(seq 0 59); do
    ln -s "$(realpath "$small")/slices/$(printf 'slice_z%02d' $((i % 6))).ome.zarr" "$large/slices/$(printf 'slice_z%02d' "$i").ome.zarr"
  done
  awk -F , -v OFS=, 'NR == 1 { print; next } { row[$1] = $3 OFS $4 OFS $5 OFS $6 }
    END { for (i = 0; i < 59; i++) print i, i + 1, (i % 6 < 5) ? row[i % 6] : "0,0,0,0" }' "$small/shifts_xy.csv" >"$large/shifts_xy.csv"
  touch "$large/made"
fi
"$base/tools/compare" large -data "$small" -large "$large" -out "$out" \
  -input "a mosaic of 400 tiles (20 × 20, 21 GB) and 60 slices (six of them, ten times over), blosc-zstd:1" >"$record.part"
mv "$record.part" "$record"
[ -n "${KEEP:-}" ] || rm -rf "$large"
