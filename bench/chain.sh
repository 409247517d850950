#!/usr/bin/env bash
# usage: chain.sh DIR OUT   ten phantom slices through the whole workflow on two
# cores, and through the same steps from a shell, in turns; OUT is the record that
# becomes the table in docs/benchmarks.md. `PARTS=chain make bench` calls it. Run
# `make build` first.
#
#   BENCH_SMOKE   1: three small slices, one round
#   ROUNDS        how often (default 3); the run of the median wall time is taken
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1" "$(dirname "$2")"
dir=$(cd "$1" && pwd) out=$2
slices=10 rounds=${ROUNDS:-3} tiles=6,6 tile=96,160,160
if [ -n "${BENCH_SMOKE:-}" ]; then slices=3 rounds=1 tiles=3,3 tile=96,96,96; fi

# Two processors for all of it, the engine too.
if [ "$(nproc)" -gt 2 ] && command -v taskset >/dev/null && [ -z "${CHAIN_PINNED:-}" ]; then
  CHAIN_PINNED=1 exec taskset -c 0,1 "$0" "$@"
fi
version=$(scripts/nextflow.sh -v)
CGO_ENABLED=0 ${GO:-go} build -trimpath -o "$dir/" ./bench/compare
load=$(cut -d ' ' -f 1 /proc/loadavg)

made="$slices $tiles $tile"
if [ "$(cat "$dir/made" 2>/dev/null)" != "$made" ]; then
  rm -rf "$dir/mosaics" "$dir/made"
  bin/phantom "$dir/mosaics" --slices "$slices" --tiles "$tiles" --tile "$tile" --anatomy 0 --quiet
  echo "$made" >"$dir/made"
fi
input=$(awk -v n="$slices" -v tiles="$tiles" -v tile="$tile" 'BEGIN {
  split(tiles, t, ","); split(tile, v, ",")
  printf "mosaics of %d×%d tiles of %d×%d×%d float32 (%.1f GB in all), made by phantom", t[1], t[2], v[1], v[2], v[3],
    n * t[1] * t[2] * v[1] * v[2] * v[3] * 4 / 1e9 }')

# timed FILE ENGINE RESULTS: a run, its seconds into FILE.
timed() {
  local from
  from=$(date +%s.%N)
  (cd "$dir" && "$OLDPWD/scripts/steps.sh" "$2" mosaics "$3") >"$dir/$2.log" 2>&1 || {
    tail -n 20 "$dir/$2.log" >&2
    exit 1
  }
  echo "$(date +%s.%N) $from" | awk '{ printf "%.2f\n", $1 - $2 }' >"$1"
}
# median PREFIX: the file of the median time of all rounds.
median() { grep -H . "$dir/$1".[0-9]* | sort -t : -k 2,2n | sed -n "$(((rounds + 1) / 2))p" | cut -d : -f 1; }
rm -rf "$dir"/{nextflow,none,results}*
for ((i = 0; i < rounds; i++)); do
  rm -rf "$dir"/{work,results,results-none}
  timed "$dir/none.$i" none results-none
  timed "$dir/nextflow.$i" nextflow results
  diff -r -x zarr.json "$dir/results/volume/volume.ome.zarr" "$dir/results-none/volume/volume.ome.zarr" >/dev/null || {
    echo "bench/chain.sh: the workflow and the shell made different volumes" >&2
    exit 1
  }
  mv "$dir/results/pipeline_info/trace.tsv" "$dir/trace-$i.tsv"
  mv "$dir/results/reports" "$dir/reports-$i"
  echo "round $((i + 1)) of $rounds: $(cat "$dir/nextflow.$i") s, from a shell $(cat "$dir/none.$i") s" >&2
done
run=$(median nextflow)
wall=$(cat "$run")
i=${run##*.}
"$dir/compare" chain -trace "$dir/trace-$i.tsv" -records "$dir/reports-$i" -slices "$slices" -input "$input" -engine "Nextflow ${version##*version }" \
  -cores "$(nproc)" -load "$load" -rounds "$rounds" -wall "$wall" -shell "$(cat "$(median none)")" >"$out.part"
mv "$out.part" "$out"
scripts/times.sh "$dir/trace-$i.tsv" "$wall" >&2
rm -rf "$dir"/{work,results,results-none,reports-*}
