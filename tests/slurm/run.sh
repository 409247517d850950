#!/usr/bin/env bash
# The workflow through SLURM, on a cluster of this one machine: what jobs ask for,
# GPUs, failures, cancelled jobs, resume, containers, and what README.md tells to do on a
# cluster. Containers run by the apptainer of the PATH, else by its double
# (apptainer.sh); their image is build/strata.sif where that has the programs of bin/,
# else a small one that is made here. Needs root (munge, device files);
# without it one line says so and nothing is checked. KEEP=1 leaves the runs' folders. SHORT=1: the first run is all.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../nextflow/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../nextflow/lib.sh"
here=$root/tests/slurm
if [ "$(id -u)" != 0 ]; then
  rm -rf "$tmp"
  echo "test-slurm: skipped, a one-node SLURM needs root"
  exit 0
fi
site=
finish() {
  stop_engine
  "$here/down.sh" "$tmp/cluster"
  if [ -n "${KEEP:-}" ]; then echo "kept: $tmp $site"; else rm -rf "$tmp" ${site:+"${site%/*}"}; fi
}
trap finish EXIT
trap 'exit 130' INT TERM
for need in slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client munged:munge unzip:unzip; do
  "$root/scripts/need.sh" "${need%%:*}" "${need#*:}" || exit 1
done
chmod 755 "$tmp"
"$here/up.sh" "$tmp/cluster" 4 || exit 1
# shellcheck source=/dev/null
. "$tmp/cluster/env"

export NXF_HOME=$tmp/home NXF_ANSI_LOG=false
main=$root/nextflow/main.nf
faulty=(-c "$root/tests/nextflow/faults/faults.config" -c "$here/quick.config")
launch=$tmp/launch
info=$launch/results/pipeline_info

"$root/scripts/test-data.sh" "$tmp/foreign" || exit 1
make_mosaics "$tmp/phantom" 1 || exit 1
for m in "$tmp"/phantom/*.ome.zarr; do mv "$m" "$tmp/foreign/m_phantom.ome.zarr"; done
# m_phantom: no fault; the others: one each.
args=(-profile slurm "${aip_only[@]}" --input "$tmp/foreign" --input_pattern 'm_*.ome.zarr' --partition main --n_levels 1
  --aip_cpus 2 --aip_memory '300 MB' --aip_time '1 h' --gres gpu:2 --cluster_options='--comment=strata-test' --allow_missing_slices)
# jobs: one line for each job that SLURM has seen.
jobs() { scontrol -o show job; }
count_jobs() { jobs | grep -c 'JobName=nf-'; }
# job NAME N FIELD: a field of the job that made the N-th attempt at a mosaic.
job() {
  local id
  id=$(attempt "$1" "$2" | sed -n 's/.* job=\([0-9]*\).*/\1/p')
  scontrol -o show job "${id:-none}" 2>&1 | tr ' ' '\n' | sed -n "s/^$3=//p" | head -n 1
}
# limits NAME: the memory of the job's control group and --mem, by the record of a projection.
limits() {
  sed -n 's/^    "memory": \([0-9]*\).*/\1/p; s/^  "mem_budget": \([0-9]*\).*/\1/p' "${2:-$launch/results}/reports/$1.aip.json" | xargs
}
# most PROGRAM: the largest number of tasks that were inside it at one time.
most() {
  grep -hoE '^(start|end) [0-9.]+' "$FAULTS/$1".*.log | sort -k 2,2n |
    awk '{ n += $1 == "start" ? 1 : -1; if (n > m) m = n } END { print m }'
}
# shared PROGRAM: GPUs that two tasks had at one time.
shared() {
  grep -HE '^(start|end) ' "$FAULTS/$1".*.log | sed 's/:\(start\|end\) / \1 /' | sort -k 3,3n |
    awk '{ if ($2 == "start") { mine[$1] = $NF; by = 1 } else by = -1
           n = split(substr(mine[$1], 5), gpu, ","); for (i = 1; i <= n; i++) if ((held[gpu[i]] += by) > 1) print gpu[i] }'
}

start_engine

# --- One run with all faults -----------------------------------------------------

