#!/usr/bin/env bash
# usage: demo-scan.sh   (make demo-scan)
# Builds the programs, makes the slide scan of a phantom in demo-out/scan/ (CZI: a mosaic
# of tiles in depth, two channels, with a stage that errs) and turns it into a volume whose
# tiles fit, with pictures of both: as the stage recorded the tiles, and as stitch found them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
"${MAKE:-make}" --no-print-directory build
out=demo-out/scan
rm -rf "$out"
mkdir -p "$out"
PATH=$PWD/bin:$PATH

run() {
  echo "$*"
  "$@"
}
run phantom "$out/phantom" --czi --tiles 4,5 --tile 6,320,320 --voxel 3.5,2,2 --overlap 0.12 --jitter 3 --channels 2 --quiet
cd "$out"
run zarr-tool info phantom/scan_z00.czi
run zarr-tool import phantom/scan_z00.czi recorded.ome.zarr --quiet
run zarr-tool import phantom/scan_z00.czi tiles.ome.zarr --tiles --quiet
run stitch tiles.ome.zarr volume.ome.zarr --positions tiles_positions.json --save_positions stitched.json --no-use_gpu --quiet
run preview recorded.ome.zarr recorded.png --quiet
run preview volume.ome.zarr volume.png --quiet
echo
echo "as recorded  $PWD/recorded.ome.zarr, recorded.png"
echo "stitched     $PWD/volume.ome.zarr, volume.png"
