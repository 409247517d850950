#!/usr/bin/env bash
# usage: scale.sh [PAGE]   (make scale)
# The chain from raw frames to a volume on SCALE_GB of raw frames (default 40), and what it costs: docs/scale.md.
# A phantom's slices are made one at a time, brought to 10 µm in one pass over their frames, and deleted before the next is made, so that the
# disk holds one slice of raw frames (1.4 GB), and of one slice the mosaic. Then the volume is made of the small slices. A run that was interrupted
# continues where it was, if it is started with the same SCALE_GB; a run that is done deletes its data.
#
#   SCALE_GB    GB of raw frames, at least two slices (40)
#   SCALE_DIR   where the data lies (build/scale): 5 GB, and 0.01 GB per GB of raw frames
#   SCALE_KEEP  1: keep the slices and the volume
set -euo pipefail
cd "$(dirname "$0")/.."
page=${1-docs/scale.md}
gb=${SCALE_GB:-40}
dir=${SCALE_DIR:+$SCALE_DIR/strata-scale} # in a folder of its own, in which names are removed
dir=${dir:-build/scale}
tiles=8,8 tile=120,200,200 extra=20 interval=200
slice_bytes=$((64 * 4 * 120 * (200 + extra) * 200))
slices=$((gb * 1000000000 / slice_bytes + 1))
[ "$slices" -ge 3 ] || slices=3
PATH=$PWD/bin:$PATH
work=$dir/work reports=$dir/reports
forget() {
  rm -rf "${dir:?}"/{work,reports,info,slices,done,common,transforms,volume.ome.zarr,settings,cpu.tsv,transform.json,messages,time}
  rm -f "$dir"/{shifts_xy,shifts_xy_clean}.csv "$dir"/*_metrics.json
}
settings="$slices slices of $tiles tiles of $tile, $(git rev-parse --short HEAD 2>/dev/null)"
if [ "$(cat "$dir/settings" 2>/dev/null)" != "$settings" ]; then
  forget
  mkdir -p "$dir"
  free=$(df --output=avail -k "$dir" | tail -n 1)
  if [ "$free" -lt $(((5 + gb / 50) * 1000000)) ]; then
    echo "scale.sh: needs $((5 + gb / 50)) GB in $dir, there are $((free / 1000000)) GB" >&2
    exit 1
  fi
  echo "$settings" >"$dir/settings"
fi
mkdir -p "$reports" "$dir"/{info,slices,done}
# What is unfinished is in work.
trap 'rm -rf "$work"' EXIT

# run NAME PROGRAM ARGUMENTS...: one step. Its record is in reports, its processor time in cpu.tsv.
run() {
  local name=$1 TIMEFORMAT='%U %S' status=0
  shift
  { time "$@" --report "$reports/$name.$1.json" --quiet 2>"$dir/messages" || status=$?; } 2>"$dir/time"
  if [ $status != 0 ]; then
    cat "$dir/messages" >&2
    echo "scale.sh: $* failed with $status" >&2
    exit 1
  fi
  printf '%s\t%s\n' "$name.$1.json" "$(awk '{ print $1 + $2 }' "$dir/time")" >>"$dir/cpu.tsv"
}
# once NAME COMMAND...: a step that a run before this one may have finished.
once() {
  [ -e "$dir/done/$1" ] && return
  "${@:2}"
  touch "$dir/done/$1"
}

one_slice() { # NUMBER
  local z slice
  z=$(printf '%02d' "$1")
  slice=slice_z$z
  echo "$slice of $slices slices" >&2
  rm -rf "$work"
  mkdir -p "$work"
  phantom "$work/make" --raw --slices "$slices" --only_slices "$1" --tiles "$tiles" --tile "$tile" --galvo_extra "$extra" --galvo_shift 7 \
    --interval "$interval" --slice_rotation 0.5 --glitch 0 --quiet
  local raw=$work/make
  rm -rf "$dir/info/z$z" "$dir/slices/$slice".*
  # In one pass over the frames; the mosaic itself only for the estimate.
  local kept=(--no-keep_mosaic) estimate=
  if [ ! -e "$dir/transform.json" ] || [ "$1" = 0 ]; then
    kept=("$work/mosaic.ome.zarr" --n_levels 0) estimate=yes
  fi
  run "$slice" mosaic "$raw" "${kept[@]}" --slice "$1" --resolution -1 --aip "$work/aip.ome.zarr" \
    --resampled "$work/resampled.ome.zarr" --resampled_resolution 10 --resampled_n_levels 0
  # shifts estimate needs no frames
  (cd "$raw" && find "z$z" -name info.txt -print0 | tar c --null -T -) | tar x -C "$dir/info"
  rm -rf "$raw"
  if [ -n "$estimate" ]; then
    run estimate stitch "$work/mosaic.ome.zarr" --estimate_only "$dir/transform.json" --no-use_gpu --overwrite
    rm -rf "$work/mosaic.ome.zarr"
  fi
  run "$slice" focal "$work/resampled.ome.zarr" "$work/flat.ome.zarr" --n_levels 0 --no-use_gpu
  run "$slice" flatfield "$work/flat.ome.zarr" "$work/even.ome.zarr" --n_levels 0
  run "$slice" stitch "$work/even.ome.zarr" "$work/stitched.ome.zarr" --transform "$dir/transform.json" --estimate --n_levels 0 --no-use_gpu
  run "$slice" beam-profile "$work/stitched.ome.zarr" "$work/beam.ome.zarr" --n_levels 0
  run "$slice" crop "$work/beam.ome.zarr" "$work/cropped.ome.zarr" --depth 320 --crop_before_interface --n_levels 0 --no-use_gpu
  run "$slice" attenuation "$work/cropped.ome.zarr" "$work/bright.ome.zarr" --n_levels 0
  run "$slice" normalize "$work/bright.ome.zarr" "$dir/slices/$slice.ome.zarr" --n_levels 0
  rm -rf "$work"
}
volume() {
  local first=1
  rm -rf "$dir"/{common,transforms,volume.ome.zarr}
  run all shifts estimate "$dir/info" "$dir/shifts_xy.csv" --swap_xy --overwrite
  run clean shifts clean "$dir/shifts_xy.csv" "$dir/shifts_xy_clean.csv" --overwrite
  run all common-space "$dir/slices" "$dir/shifts_xy_clean.csv" "$dir/common" --n_levels 0
  run all register --all "$dir/common" "$dir/transforms" --moving_z_index "$first" --max_translation_px 50
  run all stack "$dir/common" "$dir/shifts_xy_clean.csv" "$dir/volume.ome.zarr" --moving_z_first_index "$first" --blend --blend_match depth \
    --no_xy_shift --transforms_dir "$dir/transforms" --no-use_gpu
}

for ((i = 0; i < slices; i++)); do once "$i" one_slice "$i"; done
once volume volume
CGO_ENABLED=0 ${GO:-go} run ./lab/scale -reports "$reports" -cpu "$dir/cpu.tsv" -slices "$slices" -raw $((slices * slice_bytes)) \
  -input "$slices slices of ${tiles/,/×} tiles of ${tile//,/×} voxels of 3.5×2×2 µm, with $extra A-lines of the mirror's way back per frame" -page "$page"
[ -n "${SCALE_KEEP:-}" ] || { forget; rmdir "$dir" 2>/dev/null || true; } # other files of that folder are not ours
