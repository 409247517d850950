#!/usr/bin/env bash
# usage: steps.sh nextflow|none INPUT RESULTS
# The whole chain on a phantom, with the programs of bin/, or else of the PATH: by the workflow,
# whose tasks have one CPU each, or by the same steps one after another from this
# shell, each on all CPUs. Both make the same volume. INPUT is a folder of mosaics, for the short chain, or of raw
# tiles, for the full one. For the demo and the benchmark.
set -euo pipefail
engine=$1 input=$2 results=$3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What differs from the programs' own defaults: the phantom's slices are thinner than
# real ones, show their illumination in fewer tiles, and are small enough for finer voxels. DEPTH is in µm; LEVELS are the voxel sizes of the volume in µm;
# INTERVAL is the slicing interval in mm, if it is not that of most microtomes, 0.2.
resolution=5 depth=${DEPTH:-260} first=2 levels=${LEVELS:-5,10,25} samples=320
interval=(${INTERVAL:+--slicing_interval_mm "$INTERVAL"})
raw=
for folder in "$input"/z*/tile_*; do [ ! -d "$folder" ] || raw=yes; done

if [ "$engine" = nextflow ]; then
  stages=(aip resample focal stitch crop stack preview) chain=(--input "$input")
  if [ -n "$raw" ]; then
    # The phantom's focal plane is curved: focal, which linumpy's workflow leaves out, comes before flatfield. It moves the focus of the beam
    # too, so that the light within a tile depends on depth. The detector's signal is an eighth of the agarose's.
    stages+=(mosaic flatfield beam_profile attenuation normalize common_space interpolate register)
    chain=(--raw "$input" --focal --flatfield_fit_max_samples "$samples" --flatfield_per_z_fit --beam_profile_subtract_background --register_moving_z_index "$first")
  fi
  one_cpu=()
  for stage in "${stages[@]}"; do one_cpu+=("--${stage}_cpus" 1); done
  exec "$root/scripts/nextflow.sh" run "$root/nextflow/main.nf" "${chain[@]}" --outdir "$results" --publish_mode link --use_gpu false \
    --resample_resolution "$resolution" --crop_depth "$depth" --stack_moving_z_first_index "$first" --stack_blend \
    --stack_pyramid_resolutions "$levels" "${interval[@]/#--/--stack_}" "${one_cpu[@]}"
fi

PATH=$root/bin:$PATH
mkdir -p "$results"
work=$(mktemp -d "$results/work.XXXXXX") # RESULTS may be a folder that has a folder work
mkdir -p "$results"/{aip/slices,volume,previews,focal,stitch,reports,metrics}
# run PROGRAM NAME ARGUMENTS...: one step, with a record.
run() {
  local program=$1 name=$2
  shift 2
  echo "$program: $name"
  "$program" "$@" --report "$results/reports/$name.$program.json" --quiet
}
project() { run aip "$2" "$1" "$results/$3/$2.ome.zarr" --png "$results/$3/$2.png" --no-use_gpu; }
picture() { run preview "$2" "$1" "$results/previews/$2.png"; }
# measured PROGRAM NAME IN OUT ARGUMENTS...: a step that leaves metrics beside OUT, which the report shows.
measured() {
  run "$1" "$2" "$3" "$4" "${@:5}" --n_levels 0 --overwrite
  mv "${4%.zarr}_metrics.json" "$results/metrics/$2.$1_metrics.json"
}
# fill_gaps FOLDER: a slice that is missing between two others is made from them; wider gaps stay, as in the workflow.
fill_gaps() {
  local image name id before='' last=-1
  mkdir -p "$results/interpolate"
  while read -r image; do
    id=$((10#${image##*_z}))
    if [ $((id - last)) = 2 ] && [ -n "$before" ]; then
      name=$(printf 'slice_z%02d' $((id - 1)))
      run interpolate "$name" "$before" "$image.ome.zarr" "$1/${name}_interpolated.ome.zarr" --n_levels 0 \
        --diagnostics "$results/interpolate/${name}_interpolated_diagnostics.json" --manifest_entry "$results/interpolate/${name}_manifest.csv"
    elif [ $((id - last)) -gt 2 ] && [ -n "$before" ]; then
      echo "steps.sh: $((id - last - 1)) slices are missing before slice $id: none is made up for" >&2
    fi
    before=$image.ome.zarr last=$id
  done < <(printf '%s\n' "$1"/slice_z*.ome.zarr | sed 's/\.ome\.zarr$//' | sort -V)
}
mosaics=$input shifts=$input/shifts_xy.csv slices=$results/slices
names=()
if [ -n "$raw" ]; then
  mosaics=$work/mosaics shifts=$results/volume/shifts_xy_clean.csv slices=$work/normalized
  for folder in "$input"/z*/; do names+=("mosaic_grid_3d_$(basename "$folder")"); done
else
  for mosaic in "$mosaics"/mosaic_grid*_z*.ome.zarr; do names+=("$(basename "$mosaic" .ome.zarr)"); done
fi
mkdir -p "$slices"
# Three of them, spread evenly, as the workflow does.
n=${#names[@]} some=()
for i in 1 3 5; do
  mosaic=$mosaics/${names[i * n / 6]}.ome.zarr
  case " ${some[*]} " in *" $mosaic "*) ;; *) some+=("$mosaic") ;; esac
done
if [ -n "$raw" ]; then
  # In one pass over the frames: the projection, the resampled mosaic, and the mosaic itself where the estimate reads it.
  for name in "${names[@]}"; do
    kept=(--no-keep_mosaic)
    case " ${some[*]} " in *" $mosaics/$name.ome.zarr "*) kept=("$mosaics/$name.ome.zarr" --n_levels 0) ;; esac
    run mosaic "$name" "$input/${name##*_}" "${kept[@]}" --resolution -1 --aip "$results/aip/$name.ome.zarr" --aip_png "$results/aip/$name.png" \
      --resampled "$work/resampled/$name.ome.zarr" --resampled_resolution "$resolution" --resampled_n_levels 0
  done
  run shifts estimate estimate "$input" "$results/volume/shifts_xy.csv" --swap_xy
  run shifts clean clean "$results/volume/shifts_xy.csv" "$shifts"
