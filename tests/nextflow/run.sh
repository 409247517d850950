#!/usr/bin/env bash
# The workflow for real, on this machine: the whole chain on a phantom, parts of it,
# mosaics that other programs wrote, caching, failures, parameters. One line for each
# check. What concerns no stage in particular is seen with aip alone.
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

# --- The chain -----------------------------------------------------------------

"$root/bin/phantom" "$tmp/block" --slices 4 --tiles 2,3 --tile 64,80,80 --interval 120 --quiet || exit 1
cat >"$tmp/chain.yml" <<YML
input: $tmp/block
outdir: chain
resample_resolution: 4
crop_depth: 160
stack_slicing_interval_mm: 0.12
stack_search_range_mm: 0.02
stack_moving_z_first_index: 1
stack_pyramid_resolutions: [4, 8]
n_levels: 1
YML
for s in "${stages[@]}"; do [ "$s" = qc-report ] || printf '%s_cpus: 1\n' "$s"; done >>"$tmp/chain.yml"
chain=(-params-file "$tmp/chain.yml")
results=$launch/chain
# tasks LOG: how many of each process a run executed, as "2 AIP 1 STACK".
tasks() { sed -n 's/.*[Ss]ubmitted process > \([A-Z]*\).*/\1/p' "$1" | sort | uniq -c | xargs; }

# images FOLDER: how many OME-Zarr it holds. names_in FOLDER: what it holds, in a line.
images() { find "$1" -maxdepth 1 -name '*.ome.zarr' | wc -l; }
names_in() { find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | xargs; }
faults
mkdir "$tmp/disk"
nf chain run "$main" "${faulty[@]}" "${chain[@]}" --publish_intermediates --scratch "$tmp/disk"
ok 'the chain: the run succeeds' same $status 0
ok 'each stage runs for each slice, the estimate, the stack and the report once' same "$(tasks "$log")" \
  '9 AIP 4 CROP 1 ESTIMATE 4 FOCAL 5 PREVIEW 1 REPORT 4 RESAMPLE 1 STACK 4 STITCH 1 VERSIONS'
chain_results() {
  local i
  for i in 0 1 2 3; do
    filled "$results/slices/slice_z0$i.ome.zarr/zarr.json" "$results/slices/slice_z0${i}_crop.json" "$results/stitch/slice_z0$i.json" \
      "$results"/{resampled,corrected}/mosaic_grid_3d_z0$i.ome.zarr/zarr.json "$results/stitched/slice_z0$i.ome.zarr/zarr.json" \
      "$results/aip/slices/slice_z0$i.ome.zarr/zarr.json" "$results"/reports/mosaic_grid_3d_z0$i.{aip,resample,focal}.json \
      "$results"/reports/slice_z0$i.{stitch,crop,aip,preview}.json "$results/reports/run.qc-report.json" &&
      is_png "$results/aip/mosaic_grid_3d_z0$i.png" && is_png "$results/aip/slices/slice_z0$i.png" &&
      is_png "$results/previews/slice_z0$i.png" && [ -n "$(ls "$results/focal/mosaic_grid_3d_z0$i")" ] || return 1
  done
  filled "$results"/{stitch/transform.json,aip/volume.ome.zarr/zarr.json,qc-report.html,reports/estimate.stitch.json} \
    "$results"/reports/volume.{stack,aip,preview}.json "$results"/volume/{shifts_xy,z_matches,stacking_decisions}.csv &&
    is_png "$results/previews/volume.png" && is_png "$results/aip/volume.png"
}
ok 'every result is there' chain_results
ok 'the volume is valid OME-Zarr' "$root/bin/zarr-tool" validate "$results/volume/volume.ome.zarr"
ok 'and has the levels that were asked for' has <("$root/bin/zarr-tool" info "$results/volume/volume.ome.zarr") '8'
ok 'the report is whole' has "$results/qc-report.html" '</html>'
ok 'the report shows the projections, too' has "$results/qc-report.html" 'Average intensity projection of volume'
versions_of_all() { local p; for p in "${stages[@]}"; do has "$results/pipeline_info/versions.yml" "^  $p: \"$version\"" || return 1; done; }
version=$("$REAL_BIN/aip" --version | sed 's/^aip //; s/[][().+*]/\\&/g')
ok 'versions of all programs' versions_of_all
ok 'tasks work on scratch, the stack too' has <(attempt stack.slices 1) " in=$tmp/disk/nxf\."
ok 'and leave nothing there' same "$(ls "$tmp/disk")" ''
ok 'the estimate looks at three of four' same "$(sed -n 's/.*estimate_only.*/x/p' "$FAULTS"/stitch.*.log | wc -l) $(grep -hoE 'mosaic_grid_3d_z0[0-9]' <(grep -h estimate_only "$FAULTS"/stitch.*.log) | sort -u | xargs)" \
  '1 mosaic_grid_3d_z00 mosaic_grid_3d_z02 mosaic_grid_3d_z03'
