#!/usr/bin/env bash
# usage: demo-tiles.sh   (make demo-tiles)
# Builds the programs, lets tifffile write the tiles of a phantom to demo-out/tiles/scan/, one
# TIFF file each as most microscopes do, and makes one image of them with two commands: a mosaic
# grid of the files, and the tiles stitched.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
"${MAKE:-make}" --no-print-directory build
python=$(scripts/venv.sh build/venv tests/requirements.txt)
out=demo-out/tiles
rm -rf "$out"
mkdir -p "$out"
PATH=$PWD/bin:$PATH

run() {
  local word line=
  for word; do
    [[ $word != *[{}]* ]] || word="'$word'" # as one types it
    line+="$word "
  done
  echo "$line"
  "$@"
}
phantom "$out/phantom" --tiles 4,5 --tile 6,320,320 --voxel 3.5,2,2 --unit micrometer --dtype uint16 --overlap 0.12 --jitter 3 \
  --speckle 0.02 --water 0 --relief 0 --curvature 0 --quiet # as phantom --czi does
"$python" scripts/demo_tiles.py "$out/phantom/mosaic_grid_3d_z00.ome.zarr" "$out/scan"
cd "$out"
echo "scan: $(find scan -name '*.tif' | wc -l) files, the first: $(find scan -name '*.tif' | sort | head -n 1)"
run mosaic scan tiles.ome.zarr --pattern 'tile_r{row}_c{col}.tif' --overlap 0.12 --quiet
run stitch tiles.ome.zarr stitched.ome.zarr --estimate --save_positions stitched.json --no-use_gpu --quiet
run preview stitched.ome.zarr stitched.png --quiet
echo
echo "tiles     $PWD/tiles.ome.zarr"
echo "stitched  $PWD/stitched.ome.zarr, stitched.png"
