#!/usr/bin/env bash
# What concerns no stage in particular, seen with aip alone: results, caching, profiles, containers, parameters, the launcher.
# A part of run.sh. KEEP=1 leaves the folder of the runs.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

info=$launch/results/pipeline_info

# --- Results -------------------------------------------------------------------

cat >"$tmp/params.yml" <<YML
input: $tmp/phantom
skip: [resample, focal, stitch, crop, stack, preview, qc-report]
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
ok 'versions: aip, strata and nextflow' has <(tr '\n' ' ' <"$info/versions.yml") "strata: \"[0-9.]+\".*nextflow: \"[0-9.]+\".*aip: \"$version\""
script=$(grep -l "^aip 'input/${names[0]}.ome.zarr'" "$launch"/work/*/*/.command.sh | xargs grep -l -- '--n_levels 2' | head -n 1)
ok 'threads and memory are passed on' has "$script" ' --threads [12] --mem 200MiB'
ok 'a GPU is asked for' has "$script" ' --use_gpu '
direct() {
  "$REAL_BIN/aip" "${mosaics[0]}" "$tmp/direct.ome.zarr" --png "$tmp/direct.png" --n_levels 2 --no-use_gpu --threads 1 &&
    cmp "$tmp/direct.png" "$launch/results/aip/${names[0]}.png" &&
    diff -r "$tmp/direct.ome.zarr" "$launch/results/aip/${names[0]}.ome.zarr"
}
ok 'the same bytes as from aip alone' direct

# sound IMAGE...: each is valid.
sound() { local image; for image; do "$REAL_BIN/zarr-tool" validate "$image" -q || return 1; done; }

# --- Caching -------------------------------------------------------------------

warm resume run "$main" -params-file "$tmp/params.yml" -resume --aip_cpus 1 --mem_fraction 0.6 --use_gpu false
ok '-resume with other resources executes nothing' same "$status $(ran "$log") $(cached "$log")" '0 0 4'
chunk=$(find "${mosaics[1]}/" -type f -size +0 ! -name '*.json' ! -name '.z*' | sort | head -n 1)
touch -d '2020-01-01' "$chunk"
warm changed run "$main" -params-file "$tmp/params.yml" -resume
ok '-resume after one chunk changed executes that mosaic only' same "$status $(ran "$log") $(cached "$log")" '0 1 3'
ok 'it is the changed one' has "$log" "Submitted process > STRATA:AIP \(${names[1]}\)"
warm levels run "$main" -params-file "$tmp/params.yml" -resume --n_levels 1
ok '-resume with another n_levels executes all again' same "$status $(ran "$log") $(cached "$log")" '0 3 1'

# --- Running again, and side by side (docs/hpc.md) --------------------------------

# What runs again follows from the inputs, so that stubs do.
again=("${chain[@]}" --outdir again -stub-run)
warm again run "$main" "${again[@]}"
all=$(ran "$log")
swapped=$tmp/block/mosaic_grid_3d_z01.ome.zarr
mv "$swapped" "$tmp/z01"
warm removed run "$main" "${again[@]}" -resume
ok 'a slice was removed: the volume is made of the others, and its results stay' same "$status $(last "$log" | xargs) $(tasks "$log") $(images "$launch/again/slices")" \
  '0 slice_z01: INPUT: not in the input; shifts_xy.csv names it 1 AIP 1 PREVIEW 1 REPORT 1 STACK 4'