fi
run stitch estimate "${some[@]}" --estimate_only "$results/stitch/transform.json" --no-use_gpu
for name in "${names[@]}"; do
  resampled=$work/resampled/$name.ome.zarr
  if [ -z "$raw" ]; then
    resampled=$work/resampled.ome.zarr
    project "$mosaics/$name.ome.zarr" "$name" aip
    run resample "$name" "$mosaics/$name.ome.zarr" "$resampled" --resolution "$resolution" --n_levels 0 --no-use_gpu --overwrite
  fi
  run focal "$name" "$resampled" "$work/$name.ome.zarr" --save_map "$results/focal/$name" --n_levels 0 --no-use_gpu
done
for name in "${names[@]}"; do
  slice=slice_${name##*_} mosaic=$work/$name.ome.zarr cropped=$slices/slice_${name##*_}.ome.zarr
  if [ -n "$raw" ]; then
    measured flatfield "$slice" "$mosaic" "$work/even.ome.zarr" --fit_max_samples "$samples" --per_z_fit
    mosaic=$work/even.ome.zarr cropped=$work/cropped.ome.zarr
  fi
  run stitch "$slice" "$mosaic" "$work/stitched.ome.zarr" --transform "$results/stitch/transform.json" --estimate \
    --save_positions "$results/stitch/$slice.json" --n_levels 0 --no-use_gpu --overwrite
  stitched=$work/stitched.ome.zarr
  if [ -n "$raw" ]; then
    measured beam-profile "$slice" "$stitched" "$work/beam.ome.zarr" --subtract_background
    stitched=$work/beam.ome.zarr
  fi
  run crop "$slice" "$stitched" "$cropped" --depth "$depth" --crop_before_interface --n_levels 0 --no-use_gpu --overwrite
  if [ -n "$raw" ]; then
    measured attenuation "$slice" "$cropped" "$work/bright.ome.zarr"
    measured normalize "$slice" "$work/bright.ome.zarr" "$slices/$slice.ome.zarr"
  fi
  project "$slices/$slice.ome.zarr" "$slice" aip/slices
  picture "$slices/$slice.ome.zarr" "$slice"
done
along=()
if [ -n "$raw" ]; then
  run common-space slices "$slices" "$shifts" "$results/slices" --n_levels 0
  fill_gaps "$results/slices"
  run register slices --all "$results/slices" "$results/transforms" --moving_z_index "$first" --max_translation_px 200 "${interval[@]}"
  slices=$results/slices along=(--no_xy_shift --transforms_dir "$results/transforms" --blend_match none) # normalize has matched them
else
  along=(--blend_match depth)
  cp "$shifts" "$results/volume/"
fi
rm -rf "$work"
run stack volume "$slices" "$shifts" "$results/volume/volume.ome.zarr" --moving_z_first_index "$first" --blend \
  --pyramid_resolutions "$levels" --no-use_gpu "${along[@]}" "${interval[@]}" \
  --output_z_matches "$results/volume/z_matches.csv" --output_stacking_decisions "$results/volume/stacking_decisions.csv" --output_shifts "$results/volume/shifts_found.csv"
project "$results/volume/volume.ome.zarr" volume aip
picture "$results/volume/volume.ome.zarr" volume
echo qc-report
qc-report "$results/qc-report.html" --run "$results" --multiqc "$results/multiqc" --quiet
