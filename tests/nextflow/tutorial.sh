#!/usr/bin/env bash
# The commands of docs/tutorial.md, word for word, from its phantom to the pages of view. A part of run.sh.
# PICTURES=1 renews the pictures in docs/tutorial from it.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
trap 'rm -rf "$tmp"' EXIT
# shellcheck source-path=SCRIPTDIR source=documents.sh
. "$(dirname "${BASH_SOURCE[0]}")/documents.sh"

# shows TEXT: the tutorial has these lines.
shows() { [[ $(<"$root/docs/tutorial.md") == *$'\n'"$1"$'\n'* ]] || { echo "not in docs/tutorial.md: $1"; return 1; }; }
commands "$root/docs/tutorial.md"
ok 'the tutorial has all its commands' same "$(programs)" "phantom zarr-tool zarr-tool zarr-tool zarr-tool preview stitch \
for resample focal stitch crop done preview stack zarr-tool view preview qc-report view nextflow view"
mkdir "$tmp/tutorial"
cd "$tmp/tutorial" || exit 1
ln -s "$root/nextflow" nextflow
if follow "$tmp/tutorial"; then
  [ -z "${PICTURES-}" ] || cp {mosaic,slice,volume}.png "$root/docs/tutorial/"
  ok 'the imported stack is the mosaic' same "$(zarr-tool info imported/mosaic_grid_3d_z00.ome.zarr | sed '1d; s/millimeter/micrometer/g')" \
    "$(zarr-tool info mosaics/mosaic_grid_3d_z00.ome.zarr | sed '1d; s/millimeter/micrometer/g')"
  ok 'the tutorial shows what zarr-tool info prints' shows "$(zarr-tool info mosaics/mosaic_grid_3d_z00.ome.zarr)"
  ok 'the volume of the steps is there' filled volume.ome.zarr/0/zarr.json run/z_matches.csv report.html
  ok 'so is that of the workflow' filled results/volume/volume.ome.zarr/0/zarr.json results/qc-report.html
fi
total