# The same by hand, stage after stage with the programs' own defaults.
by_hand() {
  local in=$tmp/block work=$tmp/hand i m
  mkdir -p "$work/slices"
  for i in 0 1 2 3; do
    m=mosaic_grid_3d_z0$i.ome.zarr
    "$REAL_BIN/resample" "$in/$m" "$work/r$i.ome.zarr" --resolution 4 --n_levels 0 -q &&
      "$REAL_BIN/focal" "$work/r$i.ome.zarr" "$work/f$i.ome.zarr" --n_levels 0 -q || return 1
  done
  "$REAL_BIN/stitch" "$work"/f{0,2,3}.ome.zarr --estimate_only "$work/transform.json" -q &&
    cmp "$work/transform.json" "$results/stitch/transform.json" || return 1
  for i in 0 1 2 3; do
    "$REAL_BIN/stitch" "$work/f$i.ome.zarr" "$work/s$i.ome.zarr" --transform "$work/transform.json" --n_levels 0 -q &&
      "$REAL_BIN/crop" "$work/s$i.ome.zarr" "$work/slices/slice_z0$i.ome.zarr" --depth 160 --crop_before_interface --n_levels 0 -q &&
      diff -r "$work/slices/slice_z0$i.ome.zarr" "$results/slices/slice_z0$i.ome.zarr" || return 1
  done
  "$REAL_BIN/stack" "$work/slices" "$in/shifts_xy.csv" "$work/volume.ome.zarr" --slicing_interval_mm 0.12 --search_range_mm 0.02 \
    --moving_z_first_index 1 --pyramid_resolutions 4 8 -q && diff -r "$work/volume.ome.zarr" "$results/volume/volume.ome.zarr"
}
ok 'the same bytes as from the programs by hand' by_hand

faults
nf chain-resume run "$main" "${faulty[@]}" "${chain[@]}" --stack_cpus 2 --focal_memory '3 GB' --resample_prefetch 2 --use_gpu false -resume
ok '-resume with other resources, without scratch, executes nothing' same "$status $(tasks "$log") $(cached "$log")" '0  34'
nf chain-stack run "$main" "${faulty[@]}" "${chain[@]}" --stack_blend -resume
ok '-resume with another parameter of stack: it, its projection and picture, the report' same "$status $(tasks "$log")" '0 1 AIP 1 PREVIEW 1 REPORT 1 STACK'
nf chain-stitch run "$main" "${faulty[@]}" "${chain[@]}" --stitch_blending average -resume
ok '-resume with another parameter of stitch: not what comes before, nor the estimate' same "$status $(tasks "$log")" \
  '0 5 AIP 4 CROP 5 PREVIEW 1 REPORT 1 STACK 4 STITCH'
