#!/usr/bin/env bash
# usage: steps.sh nextflow|none MOSAICS RESULTS
# The whole chain on a phantom's mosaics, with the programs of bin/, or else of the PATH: by the workflow,
# whose tasks have one CPU each, or by the same steps one after another from this
# shell, each on all CPUs. Both make the same volume. For the demo and the benchmark.
set -euo pipefail
engine=$1 mosaics=$2 results=$3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What differs from the programs' own defaults: the phantom's slices are thinner than
# real ones, and small enough for finer voxels. DEPTH is in µm; LEVELS are the voxel sizes of the volume in µm.
resolution=5 depth=${DEPTH:-260} first=2 levels=${LEVELS:-5,10,25}

if [ "$engine" = nextflow ]; then
  one_cpu=()
  for stage in aip resample focal stitch crop stack preview; do one_cpu+=("--${stage}_cpus" 1); done
  exec "$root/scripts/nextflow.sh" run "$root/nextflow/main.nf" --input "$mosaics" --outdir "$results" --publish_mode link --use_gpu false \
    --resample_resolution "$resolution" --crop_depth "$depth" --stack_moving_z_first_index "$first" --stack_blend \
    --stack_pyramid_resolutions "$levels" "${one_cpu[@]}"
fi

PATH=$root/bin:$PATH
work=$results/work
mkdir -p "$work" "$results"/{aip/slices,slices,volume,previews,focal,stitch,reports}
# run PROGRAM NAME ARGUMENTS...: one step, with a record.
run() {
  local program=$1 name=$2
  shift 2
  echo "$program: $name"
  "$program" "$@" --report "$results/reports/$name.$program.json" --quiet
}
project() { run aip "$2" "$1" "$results/$3/$2.ome.zarr" --png "$results/$3/$2.png" --no-use_gpu; }
picture() { run preview "$2" "$1" "$results/previews/$2.png"; }
names=()
for mosaic in "$mosaics"/mosaic_grid*_z*.ome.zarr; do names+=("$(basename "$mosaic" .ome.zarr)"); done
# Three of them, spread evenly, as the workflow does.
n=${#names[@]} some=()
for i in 1 3 5; do
  mosaic=$mosaics/${names[i * n / 6]}.ome.zarr
  case " ${some[*]} " in *" $mosaic "*) ;; *) some+=("$mosaic") ;; esac
done
run stitch estimate "${some[@]}" --estimate_only "$results/stitch/transform.json" --no-use_gpu
for mosaic in "$mosaics"/mosaic_grid*_z*.ome.zarr; do
  name=$(basename "$mosaic" .ome.zarr)
  project "$mosaic" "$name" aip
  run resample "$name" "$mosaic" "$work/resampled.ome.zarr" --resolution "$resolution" --n_levels 0 --no-use_gpu --overwrite
  run focal "$name" "$work/resampled.ome.zarr" "$work/$name.ome.zarr" --save_map "$results/focal/$name" --n_levels 0 --no-use_gpu
done
for name in "${names[@]}"; do
  slice=slice_${name##*_}
  run stitch "$slice" "$work/$name.ome.zarr" "$work/stitched.ome.zarr" --transform "$results/stitch/transform.json" --max_refinement_px 4 \
    --save_positions "$results/stitch/$slice.json" --n_levels 0 --no-use_gpu --overwrite
  run crop "$slice" "$work/stitched.ome.zarr" "$results/slices/$slice.ome.zarr" --depth "$depth" --crop_before_interface --n_levels 0 --no-use_gpu
  project "$results/slices/$slice.ome.zarr" "$slice" aip/slices
  picture "$results/slices/$slice.ome.zarr" "$slice"
done
rm -rf "$work"
cp "$mosaics/shifts_xy.csv" "$results/volume/"
run stack volume "$results/slices" "$results/volume/shifts_xy.csv" "$results/volume/volume.ome.zarr" --moving_z_first_index "$first" --blend --blend_match depth \
  --pyramid_resolutions "$levels" --no-use_gpu \
  --output_z_matches "$results/volume/z_matches.csv" --output_stacking_decisions "$results/volume/stacking_decisions.csv" --output_shifts "$results/volume/shifts_found.csv"
project "$results/volume/volume.ome.zarr" volume aip
picture "$results/volume/volume.ome.zarr" volume
echo qc-report
qc-report "$results/qc-report.html" --run "$results" --multiqc "$results/multiqc" --quiet
