#!/usr/bin/env bash
# usage: run.sh [PAGE.html [SCREENSHOT.png]]   (make test-report)
# Opens a quality report in headless Chromium and checks what only a browser knows, and reads its summaries with MultiQC.
# Without a page it makes one first: phantom mosaics, their projections and previews,
# tables of a stack with hostile names in them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scripts/need.sh chromium chromium
if [ $# -gt 0 ]; then
  exec go run ./tests/report "$@"
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
run=$tmp/run
mkdir -p "$run"/{reports,previews,aip,volume,pipeline_info,slices,stitch}

bin/phantom "$tmp/mosaics" --slices 3 --tiles 2,2 --quiet
for mosaic in "$tmp"/mosaics/mosaic_grid*.ome.zarr; do
  name=$(basename "$mosaic" .ome.zarr)
  bin/aip "$mosaic" "$run/aip/$name.ome.zarr" --png "$run/aip/$name.png" --report "$run/reports/$name.aip.json" --no-use_gpu -q
  bin/stitch "$mosaic" "$tmp/$name.ome.zarr" --estimate --save_positions "$run/stitch/slice${name#mosaic_grid_3d}.json" --n_levels 0 --no-use_gpu -q
  bin/preview "$mosaic" "$run/previews/$name.png" --report "$run/reports/$name.preview.json" --colormap magma -q
  bin/preview "$run/aip/$name.ome.zarr" "$run/previews/$name flat.png" -q
done
# What focal leaves has this form: images by their names, in a folder per slice.
for n in 0 1; do
  mkdir -p "$run/focal/slice_z0$n"
  cp -r "$run/aip/mosaic_grid_3d_z0$n.ome.zarr" "$run/focal/slice_z0$n/flatfield.ome.zarr"
  cp "$run/aip/mosaic_grid_3d_z0$n.png" "$run/focal/slice_z0$n/z0.png"
done
# A repaired glitch, as shifts clean and analyze leave it.
mkdir -p "$run/shifts"
printf 'fixed_id,moving_id,x_shift,y_shift,x_shift_mm,y_shift_mm\n0,1,0,0,2,0.01\n1,2,0,0,-1.98,0\n2,3,0,0,0.02,0\n' >"$run/shifts/shifts_xy.csv"
bin/shifts clean "$run/shifts/shifts_xy.csv" "$run/shifts/shifts_xy_clean.csv" --diagnostics "$run/shifts/diagnostics" -q
bin/shifts analyze "$run/shifts/shifts_xy.csv" "$run/shifts/analysis" -q
cp "$run/shifts/shifts_xy_clean.csv" "$run/volume/shifts_xy.csv"
cat >"$run/volume/z_matches.csv" <<'CSV'
fixed_id,moving_id,overlap_voxels,blend_overlap_voxels,moving_z_start,correlation,correlation_fallback_used
0,1,9,7,8,0.8123,False
1,2,11,7,8,0.3012,True
CSV
cat >"$run/volume/stacking_decisions.csv" <<'CSV'
slice_id,fixed_id,transform_loaded,transform_source,manual_override,confidence,overlap_source,overlap_voxels,blend_overlap_voxels,correlation
1,0,True,automated,False,0.8000,correlation,9,7,0.8123
2,1,False,"<script>alert(1)</script>",True,,"""><img src=x onerror=alert(1)>",11,7,0.3012
CSV
printf '{"interface": 12, "</td><script>": "<b onclick=x>", "url": "https://example.org/x.png"}' >"$run/slices/slice_z00_crop.json"
printf '{"tool": "stack", "warnings": ["<script src=\\"http://example.org/x.js\\"></script>"], "error": "\\u202e &lt;", "exit_code": 3}' >"$run/reports/hostile.json"
printf 'process\tslice\texit\treason\nFOCAL\t<img src=//example.org/y>\t3\tjavascript:alert(1)\n' >"$run/pipeline_info/missing_slices.tsv"
printf 'name\tstatus\tsubmit\tstart\tcomplete\tduration\trealtime\nAIP (z00)\tCOMPLETED\t2026-01-31 12:00:00.000\t2026-01-31 12:00:01.000\t2026-01-31 12:00:03.000\t3s\t1.5s\n' >"$run/pipeline_info/trace.tsv"
cp "$run/previews/mosaic_grid_3d_z00.png" "$run/previews/<img src=x onerror=alert(1)>.png"
printf 'not a picture' >"$run/previews/broken.png"

bin/qc-report "$tmp/report.html" --run "$run" --title '</title><script>alert("title")</script>' -q
go run ./tests/report "$tmp/report.html"
# A page with nothing but a table, and one under a tight budget.
bin/qc-report "$tmp/small.html" --z_matches "$run/volume/z_matches.csv" -q
go run ./tests/report "$tmp/small.html"
bin/qc-report "$tmp/tight.html" --run "$run" --max_pictures 100KiB -q
go run ./tests/report "$tmp/tight.html"
size=$(stat -c %s "$tmp/tight.html")
[ "$size" -lt 200000 ] || { echo "a page of $size bytes, its pictures may take 102400" >&2; exit 1; }
# MultiQC reads the summaries of runs.
scripts/venv.sh build/venv-multiqc tests/report/requirements.txt >/dev/null
CGO_ENABLED=0 go test -count=1 -run TestMultiQC ./cmd/internal/qcreport
