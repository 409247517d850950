#!/usr/bin/env bash
# lab/run.sh: strata beside its peers and the floors of the machine. `make bench`
# builds first. Each part stores what it measured in lab/results; at the end all pages
# and README's tables are written from there. lab/README.md says how peers come here.
#
#   PARTS        for docs/benchmarks.md: stages, workflow (the programs from raw frames to an aligned
#                volume), chain and many (the whole workflow; need Nextflow); for
#                docs/benchmarks-arrays.md: arrays, remote (arrays behind HTTP and S3 servers), files (the
#                file layer with host memory); for docs/benchmarks-slides.md: tiff, czi; for
#                docs/benchmarks-scaling.md: scaling (the stages at 1 to 16 threads, with tiles of 1 to
#                400 MB); zarr: the outputs of docs/bench-zarr.md. Default: all of these. Besides: large,
#                inputs of 20 GB
#   LINUMPY      a folder of linumpy with its environment, to run beside the stages
#   KVIKIO       for files: 1 installs KvikIO from PyPI (3 GB), else a Python that has it (default: build/venv-kvikio or
#                python3, if they have it)
#   FASTLOADER   for tiff: a program that streams views by FastLoader, as docs/bench-tile.md says
#   BENCH_RUST   0: without the zarrs crate (lab/zarrs), which takes minutes to compile; 1: with it (default: where
#                cargo is, unless BENCH_SMOKE)
#   BENCH_DIR    where the data lies (20 GB for all; default build/bench)
#   BENCH_OUT    where the programs write (default: memory, if there is enough, else BENCH_DIR)
#   BENCH_SHAPE  shape of the arrays (default 512,512,512); another one writes no report to docs
#   BENCH_SMOKE  1: everything small and one round, to see that all of it runs; reports go to BENCH_DIR
#   BENCH_ROUNDS for scaling: rounds of every case (default: 3; 2 of long ones)
#   BENCH_ONLY   cases whose name contains this; no report
set -euo pipefail
cd "$(dirname "$0")/.."

parts=,${PARTS:-stages,scaling,workflow,arrays,remote,files,tiff,czi,chain,many,zarr},
smoke=${BENCH_SMOKE:-} only=${BENCH_ONLY:-}
base=${BENCH_DIR:+$BENCH_DIR/strata-bench} # a folder of its own, in which names are removed
base=${base:-build/bench}
tools=$base/tools
# where results and reports go
results=lab/results docs=docs readme=README.md small=''
if [ -n "$smoke" ] || [ "${BENCH_SHAPE:-512,512,512}" != 512,512,512 ]; then
  small=-small results=$base/report/results docs=$base/report readme=$base/report/README.md
  mkdir -p "$docs"
  cp README.md "$readme"
fi
[ -z "$only" ] || results=$base/only
mkdir -p "$tools" "$results"

wanted() { [[ $parts == *,$1,* ]]; }
for part in ${parts//,/ }; do
  case $part in arrays | stages | scaling | workflow | chain | many | remote | files | tiff | czi | zarr | large) ;; *)
    echo "lab/run.sh: PARTS=$part: arrays, stages, scaling, workflow, chain, many, remote, files, tiff, czi, zarr, large" >&2
    exit 2
    ;;
  esac
done

# the C floor
scripts/need.sh cc gcc
headers() { printf '#include <%s>\n' zstd.h blosc.h libdeflate.h | cc -E -x c - >/dev/null 2>&1; }
if ! headers; then
  as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  echo "installing libzstd-dev libblosc-dev libdeflate-dev (for the C floor)" >&2
  { "${as_root[@]}" apt-get -qq update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends libzstd-dev libblosc-dev libdeflate-dev; } >/dev/null 2>&1 || true
  headers || { echo "lab/run.sh: zstd.h, blosc.h or libdeflate.h is missing: install libzstd-dev libblosc-dev libdeflate-dev" >&2; exit 1; }
fi
cc -O3 -march=native -Wall -Wextra -o "$tools/floor" lab/floor.c -lzstd -lblosc -ldeflate -lpthread

