#!/usr/bin/env bash
# usage: memory.sh [PAGE]   (make memory)
# The peak memory of each program of the workflow on an image of MEMORY_GB (default 20), with --mem 512MiB: docs/memory.md. The input costs no
# disk; each output is deleted before the next is made.
#
#   MEMORY_GB    GB of the input as decoded (20)
#   MEMORY_DIR   where the data lies (build/memory): 30 GB, of which attenuation needs 25, the others 5
#   MEMORY_ONLY  programs to run, in words; records of the others stay as they are (all)
#   MEMORY_KEEP  1: keep the input and the records
set -euo pipefail
cd "$(dirname "$0")/.."
page=${1-docs/memory.md}
dir=${MEMORY_DIR:+$MEMORY_DIR/strata-memory} # in a folder of its own, which is removed at the end
dir=${dir:-build/memory}
PATH=$PWD/bin:$PATH
mkdir -p "$dir/reports"
trap 'rm -rf "$dir"/out*' EXIT
if [ ! -e "$dir/made" ]; then
  rm -rf "$dir"/{big,small,volume}.ome.zarr "$dir"/{raw,files,slices,pair}
  CGO_ENABLED=0 ${GO:-go} run ./lab/memory -make "$dir" -gb "${MEMORY_GB:-20}"
  mkdir -p "$dir"/{slices,pair}
  ln -s ../big.ome.zarr "$dir/slices/slice_z00.ome.zarr"
  ln -s ../big.ome.zarr "$dir/slices/slice_z01.ome.zarr"
  ln -s ../big.ome.zarr "$dir/pair/slice_z00.ome.zarr"
  ln -s ../small.ome.zarr "$dir/pair/slice_z01.ome.zarr"
  printf 'fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n0,1,0.5,0.5,0.005,0.005\n' >"$dir/shifts.csv"
  touch "$dir/made"
fi
bad=0
# run PROGRAM ARGUMENTS...: one program, in the folder of the input; its output is called out*. Its record is named after the program, or by $record.
run() {
  local name=${record:-$1}
  case " ${MEMORY_ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
  echo "$*" >&2
  (cd "$dir" && "$@" --mem 512MiB --report "reports/$name.json" --quiet --overwrite) || { bad=1; echo "memory.sh: $* failed" >&2; }
  rm -rf "$dir"/out*
}
run slices assess slices out.csv --exclude_first 0
run register slices/slice_z00.ome.zarr slices/slice_z01.ome.zarr out
run flatfield big.ome.zarr out.ome.zarr
run beam-profile big.ome.zarr out.ome.zarr
run normalize big.ome.zarr out.ome.zarr
run interpolate volume.ome.zarr volume.ome.zarr out.ome.zarr
run common-space pair shifts.csv out
run align volume.ome.zarr out.ome.zarr --template small.ome.zarr --grid whole
run mosaic raw out.ome.zarr --slice 0 --resolution -1
record=mosaic-files run mosaic files out.ome.zarr --pattern 't{row}_{col}.tif' --voxel_size 10,10,10
record=stitch-files run stitch files out.ome.zarr --pattern 't{row}_{col}.tif' --voxel_size 10,10,10
run attenuation big.ome.zarr out.ome.zarr
run bias-field volume.ome.zarr out.ome.zarr
CGO_ENABLED=0 ${GO:-go} run ./lab/memory -reports "$dir/reports" -page "$page"
[ -n "${MEMORY_KEEP:-}" ] || rm -rf "$dir"
exit $bad
