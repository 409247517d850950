#!/usr/bin/env bash
# The whole chain on a phantom, parts of it, what -resume finds again, mosaics in a bucket, transforms.
# A part of run.sh. KEEP=1 leaves the folder of the runs.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

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
  filled "$results"/{stitch/transform.json,aip/volume.ome.zarr/zarr.json,qc-report.html,reports/estimate.stitch.json,multiqc/strata_{run,joins,slices}_mqc.json} \
    "$results"/reports/volume.{stack,aip,preview}.json "$results"/volume/{shifts_xy,shifts_found,z_matches,stacking_decisions}.csv &&
    is_png "$results/previews/volume.png" && is_png "$results/aip/volume.png"
}
ok 'every result is there' chain_results
ok 'the volume is valid OME-Zarr' "$root/bin/zarr-tool" validate "$results/volume/volume.ome.zarr"
ok 'and has the levels that were asked for' has <("$root/bin/zarr-tool" info "$results/volume/volume.ome.zarr") '8'
# Only the shifts have no record: phantom wrote them with the mosaics, which name it.
explained() {
  "$root/bin/strata" explain "$results/volume/volume.ome.zarr" --all >"$tmp/explained" || return 1
  has "$tmp/explained" '^ *with --estimate_only transform.json' && has "$tmp/explained" '^Current: no input has changed since' &&
    same "$(grep 'no run record' "$tmp/explained" | sed 's/:.*//; s/.*\///')" shifts_xy.csv
}
ok 'explain follows the volume back to the mosaics, through links from task to task' explained
ok 'the report is whole' has "$results/qc-report.html" '</html>'
ok 'the report shows the projections, too' has "$results/qc-report.html" 'Average intensity projection of volume'
versions_of_all() { local p; for p in "${stages[@]}"; do has "$results/pipeline_info/versions.yml" "^  $p: \"$version\"" || return 1; done; }
ok 'versions of all programs' versions_of_all
ok 'tasks work on scratch, the stack too' has <(attempt stack.slices 1) " in=$tmp/disk/nxf\."
ok 'and leave nothing there' same "$(ls "$tmp/disk")" ''
ok 'the estimate looks at three of four' same "$(sed -n 's/.*estimate_only.*/x/p' "$FAULTS"/stitch.*.log | wc -l) $(grep -hoE 'mosaic_grid_3d_z0[0-9]' <(grep -h estimate_only "$FAULTS"/stitch.*.log) | sort -u | xargs)" \
  '1 mosaic_grid_3d_z00 mosaic_grid_3d_z02 mosaic_grid_3d_z03'
# The same by hand, stage after stage: what the workflow does by default beside the programs' own defaults stands here.
by_hand() {
  local in=$tmp/block work=$tmp/hand i m
  mkdir -p "$work/slices"
  for i in 0 1 2 3; do
    m=mosaic_grid_3d_z0$i.ome.zarr
    "$REAL_BIN/resample" "$in/$m" "$work/r$i.ome.zarr" --resolution 4 --n_levels 0 -q &&
      "$REAL_BIN/focal" "$work/r$i.ome.zarr" "$work/f$i.ome.zarr" --n_levels 0 -q || return 1
  done
  "$REAL_BIN/stitch" "$in"/mosaic_grid_3d_z0{0,2,3}.ome.zarr --estimate_only "$work/transform.json" -q &&
    cmp "$work/transform.json" "$results/stitch/transform.json" || return 1
  for i in 0 1 2 3; do
    "$REAL_BIN/stitch" "$work/f$i.ome.zarr" "$work/s$i.ome.zarr" --transform "$work/transform.json" --estimate --n_levels 0 -q &&
      "$REAL_BIN/crop" "$work/s$i.ome.zarr" "$work/slices/slice_z0$i.ome.zarr" --depth 160 --crop_before_interface --n_levels 0 -q &&
      same_image "$work/slices/slice_z0$i.ome.zarr" "$results/slices/slice_z0$i.ome.zarr" || return 1
  done
  "$REAL_BIN/stack" "$work/slices" "$in/shifts_xy.csv" "$work/volume.ome.zarr" --slicing_interval_mm 0.12 --search_range_mm 0.02 \
    --moving_z_first_index 1 --blend --blend_match depth --pyramid_resolutions 4 8 -q && same_image "$work/volume.ome.zarr" "$results/volume/volume.ome.zarr"
}
ok 'the same bytes as from the programs by hand' by_hand