# ours
export CGO_ENABLED=0
${GO:-go} build -trimpath -o "$tools/" ./lab/arrays ./lab/compare ./lab/remote
${GO:-go} build -trimpath -o "$tools/s3server" ./tests/s3emu/server

# a step of making data: a stamp says that it was finished
once() { # FOLDER NAME COMMAND...
  [ -e "$1/$2.made" ] && return
  rm -rf "${1:?}/$2"
  "${@:3}" >/dev/null
  touch "$1/$2.made"
}

if [ -n "${BENCH_OUT:-}" ]; then
  out=$(mktemp -d "$BENCH_OUT/strata-bench.XXXXXX") # what else is in BENCH_OUT stays
else
  out=$base/out
  # in memory what is timed is the program, not the disk; an array and what a peer needs fit
  free=$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1 || echo 0)
  memory=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
  if [ "$free" -gt 4194304 ] && [ "$memory" -gt 16777216 ]; then out=$(mktemp -d /dev/shm/strata-bench.XXXXXX); fi
fi
mkdir -p "$out"
trap 'rm -rf "$out"' EXIT

# two processors for everybody
pin=()
if [ "$(nproc)" -gt 2 ] && command -v taskset >/dev/null; then pin=(taskset -c "0,1"); fi

# measure PART DATA FLAG...: runs a part and stores what it measured
measure() {
  "${pin[@]}" "$tools/compare" "$1" -tools "$tools" -data "$2" -out "$out" -only "$only" "${@:3}" >"$results/$1.jsonl.part"
  mv "$results/$1.jsonl.part" "$results/$1.jsonl"
}

# make_array DATA NAME CODEC CHUNK [SHARD]: arrays of both kinds of data. A peer writes
# them, so that all read what libzstd, c-blosc and zlib make.
make_array() {
  local kind suffix
  for kind in structured noise; do
    suffix=-noise
    if [ "$kind" = structured ]; then suffix=''; elif [ "$3" = raw ]; then continue; fi
    once "$1" "$2$suffix.zarr" "$python" lab/peers.py tensorstore write "${plain:-$1}/$kind.f32" --shape "$shape" --codec "$3" \
      --chunks "$4,$4,$4" ${5:+--shard "$5,$5,$5"} --out "$1/$2$suffix.zarr"
  done
}

# make_zarrs: the program of the zarrs crate, if it is wanted
make_zarrs() {
  rm -f "$tools/zarrs-bench"
  if [ "${BENCH_RUST:-}" = 1 ] || [ -z "${BENCH_RUST:-}$smoke" ] && command -v cargo >/dev/null; then
    scripts/need.sh cargo cargo
    cargo build --quiet --release --locked --manifest-path lab/zarrs/Cargo.toml --target-dir "$base/cargo"
    cp "$base/cargo/release/zarrs-bench" "$tools/"
  fi
}

