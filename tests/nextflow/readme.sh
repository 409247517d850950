#!/usr/bin/env bash
# README's commands for one's own data, word for word, on the demo's phantom and a made slide. A part of run.sh.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
trap 'rm -rf "$tmp"' EXIT

cd "$tmp" || exit 1
mkdir programs slices
ln -s "$root/nextflow" nextflow
ln -s "$root/scripts/nextflow.sh" programs/nextflow
cp "$root/nextflow/params/example.yml" params.yml
PATH=$tmp/programs:$root/bin:$PATH
phantom mosaics --slices 4 -q || exit 1
bench-tiff make scan.svs --width 3000 --height 2000 --compression jpeg -q || exit 1
phantom scans --czi --tiles 2,3 --tile 1,256,256 -q && mv scans/scan_z00.czi scan.czi || exit 1

mapfile -t lines < <(sed -n '/^## Your own data/,/^## On a cluster/p' "$root/README.md" | awk '/^\140\140\140/ { out = !out } !out' | sed -n 's/^    //p' | grep -vx make)
ok 'README has commands for the workflow and stage by stage' same "$(printf '%s\n' "${lines[@]}" | cut -d ' ' -f 1 | xargs)" \
  'nextflow nextflow stitch resample focal stitch crop stack preview zarr-tool preview smooth zarr-tool zarr-tool zarr-tool stitch'
for line in "${lines[@]}"; do
  ok "${line%% *}: ${line:0:100}" bash -c "$line"
done
ok 'the workflow makes a volume and its report' filled results/volume/volume.ome.zarr/0/zarr.json results/qc-report.html
ok 'so do the stages' filled volume.ome.zarr/0/zarr.json volume.png
ok 'a slide becomes what it should' filled scan.png blurred.ome.zarr/0/zarr.json scan.ome.zarr/2/zarr.json scan.ome.tif slide.ome.zarr/0/zarr.json
total