cp -r "$tmp/block/mosaic_grid_3d_z02.ome.zarr" "$swapped"
warm replaced run "$main" "${again[@]}" -resume
ok 'a slice was replaced: -resume makes it, and what is made of all' same "$status $(tasks "$log")" '0 3 AIP 1 CROP 1 FOCAL 2 PREVIEW 1 REPORT 1 RESAMPLE 1 STACK 1 STITCH'
rm -r "$swapped"
mv "$tmp/z01" "$swapped"
warm restored run "$main" "${again[@]}" -resume
ok 'it is back: nothing is made again' same "$status $(ran "$log") $(cached "$log")" "0 0 $all"
sed 's/^crop_depth: .*/crop_depth: 150/' "$tmp/chain.yml" >"$tmp/edited.yml"
warm edited run "$main" -params-file "$tmp/edited.yml" "${again[@]:2}" -resume
ok 'a parameter was edited: -resume runs its stage and those after it' same "$status $(tasks "$log")" '0 5 AIP 4 CROP 5 PREVIEW 1 REPORT 1 STACK'
warm unedited run "$main" "${again[@]}" -resume
ok 'and with the one before: nothing' same "$status $(ran "$log") $(cached "$log")" "0 0 $all"
# Two engines at once, in one folder.
mkdir "$tmp/side"
side() { dir=$tmp/side nf "side-$1" run "$main" "${chain[@]}" --outdir "$1" -stub-run "${@:2}"; echo "$status $(ran "$log") $(cached "$log")"; }
side b --crop_depth 150 >"$tmp/side-b" &
side a >"$tmp/side-a"
wait $!
ok 'two runs at once in one folder, each with an outdir' same "$(cat "$tmp"/side-[ab] | xargs)" "0 $all 0 0 $all 0"
# The session of a run is the one to resume: the last in the folder may be the other's.
session() { awk -F '\t' -v a="--outdir $1 " 'index($7, a) { id = $6 } END { print id }' "$tmp/side/.nextflow/history"; }
ok 'and each resumes by its session' same "$(side a -resume "$(session a)"; side b --crop_depth 150 -resume "$(session b)")" "0 0 $all
0 0 $all"

# Namespaces mount without root, where users may make them.
if unshare -rm true 2>/dev/null; then
  # shellcheck disable=SC2016
  unshare -rm bash -c 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && ! touch "$1/x" 2>/dev/null && cd "$2" && shift 2 && exec "$@"' _ "$tmp/block" "$launch" \
    "$root/scripts/nextflow.sh" run "$main" "${chain[@]}" --outdir read-only --skip focal,preview,qc-report,aip >"$tmp/read-only.log" 2>&1
  ok 'an input folder that is mounted read-only' same "$? $(images "$launch/read-only/slices") $(images "$launch/read-only/volume")" '0 4 1'
  # full: the work folder is a disk of 4 MB, then of 400.
  cat >"$tmp/full" <<'SH'