arrays() {
  local shape=${BENCH_SHAPE:-512,512,512} rounds=(-least 3 -most 5 -patience 4s) python large chunk
  if [ -n "$smoke" ]; then
    shape=64,128,128
    rounds=(-least 1 -most 1)
  fi
  local data=$base/${shape//,/x} plain=''
  mkdir -p "$data"
  python=$(scripts/venv.sh build/venv tests/requirements.txt)
  make_zarrs
  once "$data" plain "$tools/arrays" gen "$data" "$shape"
  large=$(tr , '\n' <<<"256,$shape" | sort -n | head -n 1)
  chunk=$((large / 4))
  make_array "$data" raw raw "$large"
  make_array "$data" blosclz4 blosc-lz4:5 "$large"
  make_array "$data" blosczstdbit blosc-zstd-bit:3 "$large"
  make_array "$data" zstd zstd:3 "$large"
  make_array "$data" zstdsmall zstd:3 "$chunk"
  make_array "$data" shard zstd:3 "$chunk" "$large"
  make_array "$data" gzip gzip:5 "$large"
  measure arrays "$data" -python "$python" -shape "$shape" "${rounds[@]}"
}

remote() {
  local data=$base/remote$small shape=256,512,512 rounds=(-least 3 -most 3) python chunk=64 large=256
  if [ -n "$smoke" ]; then
    shape=64,128,128 rounds=(-least 1 -most 1) chunk=16 large=64
  fi
  mkdir -p "$data/arrays"
  python=$(scripts/venv.sh build/venv tests/requirements.txt)
  once "$data" plain "$tools/arrays" gen "$data" "$shape"
  local plain=$data
  make_array "$data/arrays" raw raw "$chunk"
  make_array "$data/arrays" zstd zstd:3 "$chunk"
  make_array "$data/arrays" shard zstd:3 "$chunk" "$large"
  measure remote "$data" -python "$python" -shape "$shape" "${rounds[@]}"
}

stages() {
  local data=$base/stages$small rounds=(-least 3 -most 5 -patience 6s) python
  local tiles=4 tile=200,256,256 shard=200,512,512 real=200,512,512 slices=6 grid=4 thin=60,240,240
  if [ -n "$smoke" ]; then
    rounds=(-least 1 -most 1)
    tiles=3 tile=50,64,64 shard=50,64,64 real=50,96,96 grid=3 thin=60,64,64
  fi
  mkdir -p "$data"
  python=$(PYTHON=${PYTHON:-python3.12 python3.11} scripts/venv.sh build/venv-stages lab/requirements-stages.txt)
  local depth edge
  IFS=, read -r depth edge _ <<<"$tile"
  local shape=$depth,$((tiles * edge)),$((tiles * edge))
  make_mosaic() { # NAME TILES TILE FLAG...
    bin/phantom "$data/make" -f -q --anatomy 0 --zarr_format 3 --tiles "$2,$2" --tile "$3" "${@:4}"
    rm -rf "$data/mosaic_$1.ome.zarr"
    mv "$data/make/mosaic_grid_3d_z00.ome.zarr" "$data/mosaic_$1.ome.zarr"
    rm -rf "$data/make"
  }
  once "$data" tiles make_mosaic tiles 3 "$real" --dtype uint16 --codec zstd:3
  once "$data" zstd make_mosaic zstd "$tiles" "$tile" --codec zstd:3 --shard "$shard"
  once "$data" raw make_mosaic raw "$tiles" "$tile" --codec raw
  once "$data" blosc make_mosaic blosc "$tiles" "$tile" --codec blosc-zstd:1
  local kind
  for kind in structured noise; do
    once "$data" "mosaic_$kind.ome.zarr" "$tools/arrays" mosaic "$kind" "$shape" -chunks "$tile" -codec blosc-zstd:1 -out "$data/mosaic_$kind.ome.zarr"
  done
  # slices that each show twenty planes (70 µm) of the next
  make_slices() {
    bin/phantom "$data/make" -f -q --anatomy 0 --slices "$slices" --tiles "$grid,$grid" --tile "$thin" --interval 140 --water 0 --relief 0 --jitter 0 --shift 8 --glitch 0 --truth_slices
    rm -rf "$data/slices"
    mv "$data/make/truth" "$data/slices"
    mv "$data/make/shifts_xy.csv" "$data/"
    rm -rf "$data/make"
  }
  once "$data" slice make_slices
  measure stages "$data" -python "$python" -linumpy "${LINUMPY:-}" "${rounds[@]}" \
    -about "A mosaic grid of nine tiles of ${real//,/×} uint16, a chunk of zstd:3 each, as a microscope makes them, and grids of ${shape//,/×} float32 in $((tiles * tiles)) tiles of ${tile//,/×}, 3.5×2×2 µm: a virtual specimen (\`phantom\`) as shards of zstd:3, raw and as blosc-zstd:1, structured data and noise; for \`stack\` $slices slices of $((grid * grid)) tiles of ${thin//,/×} each, whose overlaps it has to find."
}

scaling() {
  local cores pin=() data=$base/scaling$small rounds=(-least 2 -most 3 -patience 22s) python name codec tile made tiles names='' # pin: all processors
  cores=$(nproc)
  # NAME CODEC TILE MADE TILES: phantom makes a few tiles, and a mosaic of more repeats them
  local mosaics=('1-zstd zstd:3 50,100,100 2,2 11,11' '16-zstd zstd:3 100,280,280 2,2 2,4' '105-zstd zstd:3 200,512,512 2,2 2,2'
    '105-raw raw 200,512,512 2,2 2,2' '105-blosc blosc-zstd:1 200,512,512 2,2 2,2' '400-zstd zstd:3 200,1000,1000 1,2 1,2')
  if [ -n "$smoke" ]; then
    rounds=(-least 1 -most 1)
    mosaics=('1-zstd zstd:3 50,32,32 2,2 3,3' '105-zstd zstd:3 50,64,64 2,2 2,2' '105-blosc blosc-zstd:1 50,64,64 2,2 2,2')
  elif [ "$cores" -ge 4 ]; then
    mosaics=('1-zstd zstd:3 50,100,100 2,2 32,32' '16-zstd zstd:3 100,280,280 2,2 8,8' '105-zstd zstd:3 200,512,512 2,2 4,4'
      '105-raw raw 200,512,512 2,2 4,4' '105-blosc blosc-zstd:1 200,512,512 2,2 4,4' '400-zstd zstd:3 200,1000,1000 2,2 2,2')
    [ "$cores" -lt 16 ] || mosaics+=('36x105-zstd zstd:3 200,512,512 2,2 6,6')
  fi
  [ -z "${BENCH_ROUNDS:-}" ] || rounds=(-least "$BENCH_ROUNDS" -most "$BENCH_ROUNDS")
  mkdir -p "$data"
  python=$(scripts/venv.sh build/venv tests/requirements.txt)
  make_zarrs
  make_grown() { # NAME CODEC TILE MADE TILES
    rm -rf "$data/mosaic_$1.ome.zarr" "$data/$1"-*.made
    bin/phantom "$data/make" -f -q --mem 4GiB --anatomy 0 --dtype uint16 --codec "$2" --tile "$3" --tiles "$4"
    "$tools/arrays" grow "$data/make/mosaic_grid_3d_z00.ome.zarr" "$5" "$data/mosaic_$1.ome.zarr"
    rm -rf "$data/make"
  }
  for name in "${mosaics[@]}"; do
    read -r name codec tile made tiles <<<"$name"
    once "$data" "$name-${tiles/,/x}" make_grown "$name" "$codec" "$tile" "$made" "$tiles"
    names=${names:+$names,}$name
  done
  measure scaling "$data" -python "$python" -mosaics "$names" "${rounds[@]}" \
    -about "The mosaics show a virtual specimen (\`phantom\`) as uint16; where it has fewer tiles than the mosaic, they are repeated."
}

workflow() {
  local data=$base/workflow$small rounds=(-least 3 -most 5 -patience 6s) python small_tile=40,100,100 large_tile=80,200,200
  if [ -n "$smoke" ]; then
    rounds=(-least 1 -most 1)
    small_tile=24,24,24 large_tile=32,32,32
  fi
  mkdir -p "$data"
  python=$(PYTHON=${PYTHON:-python3.12 python3.11} scripts/venv.sh build/venv-stages lab/requirements-stages.txt)
  make_workflow() { # NAME TILE
    local all=(-f -q --tiles "4,4" --tile "$2" --voxel "10,10,10" --water 0 --relief 0 --curvature 0) z
    mkdir -p "$data/$1/slices"
    # Slices: mosaics whose tiles do not overlap. The third begins where the first ends.
    bin/phantom "$data/make" "${all[@]}" --slices 3 --overlap 0 --jitter 0 --glitch 0 --truth_slices --n_levels 2 --interval $((${2%%,*} * 5))
    for z in 0 1 2; do mv "$data/make/mosaic_grid_3d_z0$z.ome.zarr" "$data/$1/slices/slice_z0$z.ome.zarr"; done
    mv "$data/make/truth/slice_z00.ome.zarr" "$data/$1/template.ome.zarr"
    mv "$data/make/shifts_xy.csv" "$data/$1/"
    bin/phantom "$data/make" "${all[@]}"
    mv "$data/make/mosaic_grid_3d_z00.ome.zarr" "$data/$1/mosaic.ome.zarr"
    bin/phantom "$data/make" "${all[@]}" --raw --slices 2 --galvo_extra 8 --galvo_shift 7
    mkdir "$data/$1/raw"
    mv "$data/make"/z0? "$data/$1/raw/"
    rm -rf "$data/make"
  }
  once "$data" small make_workflow small "$small_tile"
  once "$data" large make_workflow large "$large_tile"
  measure workflow "$data" -python "$python" -linumpy "${LINUMPY:-}" "${rounds[@]}" \
    -about "A virtual specimen (\`phantom\`) of 10 µm voxels: three slices, a mosaic grid of 4×4 tiles and raw frames of the same number of voxels, 40×400×400 (26 MB of float32) and 80×800×800 (205 MB). Outputs are blosc-zstd:1, the default, with the pyramids that the programs make by default."
}

files() {
  local data=$base/files$small bytes=1073741824 rounds=(-least 3 -most 5 -patience 8s) python='' nocuda=''
  if [ -n "$smoke" ]; then
    bytes=16777216 rounds=(-least 1 -most 1)
  fi
  mkdir -p "$data/out"
  ${GO:-go} build -trimpath -o "$tools/" ./lab/gds
  cc -O3 -march=native -Wall -Wextra -o "$tools/gds-floor" lab/gds-floor.c -lpthread
  case ${KVIKIO:-} in
    1) python=$(scripts/venv.sh build/venv-kvikio lab/requirements-kvikio.txt) ;;
    ?*) python=$KVIKIO ;;
    *) for p in build/venv-kvikio/bin/python python3; do
      if [ -z "$python" ] && "$p" -c 'import importlib.metadata as m; m.version("kvikio-cu12"); m.version("numpy")' 2>/dev/null; then python=$p; fi
    done ;;
  esac
  if [ -n "$python" ] && ! "$python" -c 'import ctypes; ctypes.CDLL("libcuda.so.1")' 2>/dev/null; then
    nocuda=$tools/nocuda
    mkdir -p "$nocuda"
    cc -shared -fPIC -Wall -Wextra -Wl,-soname,libcuda.so.1 -o "$nocuda/libcuda.so.1" lab/gds-cuda.c
  fi
  make_files() {
    mkdir -p "$data/files"
    "$tools/gds" gen-files "$data/files" "$bytes" 2 1048576 1 0 0 0
  }
  once "$data" file "$tools/gds" gen "$data/file" "$bytes" 2 4194304 1 0 0 0
  once "$data" files make_files
  local programs=$out
  out=$data/out # on a disk
  measure files "$data" -kvikio "$python" -nocuda "$nocuda" -bytes "$bytes" "${rounds[@]}"
  out=$programs
}

