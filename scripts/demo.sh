#!/usr/bin/env bash
# usage: demo.sh [nextflow|none]   (make demo ENGINE=…)
# Builds the programs, makes the mosaics of a phantom in demo-out/ and turns them
# into one volume, with projections, pictures and a report: by the workflow, or by
# the same steps from this shell (none: no Java needed). SLICES: how many (10).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
engine=${1:-nextflow}
out=demo-out
slices=${SLICES:-10}
# What differs from the programs' own defaults, for both engines: the phantom's
# slices are thinner than real ones, and small enough for finer voxels.
resolution=5 depth=260 first=2 levels=5,10,25

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

cd "$out"
started=$(date +%s.%N)
if [ "$engine" = nextflow ]; then
  one_cpu=()
  for stage in aip resample focal stitch crop stack preview; do one_cpu+=("--${stage}_cpus" 1); done
  ../scripts/nextflow.sh run ../nextflow/main.nf --input mosaics --outdir results --publish_mode link --use_gpu false \
    --resample_resolution "$resolution" --crop_depth "$depth" --stack_moving_z_first_index "$first" --stack_blend \
    --stack_pyramid_resolutions "$levels" "${one_cpu[@]}"
else
  PATH=$PWD/../bin:$PATH
  work=results/work
  mkdir -p "$work" results/{aip/slices,slices,volume,previews,focal,stitch,reports}
  # run PROGRAM NAME ARGUMENTS...: one stage, with a record.
  run() {
    local program=$1 name=$2
    shift 2
    echo "$program: $name"
    "$program" "$@" --report "results/reports/$name.$program.json" --quiet
  }
  project() { run aip "$2" "$1" "results/$3/$2.ome.zarr" --png "results/$3/$2.png" --no-use_gpu; }
  picture() { run preview "$2" "$1" "results/previews/$2.png"; }
  names=()
  for mosaic in mosaics/mosaic_grid*_z*.ome.zarr; do
    name=$(basename "$mosaic" .ome.zarr)
    names+=("$name")
    project "$mosaic" "$name" aip
    run resample "$name" "$mosaic" "$work/resampled.ome.zarr" --resolution "$resolution" --n_levels 0 --no-use_gpu --overwrite
    run focal "$name" "$work/resampled.ome.zarr" "$work/$name.ome.zarr" --save_map "results/focal/$name" --n_levels 0 --no-use_gpu
  done
  # Three of them, spread evenly, as the workflow does.
  n=${#names[@]} some=()
  for i in 1 3 5; do
    mosaic=$work/${names[i * n / 6]}.ome.zarr
    case " ${some[*]} " in *" $mosaic "*) ;; *) some+=("$mosaic") ;; esac
  done
  run stitch estimate "${some[@]}" --estimate_only results/stitch/transform.json --no-use_gpu
  for name in "${names[@]}"; do
    slice=slice_${name##*_}
    run stitch "$slice" "$work/$name.ome.zarr" "$work/stitched.ome.zarr" --transform results/stitch/transform.json \
      --save_positions "results/stitch/$slice.json" --n_levels 0 --no-use_gpu --overwrite
    run crop "$slice" "$work/stitched.ome.zarr" "results/slices/$slice.ome.zarr" --depth "$depth" --crop_before_interface --n_levels 0 --no-use_gpu
    project "results/slices/$slice.ome.zarr" "$slice" aip/slices
    picture "results/slices/$slice.ome.zarr" "$slice"
  done
  rm -rf "$work"
  cp mosaics/shifts_xy.csv results/volume/
  run stack volume results/slices results/volume/shifts_xy.csv results/volume/volume.ome.zarr --moving_z_first_index "$first" --blend \
    --pyramid_resolutions "$levels" --no-use_gpu \
    --output_z_matches results/volume/z_matches.csv --output_stacking_decisions results/volume/stacking_decisions.csv
  project results/volume/volume.ome.zarr volume aip
  picture results/volume/volume.ome.zarr volume
  qc-report results/qc-report.html --run results --quiet
fi
wall=$(echo "$(date +%s.%N) $started" | awk '{ printf "%.1f", $1 - $2 }')
cd ..

echo
if [ "$engine" = nextflow ]; then
  scripts/times.sh "$out/results/pipeline_info/trace.tsv" "$wall"
else
  echo "from mosaics to report: $wall s"
fi
echo
results=$PWD/$out/results
echo "volume       $results/volume/volume.ome.zarr"
echo "pictures     $results/previews/volume.png, slice_z00.png and so on; projections in $results/aip"
echo "report       $results/qc-report.html"
[ "$engine" != nextflow ] || echo "what ran     $results/pipeline_info/report.html"