faults
plan m_u8_v3raw 'always 3'
plan m_u16_v3shard scancel
plan m_i16_v3lz4 4
if [ -e "$tmp/cluster/cgroups" ]; then
  plan m_f32_v2lz4 'eat 400M' 'eat 400M' # of 300, then of 600
else
  echo 'a job that takes too much memory is only played: no control groups of version 1 here'
  plan m_f32_v2lz4 kill
fi
plan m_f32_raw_edge lost
nf first run "$main" "${faulty[@]}" "${args[@]}"
ok 'the run succeeds' same "$status" 0
ok 'every task was a job: 6 slices, 4 retries, the versions' same "$(count_jobs)" 11
ok 'a job without fault is tried once' same "$(attempts m_phantom)" 1
ok 'its results are there' is_png "$launch/results/aip/m_phantom.png"
ok 'cpus are asked for' same "$(job m_phantom 1 NumCPUs)" 2
ok 'memory is asked for' same "$(job m_phantom 1 MinMemoryNode)" 300M
ok 'the GPUs are asked for' same "$(job m_phantom 1 TresPerNode)" gres:gpu:2
ok 'the partition is asked for' same "$(job m_phantom 1 Partition)" main
ok 'the time limit is asked for' same "$(job m_phantom 1 TimeLimit)" 01:00:00
ok 'cluster_options are passed on' same "$(job m_phantom 1 Comment)" strata-test
ok 'threads and memory are the job'"'"'s' has <(attempt m_phantom 1) '--threads 2 --mem 225MiB .*cpus=2 mem=300 '
if [ -c "$tmp/cluster/dev/gpu0" ]; then
  ok 'the job sees its GPUs' has <(attempt m_phantom 1) 'gpu=[0-9],[0-9]$'
fi
ok 'a cancelled job is tried again' same "$(attempts m_u16_v3shard) $(job m_u16_v3shard 1 JobState)" '2 CANCELLED'
ok 'and succeeds' is_png "$launch/results/aip/m_u16_v3shard.png"
ok 'a job that took too much memory is tried again, with more' same "$(attempts m_f32_v2lz4) $(job m_f32_v2lz4 2 MinMemoryNode)" '2 600M'
if [ -e "$tmp/cluster/cgroups" ]; then
  ok 'SLURM ended it for its memory' same "$(job m_f32_v2lz4 1 JobState) $(job m_f32_v2lz4 2 JobState)" 'OUT_OF_MEMORY COMPLETED'
  ok 'a program knows the memory of its job' same "$(limits m_phantom)" "$((300 << 20)) $((225 << 20))"
fi
ok 'a job without an exit status is tried again' same "$(attempts m_f32_raw_edge) $(grep -c 'm_f32_raw_edge.*terminated for an unknown reason' "$log")" '2 1'
ok 'exit 4: again without the GPU' has <(attempt m_i16_v3lz4 2) ' --no-use_gpu '
ok 'exit 4: the second job asks for none' same "$(job m_i16_v3lz4 1 TresPerNode);$(job m_i16_v3lz4 2 TresPerNode)" 'gres:gpu:2;'
ok 'exit 3 is tried once and reported' same "$(attempts m_u8_v3raw) $(cut -f 2,3 "$info/missing_slices.tsv" | tail -n +2)" "1 $(printf 'm_u8_v3raw\t3')"
ok 'report, trace, versions' filled "$info"/{report.html,trace.tsv,versions.yml}

[ -z "${SHORT:-}" ] || { total; exit; }

# --- Resume ----------------------------------------------------------------------

faults
warm resume run "$main" "${faulty[@]}" "${args[@]}" -resume
ok '-resume runs the missing slice only' same "$status $(ran "$log") $(cached "$log")" '0 1 6'
ok 'and now nothing is missing' fails ls "$info/missing_slices.tsv"

# --- Job arrays (docs/hpc.md) --------------------------------------------------------