tiff() {
  local data=$base/tiff$small rounds=(-least 3 -most 7 -patience 8s) python width=13210 height=9960 part=8192,6144 slide=9000,7000 tiles=16384,16384 turbo
  if [ -n "$smoke" ]; then
    width=1100 height=900 part=700,600 slide=800,600 tiles=3000,3000
    rounds=(-least 1 -most 1)
  fi
  mkdir -p "$data"
  python=$(scripts/venv.sh build/venv-tiff lab/requirements-tiff.txt)
  make_tiff() { # NAME W,H FLAG...
    bin/bench-tiff make "$data/$1" --width "${2%,*}" --height "${2#*,}" -q -f "${@:3}"
  }
  once "$data" raw.tif make_tiff raw.tif "$width,$height" --n_levels 0
  local c
  for c in lzw deflate zstd jpeg:85; do
    once "$data" "${c%:*}.tif" make_tiff "${c%:*}.tif" "$part" --n_levels 0 --compression "$c"
  done
  once "$data" pyramid-jpeg.tif make_tiff pyramid-jpeg.tif "$slide" --compression jpeg:85
  once "$data" tiles.tif make_tiff tiles.tif "$tiles" --samples 1 --dtype uint16 --tile_size 1024 --n_levels 0
  make_grey() {
    make_tiff grey.tif "$slide" --samples 1 --dtype uint16 --n_levels 0
    bin/zarr-tool export "$data/grey.tif" "$data/pyramid-grey.ome.tif" --compression zstd -q -f
    rm "$data/grey.tif"
  }
  once "$data" pyramid-grey.ome.tif make_grey
  turbo=$(ldconfig -p 2>/dev/null | awk '/libturbojpeg\.so\.0/ { print $NF; exit }')
  measure tiff "$data" -python "$python" -libjpeg "$turbo" -fastloader "${FASTLOADER:-}" "${rounds[@]}" \
    -about "The files show stained tissue on a white background (\`bench-tiff make\`): $width×$height RGB pixels uncompressed, ${part/,/×} compressed, pyramids of ${slide/,/×}, all in tiles of 512²."
  [ -n "$only" ] || VIRTUAL_ENV=$PWD/$(dirname "$(dirname "$python")") page bench-tiff.md tiff-page
}