mkdir "$1" && mount -t tmpfs -o size=4m full "$1" && cd "$2" && shift 2 || exit
"$@"
echo "status $?"
mount -o remount,size=400m "$OLDPWD/full-work" || exit
"$@" -resume
SH
  (cd "$tmp" && unshare -rm bash "$tmp/full" "$tmp/full-work" "$launch" "$root/scripts/nextflow.sh" run "$main" "${chain[@]}" --outdir full-disk -work-dir "$tmp/full-work" \
    --skip focal,stack,preview,qc-report,aip --stitch_estimate false --max_retries 0) >"$tmp/full-disk.log" 2>&1
  status=$?
  first=$tmp/full-first.log
  sed '/^status /q' "$tmp/full-disk.log" >"$first"
  ok 'a full work folder stops the run, which says so' same "$(tail -n 1 "$first") $(grep -ciE '^ *(.*: )?no space left on device' "$first" | sed 's/[1-9][0-9]*/some/')" 'status 1 some'
  ok 'with more room, -resume goes on' has <(echo "$status $(images "$launch/full-disk/slices") $(sed '1,/^status /d' "$tmp/full-disk.log" | grep -c 'Cached process')") '^0 4 [1-9]'
  ok 'and the slices are whole' sound "$launch"/full-disk/slices/*.ome.zarr
else
  echo 'no user namespaces here: read-only inputs and a full disk were not tried'
fi

# --- Memory for chunks -----------------------------------------------------------

# One chunk of 32 × 512 × 512 voxels in Zarr 3 and in Zarr 2, each 128 MiB of buffers for a CPU; and a shard whose chunks are a sixteenth of it.
# shellcheck disable=SC2054 # commas are ours
large=(--slices 1 --tiles 1,1 --tile 32,512,512 --dtype uint16 -q)
mkdir "$tmp/large"
while read -r name layout; do
  # shellcheck disable=SC2086 # words are meant
  "$root/bin/phantom" "$tmp/made-$name" "${large[@]}" $layout && mv "$tmp/made-$name"/*.ome.zarr "$tmp/large/$name.ome.zarr" || exit 1
done <<'END'
m_v3 --zarr_format 3
m_v2 --zarr_format 2
m_shard --chunks 32,128,128 --shard 32,512,512
END
memory=("${aip_only[@]}" --input "$tmp/large" --input_pattern 'm_*' --n_levels 0 --aip_cpus 1)
# granted NAME PARAMETERS...: the status of a run, and the --mem of each of its tasks.
granted() { faults; warm "$1" run "$main" "${faulty[@]}" "${memory[@]}" --outdir "$1" "${@:2}"; echo "$status"; for n in m_shard m_v2 m_v3; do attempt "$n" 1 | sed -n "s/.* --mem \([^ ]*\).*/$n \1/p"; done; }
ok 'a task has the memory that its CPUs need for the chunks of its input, if aip_memory is less' same "$(granted large --aip_memory '100 MB' | xargs)" '0 m_shard 75MiB m_v2 128MiB m_v3 128MiB'
warm large-resume run "$main" "${faulty[@]}" "${memory[@]}" --outdir large -resume --aip_cpus 2 --aip_memory '200 MB' --mem_fraction 0.5
ok '-resume with other memory and CPUs executes nothing' same "$status $(ran "$log") $(cached "$log")" '0 0 4'
ok 'aip_memory if that is more' same "$(granted large-more --aip_memory '400 MB' | xargs)" '0 m_shard 300MiB m_v2 300MiB m_v3 300MiB'
ok 'and max_memory bounds both' same "$(granted large-bound --aip_memory '100 MB' --max_memory '120 MB' | xargs)" '0 m_shard 75MiB m_v2 90MiB m_v3 90MiB'

# --- Inside nextflow/, the test profile, other writers' mosaics -----------------

