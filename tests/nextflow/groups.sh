#!/usr/bin/env bash
# Slices in groups (gpu_batch): the results, names and reports of single tasks, what -resume finds again, what happens when one of a group fails.
# A part of run.sh. KEEP=1 leaves the folder of the runs.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

warm alone run "$main" "${chain[@]}" --publish_intermediates
ok 'a task for each slice: the run succeeds' same "$status $(tasks "$log")" '0 9 AIP 4 CROP 1 ESTIMATE 4 FOCAL 5 PREVIEW 1 REPORT 4 RESAMPLE 1 STACK 4 STITCH 1 VERSIONS'
grouped=("${chain[@]}" --outdir groups --publish_intermediates --gpu_batch 3)
warm groups run "$main" "${grouped[@]}"
ok 'three slices a task: the last of four alone, and the volume' same "$status $(tasks "$log")" '0 5 AIP 2 CROP 1 ESTIMATE 2 FOCAL 5 PREVIEW 1 REPORT 2 RESAMPLE 1 STACK 2 STITCH 1 VERSIONS'
ok 'a task is called by its slices' has "$log" 'STRATA:RESAMPLE \(mosaic_grid_3d_z00 \+ mosaic_grid_3d_z01 \+ mosaic_grid_3d_z02\)$'
listed() { (cd "$1" && find . -name pipeline_info -prune -o -print | sort); }
ok 'the same files by the same names' diff <(listed "$results") <(listed "$launch/groups")
# Records, the report and what is made of records have times and command lines in them, and pictures of the report's are of those.
same_results() { diff -r -x pipeline_info -x reports -x multiqc -x 'qc-report*' -x '*_metrics.json' "$results" "$launch/groups"; }
ok 'with the same bytes' same_results
each_its_own() {
  local i p
  for i in 0 1 2; do
    for p in resample focal; do has "$launch/groups/reports/mosaic_grid_3d_z0$i.$p.json" "\"out\": \"[a-z]*/mosaic_grid_3d_z0$i.ome.zarr\"" || return 1; done
    for p in stitch crop; do has "$launch/groups/reports/slice_z0$i.$p.json" "\"line\": $((i + 1))," || return 1; done
  done
  ! grep -q '"batch"' "$launch/groups/reports/slice_z03.crop.json"
}
ok 'each slice has a record of its own' each_its_own

warm groups-again run "$main" "${grouped[@]}" -resume
ok '-resume executes nothing' same "$status $(tasks "$log")" '0 '
warm cpu run "$main" "${grouped[@]}" --use_gpu false --outdir cpu --skip focal,stitch,crop,stack,preview,qc-report,aip
ok 'without the GPU there are no groups' same "$status $(tasks "$log")" '0 4 RESAMPLE 1 VERSIONS'
cp -r "$tmp/block" "$tmp/changed"
touch -d 2020-01-01 "$tmp/changed/mosaic_grid_3d_z03.ome.zarr/zarr.json"
# shellcheck disable=SC2054 # commas are Nextflow's
some=(-params-file "$tmp/chain.yml" --gpu_batch 3 --skip focal,stitch,crop,stack,preview,qc-report)
echo "trace.fields = 'name,time'" >"$tmp/time.config"
warm some run "$main" -c "$tmp/time.config" "${some[@]}" --input "$tmp/changed" --outdir some
ok 'a group has the time of its slices' has "$launch/some/pipeline_info/trace.tsv" '^STRATA:RESAMPLE \(mosaic_grid_3d_z00 \+ mosaic_grid_3d_z01 \+ mosaic_grid_3d_z02\).12h$'
ok 'and one alone its own' has "$launch/some/pipeline_info/trace.tsv" '^STRATA:RESAMPLE \(mosaic_grid_3d_z03\).4h$'
touch -d 2021-01-01 "$tmp/changed/mosaic_grid_3d_z01.ome.zarr/zarr.json"
warm some-again run "$main" "${some[@]}" --input "$tmp/changed" --outdir some -resume
ok '-resume with a mosaic that changed: its group, and no other' same "$status $(tasks "$log") $(cached "$log")" '0 1 AIP 1 RESAMPLE 3'