echo "process { withName: 'AIP' { array = 3 } }" >"$tmp/array.config"
faults
plan m_f32_raw_edge kill
before=$(jobs | grep -c 'ArrayTaskId=')
warm arrays run "$main" "${faulty[@]}" -c "$tmp/array.config" "${args[@]}" --use_gpu false --outdir arrays
ok 'job arrays: six slices are two arrays of three jobs' same "$status $before $(jobs | sed -n 's/.* ArrayJobId=\([0-9]*\) .*/\1/p' | sort | uniq -c | awk '{ print $1 }' | xargs)" '0 0 3 3'
ok 'that ask for what a job alone does' same "$(job m_phantom 1 MinMemoryNode) $(job m_phantom 1 NumCPUs) $(job m_phantom 1 TimeLimit) $(job m_phantom 1 Comment)" '300M 2 01:00:00 strata-test'
ok 'the one that was killed is a job of its own, with more memory' same "$(attempts m_f32_raw_edge) $(job m_f32_raw_edge 2 MinMemoryNode) $(job m_f32_raw_edge 2 ArrayJobId)" '2 600M '

# --- A failing slice stops the run -------------------------------------------------

faults
plan m_u8_v3raw 'always 3'
warm stop run "$main" "${faulty[@]}" "${args[@]}" --allow_missing_slices false --n_levels 0
ok 'exit 3 stops the run' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 1'
ok 'no job is left in the queue' same "$(squeue -h -t RUNNING,PENDING | wc -l)" 0

# --- A job that the queue no longer lists, and that still runs -----------------------

# The engine's squeue sees nothing, as that of a controller that restarts; the one that looks for a job by its folder does.
mkdir "$tmp/blind"
cat >"$tmp/blind/squeue" <<SH
#!/bin/sh
case "\$*" in *%Z*) exec '$(type -P squeue)' "\$@" ;; esac
SH
chmod +x "$tmp/blind/squeue"
faults
plan m_phantom 'sleep 600'
PATH=$tmp/blind:$PATH nf blind run "$main" "${faulty[@]}" "${args[@]}" --input "$tmp/foreign/m_phantom.ome.zarr" --outdir blind
ok 'a job that was lost sight of is repeated' same "$status $(attempts m_phantom)" '0 2'
ok 'and the first one is ended, which is said' same "$(job m_phantom 1 JobState) $(count 'strata: SLURM still ran job [0-9]+, ' "$log")" 'CANCELLED 1'

# --- GPUs --------------------------------------------------------------------------

# Four GPUs and eight CPUs: the GPUs bound what two of them each would need, maxForks what
# one each would.
together() { faults; local m; for m in "$tmp"/foreign/m_*; do plan "$(basename "$m" .ome.zarr)" "gather $1"; done; }
gpus=(-profile slurm "${aip_only[@]}" --input "$tmp/foreign" --input_pattern 'm_*.ome.zarr' --partition gpu_short --aip_cpus 1 --aip_memory '300 MB' --aip_time '1 h')
together 2
warm gres run "$main" "${faulty[@]}" "${gpus[@]}" --gres gpu:2 --outdir gres
ok 'six tasks with two of four GPUs each: two at a time' same "$status $(most aip)" '0 2'
ok 'no GPU was given to two' same "$(shared aip)" ''
together 3
warm forks run "$main" "${faulty[@]}" "${gpus[@]}" --gpu_option gpus-per-node --aip_max_forks 3 --n_levels 1 --outdir forks
ok 'one GPU each: three at a time, by aip_max_forks' same "$status $(most aip)" '0 3'
ok 'asked for by --gpus-per-node' same "$(grep -l '^#SBATCH .*--gpus-per-node=1$' "$launch"/work/*/*/.command.run | wc -l) $(job m_phantom 1 TresPerNode)" '6 gres:gpu:1'
ok 'no GPU was given to two' same "$(shared aip)" ''

# --- The chain -----------------------------------------------------------------------

"$root/bin/phantom" "$tmp/block" --slices 3 --tiles 2,2 --tile 64,80,80 --interval 120 --quiet || exit 1
before=$(count_jobs)
mkdir "$tmp/disk"
one_cpu=()
for s in "${stages[@]}"; do [ "$s" = qc-report ] || one_cpu+=("--${s}_cpus" 1); done
faults
plan focal.mosaic_grid_3d_z01 4
plan stack.slices kill
plan crop.slice_z02 'always 3'
# shellcheck disable=SC2054 # commas are ours
chain=(-profile slurm --partition main "${one_cpu[@]}" --input "$tmp/block" --outdir chain
  --resample_resolution 4 --crop_depth 160 --stack_slicing_interval_mm 0.12 --stack_search_range_mm 0.02 --stack_moving_z_first_index 1
  --stack_pyramid_resolutions 4,8 --scratch "$tmp/disk" --allow_missing_slices)
