#!/usr/bin/env bash
# usage: docs-pictures.sh RESULTS   Makes docs/slide.png, and docs/preview.png, docs/qc-report.png and docs/view.png from
# the results of a run of the workflow, such as demo-out/results of make demo.
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
bin/bench-tiff make "$tmp/scan.tif" -q --width 24000 --height 14000 --compression jpeg:85
bin/preview "$tmp/scan.tif" docs/slide.png -f -q --max_size 1200 --title 'Made by bench-tiff, drawn by preview'
bin/view "$volume" >"$tmp/view" 2>/dev/null &
viewer=$!
trap 'kill "$viewer"; rm -rf "$tmp"' EXIT
until address=$(grep -om 1 'http://.*' "$tmp/view"); do sleep 0.1; done
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,860 --virtual-time-budget=15000 \
  --screenshot=docs/view.png "$address#centre=1028,465,457&scale=2" 2>"$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
for picture in docs/view.png docs/preview.png docs/qc-report.png docs/slide.png; do
  size=$(stat -c %s "$picture")
  [ "$size" -le 409600 ] || { echo "$picture has $size bytes, 400 KiB are allowed" >&2; exit 1; }
  echo "$picture: $size bytes"
done
