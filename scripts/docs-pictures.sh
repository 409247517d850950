#!/usr/bin/env bash
# usage: docs-pictures.sh RESULTS   Makes docs/slide.png, and docs/preview.png, docs/qc-report.png, docs/view.png and docs/view-slices.png
# from the results of a run of the workflow, such as demo-out/results of make demo. The pictures of docs/tutorial are made by
# PICTURES=1 tests/nextflow/tutorial.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# = 1 ] && [ -d "$1" ] || { echo "usage: docs-pictures.sh RESULTS" >&2; exit 2; }
volume=$1/volume/volume.ome.zarr
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bin/preview "$volume" docs/preview.png -f -q --max_size 1200 --percentiles 0.1,99.3 --title 'Phantom, stacked'
bin/qc-report "$tmp/report.html" -q --run "$1" --title 'Quality report: phantom'
tests/report/run.sh "$tmp/report.html" "$tmp/page.png"
mv "$tmp/page.png" docs/qc-report.png
bin/phantom "$tmp/scan" -q --czi --tiles 6,9 --tile 1,512,512
bin/zarr-tool import "$tmp/scan/scan_z00.czi" "$tmp/tiles.ome.zarr" -q --tiles
bin/stitch "$tmp/tiles.ome.zarr" "$tmp/slide.ome.zarr" -q --positions "$tmp/tiles_positions.json"
bin/preview "$tmp/slide.ome.zarr" docs/slide.png -f -q --max_size 1200 --title 'A slide scan of a phantom, stitched'
# page PICTURE SIZE IMAGE STATE: the page of view.
page() {
  bin/view "$3" >"$tmp/view" 2>/dev/null &
  local viewer=$! address
  until address=$(grep -om 1 'http://.*' "$tmp/view"); do sleep 0.1; done
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$2" --virtual-time-budget=15000 \
    --screenshot="$1" "$address#$4" 2>"$tmp/log" || { cat "$tmp/log" >&2; kill "$viewer"; exit 1; }
  kill "$viewer"
}
page docs/view.png 1280,860 "$volume" 'centre=1028,465,457&scale=2'
page docs/view-slices.png 1200,800 "$1/slices" 'image=0&overlay=-2&mode=side%20by%20side'
for picture in docs/view.png docs/view-slices.png docs/preview.png docs/qc-report.png docs/slide.png; do
  size=$(stat -c %s "$picture")
  [ "$size" -le 409600 ] || { echo "$picture has $size bytes, 400 KiB are allowed" >&2; exit 1; }
  echo "$picture: $size bytes"
done