# A mosaic that is really broken: the others of its group are done, and it goes the way of a task of its own.
cp -r "$tmp/block" "$tmp/bad"
chunk=$(find "$tmp/bad/mosaic_grid_3d_z02.ome.zarr/" -type f -size +1k ! -name '*.json' | sort | head -n 1)
truncate -s 100 "$chunk"
warm bad run "$main" "${chain[@]}" --gpu_batch 3 --input "$tmp/bad" --outdir bad
ok 'a broken mosaic stops the run' same $((status != 0)) 1
ok 'and the message says which chunk' has "$log" "mosaic_grid_3d_z02.ome.zarr.*${chunk##*.ome.zarr/}"
warm bad-allowed run "$main" "${chain[@]}" --gpu_batch 3 --input "$tmp/bad" --outdir bad --allow_missing_slices -resume
ok 'with allow_missing_slices the rest goes on' same "$status $(images "$launch/bad/slices") $(tail -n +2 "$launch/bad/pipeline_info/missing_slices.tsv" | cut -f 1-3 | sort | xargs)" \
  '0 3 AIP mosaic_grid_3d_z02 3 RESAMPLE mosaic_grid_3d_z02 3'
ok 'and why is said in the words of the program' has "$launch/bad/pipeline_info/missing_slices.tsv" '^RESAMPLE.mosaic_grid_3d_z02.3.resample: .*mosaic_grid_3d_z02.ome.zarr.*'
ok 'what failed left nothing' fails ls "$launch/bad/aip/mosaic_grid_3d_z02.png" "$launch/bad/reports/mosaic_grid_3d_z02.aip.json"
warm bad-again run "$main" "${chain[@]}" --gpu_batch 3 --input "$tmp/bad" --outdir bad --allow_missing_slices -resume
ok '-resume tries again what failed, and nothing else' same "$status $(tasks "$log")" '0 1 AIP_ALONE 1 RESAMPLE_ALONE'
# The same for the other programs: what they write beside their images goes, too.
for stage in focal stitch crop; do
  skip=aip,resample,focal,stitch,crop,stack,preview,qc-report
  warm "bad-$stage" run "$main" "${chain[@]}" --gpu_batch 3 --input "$tmp/bad" --outdir "bad-$stage" --publish_intermediates --allow_missing_slices --stitch_transform "$results/stitch/transform.json" --skip "${skip/$stage,/}"
  ok "$stage of a broken mosaic" same "$status $(find "$launch/bad-$stage" -name '*.ome.zarr' -prune -name '*_z0[0-3].ome.zarr' -printf x) $(find "$launch/bad-$stage" -path '*_z02*' -printf x) $(cut -f 1,3 "$launch/bad-$stage/pipeline_info/missing_slices.tsv" | tail -n 1 | xargs)" \
    "0 xxx  ${stage^^} 3"
done
# All of a group.
cp -r "$tmp/bad" "$tmp/worse"
for i in 0 1; do
  chunk=$(find "$tmp/worse/mosaic_grid_3d_z0$i.ome.zarr/" -type f -size +1k ! -name '*.json' | sort | head -n 1)
  truncate -s 100 "$chunk"
done
warm worse run "$main" "${chain[@]}" --gpu_batch 3 --input "$tmp/worse" --outdir worse --allow_missing_slices --skip aip,focal,stitch,crop,stack,preview,qc-report
ok 'a group of which nothing is left: each of its slices is missing, with its reason' same \
  "$status $(images "$launch/worse/resampled" 2>/dev/null) $(tail -n +2 "$launch/worse/pipeline_info/missing_slices.tsv" | sed 's/\t[^\t]*\(mosaic_grid_3d_z0.\)[^\t]*$/\t\1/' | xargs)" \
  '0 1 RESAMPLE mosaic_grid_3d_z00 3 mosaic_grid_3d_z00 RESAMPLE mosaic_grid_3d_z01 3 mosaic_grid_3d_z01 RESAMPLE mosaic_grid_3d_z02 3 mosaic_grid_3d_z02'
warm stub run "$main" "${chain[@]}" --gpu_batch 2 --outdir stub -stub-run
ok 'and as a dry run' same "$status $(tasks "$log")" '0 5 AIP 2 CROP 1 ESTIMATE 2 FOCAL 5 PREVIEW 1 REPORT 2 RESAMPLE 1 STACK 2 STITCH 1 VERSIONS'
total