warm chain run "$main" "${faulty[@]}" "${chain[@]}"
ok 'the chain: the run succeeds' same "$status" 0
ok 'every task was a job: 3 × aip, resample, focal, stitch, crop; 2 slices and the volume; 2 retries' \
  same "$(($(count_jobs) - before))" 27
ok 'the volume, the pictures and the report are there' filled "$launch/chain"/{volume/volume.ome.zarr/zarr.json,previews/volume.png,previews/slice_z01.png,qc-report.html}
ok 'focal failed on the GPU and asked for none again' same "$(job focal.mosaic_grid_3d_z01 1 TresPerNode);$(job focal.mosaic_grid_3d_z01 2 TresPerNode)" 'gres:gpu:1;'
ok 'stack was killed and got more memory' same "$(job stack.slices 1 MinMemoryNode) $(job stack.slices 2 MinMemoryNode)" '2G 4G'
ok 'on scratch' has <(attempt stack.slices 2) " in=$tmp/disk/nxf\."
ok 'the slice without which the rest went on' same "$(tail -n +2 "$launch/chain/pipeline_info/missing_slices.tsv" | cut -f 1-3 | xargs)" 'CROP slice_z02 3'

faults
warm chain-resume run "$main" "${faulty[@]}" "${chain[@]}" -resume
ok 'and -resume makes up for it, with what depends on it' same "$status $(sed -n 's/.*Submitted process > STRATA:\([A-Z]*\).*/\1/p' "$log" | sort | xargs)" \
  '0 AIP AIP CROP PREVIEW PREVIEW REPORT STACK'
before=$(count_jobs)
warm chain-stub run "$main" "${faulty[@]}" "${chain[@]}" --input "$tmp/block/mosaic_grid_3d_z00.ome.zarr" --outdir stub --skip 'aip,preview,focal' -stub-run
ok '-stub-run: the jobs of what is not skipped' same "$status $(($(count_jobs) - before)) $(find "$launch/stub/volume" -name volume.ome.zarr)" "0 7 $launch/stub/volume/volume.ome.zarr"

# --- The full chain from raw tiles ---------------------------------------------------

"$root/bin/phantom" "$tmp/raw" --raw --slices 3 --missing_slices 1 --tiles 2,2 --tile 48,64,64 --interval 80 --galvo_shift 7 -q || exit 1
"$root/bin/phantom" "$tmp/template" --ideal --tiles 1,1 --tile 40,60,60 --voxel 4,4,4 -q || exit 1
before=$(count_jobs)
faults
plan register.slice_z00 kill
# shellcheck disable=SC2054 # commas are ours
full=(-profile slurm --partition main --raw "$tmp/raw" --outdir full --resample_resolution 4 --crop_depth 120 --stack_slicing_interval_mm 0.08 --stack_search_range_mm 0.02
  --stack_moving_z_first_index 1 --register_moving_z_index 1 --stack_pyramid_resolutions 4,8 --slices_assess_min_quality 0.1 --use_gpu false --scratch "$tmp/disk"
  --focal --assess --manual --bias_field --diagnostics --align --align_template "$tmp/template/mosaic_grid_3d_z00.ome.zarr")
for s in mosaic aip resample focal flatfield stitch beam_profile crop attenuation normalize assess common_space interpolate register manual stack bias_field align; do full+=("--${s}_cpus" 1 "--${s}_memory" '500 MB'); done
warm full run "$main" "${faulty[@]}" "${full[@]}"
ok 'from raw tiles, with every stage there is: the run succeeds' same "$status" 0
ok 'every task was a job, and so was the second try of register' same "$(($(count_jobs) - before)) $(attempts register.slice_z00)" "$(($(ran "$log"))) 2"
# From raw frames mosaic makes the resampled mosaics, too, in its one pass.
ok 'every process of the workflow ran, except RESAMPLE' same "$(sed -n 's/.*Submitted process > STRATA:\([A-Z_]*\).*/\1/p' "$log" | sort -u | xargs)" \
  "$(sed -n 's/^include { \([A-Z_]*\) .*/\1/p' "$root/nextflow/main.nf" | grep -vx RESAMPLE | sort -u | xargs)"
