#!/usr/bin/env bash
# The workflow for real, on this machine: phantom mosaics and those that other
# programs wrote, caching, failures, parameters. One line for each check.
# KEEP=1 leaves the folder of the runs.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
trap '[ -n "${KEEP:-}" ] && echo "kept: $tmp" || rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
export NXF_HOME=$tmp/home NXF_ANSI_LOG=false
main=$root/nextflow/main.nf
faulty=(-c "$root/tests/nextflow/faults/faults.config")
launch=$tmp/launch
info=$launch/results/pipeline_info

"$root/scripts/nextflow.sh" -v || exit 1
"$root/scripts/test-data.sh" "$tmp/foreign" || exit 1
make_mosaics "$tmp/phantom" 3 || exit 1
mosaics=("$tmp"/phantom/mosaic_grid*_z*.ome.zarr)
names=("${mosaics[@]##*/}")
names=("${names[@]%.ome.zarr}")
foreign=(m_f32_raw_edge m_f32_v2lz4 m_i16_v3lz4 m_u16_v3shard m_u8_v3raw)
ok 'the phantom has three mosaics' same ${#mosaics[@]} 3

# --- Results -------------------------------------------------------------------

cat >"$tmp/params.yml" <<YML
input: $tmp/phantom
n_levels: 2
aip_cpus: 2
aip_memory: 400 MB
mem_fraction: 0.5
YML
nf first run "$main" -params-file "$tmp/params.yml"
ok 'folder of mosaics: the run succeeds' same $status 0
ok 'folder of mosaics: three tasks and the versions' same "$(ran "$log")" 4
results_of() {
  local n
  for n in "${names[@]}"; do
    is_png "$launch/results/aip/$n.png" && filled "$launch/results/reports/$n.aip.json" &&
      { [ -s "$launch/results/aip/$n.ome.zarr/zarr.json" ] || [ -s "$launch/results/aip/$n.ome.zarr/.zattrs" ]; } || return 1
  done
}
ok 'each mosaic has an OME-Zarr, a PNG and a record' results_of
ok 'report, trace, timeline and DAG are there' filled "$info"/{report.html,trace.tsv,timeline.html,dag.mmd}
version=$("$REAL_AIP" --version | sed 's/^aip //; s/[][().+*]/\\&/g')
ok 'versions: aip, strata and nextflow' has <(tr '\n' ' ' <"$info/versions.yml") "strata: \"[0-9.]+\".*nextflow: \"[0-9.]+\".*aip: \"$version\""
script=$(grep -l "/${names[0]}.ome.zarr" "$launch"/work/*/*/.command.sh | head -n 1)
ok 'threads, memory and GPU are passed on' has "$script" '--use_gpu --threads [12] --mem 200MiB'
direct() {
  "$REAL_AIP" "${mosaics[0]}" "$tmp/direct.ome.zarr" --png "$tmp/direct.png" --n_levels 2 --no-use_gpu --threads 1 &&
    cmp "$tmp/direct.png" "$launch/results/aip/${names[0]}.png" &&
    diff -r "$tmp/direct.ome.zarr" "$launch/results/aip/${names[0]}.ome.zarr"
}
ok 'the same bytes as from aip alone' direct

# --- Caching -------------------------------------------------------------------

nf resume run "$main" -params-file "$tmp/params.yml" -resume --aip_cpus 1 --mem_fraction 0.6 --use_gpu false
ok '-resume with other resources executes nothing' same "$status $(ran "$log") $(cached "$log")" '0 0 4'
chunk=$(find "${mosaics[1]}/" -type f -size +0 ! -name '*.json' ! -name '.z*' | sort | head -n 1)
touch -d '2020-01-01' "$chunk"
nf changed run "$main" -params-file "$tmp/params.yml" -resume
ok '-resume after one chunk changed executes that mosaic only' same "$status $(ran "$log") $(cached "$log")" '0 1 3'
ok 'it is the changed one' has "$log" "Submitted process > AIP \(${names[1]}\)"
nf levels run "$main" -params-file "$tmp/params.yml" -resume --n_levels 1
ok '-resume with another n_levels executes all again' same "$status $(ran "$log") $(cached "$log")" '0 3 1'

# --- Inside nextflow/, the test profile, other writers' mosaics -----------------

# A copy, so that nothing is left in the source tree.
mkdir -p "$tmp/clone/build"
cp -rL "$root/nextflow" "$tmp/clone/"
mkdir -p "$tmp/clone/nextflow/bin"
cp "$REAL_AIP" "$tmp/clone/nextflow/bin/aip"
cp -r "$tmp/foreign" "$tmp/clone/build/test-data"
dir=$tmp/clone/nextflow nf inside run main.nf -profile test,local --publish_mode link --zarr_format 3 --max_cpus 1 --max_memory '200 MB'
ok 'inside nextflow/, -profile test, mosaics of other programs' same "$status" 0
inside() {
  local n
  for n in "${foreign[@]}"; do
    is_png "$tmp/clone/nextflow/results/aip/$n.png" && filled "$tmp/clone/nextflow/results/aip/$n.ome.zarr/zarr.json" || return 1
  done
}
ok 'each has its results, as OME-Zarr 0.5' inside
ok 'publish_mode link makes hard links' same "$(stat -c %h "$tmp/clone/nextflow/results/aip/${foreign[0]}.png")" 2
ok 'max_memory bounds what a task is given' has <(cat "$tmp"/clone/nextflow/work/*/*/.command.sh) '--threads 1 --mem 150MiB'
touch -d '2020-01-01' "$tmp/clone/nextflow/bin/aip"
dir=$tmp/clone/nextflow nf rebuilt run main.nf -profile test,local --publish_mode link --zarr_format 3 -resume
ok '-resume after the program was built again executes all' same "$status $(ran "$log") $(cached "$log")" '0 5 1'
nf single run "$main" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir single -stub-run
ok 'one OME-Zarr as input, -stub-run' same "$status $(ls "$launch/single/aip")" "0 $(printf 'm_u8_v3raw.ome.zarr\nm_u8_v3raw.png')"

# --- Failures ------------------------------------------------------------------

mkdir -p "$tmp/six"
for m in "${mosaics[@]}" "$tmp/foreign"/m_{i16_v3lz4,u16_v3shard,u8_v3raw}.ome.zarr; do ln -s "$m" "$tmp/six/"; done
six=(--input "$tmp/six" --input_pattern '*.ome.zarr' --n_levels 1 --aip_cpus 1 --aip_memory '100 MB' --outdir faults)
faults
plan m_u8_v3raw 'always 3'
plan m_u16_v3shard 1 kill
plan m_i16_v3lz4 4
plan "${names[0]}" 104 143
plan "${names[1]}" 'always 130'
nf skip run "$main" "${faulty[@]}" "${six[@]}" --allow_missing_slices
missing=$launch/faults/pipeline_info/missing_slices.tsv
ok 'allow_missing_slices: the run succeeds' same $status 0
ok 'exit 3 is tried once, skipped and reported' same "$(attempts m_u8_v3raw) $(count 'm_u8_v3raw: exit 3: aip: m_u8_v3raw: planned fault 3' "$log")" '1 1'
ok 'a slice that keeps failing is skipped after max_retries' same "$(attempts "${names[1]}") $(count "${names[1]}: exit 130:" "$log")" '3 1'
ok 'the table of missing slices names both and no other' same "$(cut -f 2,3 "$missing" | tr '\t\n' ':;')" "slice:exit;m_u8_v3raw:3;${names[1]}:130;"
ok 'exit 1 and a kill (137) are tried again' same "$(attempts m_u16_v3shard)" 3
ok 'a retry gets more memory' has <(attempt m_u16_v3shard 3) '--mem 225MiB'
ok 'exit 104 and 143 are tried again' same "$(attempts "${names[0]}")" 3
ok 'exit 4: first with the GPU' has <(attempt m_i16_v3lz4 1) ' --use_gpu '
ok 'exit 4: then without it' has <(attempt m_i16_v3lz4 2) ' --no-use_gpu '
ok 'exit 4: twice in all' same "$(attempts m_i16_v3lz4)" 2
ok 'what did not fail is there' is_png "$launch/faults/aip/m_u16_v3shard.png"
ok 'what failed left nothing' fails ls "$launch/faults/aip/m_u8_v3raw.png"
faults
plan m_u8_v3raw 'always 3'
nf skip-resume run "$main" "${faulty[@]}" "${six[@]}" --allow_missing_slices -resume
ok '-resume runs the missing ones only, also after retries' same "$status $(ran "$log") $(cached "$log")" '0 2 5'

faults
plan m_u8_v3raw 'always 3'
nf stop run "$main" "${faulty[@]}" "${six[@]}" -resume
ok 'exit 3 stops the run' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 1'
ok 'and the message says which slice and why' has "$log" 'm_u8_v3raw: planned fault 3'
ok 'no stale table of missing slices' fails ls "$missing"
one=(--input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir one)
faults
plan m_u8_v3raw 'always 2'
nf usage run "$main" "${faulty[@]}" "${one[@]}" --allow_missing_slices
ok 'exit 2 stops the run at once' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 1'
faults
plan m_u8_v3raw 'always 1'
nf exhausted run "$main" "${faulty[@]}" "${one[@]}" --max_retries 1
ok 'max_retries is obeyed' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 2'
faults
plan m_u8_v3raw 'always 4'
nf required run "$main" "${faulty[@]}" "${one[@]}" --require_gpu --allow_missing_slices
ok 'exit 4 with require_gpu stops the run' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 1'
ok 'require_gpu is passed on' has <(attempt m_u8_v3raw 1) ' --use_gpu --require_gpu '
faults
plan m_u8_v3raw 4 'always 4'
nf twice run "$main" "${faulty[@]}" "${one[@]}"
ok 'exit 4 without the GPU stops the run' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 2'
# A mosaic that is really broken, and the program's own words for it.
cp -r "${mosaics[0]}" "$tmp/broken.ome.zarr"
chunk=$(find "$tmp/broken.ome.zarr/" -type f -size +1k ! -name '*.json' ! -name '.z*' | sort | head -n 1)
truncate -s 100 "$chunk"
nf none run "$main" --input "$tmp/broken.ome.zarr" --outdir none --allow_missing_slices
ok 'when every slice is missing the run fails' same $((status != 0)) 1
ok 'and says so' has "$log" "no slice is left: all 1 failed, the first with: aip: .*broken.ome.zarr.*${chunk##*.ome.zarr/}"
ok 'and the table has the reason' has "$launch/none/pipeline_info/missing_slices.tsv" "^AIP.broken.3.aip: .*broken.ome.zarr"

# Killed in the middle: two slices done, then Nextflow dies while the third runs.
faults
plan "${names[2]}" 'sleep 600'
setsid bash -c "cd '$launch' && exec '$root/scripts/nextflow.sh' \"\$@\"" _ \
  run "$main" "${faulty[@]}" --input "$tmp/phantom" --outdir killed --n_levels 0 --aip_cpus 1 >"$tmp/killed.log" 2>&1 &
victim=$!
for _ in $(seq 300); do
  [ "$(find "$launch/killed/aip" -name '*.png' 2>/dev/null | wc -l)" = 2 ] && [ -s "$FAULTS/${names[2]}.log" ] && break
  sleep 0.2
done
sleep 3 # Nextflow notes a finished task a moment after it has published its files
kill -9 -- "-$victim"
wait "$victim" 2>/dev/null
faults
nf after-kill run "$main" "${faulty[@]}" --input "$tmp/phantom" --outdir killed --n_levels 0 --aip_cpus 1 -resume
ok 'Nextflow killed: -resume runs what was not done' same "$status $(ran "$log") $(cached "$log")" '0 2 2'

# --- Containers ------------------------------------------------------------------

# apptainer itself is played by a script that runs the command with the image's
# programs first on the PATH: what is checked is what Nextflow asks of it.
mkdir -p "$tmp/image/bin" "$tmp/fake"
cat >"$tmp/image/bin/aip" <<SH
#!/bin/sh
[ "\$1" = --version ] && { echo 'aip 9.9-image'; exit; }
exec '$REAL_AIP' "\$@"
SH
cat >"$tmp/fake/apptainer" <<SH
#!/bin/bash
echo "gpu=\${APPTAINERENV_CUDA_VISIBLE_DEVICES:-} \$*" >>'$tmp/apptainer.log'
while [ "\$1" != '$tmp/launch/image.sif' ]; do shift; done
shift
PATH='$tmp/image/bin':/usr/local/bin:/usr/bin:/bin exec "\$@"
SH
chmod +x "$tmp/image/bin/aip" "$tmp/fake/apptainer"
: >"$launch/image.sif"
container=(--input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir container --container image.sif)
CUDA_VISIBLE_DEVICES=7 PATH=$tmp/fake:$PATH nf container run "$main" "${container[@]}"
ok 'container: the run succeeds' same "$status" 0
ok 'container: its programs are taken, not those of nextflow/bin' has "$launch/container/pipeline_info/versions.yml" 'aip: "9.9-image"'
ok 'container: with the GPU, for the stage only' same "$(count '^gpu=7 exec .*--nv ' "$tmp/apptainer.log") $(count '^gpu=7 exec ' "$tmp/apptainer.log")" '1 2'
nf no-image run "$main" "${container[@]}" --container gone.sif
ok 'container: an image that is not there' same "$status $(count "parameter container: no such image: $launch/gone.sif" "$log")" '2 1'

# --- The launcher ------------------------------------------------------------------

mkdir "$tmp/path" "$tmp/bare"
# shellcheck disable=SC2016
onpath() { printf '#!/bin/sh\n[ "$1" = -v ] && { echo "nextflow version %s.1"; exit; }\necho "own $*"\n' "$1" >"$tmp/path/nextflow"; chmod +x "$tmp/path/nextflow"; }
launcher() { STRATA_NEXTFLOW_DIR=$tmp/launcher PATH=$tmp/path:$PATH "$root/scripts/nextflow.sh" info; }
mkdir "$tmp/launcher"
ln -s "$root/build/nextflow/lib" "$tmp/launcher/lib"
onpath 25.04
ok 'nextflow on the PATH is used' same "$(launcher 2>&1)" 'own info'
onpath 23.10
touch -d '2020-01-01' "$tmp/path/nextflow"
ok 'but not an older one' has <(launcher 2>&1) 'nextflow on the PATH \(23.10.1\) is older than 24.10'
for tool in bash dirname sed sort head tail stat mkdir id env cat; do ln -s "$(type -P $tool)" "$tmp/bare/$tool"; done
ok 'without Java one line says what to install' same "$(JAVA_HOME='' PATH=$tmp/bare "$root/scripts/nextflow.sh" -v 2>&1)" \
  'java is missing: install it first (the Debian package is called default-jre-headless)'
ok 'and make demo the way without' same "$(JAVA_HOME='' PATH=$tmp/bare "$root/scripts/demo.sh" 2>&1)" \
  'java is missing: install it first (the Debian package is called default-jre-headless); or do without: make demo ENGINE=none'

# --- Forks ---------------------------------------------------------------------

# most: the largest number of tasks that were inside aip at one time.
most() {
  grep -hoE '^(start|end) [0-9.]+' "$FAULTS"/*.log | sort -k 2,2n |
    awk '{ n += $1 == "start" ? 1 : -1; if (n > m) m = n } END { print m }'
}
sleepers() { faults; local m; for m in "$tmp"/six/*; do plan "$(basename "$m" .ome.zarr)" 'sleep 2'; done; }
export NXF_OPTS=-XX:ActiveProcessorCount=12
sleepers
nf forks run "$main" "${faulty[@]}" "${six[@]}" --aip_max_forks 2
ok 'aip_max_forks bounds the tasks at once' same "$status $(most)" '0 2'
sleepers
nf noforks run "$main" "${faulty[@]}" "${six[@]}" --aip_max_forks 2 --use_gpu false
ok 'but not without the GPU' same "$status $(($(most) > 2))" '0 1'
unset NXF_OPTS

# --- Parameters ----------------------------------------------------------------

launch=$tmp/empty
mkdir "$launch"
dir=$launch nf wrong run "$main" --inptu x --n_levels many --mem_fraction 2 --publish_mode cpoy --aip_memory lots --outdir other
ok 'wrong parameters: exit 2' same $status 2
ok 'an unknown one, with the nearest' has "$log" 'parameter inptu: unknown, did you mean input\?$'
ok 'a wrong type' has "$log" "parameter n_levels: is 'many', should be a whole number from 0 to 30$"
ok 'out of range' has "$log" 'parameter mem_fraction: is 2, should be from 0.1 to 0.95$'
ok 'not one of the values' has "$log" "parameter publish_mode: is 'cpoy', should be one of copy, link, move, symlink, rellink$"
ok 'not of the form' has "$log" "parameter aip_memory: is 'lots', should look like '2 GB'$"
ok 'a missing one' has "$log" 'parameter input: is missing: '
ok 'nothing was run' same "$(find "$launch/work" -name '.command.*' 2>/dev/null)" ''
dir=$launch nf absent run "$main" --input "$tmp/nowhere"
ok 'input that is not there' same "$status $(count "parameter input: no such file or folder: $tmp/nowhere" "$log")" '2 1'
dir=$launch nf nomatch run "$main" --input "$tmp/foreign"
ok 'input without mosaics' same "$status $(count "parameter input: no mosaic_grid.* in $tmp/foreign" "$log")" '2 1'
launch=$tmp/help
mkdir "$launch"
dir=$launch nf help run "$main" --help
ok '--help lists the parameters and leaves no results' same "$status $(count '^  --' "$log") $([ -e "$launch/results" ] && echo left)" \
  "0 $(sed -n '/^params/,/^}/p' "$root/nextflow/nextflow.config" | grep -c ' = ') "

# --- Configuration -------------------------------------------------------------

for profile in standard local slurm bmrc apptainer test test,slurm bmrc,apptainer; do
  dir=$launch nf config config "$root/nextflow" -profile $profile
  ok "configuration of $profile without a warning" same "$status $(count 'WARN|ERROR' "$log")" '0 0'
done

total