czi() {
  local data=$base/czi$small rounds=(-least 3 -most 7 -patience 30s) python grid=20,20 side=1024 jpegxr=100 million=1000,1000
  if [ -n "$smoke" ]; then
    rounds=(-least 1 -most 1)
    grid=3,4 side=128 jpegxr=4 million=30,40
  fi
  mkdir -p "$data"
  python=$(scripts/venv.sh build/venv-czi lab/requirements-czi.txt)
  make_scan() { # NAME TILES SIDE FLAG...
    bin/phantom "$data/make" -f -q --anatomy 0 --czi --tiles "$2" --tile "1,$3,$3" --overlap 0 --jitter 0 "${@:4}"
    mv "$data/make/scan_z00.czi" "$data/$1"
    rm -rf "$data/make"
  }
  once "$data" raw.czi make_scan raw.czi "$grid" "$side" --codec raw
  once "$data" zstd1.czi make_scan zstd1.czi "$grid" "$side" --codec zstd:1
  once "$data" million.czi make_scan million.czi "$million" 8 --codec raw --noise
  once "$data" jpegxr.czi "$python" lab/czi-jpegxr.py "$data/raw.czi" "$data/jpegxr.czi" "$jpegxr"
  measure czi "$data" -python "$python" "${rounds[@]}" \
    -about "The files are scans of a virtual specimen (\`phantom --czi\`) of ${grid/,/ × } tiles of $side² pixels of 16 bits, uncompressed and as zstd1 with hi-lo packing; $jpegxr of these as JPEG XR; and one of ${million/,/ × } tiles of 8² pixels."
  [ -n "$only" ] || VIRTUAL_ENV=$PWD/$(dirname "$(dirname "$python")") page bench-czi.md czi-page
}

# page NAME FOLDER [FLAG...]: runs the commands of a page of docs in a folder
page() {
  "${pin[@]}" lab/page.sh "docs/$1" "$base/$2$small" "$docs/$1" "${@:3}"
}

if wanted stages; then stages; fi
if wanted scaling; then scaling; fi
if wanted workflow; then workflow; fi
if wanted chain; then lab/chain.sh ten "$base/chain$small" "$results/chain.json"; fi
if wanted many; then lab/chain.sh many "$base/many$small" "$results/many.json"; fi
if wanted arrays; then arrays; fi
if wanted remote; then remote; fi
if wanted files; then files; fi
if wanted tiff; then tiff; fi
if wanted czi; then czi; fi
if wanted large; then lab/large.sh "$results/large.json"; fi
if wanted zarr; then
  VIRTUAL_ENV=$(dirname "$(dirname "$(scripts/venv.sh build/venv tests/requirements.txt)")")
  export VIRTUAL_ENV
  if [ -n "$smoke" ]; then page bench-zarr.md zarr; else page bench-zarr.md zarr sweep.html docs/bench-zarr.png; fi
fi
[ -n "$only" ] || "$tools/compare" report -results "$results" -docs "$docs" -readme "$readme"
