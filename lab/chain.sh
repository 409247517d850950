#!/usr/bin/env bash
# usage: chain.sh ten|many DIR OUT   ten phantom slices through the short workflow on two cores, and through the same steps from a
# shell, in turns; or a hundred small ones, from raw tiles through the full workflow, which shows what the engine costs. OUT is the
# record that becomes a table in docs/benchmarks.md. `PARTS=chain,many make bench` calls it. Run `make build` first.
#
#   BENCH_SMOKE   1: three small slices, one round
#   ROUNDS        how often (default 3, of many 1); the run of the median wall time is taken
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$2" "$(dirname "$3")"
dir=$(cd "$2" && pwd) out=$3
what=mosaics raw=()
if [ "$1" = many ]; then
  slices=100 rounds=${ROUNDS:-1} tiles=3,3 tile=96,64,64 what='raw tiles' raw=(--raw --glitch 0)
else
  slices=10 rounds=${ROUNDS:-3} tiles=6,6 tile=96,160,160
fi
if [ -n "${BENCH_SMOKE:-}" ]; then slices=3 rounds=1 tiles=3,3 tile=96,96,96; fi

# Two processors for all of it, the engine too.
if [ "$(nproc)" -gt 2 ] && command -v taskset >/dev/null && [ -z "${CHAIN_PINNED:-}" ]; then
  CHAIN_PINNED=1 exec taskset -c 0,1 "$0" "$@"
fi
version=$(scripts/nextflow.sh -v)
CGO_ENABLED=0 ${GO:-go} build -trimpath -o "$dir/" ./lab/compare
load=$(cut -d ' ' -f 1 /proc/loadavg)

made="$what $slices $tiles $tile"
if [ "$(cat "$dir/made" 2>/dev/null)" != "$made" ]; then
  rm -rf "$dir/input" "$dir/made"
  bin/phantom "$dir/input" "${raw[@]}" --slices "$slices" --tiles "$tiles" --tile "$tile" --anatomy 0 --quiet
  echo "$made" >"$dir/made"
fi
input=$(awk -v what="$what" -v n="$slices" -v tiles="$tiles" -v tile="$tile" 'BEGIN {
  split(tiles, t, ","); split(tile, v, ",")
  printf "%s of %d×%d tiles of %d×%d×%d float32 (%.1f GB in all), made by phantom", what (what ~ /raw/ ? " of mosaics" : ""), t[1], t[2], v[1], v[2], v[3],
    n * t[1] * t[2] * v[1] * v[2] * v[3] * 4 / 1e9 }')

# counted: processes started and pages first touched on this machine since it runs.
counted() { awk '/^processes/ { p = $2 } /^pgfault/ { f = $2 } END { print p, f }' /proc/stat /proc/vmstat; }
# timed FILE ENGINE RESULTS: a run, its seconds into FILE; what it counted into FILE with "counts" before it.
timed() {
  local from before
  before=$(counted) from=$(date +%s.%N)
  (cd "$dir" && "$OLDPWD/scripts/steps.sh" "$2" input "$3") >"$dir/$2.log" 2>&1 || {
    tail -n 20 "$dir/$2.log" >&2
    exit 1
  }
  echo "$(date +%s.%N) $from" | awk '{ printf "%.2f\n", $1 - $2 }' >"$1"
  echo "$(counted) $before" | awk '{ print $1 - $3, $2 - $4 }' >"$dir/counts.$(basename "$1")"
}
# median PREFIX: the file of the median time of all rounds.
median() { grep -H . "$dir/$1".[0-9]* | sort -t : -k 2,2n | sed -n "$(((rounds + 1) / 2))p" | cut -d : -f 1; }
rm -rf "$dir"/{nextflow,none,results,counts}*
for ((i = 0; i < rounds; i++)); do
  rm -rf "$dir"/{work,results,results-none}
  timed "$dir/none.$i" none results-none
  timed "$dir/nextflow.$i" nextflow results
  diff -r -x zarr.json "$dir/results/volume/volume.ome.zarr" "$dir/results-none/volume/volume.ome.zarr" >/dev/null || {
    echo "lab/chain.sh: the workflow and the shell made different volumes" >&2
    exit 1
  }
  mv "$dir/results/pipeline_info/trace.tsv" "$dir/trace-$i.tsv"
  mv "$dir/results/reports" "$dir/reports-$i"
  echo "round $((i + 1)) of $rounds: $(cat "$dir/nextflow.$i") s, from a shell $(cat "$dir/none.$i") s" >&2
done
run=$(median nextflow)
read -r forks faults <"$dir/counts.$(basename "$run")"
wall=$(cat "$run")
i=${run##*.}
"$dir/compare" chain -trace "$dir/trace-$i.tsv" -records "$dir/reports-$i" -slices "$slices" -input "$input" -engine "Nextflow ${version##*version }" \
  -cores "$(nproc)" -load "$load" -rounds "$rounds" -forks "$forks" -faults "$faults" -wall "$wall" -shell "$(cat "$(median none)")" >"$out.part"
mv "$out.part" "$out"
scripts/times.sh "$dir/trace-$i.tsv" "$wall" >&2
rm -rf "$dir"/{work,results,results-none,reports-*}
