#!/usr/bin/env bash
# The workflow through SLURM, on a cluster of this one machine: what jobs ask for,
# failures, cancelled jobs, resume. Needs root (munge, device files); without it
# one line says so and nothing is checked. KEEP=1 leaves the folder of the runs.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../nextflow/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../nextflow/lib.sh"
here=$root/tests/slurm
if [ "$(id -u)" != 0 ]; then
  rm -rf "$tmp"
  echo "test-slurm: skipped, a one-node SLURM needs root"
  exit 0
fi
finish() {
  "$here/down.sh" "$tmp/cluster"
  if [ -n "${KEEP:-}" ]; then echo "kept: $tmp"; else rm -rf "$tmp"; fi
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

# --- One run with all faults -----------------------------------------------------

faults
plan m_u8_v3raw 'always 3'
plan m_u16_v3shard scancel
plan m_i16_v3lz4 4
plan m_f32_v2lz4 kill
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
ok 'a killed program is tried again, with more memory' same "$(attempts m_f32_v2lz4) $(job m_f32_v2lz4 2 MinMemoryNode)" '2 600M'
ok 'a job without an exit status is tried again' same "$(attempts m_f32_raw_edge) $(grep -c 'm_f32_raw_edge.*terminated for an unknown reason' "$log")" '2 1'
ok 'exit 4: again without the GPU' has <(attempt m_i16_v3lz4 2) ' --no-use_gpu '
ok 'exit 4: the second job asks for none' same "$(job m_i16_v3lz4 1 TresPerNode);$(job m_i16_v3lz4 2 TresPerNode)" 'gres:gpu:2;'
ok 'exit 3 is tried once and reported' same "$(attempts m_u8_v3raw) $(cut -f 2,3 "$info/missing_slices.tsv" | tail -n +2)" "1 $(printf 'm_u8_v3raw\t3')"
ok 'report, trace, versions' filled "$info"/{report.html,trace.tsv,versions.yml}

# --- Resume ----------------------------------------------------------------------

faults
nf resume run "$main" "${faulty[@]}" "${args[@]}" -resume
ok '-resume runs the missing slice only' same "$status $(ran "$log") $(cached "$log")" '0 1 6'
ok 'and now nothing is missing' fails ls "$info/missing_slices.tsv"

# --- A failing slice stops the run -------------------------------------------------

faults
plan m_u8_v3raw 'always 3'
nf stop run "$main" "${faulty[@]}" "${args[@]}" --allow_missing_slices false --n_levels 0
ok 'exit 3 stops the run' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 1'
ok 'no job is left in the queue' same "$(squeue -h -t RUNNING,PENDING | wc -l)" 0

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
nf chain run "$main" "${faulty[@]}" "${chain[@]}"
ok 'the chain: the run succeeds' same "$status" 0
ok 'every task was a job: 3 × aip, resample, focal, stitch, crop; 2 slices and the volume; 2 retries' \
  same "$(($(count_jobs) - before))" 27
ok 'the volume, the pictures and the report are there' filled "$launch/chain"/{volume/volume.ome.zarr/zarr.json,previews/volume.png,previews/slice_z01.png,qc-report.html}
ok 'focal failed on the GPU and asked for none again' same "$(job focal.mosaic_grid_3d_z01 1 TresPerNode);$(job focal.mosaic_grid_3d_z01 2 TresPerNode)" 'gres:gpu:1;'
ok 'stack was killed and got more memory' same "$(job stack.slices 1 MinMemoryNode) $(job stack.slices 2 MinMemoryNode)" '2G 4G'
ok 'on scratch' has <(attempt stack.slices 2) " in=$tmp/disk/nxf\."
ok 'the slice without which the rest went on' same "$(tail -n +2 "$launch/chain/pipeline_info/missing_slices.tsv" | cut -f 1-3 | xargs)" 'CROP slice_z02 3'

faults
nf chain-resume run "$main" "${faulty[@]}" "${chain[@]}" -resume
ok 'and -resume makes up for it, with what depends on it' same "$status $(sed -n 's/.*Submitted process > \([A-Z]*\).*/\1/p' "$log" | sort | xargs)" \
  '0 AIP AIP CROP PREVIEW PREVIEW REPORT STACK'
before=$(count_jobs)
nf chain-stub run "$main" "${faulty[@]}" "${chain[@]}" --input "$tmp/block/mosaic_grid_3d_z00.ome.zarr" --outdir stub --skip 'aip,preview,focal' -stub-run
ok '-stub-run: the jobs of what is not skipped' same "$status $(($(count_jobs) - before)) $(find "$launch/stub/volume" -name volume.ome.zarr)" "0 7 $launch/stub/volume/volume.ome.zarr"

# --- The BMRC profile ----------------------------------------------------------------

faults
nf bmrc run "$main" "${faulty[@]}" -profile bmrc "${aip_only[@]}" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --account tissue.prj --outdir bmrc
ok 'bmrc: the run succeeds' same "$status" 0
ok 'bmrc: 4 h with a GPU go to gpu_short' same "$(job m_u8_v3raw 1 Partition) $(job m_u8_v3raw 1 TresPerNode)" 'gpu_short gres:gpu:1'
ok 'bmrc: without a GPU to short' same "$(jobs | grep 'JobName=nf-VERSIONS' | grep -c 'Partition=short ')" 1

total