faults
warm chain-resume run "$main" "${faulty[@]}" "${chain[@]}" --stack_cpus 2 --focal_memory '3 GB' --resample_prefetch 2 --use_gpu false -resume
ok '-resume with other resources, without scratch, executes nothing' same "$status $(tasks "$log") $(cached "$log")" '0  34'
warm chain-stack run "$main" "${faulty[@]}" "${chain[@]}" --stack_blend_match whole -resume
ok '-resume with another parameter of stack: it, its projection and picture, the report' same "$status $(tasks "$log")" '0 1 AIP 1 PREVIEW 1 REPORT 1 STACK'
warm chain-stitch run "$main" "${faulty[@]}" "${chain[@]}" --stitch_blending average -resume
ok '-resume with another parameter of stitch: not what comes before, nor the estimate' same "$status $(tasks "$log")" \
  '0 5 AIP 4 CROP 5 PREVIEW 1 REPORT 1 STACK 4 STITCH'
faults
warm chain-pictures run "$main" "${faulty[@]}" "${chain[@]}" --preview_window 0,2000 --preview_labels false --qc_report_title "Subject 12's run" --backend host --sync -resume
ok '-resume with another window of the pictures: they and the report; how files are read changes nothing' same "$status $(tasks "$log")" '0 5 PREVIEW 1 REPORT'
ok 'flags of both kinds get to the program' has <(attempt preview.slice_z00 1) ' --window 0,2000 --scale_bar --no-labels --threads 1 --mem [0-9]+MiB --backend host --sync '
ok 'the report has its title' has "$results/qc-report.html" '<title>Subject 12(&#39;|.)s run'
touch -d '2020-01-01' "$tmp/block/shifts_xy.csv"
warm chain-shifts run "$main" "${faulty[@]}" "${chain[@]}" -resume
ok '-resume with other shifts: the stack' same "$status $(count 'Submitted process > STRATA:STACK' "$log") $(count 'Submitted process > STRATA:(RESAMPLE|FOCAL|STITCH|CROP|ESTIMATE)' "$log")" '0 1 0'

# Parts of it.
warm skip-some run "$main" "${chain[@]}" --outdir some --skip focal,crop,aip,qc_report -resume
ok 'skip focal, crop, aip and report: what resample made, and the estimate, are found again' same "$status $(tasks "$log") $(count 'Cached process > STRATA:RESAMPLE' "$log")" \
  '0 5 PREVIEW 1 STACK 4 STITCH 1 VERSIONS 4'
