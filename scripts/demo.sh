#!/usr/bin/env bash
# usage: demo.sh [nextflow|none]   (make demo ENGINE=…)
# Makes the raw tiles of a phantom in demo-out/, as a microscope writes them, and turns them
# into one volume, with projections, pictures and a report: by the workflow, or by
# the same steps from this shell (none: no Java needed). SLICES: how many (10).
# In a source tree it builds the programs first. In an installed package, or without Go, it takes
# those beside it, or else on the PATH, and demo-out is in the current folder.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
engine=${1:-nextflow}
out=demo-out
slices=${SLICES:-10}

case $engine in
  nextflow)
    # Before the rest: what is missing is installed, or named, at once.
    "$scripts/nextflow.sh" -v 2>&1 >/dev/null |
      sed -u '/missing\|needs Java\|could not/s/$/; or do without: make demo ENGINE=none/' >&2
    ;;
  none) ;;
  *)
    echo "demo.sh: unknown engine '$engine', should be nextflow or none" >&2
    exit 2
    ;;
esac
if [ -e "$scripts/../go.mod" ] && command -v go >/dev/null 2>&1; then
  cd "$scripts/.."
  "${MAKE:-make}" --no-print-directory build
  PATH=$PWD/bin:$PATH view=bin/view
elif [ -x "$scripts/../bin/strata" ]; then
  PATH=$(cd "$scripts/../bin" && pwd):$PATH
elif ! command -v strata >/dev/null 2>&1; then
  echo "go is missing: install Go 1.26 or newer (https://go.dev/dl), or a package of strata" >&2
  exit 1
fi

echo "phantom: $slices slices into $out/raw"
rm -rf "$out"/{raw,results,work}
mkdir -p "$out"
# What a real scan has: frames that begin too late, and slices that lie turned on the stage. By less than what a stage warns of:
# the report of a demo that went well has no warnings.
strata phantom "$out/raw" --raw --slices "$slices" --galvo_shift 7 --slice_rotation 0.3 --speckle 0.25 --quiet

cd "$out"
started=$(date +%s.%N)
LEVELS=6,12,25 "$scripts/steps.sh" "$engine" raw results
wall=$(echo "$(date +%s.%N) $started" | awk '{ printf "%.1f", $1 - $2 }')
cd ..

echo
if [ "$engine" = nextflow ]; then
  "$scripts/times.sh" "$out/results/pipeline_info/trace.tsv" "$wall"
else
  echo "from raw tiles to report: $wall s"
fi
echo
results=$PWD/$out/results
echo "volume       $results/volume/volume.ome.zarr"
echo "pictures     $results/previews/volume.png, slice_z00.png and so on; projections in $results/aip"
echo "report       $results/qc-report.html"
[ "$engine" != nextflow ] || echo "what ran     $results/pipeline_info/report.html"
echo
echo "Look at all of it in a browser:"
echo "    ${view:-strata view} $out/results"