# A copy, so that nothing is left in the source tree.
clone="$tmp/clone of 'mine' & yours"
mkdir -p "$clone/build"
cp -rL "$root/nextflow" "$clone/"
mkdir -p "$clone/nextflow/bin"
cp "$REAL_BIN/aip" "$clone/nextflow/bin/aip"
cp -r "$tmp/foreign" "$clone/build/test-data"
dir=$clone/nextflow nf inside run main.nf -profile test,local --publish_mode link --zarr_format 3 --max_cpus 1 --max_memory '200 MB'
ok 'inside nextflow/, -profile test, mosaics of other programs' same "$status" 0
inside() {
  local n
  for n in "${foreign[@]}"; do
    is_png "$clone/nextflow/results/aip/$n.png" && filled "$clone/nextflow/results/aip/$n.ome.zarr/zarr.json" || return 1
  done
}
ok 'each has its results, as OME-Zarr 0.5' inside
ok 'publish_mode link makes hard links' same "$(stat -c %h "$clone/nextflow/results/aip/${foreign[0]}.png")" 2
ok 'max_memory bounds what a task is given' has <(cat "$clone"/nextflow/work/*/*/.command.sh) '--threads 1 --mem 150MiB'
# A program of the same bytes is the same program, whenever it was made.
made() { "${MAKE:-make}" -s --no-print-directory -C "$root" build links LINKS="$tmp/made" >/dev/null && stat -c '%n %y %i' "$root"/{bin,nextflow/bin}/* "$tmp"/made/*; }
first=$(made)
ok 'make makes the programs and the links' has <(echo "$first") '/nextflow/bin/aip '
ok 'make again writes none of them anew' same "$(made)" "$first"
touch -d '2020-01-01' "$clone/nextflow/bin/aip"
dir=$clone/nextflow nf rebuilt run main.nf -profile test,local --publish_mode link --zarr_format 3 -resume
ok '-resume with a program of another date executes nothing' same "$status $(tasks "$log") $(cached "$log")" '0  22'
(cd "$root" && CGO_ENABLED=0 ${GO:-go} build -buildvcs=false -ldflags '-s -w -X strata/pkg/cli/release.version=99.0' -o "$clone/nextflow/bin/aip" ./cmd/aip) || exit 1
dir=$clone/nextflow nf upgraded run main.nf -profile test,local --publish_mode link --zarr_format 3 -resume
ok '-resume with another version of a program executes what it does' same "$status $(tasks "$log") $(cached "$log")" '0 5 AIP 1 REPORT 1 VERSIONS 15'
# The same from the root of the tree: its bin/ has the programs.
cp -P "$root"/{main.nf,nextflow.config,lib} "$clone/"
mv "$clone/nextflow/bin" "$clone/bin"
dir=$clone nf from-root run . -profile test,local "${aip_only[@]}"
ok 'nextflow run . in the root' same "$status $(tasks "$log") $(names_in "$clone/results/aip" | wc -w)" '0 5 AIP 1 VERSIONS 10'
ok 'the programs are those of bin/' has <(cat "$clone"/results/pipeline_info/versions.yml) 'aip: "99.0"'
printf 'input: %s\noutdir: from-root\n' "$tmp/phantom" >"$tmp/root.yml"
PATH=$REAL_BIN:$PATH dir=$clone nf main-nf run main.nf -params-file "$tmp/root.yml" -stub-run
ok 'nextflow run main.nf -params-file there: the whole chain' same "$status $(tasks "$log" | wc -w) $(last "$log" | xargs)" '0 20 report from-root/qc-report.html'
ok 'what MultiQC reads has a folder of its own' same "$(names_in "$clone/from-root/multiqc")" strata_mqc.json
dir=$clone nf beside run nextflow/main.nf -params-file "$tmp/root.yml" -stub-run
ok 'and nextflow/main.nf, whose settings are then read twice' same "$status $(tasks "$log" | wc -w)" '0 20'
warm single run "$main" "${aip_only[@]}" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir single -stub-run
ok 'one OME-Zarr as input, -stub-run' same "$status $(ls "$launch/single/aip")" "0 $(printf 'm_u8_v3raw.ome.zarr\nm_u8_v3raw.png')"

odd="$tmp/it's \"a\" [1] & ;"
mkdir "$odd"
cp -r "$tmp/foreign/m_u8_v3raw.ome.zarr" "$odd/"
warm odd run "$main" "${aip_only[@]}" --input "$odd" --input_pattern 'm_*' --outdir "$odd/out" -work-dir "$odd/work"
ok 'spaces, quotes and brackets in the names of folders' same "$status $(names_in "$odd/out/aip")" '0 m_u8_v3raw.ome.zarr m_u8_v3raw.png'

# --- Containers ------------------------------------------------------------------

# apptainer itself is played by a script that runs the command with the image's
# programs first on the PATH: what is checked is what Nextflow asks of it.
mkdir -p "$tmp/image/bin" "$tmp/fake"
cat >"$tmp/image/bin/aip" <<SH
#!/bin/sh
[ "\$1" = --version ] && { echo 'aip 9.9-image'; exit; }
exec '$REAL_BIN/aip' "\$@"
SH
cat >"$tmp/fake/apptainer" <<SH
#!/bin/bash
echo "leases=\${APPTAINERENV_STRATA_LEASE_DIR:-\${SINGULARITYENV_STRATA_LEASE_DIR:-}} gpu=\${APPTAINERENV_CUDA_VISIBLE_DEVICES:-\${SINGULARITYENV_CUDA_VISIBLE_DEVICES:-}} \${0##*/} \$*" >>'$tmp/apptainer.log'
while [ "\$1" != '$tmp/launch/image.sif' ]; do shift; done
shift
PATH='$tmp/image/bin':/usr/local/bin:/usr/bin:/bin exec "\$@"
SH
chmod +x "$tmp/image/bin/aip" "$tmp/fake/apptainer"
: >"$launch/image.sif"
container=("${aip_only[@]}" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir container --container image.sif)
CUDA_VISIBLE_DEVICES=7 PATH=$tmp/fake:$PATH nf container run "$main" "${container[@]}"
ok 'container: the run succeeds' same "$status" 0
ok 'container: its programs are taken, not those of nextflow/bin' has "$launch/container/pipeline_info/versions.yml" 'aip: "9.9-image"'
ok 'container: with the GPU, for the stage only' same "$(count '^leases= gpu=7 apptainer exec .*--nv ' "$tmp/apptainer.log") $(count '^leases= gpu=7 apptainer exec ' "$tmp/apptainer.log")" '1 2'
echo other >"$launch/image.sif"
PATH=$tmp/fake:$PATH nf container-other run "$main" "${container[@]}" -resume
ok 'container: another image of that name executes its programs again' same "$status $(tasks "$log") $(cached "$log")" '0 1 AIP 1'
cp "$tmp/fake/apptainer" "$tmp/fake/singularity"
: >"$tmp/apptainer.log"
CUDA_VISIBLE_DEVICES=7 STRATA_LEASE_DIR=/leases PATH=$tmp/fake:$PATH nf singularity run "$main" "${container[@]}" -profile local,singularity --container_options='--bind /mnt' --use_gpu false --n_levels 1
ok 'container: by Singularity, with more options; without a GPU no --nv' same "$status $(count '^leases=/leases gpu=7 singularity exec .*--bind /mnt ' "$tmp/apptainer.log") $(count ' --nv ' "$tmp/apptainer.log")" '0 2 0'
# Docker's names are no files; conda's programs are looked for by no one else.
cat >"$tmp/fake/docker" <<SH
#!/bin/bash
echo "\${0##*/} \$*" >>'$tmp/oci.log'
[ "\$1" = run ] || exit 0
while [ "\$1" != my/strata:1 ]; do shift; done
shift
PATH='$tmp/image/bin':/usr/local/bin:/usr/bin:/bin exec "\$@"
SH
chmod +x "$tmp/fake/docker"
cp "$tmp/fake/docker" "$tmp/fake/podman"
container[-1]=my/strata:1
for engine in docker podman; do
  PATH=$tmp/fake:$PATH nf $engine run "$main" "${container[@]}" -profile local,$engine --outdir $engine
  ok "container: by $engine" same "$status $(sed -n 's/.* aip: *//p' "$launch/$engine/pipeline_info/versions.yml")" '0 "9.9-image"'
