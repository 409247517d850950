#!/usr/bin/env bash
# usage: demo.sh [nextflow|none]   (make demo ENGINE=…)
# Builds the programs, makes phantom mosaics in demo-out/ and runs the workflow on
# them: with Nextflow, or the same steps from this shell (none: no Java needed).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
engine=${1:-nextflow}
out=demo-out
slices=3

case $engine in
  nextflow)
    # Before the rest: what is missing is installed, or named, at once.
    scripts/nextflow.sh -v 2>&1 >/dev/null |
      sed -u '/missing\|needs Java\|could not/s/$/; or do without: make demo ENGINE=none/' >&2
    ;;
  none) ;;
  *)
    echo "demo.sh: unknown engine '$engine', should be nextflow or none" >&2
    exit 2
    ;;
esac
if ! command -v go >/dev/null 2>&1; then
  echo "go is missing: install Go 1.26 or newer (https://go.dev/dl)" >&2
  exit 1
fi
"${MAKE:-make}" --no-print-directory build

echo "phantom: $slices slices into $out/mosaics"
rm -rf "$out/mosaics" "$out/results"
mkdir -p "$out"
bin/phantom "$out/mosaics" --slices "$slices" --quiet

if [ "$engine" = nextflow ]; then
  (cd "$out" && ../scripts/nextflow.sh run ../nextflow/main.nf --input mosaics --outdir results)
else
  mkdir -p "$out/results/aip" "$out/results/reports"
  for mosaic in "$out"/mosaics/mosaic_grid*_z*.ome.zarr; do
    name=$(basename "$mosaic" .ome.zarr)
    echo "aip: $name"
    bin/aip "$mosaic" "$out/results/aip/$name.ome.zarr" --png "$out/results/aip/$name.png" \
      --report "$out/results/reports/$name.aip.json" --n_levels 5 --no-use_gpu --quiet
  done
fi

echo
echo "Projections, as pictures and as OME-Zarr with pyramids:"
for png in "$out"/results/aip/*.png; do
  echo "  $PWD/$png"
done
[ "$engine" != nextflow ] || echo "What ran, and how long it took: $PWD/$out/results/pipeline_info/report.html"
