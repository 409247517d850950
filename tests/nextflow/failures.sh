#!/usr/bin/env bash
# Failures of tasks, of mosaics and of Nextflow itself; how many tasks run at once.
# A part of run.sh. KEEP=1 leaves the folder of the runs.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=common.sh
. "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Failures.
faults
plan resample.mosaic_grid_3d_z03 1
plan focal.mosaic_grid_3d_z02 kill
plan stitch.mosaic_grid_3d_z01 4
plan crop.slice_z00 'always 3'
plan stack.slices 143
plan preview.slice_z02 104
warm chain-faults run "$main" "${faulty[@]}" "${chain[@]}" --outdir chain-faults --allow_missing_slices
missing=$launch/chain-faults/pipeline_info/missing_slices.tsv
ok 'failures along the chain: the run succeeds' same $status 0
ok 'every stage is tried again' same "$(attempts resample.mosaic_grid_3d_z03) $(attempts focal.mosaic_grid_3d_z02) $(attempts stack.slices) $(attempts preview.slice_z02)" '2 2 2 2'
ok 'with more memory' has <(attempt stack.slices 2) '--mem 3072MiB'
ok 'stitch goes on without the GPU' same "$(for n in 1 2; do attempt stitch.mosaic_grid_3d_z01 $n | grep -oE -- '--(no-)?use_gpu'; done | xargs)" '--use_gpu --no-use_gpu'
ok 'the slice that fails for good is tried once and reported with its stage' same "$(attempts crop.slice_z00) $(tail -n +2 "$missing" | tr '\t' ':')" '1 CROP:slice_z00:3:crop: slice_z00: planned fault 3'
ok 'the volume is of the three that are left' same "$(images "$launch/chain-faults/slices") $(tail -n +2 "$launch/chain-faults/volume/z_matches.csv" | cut -d , -f 1,2 | xargs)" '3 1,2 2,3'
ok 'and the end of the run says so, by name and once' has "$log" '^strata: 1 slice missing \(slice_z00\), also listed in '
faults
plan stack.slices 'always 3'
warm chain-stuck run "$main" "${faulty[@]}" "${chain[@]}" --outdir chain-faults --allow_missing_slices -resume
ok 'a stack that fails stops the run, whatever is allowed' same "$((status != 0)) $(attempts stack.slices)" '1 1'
ok 'and the last line names it' same "$(last "$log")" 'strata: stopped by STACK (4 slices): exit 3: stack: slices: planned fault 3'
faults
warm chain-healed run "$main" "${faulty[@]}" "${chain[@]}" --outdir chain-faults --allow_missing_slices -resume
# A picture that was being made when the run stopped is made now.
ok 'and -resume makes up for what was missing' has <(echo "$status $(tasks "$log") $(images "$launch/chain-faults/slices")") '^0 [12] AIP [12] PREVIEW 1 REPORT 1 STACK 4$'
# A mosaic that is really broken.
cp -r "$tmp/block" "$tmp/bad"
chunk=$(find "$tmp/bad/mosaic_grid_3d_z02.ome.zarr/" -type f -size +1k ! -name '*.json' | sort | head -n 1)
truncate -s 100 "$chunk"
warm bad run "$main" "${chain[@]}" --input "$tmp/bad" --outdir bad
ok 'a broken mosaic stops the run' same $((status != 0)) 1
ok 'and the message says which chunk' has "$log" "mosaic_grid_3d_z02.ome.zarr.*${chunk##*.ome.zarr/}"
warm bad-allowed run "$main" "${chain[@]}" --input "$tmp/bad" --outdir bad --allow_missing_slices -resume
ok 'with allow_missing_slices the rest goes on' same "$status $(images "$launch/bad/slices") $(tail -n +2 "$launch/bad/pipeline_info/missing_slices.tsv" | cut -f 1-3 | sort | xargs)" \
  '0 3 AIP mosaic_grid_3d_z02 3 RESAMPLE mosaic_grid_3d_z02 3'
ok 'it is one slice, and why is said last' same "$(count '^strata: 1 slice missing \(slice_z02\), also listed in ' "$log") $(last "$log" 2 | cut -d : -f 1,2 | sort | xargs)" \
  '1 mosaic_grid_3d_z02: AIP mosaic_grid_3d_z02: RESAMPLE'