done
ok 'docker: GPUs for the stage only, and results of the user' same "$(count "^docker run .*-u .*:.* --gpus all " "$tmp/oci.log") $(count '^podman run .*--device nvidia.com/gpu=all ' "$tmp/oci.log") $(count '(--gpus|nvidia)' "$tmp/oci.log")" '1 1 2'
container[-1]=image.sif
warm work-dir run "$main" "${container[@]}" -work-dir "$tmp/a b"
ok 'container: a work folder in which Nextflow would lose its way' same "$status $(count "^ERROR ~ $tmp/a b: Nextflow cannot work in this folder with a container" "$log")" '2 1'
warm no-image run "$main" "${container[@]}" --container gone.sif
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
for tool in bash dirname readlink sed sort head tail stat mkdir id env cat; do ln -s "$(type -P $tool)" "$tmp/bare/$tool"; done
ok 'without Java one line says what to install' same "$(JAVA_HOME='' PATH=$tmp/bare "$root/scripts/nextflow.sh" -v 2>&1)" \
  'java is missing: install it first (the Debian package is called default-jre-headless)'
ok 'and make demo the way without' same "$(JAVA_HOME='' PATH=$tmp/bare "$root/scripts/demo.sh" 2>&1)" \
  'java is missing: install it first (the Debian package is called default-jre-headless); or do without: make demo ENGINE=none'