ok 'their memory is asked for, and no GPU' same "$(job register.slice_z00 2 MinMemoryNode) $(job register.slice_z00 2 TresPerNode)" '1000M '
ok 'the slice that is missing is named' has "$launch/full/pipeline_info/missing_slices.tsv" '^INPUT.slice_z01.-.not among the raw frames$'
full_results() {
  filled "$launch/full"/{volume,bias_field}/volume.ome.zarr/zarr.json "$launch/full"/align/volume_ras.ome.zarr/zarr.json "$launch/full"/{manual/pairs.csv,slice_config/slice_config.csv,qc-report.html} \
    "$launch"/full/transforms/slice_z02/transform.tfm "$launch"/full/metrics/normalize/slice_z0{0,2}.ome_metrics.json
}
ok 'volumes, transforms, metrics and report are there' full_results
ok 'nothing is left on scratch' same "$(ls "$tmp/disk")" ''
ok 'and the volume is valid' "$REAL_BIN/zarr-tool" validate "$launch/full/volume/volume.ome.zarr"

# --- The BMRC profile ----------------------------------------------------------------

faults
module() { echo "$*" >>"$tmp/modules"; }
export -f module
export tmp
bmrc=(-profile bmrc "${aip_only[@]}" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --account tissue.prj --outdir bmrc)
nf bmrc run "$main" "${faulty[@]}" "${bmrc[@]}" --mem_fraction 0.95
ok 'bmrc: the run succeeds' same "$status" 0
ok 'bmrc: 4 h with a GPU go to gpu_short' same "$(job m_u8_v3raw 1 Partition) $(job m_u8_v3raw 1 TresPerNode)" 'gpu_short gres:gpu:1'
ok 'bmrc: without a GPU to short' same "$(jobs | grep 'JobName=nf-STRATA_VERSIONS' | grep -c 'Partition=short ')" 1
if [ -e "$tmp/cluster/cgroups" ]; then
  ok '--mem ends below the memory of the job, with a warning' same "$(limits m_u8_v3raw "$launch/bmrc") $(grep -c 'is more than this job has: its control group allows 1 GiB' "$launch/bmrc/reports/m_u8_v3raw.aip.json")" \
    "$((1 << 30)) $((896 << 20)) 1"
fi
# SLURM refuses a job for the moment, twice.
mkdir "$tmp/busy"
cat >"$tmp/busy/sbatch" <<SH
#!/bin/bash
echo x >>'$tmp/busy/count'
[ "\$(wc -l <'$tmp/busy/count')" -gt 2 ] && exec '$(type -P sbatch)' "\$@"
echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2
echo 'sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user'"'"'s size and/or time limits)' >&2
exit 1
SH
chmod +x "$tmp/busy/sbatch"
PATH=$tmp/busy:$PATH nf bmrc-long run "$main" "${bmrc[@]}" --modules 'CUDA/12 Java/17' --before_script 'module use mine' --gpu_short_time '2 h' --short_partition main --n_levels 1
ok 'bmrc: which ones, and from when on, are parameters' same "$status $(jobs | grep 'JobName=nf-STRATA_AIP' | tail -n 1 | grep -o ' Partition=[a-z_]*') $(jobs | grep 'JobName=nf-STRATA_VERSIONS' | tail -n 1 | grep -o ' Partition=[a-z_]*')" \
  '0  Partition=gpu_long  Partition=main'
ok 'a queue that is full is asked again' same "$(wc -l <"$tmp/busy/count") $(count 'retried' "$log")" '4 0'
ok 'modules are loaded, then before_script is run, by every task' same "$(sort "$tmp/modules" | uniq -c | xargs)" '2 load CUDA/12 Java/17 2 use mine'

# --- What SLURM would refuse ------------------------------------------------------------