faults
nf chain-pictures run "$main" "${faulty[@]}" "${chain[@]}" --preview_window 0,2000 --preview_labels false --qc_report_title "Subject 12's run" --backend host --sync -resume
ok '-resume with another window of the pictures: they and the report; how files are read changes nothing' same "$status $(tasks "$log")" '0 5 PREVIEW 1 REPORT'
ok 'flags of both kinds get to the program' has <(attempt preview.slice_z00 1) ' --window 0,2000 --scale_bar --no-labels --threads 1 --mem [0-9]+MiB --backend host --sync '
ok 'the report has its title' has "$results/qc-report.html" '<title>Subject 12(&#39;|.)s run'
touch -d '2020-01-01' "$tmp/block/shifts_xy.csv"
nf chain-shifts run "$main" "${faulty[@]}" "${chain[@]}" -resume
ok '-resume with other shifts: the stack' same "$status $(count 'Submitted process > STACK' "$log") $(count 'Submitted process > (RESAMPLE|FOCAL|STITCH|CROP|ESTIMATE)' "$log")" '0 1 0'

# Parts of it.
nf skip-some run "$main" "${chain[@]}" --outdir some --skip focal,crop,aip,qc_report -resume
ok 'skip focal, crop, aip and report: what resample made is found again' same "$status $(tasks "$log") $(count 'Cached process > RESAMPLE' "$log")" \
  '0 1 ESTIMATE 5 PREVIEW 1 STACK 4 STITCH 1 VERSIONS 4'