# --- Stages left out -----------------------------------------------------------

# order SKIP: the processes of a stub run of one mosaic.
order() { warm stub run "$main" "${chain[@]}" --input "${mosaics[0]}" --outdir stub -stub-run ${1:+--skip "$1"}; [ "$status" = 0 ] && tasks "$log"; }
ok '-stub-run: all of it' same "$(order '')" '3 AIP 1 CROP 1 ESTIMATE 1 FOCAL 2 PREVIEW 1 REPORT 1 RESAMPLE 1 STACK 1 STITCH 1 VERSIONS'
while IFS='|' read -r skip left; do
  ok "-stub-run: without $skip" same "$(order "$skip")" "$left 1 VERSIONS"
done <<'END'
aip|1 CROP 1 ESTIMATE 1 FOCAL 2 PREVIEW 1 REPORT 1 RESAMPLE 1 STACK 1 STITCH
resample|3 AIP 1 CROP 1 ESTIMATE 1 FOCAL 2 PREVIEW 1 REPORT 1 STACK 1 STITCH
focal|3 AIP 1 CROP 1 ESTIMATE 2 PREVIEW 1 REPORT 1 RESAMPLE 1 STACK 1 STITCH
stitch|2 AIP 1 CROP 1 FOCAL 2 PREVIEW 1 REPORT 1 RESAMPLE 1 STACK
crop|3 AIP 1 ESTIMATE 1 FOCAL 2 PREVIEW 1 REPORT 1 RESAMPLE 1 STACK 1 STITCH
stack|2 AIP 1 CROP 1 ESTIMATE 1 FOCAL 1 PREVIEW 1 REPORT 1 RESAMPLE 1 STITCH
preview|3 AIP 1 CROP 1 ESTIMATE 1 FOCAL 1 REPORT 1 RESAMPLE 1 STACK 1 STITCH
qc_report|3 AIP 1 CROP 1 ESTIMATE 1 FOCAL 2 PREVIEW 1 RESAMPLE 1 STACK 1 STITCH
resample, stitch|2 AIP 1 CROP 1 FOCAL 2 PREVIEW 1 REPORT 1 STACK
resample,focal,crop,stack|2 AIP 1 ESTIMATE 1 PREVIEW 1 REPORT 1 STITCH
END

# --- Parameters ----------------------------------------------------------------

