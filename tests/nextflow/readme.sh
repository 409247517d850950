#!/usr/bin/env bash
# README's commands, word for word: an installation, the demo, one's own data (another phantom and a made slide), and a look at all of it. The
# commands for a cluster are run by ../slurm. A part of run.sh.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
trap 'rm -rf "$tmp"' EXIT
# shellcheck source-path=SCRIPTDIR source=documents.sh
. "$(dirname "${BASH_SOURCE[0]}")/documents.sh"
readme=$root/README.md

commands "$readme" Install
mapfile -t lines < <(printf '%s' "${blocks[@]}" | grep -v '^make *#') # it is built
ok 'README has commands to install' same "${lines[*]%%=*}" 'make install PREFIX'
GOPATH=$(go env GOPATH) GOCACHE=$(go env GOCACHE)
for line in "${lines[@]}"; do
  ok "$line" env -C "$root" HOME="$tmp/home" GOPATH="$GOPATH" GOCACHE="$GOCACHE" bash -euo pipefail -xc "$line"
done
ok 'the programs and their manual are installed' filled "$tmp"/home/.local/{bin/{strata,aip},lib/strata/bin/view} "$tmp/home/.local/share/man/man1/aip.1"

commands "$readme" Demo
ok 'README has a demo' same "$(programs)" 'phantom for resample focal stitch crop done stack view'
follow "$tmp/demo" && ok 'it makes a volume' filled "$tmp/demo/volume.ome.zarr/0/zarr.json"

mkdir "$tmp/own"
ln -s "$root/nextflow" "$tmp/own/nextflow"
phantom "$tmp/own/mosaics" --slices 2 --tiles 2,3 -q || exit 1
bench-tiff make "$tmp/own/scan.svs" --width 3000 --height 2000 --compression jpeg -q || exit 1
phantom "$tmp/scans" --czi --tiles 2,3 --tile 1,256,256 -q && mv "$tmp/scans/scan_z00.czi" "$tmp/own/scan.czi" || exit 1
commands "$readme" 'Your data' 'Look at it'
ok 'README has commands for mosaics, slides and the result' same "$(programs)" \
  'nextflow cp nextflow zarr-tool zarr-tool zarr-tool zarr-tool zarr-tool stitch view view view preview zarr-tool'
if follow "$tmp/own"; then
  cd "$tmp/own" || exit 1
  ok 'the workflow makes a volume and its report' filled results/volume/volume.ome.zarr/0/zarr.json results/qc-report.html
  ok 'a slide becomes what it should' filled scan.ome.zarr/2/zarr.json scan.ome.tif slide.ome.zarr/0/zarr.json
  ok 'a level is there as NIfTI' filled brain.nii.gz
  ok 'the picture is there' is_png volume.png
fi
total