before=$(count_jobs)
# refused ARGUMENTS...: exit status and message of a run.
refused() { ${refuse:-warm} refused run "$main" "${chain[@]}" "$@"; echo "$status $(sed -n 's/^ERROR ~ //p' "$log")"; }
ok 'a partition that does not exist' same "$(refused --gpu_partition gpus --partition gpu_short --preview_time '9 h')" \
  "2 parameter gpu_partition: SLURM has no partition gpus: there are main, short, long, gpu_short, gpu_long"
ok 'a time limit that a partition does not have' has "$tmp/refused.log" '^(ERROR ~ )?parameter preview_time: 9h is longer than a job may run in partition gpu_short \(4h\): it would wait for ever$'
ok 'a GPU that is none' same "$(refused --gres tpu:1)" '2 parameter use_gpu: no node of partition main has a tpu: name one by gpu_partition, or give --use_gpu false'
# A PATH with everything but SLURM's sbatch.
mkdir "$tmp/elsewhere"
IFS=: read -ra folders <<<"$PATH"
for d in "${folders[@]}"; do ln -s "$d"/* "$tmp/elsewhere/" 2>/dev/null; done
rm -f "$tmp/elsewhere/sbatch"
ok 'where there is no SLURM' same "$(refuse=nf PATH=$tmp/elsewhere refused)" \
  '2 SLURM: no sbatch on the PATH: start the workflow where jobs are submitted, on a login node'
ok 'and nothing was submitted' same "$(count_jobs)" "$before"

# --- Containers, and README.md followed to the letter --------------------------------------

# small_image OUT: the programs, and what Nextflow calls inside, from this machine.
small_image() {
  local tool lib at
  mkdir -p "$tmp/inside/usr/bin" "$tmp/inside/usr/local/bin" "$tmp/inside/bin" || return 1
  for tool in bash sh env ls cat mkdir touch date tee sed awk grep tail head cut tr sort uniq wc cp mv rm ln ps dirname basename sleep stat chmod; do
    at=$(readlink -f "$(type -P "$tool")") && cp "$at" "$tmp/inside/usr/bin/$tool" || return 1
  done
  cp "$tmp/inside/usr/bin/"{bash,sh} "$tmp/inside/bin/" && cp "$root/bin/strata" "$tmp/inside/usr/local/bin/" || return 1
  for tool in "${stages[@]}" doctor; do ln -s strata "$tmp/inside/usr/local/bin/$tool" || return 1; done
  # Go's programs without cgo open the C library only when they look for a GPU.
  for lib in $({ ldd "$tmp"/inside/usr/bin/* "$root/bin/strata"; echo /lib/x86_64-linux-gnu/libdl.so.2; } 2>/dev/null | grep -oE '/[^ :]+' | grep -vF -e "$tmp/" -e "$root/" | sort -u); do
    [ ! -e "$lib" ] || { mkdir -p "$tmp/inside${lib%/*}" && cp -L "$lib" "$tmp/inside$lib"; } || return 1
  done
  printf '%s\n' 'Bootstrap: scratch' '%files' "    '$tmp/inside/*' /" >"$tmp/small.def"
  "$root/bin/sif" build "$1" "$tmp/small.def" -q
}
# What is not below /tmp a container sees only if it is bound.
mkdir -p /srv
site=$(mktemp -d /srv/strata-test.XXXXXX)/. || exit 1
chmod 755 "$site"
site="${site%/.}/it's mine"
mkdir "$site"
image=$root/build/strata.sif
# It is unpacked where the double of apptainer would do it.
if [ -e "$image" ] && "$root/bin/sif" run-root -q --cache "$tmp/roots" "$image" true && cmp -s "$root/bin/strata" "$tmp"/roots/*/usr/local/bin/strata; then
  cp "$image" "$site/strata.sif"
else
  echo 'build/strata.sif is not there, or has other programs: a small image is made'
  "$root/scripts/need.sh" mksquashfs squashfs-tools || exit 1
  small_image "$site/strata.sif" || exit 1