warm wrong run "$main" -work-dir "$tmp/empty" --inptu x --n_levels many --mem_fraction 2 --publish_mode cpoy --aip_memory lots --outdir other
ok 'wrong parameters: exit 2' same $status 2
ok 'an unknown one, with the nearest' has "$log" 'parameter inptu: unknown, did you mean input\?$'
ok 'a wrong type' has "$log" "parameter n_levels: is 'many', should be a whole number from 0 to 30$"
ok 'out of range' has "$log" 'parameter mem_fraction: is 2, should be from 0.1 to 0.95$'
ok 'not one of the values' has "$log" "parameter publish_mode: is 'cpoy', should be one of copy, link, move, symlink, rellink$"
ok 'not of the form' has "$log" "parameter aip_memory: is 'lots', should look like '2 GB'$"
ok 'a missing one' has "$log" 'parameter input: is missing: '
ok 'nothing was run' same "$(find "$tmp/empty" -name '.command.*' 2>/dev/null)" ''
wrong() { warm wrong-inputs run "$main" "$@"; echo "$status"; sed -n 's/^ERROR ~ //p' "$log"; }
# A file whose values are text, as some engines hand them over from the command line; what that does not make right.
printf '%s: "%s"\n' input "$tmp/block" n_levels 1 mem_fraction 0.5 use_gpu false sync true >"$tmp/text.yml"
faults
warm text run "$main" -params-file "$tmp/text.yml" "${aip_only[@]}" "${faulty[@]}" --outdir text
ok 'numbers and switches that are text' same "$status $(attempt mosaic_grid_3d_z00 1 | grep -oE -- '--(n_levels|mem|sync|no-use_gpu|use_gpu)( [0-9A-Za-z]+)?' | grep -v mem | sort | xargs)" '0 --n_levels 1 --no-use_gpu --sync'
printf '%s: "%s"\n' input "$tmp/block" use_gpu off n_levels two >"$tmp/text.yml"
warm quotes run "$main" -params-file "$tmp/text.yml"
ok 'quotes that make text' has "$log" "parameter use_gpu: is 'off', should be true or false, without quotes in a file: quotes make text$"
ok 'text that is no number' has "$log" "parameter n_levels: is 'two', should be a whole number from 0 to 30$"
# Names are the same in a language that has digits of its own.
NXF_OPTS="$NXF_OPTS -Duser.language=fa -Duser.country=IR" nf locale run "$main" "${chain[@]}" --outdir locale -stub-run
ok 'in Persian, slices are called the same' same "$status $(names_in "$launch/locale/slices" | tr ' ' '\n' | grep zarr | xargs)" '0 slice_z00.ome.zarr slice_z01.ome.zarr slice_z02.ome.zarr slice_z03.ome.zarr'
mkdir "$tmp/dangling"
cp -r "$tmp/block/mosaic_grid_3d_z00.ome.zarr" "$tmp/dangling/"
ln -s /nowhere/z01 "$tmp/dangling/mosaic_grid_3d_z01.ome.zarr"
ok 'a link that leads nowhere' same "$(wrong --input "$tmp/dangling" "${aip_only[@]}" | xargs)" "2 $tmp/dangling/mosaic_grid_3d_z01.ome.zarr: is a link to /nowhere/z01, which is not there"
ok 'hard links to another file system' has <(wrong --input "$tmp/block" --publish_mode link --outdir "/dev/shm/strata-test.$$" | xargs) '^2 parameter publish_mode: link makes hard links, and /dev/shm/strata-test[.0-9]+ is on another file system than the work folder'
rm -rf "/dev/shm/strata-test.$$"
warm scratch run "$main" "${faulty[@]}" "${aip_only[@]}" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir scratch --scratch
ok '--scratch is the temporary folder of the node' same "$status $(attempt m_u8_v3raw 1 | grep -c " in=${TMPDIR:-/tmp}/nxf\.")" '0 1'
warm only run "$main" "${chain[@]}" --outdir only --only_slices 0,2-3 --stitch_estimate_slices 2 -stub-run
ok 'only_slices takes some' same "$status $(names_in "$launch/only/slices" | tr ' ' '\n' | grep zarr | xargs)" '0 slice_z00.ome.zarr slice_z02.ome.zarr slice_z03.ome.zarr'
ok 'stitch_estimate_slices says of which the estimate is' has "$log" 'ESTIMATE \(1 mosaics\)'
ok 'only_slices of none' has <(wrong --input "$tmp/block" --only_slices 7) 'parameter only_slices: none of slices 7 is there: there are 0, 1, 2, 3'
warm absent run "$main" --input "$tmp/nowhere"
ok 'input that is not there' same "$status $(count "parameter input: no such file or folder: $tmp/nowhere" "$log")" '2 1'
warm nomatch run "$main" --input "$tmp/foreign"
ok 'input without mosaics' same "$status $(count "parameter input: no mosaic_grid.* in $tmp/foreign" "$log")" '2 1'
ok 'a stage that is none' same "$(wrong --input "$tmp/block" --skip focal,steak | xargs)" \
  '2 parameter skip: there is no stage steak: the stages are aip, resample, focal, flatfield, stitch, beam-profile, crop, attenuation, normalize, assess, clean-shifts, common-space, interpolate, register, manual, exclude, stack, bias-field, preview, qc-report, align'