ok 'the slices are as stitched, nothing else is left' same "$(names_in "$launch/some") $(images "$launch/some/slices")" 'metrics pipeline_info previews reports slices stitch volume 4'
warm skip-stack run "$main" "${chain[@]}" --outdir slices-only --skip aip,stack,preview,qc-report -resume
ok 'skip stack: the chain ends with the slices' same "$status $(ran "$log") $(diff -r "$launch/slices-only/slices" "$results/slices" | wc -l)" '0 1 0'
warm handed run "$main" "${chain[@]}" --outdir handed --skip aip,stack,preview,qc-report --intermediate_codec raw --publish_intermediates -resume
# blosc FOLDER: how many images in it are compressed.
blosc() { cat "$launch/handed/$1"/*.ome.zarr/0/zarr.json | grep -c '"blosc"'; }
ok 'intermediate_codec: what stages hand on is not compressed, the slices are' same "$status $(blosc resampled) $(blosc corrected) $(blosc stitched) $(blosc slices)" '0 0 0 0 4'
ok 'and have the same bytes' same "$(diff -r "$launch/handed/slices" "$results/slices" | wc -l)" 0
warm skip-estimate run "$main" "${chain[@]}" --outdir given --stitch_transform "$results/stitch/transform.json" --skip aip,preview,qc-report -resume
ok 'a transform that is given takes the place of the estimate' same "$status $(count ESTIMATE "$log") $(diff -r "$launch/given/slices" "$results/slices" | wc -l)" '0 0 0'
warm correction run "$main" "${chain[@]}" --outdir correction --skip aip,stitch,crop,stack,preview,qc-report -resume \
  --focal_correction "$results/focal/mosaic_grid_3d_z00/correction.ome.zarr"
ok 'a correction that is given takes the place of the search' same "$status $(tasks "$log") $(images "$launch/correction/corrected")" '0 4 FOCAL 1 VERSIONS 4'
ok 'and gives its own mosaic the same bytes' same_image "$launch/correction/corrected/mosaic_grid_3d_z00.ome.zarr" "$results/corrected/mosaic_grid_3d_z00.ome.zarr"
# A slice by the name that another tool may give it.
mkdir "$tmp/slices"
cp -r "$results"/slices/*.ome.zarr "$tmp/slices/"
mv "$tmp/slices/slice_z02.ome.zarr" "$tmp/slices/slice_z02_4um.ome.zarr"
sed '/^input/d' "$tmp/chain.yml" >"$tmp/direct.yml"
warm direct run "$main" -params-file "$tmp/direct.yml" --slices "$tmp/slices" --shifts "$tmp/block/shifts_xy.csv" --outdir direct
ok 'slices given directly go to the stack' same "$status $(tasks "$log")" '0 5 AIP 5 PREVIEW 1 REPORT 1 STACK 1 VERSIONS'
ok 'and make the same volume, which names them' same "$(diff -r -x zarr.json -x .zattrs "$launch/direct/volume" "$results/volume" 2>&1)" ''
warm no-shifts run "$main" -params-file "$tmp/direct.yml" --slices "$tmp/slices" --stack_no_xy_shift --outdir no-shifts --skip aip,preview,qc-report
ok 'without shifts: all slices in one frame' same "$status $(tail -n +2 "$launch/no-shifts/volume/shifts_xy.csv")" '0 '
# Mosaics in a bucket: the programs read them there, nothing is copied.
far() {
  local server from bucket
  (cd "$root" && CGO_ENABLED=0 ${GO:-go} build -o "$tmp/s3server" ./tests/s3emu/server) || return 1
  mkfifo "$tmp/bucket.in" "$tmp/bucket.out"
  "$tmp/s3server" -load "$tmp/block" -key a-key -secret a-secret <"$tmp/bucket.in" >"$tmp/bucket.out" &
  bucket=$!
  exec {from}>"$tmp/bucket.in" # it ends when this is closed
  read -r server <"$tmp/bucket.out" || return 1
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
  wait "$bucket" 2>/dev/null
  return 0
}
far || { failed=$((failed + 1)); echo 'FAIL  mosaics in a bucket: no server'; }

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
warm moved "${moved[@]}"
ok 'pairwise transforms: one found, one made by hand, one that is not to be used' same "$status $(tail -n +2 "$launch/moved/volume/stacking_decisions.csv" | cut -d , -f 1-5 | xargs)" \
  '0 1,0,True,automated,False 2,1,True,manual,True 3,2,False,automated,False'
by_hand_moved() {
  mkdir "$tmp/moved"
  "$REAL_BIN/stack" "$tmp/slices" "$tmp/block/shifts_xy.csv" "$tmp/moved/volume.ome.zarr" "${transforms[@]}" --slicing_interval_mm 0.12 --search_range_mm 0.02 \
    --moving_z_first_index 1 --blend --blend_match depth --pyramid_resolutions 4 8 --chunks 8,32,32 --shard 16,64,64 -q && same_image "$tmp/moved/volume.ome.zarr" "$launch/moved/volume/volume.ome.zarr"
}
ok 'the same bytes as from stack by hand, in the shards that were asked for' by_hand_moved
transform "$tmp/transforms/slice_z01" '0.01 2'
warm malformed "${moved[@]}"
ok '-resume notices a transform that was changed, and the message says what is wrong with it' same \
  "$((status != 0)) $(count 'slice_z01/transform.tfm:4: 2 parameters of an Euler2DTransform, want 3' "$log")" '1 2' # and the last line says it again

total