ok 'and the estimate with it: it takes those of its three that are left' has "$launch/bad/reports/estimate.stitch.json" 'mosaic_grid_3d_z00'
faults
plan resample.mosaic_grid_3d_z02 'always 3'
plan stitch.mosaic_grid_3d_z00 'always 3'
warm no-estimate run "$main" "${faulty[@]}" "${chain[@]}" --outdir no-estimate --skip focal,aip,preview --allow_missing_slices
ok 'what stopped the run is named last' has <(last "$log") '^strata: stopped by ESTIMATE .*: exit 3: stitch: mosaic_grid_3d_z00: planned fault 3$'
ok 'and no slice that was left out is blamed' same "$((status != 0)) $(count 'no slice is left' "$log")" '1 0'
mkdir "$tmp/fewer"
ln -s "$tmp/block"/mosaic_grid_3d_z0[013].ome.zarr "$tmp/block/shifts_xy.csv" "$tmp/fewer/"
warm fewer run "$main" "${chain[@]}" --input "$tmp/fewer" --outdir fewer -stub-run
ok 'a slice that only the shifts know is missing too' same "$status $(last "$log" | xargs)" '0 slice_z02: INPUT: not in the input; shifts_xy.csv names it'
faults
for m in "$tmp"/block/*.ome.zarr; do plan "focal.$(basename "$m" .ome.zarr)" 'always 3'; done
warm none-left run "$main" "${faulty[@]}" "${chain[@]}" --outdir none-left --skip aip --allow_missing_slices
ok 'when no slice is left the run fails and says so' same "$((status != 0)) $(count 'no slice is left: all 4 failed, the first with: focal: mosaic_grid_3d_z00: planned fault 3' "$log")" '1 1'

# --- Slices that no volume should have -------------------------------------------

cp -r "$tmp/block" "$tmp/twice"
rm -rf "$tmp/twice/mosaic_grid_3d_z02.ome.zarr"
cp -r "$tmp/block/mosaic_grid_3d_z01.ome.zarr" "$tmp/twice/mosaic_grid_3d_z02.ome.zarr"
warm twice run "$main" "${chain[@]}" --input "$tmp/twice" --outdir twice --assess --skip aip,preview
ok 'a slice that was scanned twice: the run says so at its end' has <(echo "$status" "$(last "$log" 2 | xargs)") '^0 strata: 1 slice left out \(slice_z02\), .* slice_z02: duplicate: scanned twice: at the same depth'
ok 'it is not in the volume' same "$(tail -n +2 "$launch/twice/volume/stacking_decisions.csv" | cut -d , -f 1,2 | xargs)" '1,0 3,1'
ok 'and the report names it' has "$launch/twice/qc-report.html" 'Bad slices'
warm twice-gaps run "$main" "${chain[@]}" --input "$tmp/twice" --outdir twice --assess --common_space --interpolate --skip aip,preview -resume
ok 'where it was scanned no slice is made up' same "$status $(count 'process > STRATA:INTERPOLATE' "$log") $(find "$launch/twice" -name '*interpolated*' | wc -l)" '0 0 0'
warm twice-stop run "$main" "${chain[@]}" --input "$tmp/twice" --outdir twice --assess --skip aip,preview --slices_assess_faulty_slices stop -resume
ok 'or the run ends there' has <(echo "$((status != 0))" "$(last "$log")") '^1 strata: stopped by ASSESS \(4 slices\): exit 3: slices: slices: 1 faulty slice'

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
warm skip run "$main" "${faulty[@]}" "${six[@]}" --allow_missing_slices
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
warm skip-resume run "$main" "${faulty[@]}" "${six[@]}" --allow_missing_slices -resume
ok '-resume runs the missing ones only, also after retries' same "$status $(ran "$log") $(cached "$log")" '0 2 5'

faults
plan m_u8_v3raw 'always 3'
warm stop run "$main" "${faulty[@]}" "${six[@]}" -resume
ok 'exit 3 stops the run' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 1'
ok 'and the message says which slice and why' has "$log" 'm_u8_v3raw: planned fault 3'
ok 'no stale table of missing slices' fails ls "$missing"
one=("${aip_only[@]}" --input "$tmp/foreign/m_u8_v3raw.ome.zarr" --outdir one)
faults
plan m_u8_v3raw 'always 2'
warm usage run "$main" "${faulty[@]}" "${one[@]}" --allow_missing_slices
ok 'exit 2 stops the run at once' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 1'
faults
plan m_u8_v3raw 'always 1'
warm exhausted run "$main" "${faulty[@]}" "${one[@]}" --max_retries 1
ok 'max_retries is obeyed' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 2'
faults
plan m_u8_v3raw 'always 4'
warm required run "$main" "${faulty[@]}" "${one[@]}" --require_gpu --allow_missing_slices
ok 'exit 4 with require_gpu stops the run' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 1'
ok 'require_gpu is passed on' has <(attempt m_u8_v3raw 1) ' --require_gpu '
faults
plan m_u8_v3raw 4 'always 4'
warm twice run "$main" "${faulty[@]}" "${one[@]}"
ok 'exit 4 without the GPU stops the run' same "$((status != 0)) $(attempts m_u8_v3raw)" '1 2'
# A mosaic that is really broken, and the program's own words for it.
cp -r "${mosaics[0]}" "$tmp/broken.ome.zarr"
chunk=$(find "$tmp/broken.ome.zarr/" -type f -size +1k ! -name '*.json' ! -name '.z*' | sort | head -n 1)
truncate -s 100 "$chunk"
warm none run "$main" "${aip_only[@]}" --input "$tmp/broken.ome.zarr" --outdir none --allow_missing_slices
ok 'when every slice is missing the run fails' same $((status != 0)) 1
ok 'and says so' has "$log" "no slice is left: all 1 failed, the first with: aip: .*broken.ome.zarr.*${chunk##*.ome.zarr/}"
ok 'and the table has the reason' has "$launch/none/pipeline_info/missing_slices.tsv" "^AIP.broken.3.aip: .*broken.ome.zarr"

# Raw tiles that are really broken: of one slice a frame is cut off, of another info.txt promises more frames than there are.
"$root/bin/phantom" "$tmp/raw" --raw --slices 5 --tiles 2,2 --tile 32,48,48 --interval 60 -q || exit 1
cut=$tmp/raw/z01/tile_x01_y00_z01/image_00001.bin
truncate -s -100 "$cut"
sed -i 's/^ny: .*/ny: 60/' "$tmp/raw/z03/tile_x00_y01_z03/info.txt"
# shellcheck disable=SC2054 # commas are ours
raw=(run "$main" --raw "$tmp/raw" --outdir raw --skip aip,resample,flatfield,beam_profile,crop,attenuation,normalize,register,preview,qc_report --stitch_estimate false
  --stack_slicing_interval_mm 0.06 --stack_search_range_mm 0.02 --stack_moving_z_first_index 1 --stack_pyramid_resolutions 10
  --mosaic_cpus 1 --stitch_cpus 1 --common_space_cpus 1 --interpolate_cpus 1 --stack_cpus 1)