mkdir "$tmp/a\$b"
cp -r "$tmp/foreign/m_u8_v3raw.ome.zarr" "$tmp/a\$b/"
# shellcheck disable=SC2016 # the $ is meant
ok 'a name that Nextflow cannot take' same "$(wrong "${aip_only[@]}" --input "$tmp/a\$b" --input_pattern 'm_*' | xargs)" "2 $tmp/a\$b: Nextflow takes the \$ in this name for a variable: rename the folder"
ok 'a folder of a server' has <(wrong --input s3://bucket/mosaics) 'parameter input: s3://bucket/mosaics is no .zarr: .*: give the address of one image, or a text file'
ok 'a file that lists no addresses' same "$(wrong --input "$tmp/block/shifts_xy.csv" | cut -d , -f 1 | xargs)" "2 parameter input: $tmp/block/shifts_xy.csv is a file"
ok 'addresses without shifts' same "$(wrong --input s3://bucket/m_z01.ome.zarr | xargs)" \
  '2 parameter shifts: is not given, which images at addresses need; --stack_no_xy_shift does without shifts, --skip stack without a volume'
ok 'addresses straight to the stack' has <(wrong --input s3://bucket/m_z01.ome.zarr --skip resample,focal,stitch,crop) 'images at addresses do not go straight to the stack'
# shellcheck disable=SC2016 # the $ is meant
ok 'an address that a shell would read' has <(wrong --input 's3://bucket/$(id)/m_z01.ome.zarr') 'as %XX$'
mkdir "$tmp/slices"
for s in slice_z00 slice_z02_4um; do cp -r "$tmp/foreign/m_u8_v3raw.ome.zarr" "$tmp/slices/$s.ome.zarr"; done
ok 'input and slices' same "$(wrong --input "$tmp/block" --slices "$tmp/slices" | xargs)" '2 parameter slices: contradicts input: give one of them'
ok 'shifts that are not there' same "$(wrong --slices "$tmp/slices" | xargs)" \
  "2 parameter shifts: is not given and there is no $tmp/slices/shifts_xy.csv; --stack_no_xy_shift does without shifts, --skip stack without a volume"
cp -r "$tmp/slices/slice_z00.ome.zarr" "$tmp/slices/slice_z02.ome.zarr"
ok 'two slices of one number' same "$(wrong --slices "$tmp/slices" --stack_no_xy_shift | xargs)" \
  '2 parameter slices: slice_z02.ome.zarr and slice_z02_4um.ome.zarr are both slice 2'
ok 'a mosaic without a number' has <(wrong --input "$tmp/foreign" --input_pattern 'm_u8*.ome.zarr' --stack_no_xy_shift) \
  "m_u8_v3raw.ome.zarr has no slice number \(_z<NN>\) in its name"
launch=$tmp/help
mkdir "$launch"
dir=$launch nf help run "$main" --help
ok '--help lists the parameters and leaves no results' same "$status $(count '^  --' "$log") $([ -e "$launch/results" ] && echo left)" \
  "0 $(sed -n '/^params/,/^}/p' "$root/nextflow/nextflow.config" | grep -c ' = ') "

# --- Configuration -------------------------------------------------------------

# settings LOG FOLDER: without closures, which the engine does not show as they stand from everywhere, and where the folder of the project is.
settings() { sed -E "s#$2#.#g; s#\./\.\./build#./build#g; / = \{\$/,/^ *\}\$/{/ = \{\$/!d; s/\{\$//}; s/ = (\{.*\}|Script.*)\$/ = /" "$1"; }

total