fi
mkdir "$tmp/path"
ln -s "$root/scripts/nextflow.sh" "$tmp/path/nextflow"
# A root with fewer rights than usual needs a user namespace, as others do.
how=
apptainer=$(type -P apptainer) && ! "$apptainer" -s exec "$site/strata.sif" true >/dev/null 2>&1 && how=APPTAINER_USERNS=1
if [ -n "$apptainer" ] && env $how "$apptainer" -s exec "$site/strata.sif" true; then
  echo "containers run by $apptainer $how"
  # shellcheck disable=SC2016
  printf '#!/bin/bash\nline=$(echo "gpus=$APPTAINERENV_CUDA_VISIBLE_DEVICES apptainer $*" | tr "\\n" " ")\necho "$line" >>%s\nexec env %s %s "$@"\n' \
    "$tmp/containers.log" "$how" "$apptainer" >"$tmp/path/apptainer"
else
  echo 'containers run by the double of apptainer'
  printf '#!/bin/sh\nSIF=%s SIF_CACHE=%s SIF_LOG=%s exec %s "$@"\n' "$root/bin/sif" "$tmp/roots" "$tmp/containers.log" "$here/apptainer.sh" >"$tmp/path/apptainer"
fi
chmod +x "$tmp/path/apptainer"
(cd "$root" && tar -c --exclude=nextflow/bin nextflow scripts apptainer) | tar -x -C "$site" || exit 1
cp -r "$tmp/block" "$site/mosaics"
# A phantom is smaller than a slice. Nextflow reads this file where it is started.
{
  echo "params { resample_resolution = 4; crop_depth = 160; stack_slicing_interval_mm = 0.12; stack_search_range_mm = 0.02; stack_moving_z_first_index = 1; stack_pyramid_resolutions = '4,8'"
  for s in "${stages[@]}"; do [ "$s" = qc-report ] || printf '%s_cpus = 1\n' "$s"; done
  echo '}'
  cat "$here/quick.config"
} >"$site/nextflow.config"
awk '/^## / { on = $0 == "## Cluster" } on && /^```/ { code = !code; next } on && code' "$root/README.md" >"$tmp/readme.sh"
ok 'README.md has commands for a cluster' has "$tmp/readme.sh" '^nextflow run nextflow/main.nf '
before=$(count_jobs)
# In a container Nextflow cannot work below a name with a space.
export NXF_WORK=${site%/*}/work
as_readme() { (cd "$site" && PATH=$tmp/path:$PATH XDG_CONFIG_HOME=$tmp/config XDG_STATE_HOME=$tmp/state timeout -k 30 600 bash -euo pipefail "$tmp/readme.sh"); }
as_readme >"$tmp/readme.log" 2>&1
status=$?
ok 'they succeed' same "$status $([ "$status" = 0 ] || tail -n 30 "$tmp/readme.log")" '0 '
ok 'every task was a job, and so was the picture, of the partition named' same \
  "$(($(count_jobs) - before)) $(jobs | grep 'JobName=wrap ' | grep -c ' Partition=short ')" '27 1'
ok 'the results are there' filled "$site/results/qc-report.html" "$site/results/pipeline_info/versions.yml"
ok 'the volume has the same bytes as without a container' diff -r "$site/results/volume/volume.ome.zarr" "$launch/chain/volume/volume.ome.zarr"
ok 'the picture that the job made is there' is_png "$site/volume.png"
ok 'containers see the GPU of their job, those of 21 tasks' same "$(grep -cE '^gpus=[0-9] apptainer exec .*--nv ' "$tmp/containers.log")" 21
ok 'and those of the 6 others none' same "$(grep -vE -- '--nv ' "$tmp/containers.log" | grep -cE '^gpus= apptainer exec .* nxf_trace ?$')" 6
if [ -e "$tmp/cluster/cgroups" ]; then
  ok 'in a container, too, a program knows the memory of its job' same "$(limits volume "$site/results")" "$((1 << 30)) $((768 << 20))"
fi
ok 'resources.yml has what tasks needed' has "$site/resources.yml" '^stack_memory: [0-9]+ MB$'
ok 'and the workflow takes it' same "$(cd "$site" && PATH=$tmp/path:$PATH nextflow run nextflow/main.nf -profile slurm --container strata.sif --input mosaics -params-file resources.yml -preview 2>&1 | grep -c '^strata: 0 tasks run')" 1

total
