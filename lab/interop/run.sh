#!/usr/bin/env bash
# usage: lab/interop/run.sh [DIR]   What we write must be read as equal by
# zarr-python, tensorstore, zarrs and ome-zarr-py, TIFF by tifffile, libtiff and OpenSlide, NIfTI and NRRD by nibabel, SimpleITK and pynrrd,
# and CZI by libCZI, aicspylibczi and czifile, and the other way round, also over HTTP; tiles in files of tifffile, Pillow and numpy become the
# same mosaics. Makes its Python environment (tests/requirements.txt) at the first
# run, and needs the programs in bin (make interop builds them). DIR keeps what was written; without it, it is removed.
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(scripts/venv.sh build/venv tests/requirements.txt)
if [ $# -gt 0 ]; then dir=$1 && mkdir -p "$dir"; else dir=$(mktemp -d); fi
servers=()
# shellcheck disable=SC2317 # called by the trap
finish() {
  for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
  if [ $# -eq 0 ]; then rm -rf "$dir"; fi
}
trap 'finish "$@"' EXIT

${GO:-go} build -o "$dir/interop" ./lab/interop
failed=0
part() {
  echo "== $1"
  shift
  "$@" 2>&1 | tee -a "$dir/report.txt" || failed=1
}
# serve DIR [ranges] sets url
serve() {
  exec 3< <(exec "$python" lab/interop/serve.py "$@")
  servers+=($!)
  local port
  read -r port <&3
  url=http://127.0.0.1:$port
}

: >"$dir/report.txt"
rm -rf "$dir/ours" "$dir/peers"
# What the peers make of ours, and we of theirs, side by side.
we_write() {
  part "strata writes" "$dir/interop" write "$dir/ours" bin
  part "the peers read" "$python" lab/interop/peers.py check "$dir/ours"
  return "$failed"
}
we_write >"$dir/ours.log" 2>&1 &
ours=$!
part "the peers write" "$python" lab/interop/peers.py write "$dir/peers"
part "strata reads" "$dir/interop" check "$dir/peers"
serve "$dir/peers" ranges
part "strata reads from a web server" "$dir/interop" check "$url"
serve "$dir/peers"
part "strata reads from a web server that knows no ranges" "$dir/interop" check "$url"
mkdir -p "$dir/tiff"
part "TIFF, both ways" "$python" lab/interop/peers_tiff.py "$dir/tiff" bin
mkdir -p "$dir/volumes"
part "NIfTI and NRRD, both ways" "$python" lab/interop/peers_volumes.py "$dir/volumes" bin
mkdir -p "$dir/tiles"
part "tiles in files" "$python" lab/interop/peers_tiles.py "$dir/tiles" bin
mkdir -p "$dir/czi"
part "CZI, both ways" "$python" lab/interop/peers_czi.py "$dir/czi" bin
wait "$ours" || failed=1
cat "$dir/ours.log"

awk '/^total: / { p += $2; f += $4 } END { printf "interop: %d passed, %d failed\n", p, f }' "$dir/report.txt"
exit "$failed"