# Frames of 64 MiB of a tile, which are no frames of what info.txt says: the task has memory for them nevertheless.
mkdir -p "$tmp/wide/tile_x00_y00_z00"
echo 'nx: 4' >"$tmp/wide/tile_x00_y00_z00/info.txt"
truncate -s 64M "$tmp/wide/tile_x00_y00_z00/image_00000.bin"
touch "$tmp/before-wide"
warm wide "${raw[@]}" --raw "$tmp/wide" --mosaic_memory '100 MB'
granted() { find "$launch/work" -name .command.sh -newer "$tmp/before-wide" -exec sed -n 's/.* --mem \([^ ]*\).*/\1/p' {} +; }
ok 'mosaic has memory for whole tiles' same "$((status != 0)) $(granted)" '1 256MiB'
warm raw-bad "${raw[@]}"
ok 'a raw frame that is cut off, info.txt that is wrong: the run stops' same $((status != 0)) 1
ok 'and names file and slice last' has <(last "$log") '^strata: stopped by MOSAIC \(mosaic_grid_3d_z0[13]\): exit 3: mosaic: tiles/tile_x0._y0._z0[13][/:]'
warm raw-allowed "${raw[@]}" --allow_missing_slices -resume
missing=$launch/raw/pipeline_info/missing_slices.tsv
ok 'with allow_missing_slices the rest makes a volume' same "$status $(tasks "$log" | grep -o '[0-9] COMMON_SPACE\|[0-9] INTERPOLATE\|[0-9] STACK' | xargs)" '0 1 COMMON_SPACE 2 INTERPOLATE 1 STACK'
ok 'the slice of the frame is named, and the file' has "$missing" "^MOSAIC.mosaic_grid_3d_z01.3.mosaic: tiles/tile_x01_y00_z01/image_00001.bin: .*cut off"
ok 'that of the counts, too' has "$missing" '^MOSAIC.mosaic_grid_3d_z03.3.mosaic: tiles/tile_x00_y01_z03: 48 frames in 2 files, fewer than the 60 that info.txt says'
# made_up: each gap is filled with a slice, or it is said why not.
made_up() {
  local s
  for s in slice_z01 slice_z03; do
    if [ -e "$launch/raw/slices/${s}_interpolated.ome.zarr" ]; then has "$log" "made up for by interpolation:.* $s" || return 1; else has "$missing" "^INTERPOLATE.$s.-.interpolate: " || return 1; fi
  done
}
ok 'each gap is made up for, or it is said why not' made_up
truncate -s +100 "$cut"
warm raw-healed "${raw[@]}" --allow_missing_slices -resume
ok '-resume looks at the files that changed, no other' same "$status $(sed -n 's/.*process > STRATA:MOSAIC (\(.*\))/\1/p' <(grep Submitted "$log") | sort | xargs) $(grep -c '^MOSAIC' "$missing")" '0 mosaic_grid_3d_z01 mosaic_grid_3d_z03 1'

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

# --- Forks ---------------------------------------------------------------------

# most PROGRAM: the largest number of tasks that were inside it at one time.
most() {
  grep -hoE '^(start|end) [0-9.]+' "$FAULTS/$1".*.log | sort -k 2,2n |
    awk '{ n += $1 == "start" ? 1 : -1; if (n > m) m = n } END { print m }'
}
together() { faults; local m; for m in "$tmp"/six/*; do plan "$(basename "$m" .ome.zarr)" "gather $1"; done; }
options=$NXF_OPTS
export NXF_OPTS="$NXF_OPTS -XX:ActiveProcessorCount=12"
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
NXF_OPTS=$options

total
