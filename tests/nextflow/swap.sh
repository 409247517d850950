#!/usr/bin/env bash
# A pipeline that calls linumpy's programs, with links to ours at the front of
# the PATH: every stage runs, and gives what our programs give by themselves.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
export NXF_HOME=$tmp/home NXF_ANSI_LOG=false LINKS=$tmp/links

"$root/scripts/nextflow.sh" -v || exit 1
"$root/scripts/links.sh" "$root/bin" "$LINKS" >/dev/null || exit 1
"$root/bin/phantom" "$tmp/in" --slices 2 --tiles 2,2 --tile 60,64,64 --voxel 5,5,5 --interval 150 --quiet || exit 1
mkdir "$tmp/slices"
for z in 00 01; do
  ln -s "$tmp/in/mosaic_grid_3d_z$z.ome.zarr" "$tmp/slices/slice_z$z.ome.zarr"
done

nf swapped run "$root/tests/nextflow/swap/main.nf" -c "$root/tests/nextflow/swap/swap.config" --outdir "$tmp/out" \
  --mosaic "$tmp/in/mosaic_grid_3d_z00.ome.zarr" --slices "$tmp/slices/*.ome.zarr" --shifts "$tmp/in/shifts_xy.csv"
ok "linumpy's command lines run through the links" same $status 0
[ "$status" = 0 ] || tail -n 30 "$log"

cd "$tmp" || exit 1
direct() {
  "$root/bin/resample" in/mosaic_grid_3d_z00.ome.zarr r.ome.zarr --sampling corner --n_levels 0 -q &&
    "$root/bin/focal" r.ome.zarr f.ome.zarr --n_levels 0 -q &&
    "$root/bin/aip" f.ome.zarr a.ome.zarr -q &&
    "$root/bin/crop" f.ome.zarr c.ome.zarr --depth 100 --crop_before_interface --n_levels 0 -q &&
    "$root/bin/stack" slices in/shifts_xy.csv s.ome.zarr --blend --blend_match pairwise --repair_shifts off --no-use_origins --blend_z_refine_vox 5 --slicing_interval_mm 0.14 --moving_z_first_index 2 \
      --use_expected_overlap --output_z_matches z.csv --no_xy_shift -q
}
ok 'our programs run by themselves' direct
ok 'aip: the same bytes' same_image a.ome.zarr out/mosaic_grid_z03_aip.ome.zarr
ok 'crop: the same bytes' same_image c.ome.zarr out/slice_z03_crop_interface.ome.zarr
ok 'stack: the same bytes' same_image s.ome.zarr out/mouse.ome.zarr
ok 'stack: the same matches' diff z.csv out/z_matches.csv
total
