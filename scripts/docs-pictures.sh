#!/usr/bin/env bash
# usage: docs-pictures.sh [PICTURE...]   (make pictures)
# Makes the pictures of README and docs, or those named, such as docs/slide.png, and records the hashes of what they are made
# from in docs/pictures.tsv, which tests/docs holds against the files. What shows a run of the workflow needs the results of
# `make demo` in demo-out/results.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/bin:$PATH"
results=$PWD/demo-out/results volume=$PWD/demo-out/results/volume/volume.ome.zarr
tmp=$(mktemp -d)
trap 'kill "${viewer-}" 2>/dev/null || true; rm -rf "$tmp"' EXIT

# table: the pictures and the files whose change makes them stale. phantom stands for pkg/phantom, which makes all voxels.
table() {
  cat <<'TABLE'
docs/preview.png	pkg/phantom/*.go pkg/preview/*.go pkg/annotate/*.go
docs/qc-report.png	pkg/phantom/*.go pkg/qc/page.html pkg/qc/page.css pkg/webpage/page.css
docs/slide.png	pkg/phantom/*.go pkg/preview/*.go pkg/annotate/*.go
docs/view.png	pkg/phantom/*.go pkg/view/page/*
docs/view-slices.png	pkg/phantom/*.go pkg/view/page/*
docs/bench-zarr.png	pkg/bench/page.html pkg/webpage/*.go pkg/webpage/page.css
docs/tutorial/mosaic.png	pkg/phantom/*.go pkg/preview/*.go pkg/annotate/*.go
docs/tutorial/slice.png	pkg/phantom/*.go pkg/preview/*.go pkg/annotate/*.go
docs/tutorial/volume.png	pkg/phantom/*.go pkg/preview/*.go pkg/annotate/*.go
TABLE
}

# hash PATTERN...: one hash of all files, without tests and without lines of comments.
hash() {
  local file
  # shellcheck disable=SC2048,SC2086 # patterns
  for file in $(printf '%s\n' $* | grep -v _test.go | LC_ALL=C sort); do
    printf '%s  %s\n' "$(sed '/^[[:space:]]*\/\//d' "$file" | sha256sum | cut -c 1-64)" "$file"
  done | sha256sum | cut -c 1-16
}

demo() { [ -d "$volume" ] || { echo "$1 shows results of make demo: run it first" >&2; exit 2; }; }

# screen ADDRESS PICTURE SIZE: what a browser shows.
screen() {
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$3" --virtual-time-budget=15000 \
    --screenshot="$2" "$1" 2>"$tmp/log" || { cat "$tmp/log" >&2; exit 1; }
}

# served ARGUMENT...: starts view and sets address.
served() {
  kill "${viewer-}" 2>/dev/null || true
  : >"$tmp/view"
  view "$@" >"$tmp/view" 2>/dev/null &
  viewer=$!
  until address=$(grep -om 1 'http://.*' "$tmp/view"); do sleep 0.1; done
}

make_picture() {
  case $1 in
    docs/preview.png) demo "$1"; preview "$volume" "$1" -f -q --max_size 1200 --percentiles 0.1,99.3 --title 'Phantom, stacked' ;;
    docs/qc-report.png)
      demo "$1"
      qc-report "$tmp/report.html" -q -f --run "$results" --title 'Quality report: phantom'
      tests/report/run.sh "$tmp/report.html" "$tmp/page.png"
      mv "$tmp/page.png" "$1" ;;
    docs/slide.png)
      phantom "$tmp/scan" --czi --tiles 6,9 --tile 1,512,512 -q
      zarr-tool import "$tmp/scan/scan_z00.czi" "$tmp/tiles.ome.zarr" --tiles -q
      stitch "$tmp/tiles.ome.zarr" "$tmp/slide.ome.zarr" --positions "$tmp/tiles_positions.json" -q
      preview "$tmp/slide.ome.zarr" "$1" -f -q --max_size 1200 --title 'A slide scan of a phantom, stitched' ;;
    docs/view.png) demo "$1"; served "$volume"; screen "$address#centre=1028,465,457&scale=2" "$1" 1280,860 ;;
    docs/view-slices.png) demo "$1"; served "$results/slices"; screen "$address#image=0&overlay=-2&mode=side%20by%20side" "$1" 1200,800 ;;
    docs/bench-zarr.png)
      (cd "$tmp" && phantom mosaics --slices 1 -q && # from there, so that the page shows no path of this machine
        bench-zarr sweep mosaics/mosaic_grid_3d_z00.ome.zarr/0 --vary backend=host,direct,mmap --vary threads=1,2 --vary cache=warm --html sweep.html -q >/dev/null)
      screen "file://$tmp/sweep.html" "$1" 1100,1150 ;;
    docs/tutorial/*) [ -f "$tmp/tutorial" ] || PICTURES=1 tests/nextflow/run.sh tutorial; touch "$tmp/tutorial" ;;
  esac
  local size
  size=$(stat -c %s "$1")
  [ "$size" -le 409600 ] || { echo "$1 has $size bytes, 400 KiB are allowed" >&2; exit 1; }
  echo "$1: $size bytes"
}

scripts/need.sh chromium chromium
touch docs/pictures.tsv
while IFS=$'\t' read -r -u 3 picture patterns; do
  if [ $# = 0 ] || [[ " $* " == *" $picture "* ]]; then
    make_picture "$picture"
    { grep -v "^$picture	" docs/pictures.tsv || true; printf '%s\t%s\t%s\n' "$picture" "$(hash "$patterns")" "$patterns"; } | LC_ALL=C sort >"$tmp/pictures"
    cp "$tmp/pictures" docs/pictures.tsv
  fi
done 3< <(table)
