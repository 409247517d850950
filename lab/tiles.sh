#!/usr/bin/env bash
# usage: lab/tiles.sh [N…]   mosaic and stitch on folders of N TIFF tiles of 105 MB (default: 20 and 200, 2 and 21 GB), for the memory
# that they need with --mem 512MiB (docs/tiles.md). The files are links to four; outputs take up to 25 GB of disk in BENCH_DIR (default build/bench), and are removed.
# Run `make build` first.
set -euo pipefail
cd "$(dirname "$0")/.."
base=${BENCH_DIR:+$BENCH_DIR/strata-bench} # a folder of its own, in which names are removed
base=${base:-build/bench}
scripts/need.sh /usr/bin/time time
python=$(scripts/venv.sh build/venv tests/requirements.txt)
tmp=$base/tiles
rm -rf "$tmp"
mkdir -p "$tmp"
trap 'rm -rf "$tmp"' EXIT
"$python" - "$tmp" <<'PYTHON'
import sys
import numpy as np, tifffile
z, y, x = np.ogrid[:50, :1024, :1024]
for k in range(4):
    v = 3000 + 2000 * np.sin(x / (17 + k)) * np.cos(y / (23 - k)) + 20 * z + np.random.default_rng(k).normal(0, 8, (50, 1024, 1024))
    tifffile.imwrite(f"{sys.argv[1]}/source{k}.tif", v.astype("u2"), resolution=(1, 1), metadata={"axes": "ZYX", "spacing": 2, "unit": "um"}, imagej=True)
PYTHON
printf '%-28s %8s %10s %12s\n' 'command' 'tiles' 'time' 'peak memory'
for n in "${@:-20 200}"; do
  for tiles in $n; do
    rows=$((tiles >= 100 ? 10 : 4)) folder=$tmp/scan$tiles
    mkdir "$folder"
    for ((i = 0; i < tiles; i++)); do
      ln "$tmp/source$((i % 4)).tif" "$folder/r$((i / (tiles / rows)))_c$((i % (tiles / rows))).tif"
    done
    for command in "mosaic --n_levels 0 --mem 512MiB" "stitch --overlap 0.1 --n_levels 0 --mem 512MiB"; do
      read -r program flags <<<"$command"
      # shellcheck disable=SC2086 # flags are words
      /usr/bin/time -o "$tmp/time" -f '%e %M' "bin/$program" "$folder" "$tmp/out.ome.zarr" --pattern 'r{row}_c{col}.tif' $flags -q -f
      read -r seconds kib <"$tmp/time"
      printf '%-28s %8s %8.1f s %8d MiB\n' "$program --pattern" "$tiles" "$seconds" $((kib / 1024))
      rm -rf "$tmp/out.ome.zarr"
    done
    rm -rf "$folder"
  done
done