ok 'the slices are as stitched, nothing else is left' same "$(names_in "$launch/some") $(images "$launch/some/slices")" 'pipeline_info previews reports slices stitch volume 4'
nf skip-stack run "$main" "${chain[@]}" --outdir slices-only --skip aip,stack,preview,qc-report -resume
ok 'skip stack: the chain ends with the slices' same "$status $(ran "$log") $(diff -r "$launch/slices-only/slices" "$results/slices" | wc -l)" '0 1 0'
nf handed run "$main" "${chain[@]}" --outdir handed --skip aip,stack,preview,qc-report --intermediate_codec raw --publish_intermediates -resume
# blosc FOLDER: how many images in it are compressed.
blosc() { cat "$launch/handed/$1"/*.ome.zarr/0/zarr.json | grep -c '"blosc"'; }
ok 'intermediate_codec: what stages hand on is not compressed, the slices are' same "$status $(blosc resampled) $(blosc corrected) $(blosc stitched) $(blosc slices)" '0 0 0 0 4'
ok 'and have the same bytes' same "$(diff -r "$launch/handed/slices" "$results/slices" | wc -l)" 0
nf skip-estimate run "$main" "${chain[@]}" --outdir given --stitch_transform "$results/stitch/transform.json" --skip aip,preview,qc-report -resume
ok 'a transform that is given takes the place of the estimate' same "$status $(count ESTIMATE "$log") $(diff -r "$launch/given/slices" "$results/slices" | wc -l)" '0 0 0'
nf correction run "$main" "${chain[@]}" --outdir correction --skip aip,stitch,crop,stack,preview,qc-report -resume \
  --focal_correction "$results/focal/mosaic_grid_3d_z00/correction.ome.zarr"
ok 'a correction that is given takes the place of the search' same "$status $(tasks "$log") $(images "$launch/correction/corrected")" '0 4 FOCAL 1 VERSIONS 4'
ok 'and gives its own mosaic the same bytes' diff -r "$launch/correction/corrected/mosaic_grid_3d_z00.ome.zarr" "$results/corrected/mosaic_grid_3d_z00.ome.zarr"
# A slice by the name that another tool may give it.
mkdir "$tmp/slices"
cp -r "$results"/slices/*.ome.zarr "$tmp/slices/"
mv "$tmp/slices/slice_z02.ome.zarr" "$tmp/slices/slice_z02_4um.ome.zarr"
sed '/^input/d' "$tmp/chain.yml" >"$tmp/direct.yml"
nf direct run "$main" -params-file "$tmp/direct.yml" --slices "$tmp/slices" --shifts "$tmp/block/shifts_xy.csv" --outdir direct
ok 'slices given directly go to the stack' same "$status $(tasks "$log")" '0 5 AIP 5 PREVIEW 1 REPORT 1 STACK 1 VERSIONS'
ok 'and make the same volume' same "$(diff -r "$launch/direct/volume" "$results/volume" 2>&1)" ''
nf no-shifts run "$main" -params-file "$tmp/direct.yml" --slices "$tmp/slices" --stack_no_xy_shift --outdir no-shifts --skip aip,preview,qc-report
ok 'without shifts: all slices in one frame' same "$status $(tail -n +2 "$launch/no-shifts/volume/shifts_xy.csv")" '0 '
# order SKIP: the processes of a stub run of one mosaic.
order() { nf stub run "$main" "${chain[@]}" --input "${mosaics[0]}" --outdir stub -stub-run ${1:+--skip "$1"}; [ "$status" = 0 ] && tasks "$log"; }
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

# Mosaics in a bucket: the programs read them there, nothing is copied.
far() {
  local server from
  (cd "$root" && CGO_ENABLED=0 ${GO:-go} build -o "$tmp/s3server" ./tests/s3emu/server) || return 1
  coproc BUCKET { exec "$tmp/s3server" -load "$tmp/block" -key a-key -secret a-secret; }
  from=${BUCKET[1]}
  read -r server <&"${BUCKET[0]}" || return 1
  printf '%s\n' '# of one block' '' s3://bucket/mosaic_grid_3d_z0{2,0,3,1}.ome.zarr >"$tmp/far.txt"
  sed "s|^input:.*|input: $tmp/far.txt|" "$tmp/chain.yml" >"$tmp/far.yml"
  export AWS_ENDPOINT_URL_S3=$server AWS_ACCESS_KEY_ID=a-key AWS_SECRET_ACCESS_KEY=a-secret AWS_REGION=us-east-1
  nf far run "$main" -params-file "$tmp/far.yml" --shifts "$tmp/block/shifts_xy.csv" --outdir far --skip aip,preview,qc-report
  ok 'mosaics in a bucket: the whole chain' same "$status $(tasks "$log")" '0 4 CROP 1 ESTIMATE 4 FOCAL 4 RESAMPLE 1 STACK 4 STITCH 1 VERSIONS'
  ok 'makes the same volume' diff -r "$launch/far/volume/volume.ome.zarr" "$results/volume/volume.ome.zarr"
  nf far-stitch run "$main" -params-file "$tmp/far.yml" --outdir far-stitch --skip resample,focal,crop,stack,preview,qc-report --use_gpu false
  ok 'aip, estimate and stitch read them there, too' same "$status $(tasks "$log") $(images "$launch/far-stitch/slices") $(images "$launch/far-stitch/aip")" '0 8 AIP 1 ESTIMATE 4 STITCH 1 VERSIONS 4 4'
  "$REAL_BIN/stitch" "$tmp"/block/mosaic_grid_3d_z0{0,2,3}.ome.zarr --estimate_only "$tmp/far.json" -q
  ok 'and estimate what they estimate of a folder' cmp "$tmp/far.json" "$launch/far-stitch/stitch/transform.json"
  nf far-one run "$main" "${aip_only[@]}" --input s3://bucket/mosaic_grid_3d_z01.ome.zarr --outdir far-one
  ok 'one mosaic by its address' same "$status $(diff -r "$launch"/{far-one,far-stitch}/aip/mosaic_grid_3d_z01.ome.zarr/0 2>&1)" '0 '
  unset AWS_ENDPOINT_URL_S3 AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_REGION
  exec {from}>&-
  wait "$BUCKET_PID" 2>/dev/null
}
far

# Pairwise transforms.
# transform FOLDER PARAMETERS
transform() {
  mkdir -p "$1"
  printf '%s\n' '#Insight Transform File V1.0' '#Transform 0' 'Transform: Euler2DTransform_double_2_2' "Parameters: $2" 'FixedParameters: 40 40' >"$1/transform.tfm"
}
for i in 1 2 3; do transform "$tmp/transforms/slice_z0$i" '0.01 2 -1'; done
transform "$tmp/manual/slice_z02" '-0.01 0 0'
printf 'slice_id,use\n3,false\n' >"$tmp/slices.csv"
transforms=(--transforms_dir "$tmp/transforms" --manual_transforms_dir "$tmp/manual" --slice_config "$tmp/slices.csv")
# shellcheck disable=SC2054 # commas are ours
moved=(run "$main" -params-file "$tmp/direct.yml" --slices "$tmp/slices" --shifts "$tmp/block/shifts_xy.csv" --outdir moved --skip "aip,preview,qc-report"
  "${transforms[@]}" --stack_chunks '8, 32, 32' --stack_shard 16,64,64 -resume)
nf moved "${moved[@]}"
ok 'pairwise transforms: one found, one made by hand, one that is not to be used' same "$status $(tail -n +2 "$launch/moved/volume/stacking_decisions.csv" | cut -d , -f 1-5 | xargs)" \
  '0 1,0,True,automated,False 2,1,True,manual,True 3,2,False,automated,False'
by_hand_moved() {
  mkdir "$tmp/moved"
  "$REAL_BIN/stack" "$tmp/slices" "$tmp/block/shifts_xy.csv" "$tmp/moved/volume.ome.zarr" "${transforms[@]}" --slicing_interval_mm 0.12 --search_range_mm 0.02 \
    --moving_z_first_index 1 --pyramid_resolutions 4 8 --chunks 8,32,32 --shard 16,64,64 -q && diff -r "$tmp/moved/volume.ome.zarr" "$launch/moved/volume/volume.ome.zarr"
}
ok 'the same bytes as from stack by hand, in the shards that were asked for' by_hand_moved
transform "$tmp/transforms/slice_z01" '0.01 2'
nf malformed "${moved[@]}"
ok '-resume notices a transform that was changed, and the message says what is wrong with it' same \
  "$((status != 0)) $(count 'slice_z01/transform.tfm:4: 2 parameters of an Euler2DTransform, want 3' "$log")" '1 1'

# Failures.
faults
plan resample.mosaic_grid_3d_z03 1
plan focal.mosaic_grid_3d_z02 kill
plan stitch.mosaic_grid_3d_z01 4
plan crop.slice_z00 'always 3'
plan stack.slices 143
plan preview.slice_z02 104
nf chain-faults run "$main" "${faulty[@]}" "${chain[@]}" --outdir chain-faults --allow_missing_slices
missing=$launch/chain-faults/pipeline_info/missing_slices.tsv
ok 'failures along the chain: the run succeeds' same $status 0
ok 'every stage is tried again' same "$(attempts resample.mosaic_grid_3d_z03) $(attempts focal.mosaic_grid_3d_z02) $(attempts stack.slices) $(attempts preview.slice_z02)" '2 2 2 2'
ok 'with more memory' has <(attempt stack.slices 2) '--mem 3072MiB'
ok 'stitch goes on without the GPU' same "$(attempt stitch.mosaic_grid_3d_z01 1 | grep -o ' --use_gpu ')$(attempt stitch.mosaic_grid_3d_z01 2 | grep -o ' --no-use_gpu ')" ' --use_gpu  --no-use_gpu '
ok 'the slice that fails for good is tried once and reported with its stage' same "$(attempts crop.slice_z00) $(tail -n +2 "$missing" | tr '\t' ':')" '1 CROP:slice_z00:3:crop: slice_z00: planned fault 3'
ok 'the volume is of the three that are left' same "$(images "$launch/chain-faults/slices") $(tail -n +2 "$launch/chain-faults/volume/z_matches.csv" | cut -d , -f 1,2 | xargs)" '3 1,2 2,3'
ok 'and the end of the run says so, by name and once' has "$log" '^strata: 1 slice missing \(slice_z00\), also listed in '
faults
plan stack.slices 'always 3'
nf chain-stuck run "$main" "${faulty[@]}" "${chain[@]}" --outdir chain-faults --allow_missing_slices -resume
ok 'a stack that fails stops the run, whatever is allowed' same "$((status != 0)) $(attempts stack.slices)" '1 1'
ok 'and the last line names it' same "$(tail -n 1 "$log")" 'strata: stopped by STACK (4 slices): exit 3: stack: slices: planned fault 3'
faults
nf chain-healed run "$main" "${faulty[@]}" "${chain[@]}" --outdir chain-faults --allow_missing_slices -resume
# A picture that was being made when the run stopped is made now.
ok 'and -resume makes up for what was missing' has <(echo "$status $(tasks "$log") $(images "$launch/chain-faults/slices")") '^0 [12] AIP [12] PREVIEW 1 REPORT 1 STACK 4$'
# A mosaic that is really broken.
cp -r "$tmp/block" "$tmp/bad"
chunk=$(find "$tmp/bad/mosaic_grid_3d_z02.ome.zarr/" -type f -size +1k ! -name '*.json' | sort | head -n 1)
truncate -s 100 "$chunk"
nf bad run "$main" "${chain[@]}" --input "$tmp/bad" --outdir bad
ok 'a broken mosaic stops the run' same $((status != 0)) 1
ok 'and the message says which chunk' has "$log" "mosaic_grid_3d_z02.ome.zarr.*${chunk##*.ome.zarr/}"
nf bad-allowed run "$main" "${chain[@]}" --input "$tmp/bad" --outdir bad --allow_missing_slices -resume
ok 'with allow_missing_slices the rest goes on' same "$status $(images "$launch/bad/slices") $(tail -n +2 "$launch/bad/pipeline_info/missing_slices.tsv" | cut -f 1-3 | xargs)" \
  '0 3 RESAMPLE mosaic_grid_3d_z02 3 AIP mosaic_grid_3d_z02 3'
ok 'it is one slice, and why is said last' same "$(count '^strata: 1 slice missing \(slice_z02\), also listed in ' "$log") $(tail -n 2 "$log" | cut -d : -f 1,2 | xargs)" \
  '1 mosaic_grid_3d_z02: RESAMPLE mosaic_grid_3d_z02: AIP'
ok 'and the estimate with it: it takes those of its three that are left' has "$launch/bad/reports/estimate.stitch.json" 'mosaic_grid_3d_z00'
faults
plan resample.mosaic_grid_3d_z02 'always 3'
plan stitch.mosaic_grid_3d_z00 'always 3'
nf no-estimate run "$main" "${faulty[@]}" "${chain[@]}" --outdir no-estimate --skip focal,aip,preview --allow_missing_slices
ok 'what stopped the run is named last' has <(tail -n 1 "$log") '^strata: stopped by ESTIMATE .*: exit 3: stitch: mosaic_grid_3d_z00: planned fault 3$'
ok 'and no slice that was left out is blamed' same "$((status != 0)) $(count 'no slice is left' "$log")" '1 0'
mkdir "$tmp/fewer"
ln -s "$tmp/block"/mosaic_grid_3d_z0[013].ome.zarr "$tmp/block/shifts_xy.csv" "$tmp/fewer/"
nf fewer run "$main" "${chain[@]}" --input "$tmp/fewer" --outdir fewer -stub-run
ok 'a slice that only the shifts know is missing too' same "$status $(tail -n 1 "$log" | xargs)" '0 slice_z02: INPUT: not in the input; shifts_xy.csv names it'
faults
for m in "$tmp"/block/*.ome.zarr; do plan "focal.$(basename "$m" .ome.zarr)" 'always 3'; done
nf none-left run "$main" "${faulty[@]}" "${chain[@]}" --outdir none-left --skip aip --allow_missing_slices
ok 'when no slice is left the run fails and says so' same "$((status != 0)) $(count 'no slice is left: all 4 failed, the first with: focal: mosaic_grid_3d_z00: planned fault 3' "$log")" '1 1'

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
ok 'threads, memory and GPU are passed on' has "$script" '--use_gpu --threads [12] --mem 200MiB'
direct() {
  "$REAL_BIN/aip" "${mosaics[0]}" "$tmp/direct.ome.zarr" --png "$tmp/direct.png" --n_levels 2 --no-use_gpu --threads 1 &&
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
ok 'make twice writes no program and no link anew' same "$(made)" "$(made)"
touch -d '2020-01-01' "$clone/nextflow/bin/aip"
dir=$clone/nextflow nf rebuilt run main.nf -profile test,local --publish_mode link --zarr_format 3 -resume
ok '-resume with a program of another date executes nothing' same "$status $(tasks "$log") $(cached "$log")" '0  22'
(cd "$root" && CGO_ENABLED=0 ${GO:-go} build -tags urfave_cli_no_docs -ldflags '-s -w -X strata/pkg/cli.version=99.0' -o "$clone/nextflow/bin/aip" ./cmd/aip) || exit 1
dir=$clone/nextflow nf upgraded run main.nf -profile test,local --publish_mode link --zarr_format 3 -resume
ok '-resume with another version of a program executes what it does' same "$status $(tasks "$log") $(cached "$log")" '0 5 AIP 1 REPORT 1 VERSIONS 15'
nf single run "$main" "${aip_only[@]}" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir single -stub-run
ok 'one OME-Zarr as input, -stub-run' same "$status $(ls "$launch/single/aip")" "0 $(printf 'm_u8_v3raw.ome.zarr\nm_u8_v3raw.png')"

odd="$tmp/it's \"a\" [1] & ;"
mkdir "$odd"
cp -r "$tmp/foreign/m_u8_v3raw.ome.zarr" "$odd/"
nf odd run "$main" "${aip_only[@]}" --input "$odd" --input_pattern 'm_*' --outdir "$odd/out" -work-dir "$odd/work"
ok 'spaces, quotes and brackets in the names of folders' same "$status $(names_in "$odd/out/aip")" '0 m_u8_v3raw.ome.zarr m_u8_v3raw.png'

# --- Failures ------------------------------------------------------------------

mkdir -p "$tmp/six"
for m in "${mosaics[@]}" "$tmp/foreign"/m_{i16_v3lz4,u16_v3shard,u8_v3raw}.ome.zarr; do ln -s "$m" "$tmp/six/"; done
six=("${aip_only[@]}" --input "$tmp/six" --input_pattern '*.ome.zarr' --n_levels 1 --aip_cpus 1 --aip_memory '100 MB' --outdir faults)
faults
plan m_u8_v3raw 'always 3'
plan m_u16_v3shard 1 kill
plan m_i16_v3lz4 4
plan "${names[0]}" 104 143
plan "${names[1]}" 'always 130'
nf skip run "$main" "${faulty[@]}" "${six[@]}" --allow_missing_slices
missing=$launch/faults/pipeline_info/missing_slices.tsv
ok 'allow_missing_slices: the run succeeds' same $status 0
ok 'exit 3 is tried once, skipped and reported' same "$(attempts m_u8_v3raw) $(count 'm_u8_v3raw: AIP: exit 3: aip: m_u8_v3raw: planned fault 3' "$log")" '1 1'
ok 'a slice that keeps failing is skipped after max_retries' same "$(attempts "${names[1]}") $(count "${names[1]}: AIP: exit 130:" "$log")" '3 1'
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
one=("${aip_only[@]}" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir one)
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
nf none run "$main" "${aip_only[@]}" --input "$tmp/broken.ome.zarr" --outdir none --allow_missing_slices
ok 'when every slice is missing the run fails' same $((status != 0)) 1
ok 'and says so' has "$log" "no slice is left: all 1 failed, the first with: aip: .*broken.ome.zarr.*${chunk##*.ome.zarr/}"
ok 'and the table has the reason' has "$launch/none/pipeline_info/missing_slices.tsv" "^AIP.broken.3.aip: .*broken.ome.zarr"

# Killed in the middle: the slices are done, then Nextflow dies while they are stacked.
faults
plan stack.slices 'sleep 600'
killed=(run "$main" "${faulty[@]}" "${chain[@]}" --outdir killed --resample_resolution 5)
setsid bash -c "cd '$launch' && exec '$root/scripts/nextflow.sh' \"\$@\"" _ "${killed[@]}" >"$tmp/killed.log" 2>&1 &
victim=$!
for _ in $(seq 1500); do
  [ "$(count COMPLETED "$launch/killed/pipeline_info/trace.tsv" 2>/dev/null)" = 29 ] && [ -s "$FAULTS/stack.slices.log" ] && break
  sleep 0.2
done
sleep 1 # what the trace has, the cache has a moment later
kill -9 -- "-$victim"
wait "$victim" 2>/dev/null
faults
nf after-kill "${killed[@]}" -resume
ok 'Nextflow killed: -resume runs what was not done' same "$status $(tasks "$log") $(cached "$log")" '0 1 AIP 1 PREVIEW 1 REPORT 1 STACK 1 VERSIONS 29'

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
nf work-dir run "$main" "${container[@]}" -work-dir "$tmp/a b"
ok 'container: a work folder in which Nextflow would lose its way' same "$status $(count "^ERROR ~ $tmp/a b: Nextflow cannot work in this folder with a container" "$log")" '2 1'
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
for tool in bash dirname readlink sed sort head tail stat mkdir id env cat; do ln -s "$(type -P $tool)" "$tmp/bare/$tool"; done
ok 'without Java one line says what to install' same "$(JAVA_HOME='' PATH=$tmp/bare "$root/scripts/nextflow.sh" -v 2>&1)" \
  'java is missing: install it first (the Debian package is called default-jre-headless)'
ok 'and make demo the way without' same "$(JAVA_HOME='' PATH=$tmp/bare "$root/scripts/demo.sh" 2>&1)" \
  'java is missing: install it first (the Debian package is called default-jre-headless); or do without: make demo ENGINE=none'

# --- Forks ---------------------------------------------------------------------

# most PROGRAM: the largest number of tasks that were inside it at one time.
most() {
  grep -hoE '^(start|end) [0-9.]+' "$FAULTS/$1".*.log | sort -k 2,2n |
    awk '{ n += $1 == "start" ? 1 : -1; if (n > m) m = n } END { print m }'
}
together() { faults; local m; for m in "$tmp"/six/*; do plan "$(basename "$m" .ome.zarr)" "gather $1"; done; }
export NXF_OPTS=-XX:ActiveProcessorCount=12
together 2
nf forks run "$main" "${faulty[@]}" "${six[@]}" --aip_max_forks 2
ok 'aip_max_forks bounds the tasks at once' same "$status $(most aip)" '0 2'
together 6
nf noforks run "$main" "${faulty[@]}" "${six[@]}" --aip_max_forks 2 --use_gpu false
ok 'but not without the GPU' same "$status $(most aip)" '0 6'
# The defaults, with more mosaics than may run at once.
mkdir "$tmp/many"
for i in 0 1 2 3 4 5 6; do cp -r "$tmp/block/mosaic_grid_3d_z00.ome.zarr" "$tmp/many/mosaic_grid_3d_z0$i.ome.zarr"; done
faults
for i in 0 1 2 3 4 5 6; do plan "resample.mosaic_grid_3d_z0$i" 'gather 6'; plan "focal.mosaic_grid_3d_z0$i" 'gather 4'; done
nf chain-forks run "$main" "${faulty[@]}" "${chain[@]}" --input "$tmp/many" --outdir many --skip aip,stitch,crop,stack,preview,qc-report \
  --resample_memory '300 MB' --focal_memory '300 MB'
ok 'six tasks of resample at once, four of focal' same "$status $(most resample) $(most focal)" '0 6 4'
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
wrong() { dir=$launch nf wrong-inputs run "$main" "$@"; echo "$status"; sed -n 's/^ERROR ~ //p' "$log"; }
ok 'a stage that is none' same "$(wrong --input "$tmp/block" --skip focal,steak | xargs)" \
  '2 parameter skip: there is no stage steak: the stages are aip, resample, focal, stitch, crop, stack, preview, qc-report'
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

for profile in local slurm bmrc test,apptainer bmrc,apptainer slurm,singularity; do
  dir=$launch nf config config "$root/nextflow" -profile $profile
  ok "configuration of $profile without a warning" same "$status $(count 'WARN|ERROR' "$log")" '0 0'
done

total
