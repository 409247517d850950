#!/usr/bin/env bash
# The full chain from raw frames: every stage on a phantom of which a slice is missing, what is measured and decided, what -resume finds
# again, with every switch off, and slices that appear while the run waits. A part of run.sh. KEEP=1 leaves the folder of the runs.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
finish() {
  stop_engine
  if [ -n "${KEEP:-}" ]; then echo "kept: $tmp"; else rm -rf "$tmp"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM
export NXF_HOME=$tmp/home NXF_ANSI_LOG=false
main=$root/nextflow/main.nf launch=$tmp/launch
tasks() { sed -n 's/.*[Ss]ubmitted process > STRATA:\([A-Z_]*\).*/\1/p' "$1" | sort | uniq -c | xargs; }
"$REAL_BIN/phantom" "$tmp/raw" --raw --slices 4 --missing_slices 2 --tiles 2,2 --tile 48,64,64 --interval 80 --galvo_shift 7 -q || exit 1
cat >"$tmp/full.yml" <<YML
raw: $tmp/raw
outdir: full
resample_resolution: 4
crop_depth: 120
stack_slicing_interval_mm: 0.08
stack_search_range_mm: 0.02
stack_moving_z_first_index: 1
register_moving_z_index: 1
slices_assess_min_quality: 0.1
stack_pyramid_resolutions: [4, 8]
skip: [aip, preview]
use_gpu: false
YML
for s in mosaic resample focal flatfield stitch beam_profile crop attenuation normalize assess common_space interpolate register stack bias_field; do
  printf '%s_cpus: 1\n%s_memory: 1 GB\n' $s $s
done >>"$tmp/full.yml"
start_engine

warm full run "$main" -params-file "$tmp/full.yml"
results=$launch/full
ok 'raw frames to a volume: the run succeeds' same $status 0
ok 'the report shows the repair of shifts' has "$results/qc-report.html" 'plot of the repair and the drift'
ok 'each stage runs for each slice, gap or pair' has <(tasks "$log") \
  '^3 ATTENUATION 3 BEAM_PROFILE 1 CLEAN 1 COMMON_SPACE 1 CONFIG 3 CROP 1 ESTIMATE 1 FINALISE 3 FLATFIELD 1 INTERPOLATE 3 MOSAIC 3 NORMALIZE [23] REGISTER 1 REPORT 1 SHIFTS 1 STACK 3 STITCH 1 VERSIONS$'
ok 'the slice that is missing is named' has "$results/pipeline_info/missing_slices.tsv" '^INPUT.slice_z02.-.not among the raw frames$'
# A gap is filled, or it is said why not.
gap() {
  if grep -q ',true,' "$results/interpolate/slice_z02_manifest.csv"; then
    has "$log" 'slice_z02: INTERPOLATE: interpolate: [a-z_]+$' && [ ! -e "$results/slices/slice_z02_interpolated.ome.zarr" ]
  else
    has "$log" 'made up for by interpolation: slice_z02' && filled "$results"/slices/slice_z02_interpolated.ome.zarr/zarr.json "$results"/transforms/slice_z02_interpolated/transform.tfm
  fi
}
ok 'and made up for, or it is said why not' gap
ok 'the volume is valid OME-Zarr' "$REAL_BIN/zarr-tool" validate "$results/volume/volume.ome.zarr"
measured() {
  local s i
  for s in flatfield beam_profile attenuation normalize; do
    for i in 0 1 3; do [ -n "$(find "$results/metrics/$s" -name "*z0${i}*_metrics.json" -size +0)" ] || { echo "$s of $i"; return 1; }; done
  done
  filled "$results"/{metrics/common_space/common_space_alignment_metrics.json,metrics/shifts/rehoming_detection_metrics.json} \
    "$results"/transforms/slice_z0{1,3}/{transform.tfm,offsets.txt,pairwise_registration_metrics.json} "$results"/shifts/shifts_xy{,_clean}.csv \
    "$results"/slice_config/slice_config.csv "$results"/qc-report.html
}
ok 'what the stages measured is there' measured
ok 'the table has a row for each slice' same "$(tail -n +2 "$results/slice_config/slice_config.csv" | cut -d , -f 1,2 | tr -d '\r' | xargs)" '00,true 01,true 03,true'
# By hand, what a slice goes through; the programs' own tests say that they are right.
by_hand() {
  local work=$tmp/hand
  mkdir "$work" &&
    "$REAL_BIN/mosaic" "$tmp/raw" "$work/m.ome.zarr" --slice 1 --resolution -1 -q && "$REAL_BIN/resample" "$work/m.ome.zarr" "$work/r.ome.zarr" --resolution 4 --n_levels 0 -q &&
    "$REAL_BIN/flatfield" "$work/r.ome.zarr" "$work/f.ome.zarr" --n_levels 0 -q &&
    "$REAL_BIN/stitch" "$work/f.ome.zarr" "$work/s.ome.zarr" --transform "$results/stitch/transform.json" --estimate --n_levels 0 -q &&
    "$REAL_BIN/beam-profile" "$work/s.ome.zarr" "$work/b.ome.zarr" --n_levels 0 -q &&
    "$REAL_BIN/crop" "$work/b.ome.zarr" "$work/c.ome.zarr" --depth 120 --crop_before_interface --n_levels 0 -q &&
    "$REAL_BIN/attenuation" "$work/c.ome.zarr" "$work/a.ome.zarr" --n_levels 0 -q && "$REAL_BIN/normalize" "$work/a.ome.zarr" "$work/n.ome.zarr" --n_levels 0 -q || return 1
  same_image "$work/n.ome.zarr" "$(find "$launch/work" -path '*normalized/slice_z01.ome.zarr' -print -quit)"
}
ok 'a slice is what the programs make of it by hand' by_hand
ok 'shifts go along the axes of the mosaics' same "$(awk -F , 'NR == 2 { printf "%.3f %.3f", $5, $6 }' "$results/shifts/shifts_xy.csv")" \
  "$(tr -d ' \n' <"$tmp/raw/truth.json" | sed 's/.*"recorded_shift_px":\[\([^]]*\)\].*/&/; s/"pairs":\[{"fixed_id":0,"moving_id":1,"true_shift_px":\[/\n/; s/^[^\n]*\n//' | awk -F '[],]' '{ printf "%.3f %.3f", $2 * 0.002, $1 * 0.002; exit }')"

warm resumed run "$main" -params-file "$tmp/full.yml" -resume
ok '-resume executes nothing' same "$status $(tasks "$log")" '0 '

# Mosaics that nobody keeps: the one of which the stage's tiles are estimated is written, for that.
warm unkept run "$main" -params-file "$tmp/full.yml" --outdir unkept --skip preview --publish_intermediates --keep_mosaic false --stitch_estimate_mosaics 1 -resume
ok 'without the mosaics: the run succeeds' has <(echo "$status $(tasks "$log")") '^0 4 AIP 3 ATTENUATION .*1 ESTIMATE .*3 MOSAIC .*3 STITCH'
unkept() {
  local at
  at=$(find "$launch/work" -path '*/mosaics/*.ome.zarr' -prune -newer "$tmp/resumed.log" -printf '%f ')
  same "$at" 'mosaic_grid_3d_z01.ome.zarr ' && fails ls "$launch/unkept/mosaics"
}
ok 'one is written, and none published' unkept
one_pass() {
  "$REAL_BIN/aip" "$tmp/hand/m.ome.zarr" "$tmp/hand/aip.ome.zarr" --png "$tmp/hand/aip.png" -q &&
    same_image "$tmp/hand/aip.ome.zarr" "$launch/unkept/aip/mosaic_grid_3d_z01.ome.zarr" && cmp "$tmp/hand/aip.png" "$launch/unkept/aip/mosaic_grid_3d_z01.png" &&
    same_image "$tmp/hand/r.ome.zarr" "$launch/unkept/resampled/mosaic_grid_3d_z01.ome.zarr" && filled "$launch"/unkept/aip/mosaic_grid_3d_z0{0,3}.png
}
ok 'projection and resampled mosaic are those of the programs' one_pass
warm unkept-again run "$main" -params-file "$tmp/full.yml" --outdir unkept --skip preview --publish_intermediates --keep_mosaic false --stitch_estimate_mosaics 1 -resume
ok 'and -resume finds them' same "$status $(tasks "$log")" '0 '
# shellcheck disable=SC2054 # commas are ours
projections=(run "$main" -params-file "$tmp/full.yml" --outdir projections --chain short --keep_mosaic false --skip resample,focal,stitch,crop,stack,preview,qc-report)
warm projections "${projections[@]}" -resume
ok 'projections alone, without mosaics' same "$status $(tasks "$log") $(find "$launch/projections" -maxdepth 2 -name '*.ome.zarr' | wc -l)" '0 3 MOSAIC 1 VERSIONS 3'

# Switches of the chain that are off by default: the package for aligning by hand, what comes back from it, a template to lay the volume on. With
# the volume itself as template nothing is to be found but the way in which the axes run.
# shellcheck disable=SC2054 # commas are ours
by_eye=(run "$main" -params-file "$tmp/full.yml" --outdir by-eye --manual --align --align_start_preview --diagnostics --align_template "$results/volume/volume.ome.zarr" --align_input_orientation IPL --align_template_orientation IPL)
warm by-eye "${by_eye[@]}" -resume
ok 'manual, align and diagnostics: they run, and the report; the rest is found again' same "$status $(tasks "$log")" '0 1 ALIGN 1 MANUAL 1 REPORT 1 ROTATION 1 STACK_MOTORS 3 STITCH_MOTORS 1 VERSIONS'
ok 'the slices by the motor are beside the stitched ones' filled "$launch"/by-eye/diagnostics/{stitch/slice_z0{0,1,3}/{comparison.png,metrics.json},stack/motor.png}
ok 'how registrations turn slices is there' filled "$launch"/by-eye/diagnostics/registration/rotation_analysis.{json,txt,svg}
ok 'the report shows the comparison' has "$launch/by-eye/qc-report.html" 'Diagnostics'
ok 'the volume is drawn on the template before it is registered' is_png "$launch/by-eye/align/volume_start.png"
opened() { (strata() { local a; shift; for a; do case $a in /*) [ -e "$a/zarr.json" ] || [ -e "$a/transform.tfm" ] || exit 1 ;; esac; done; echo "$#"; }; export -f strata; cd / && bash "$launch/by-eye/manual/align.sh"); }
ok 'what was published for aligning by hand finds slices and transforms' same "$(opened | grep -c '^[0-9]*$')" "$(tail -n +2 "$launch/by-eye/manual/pairs.csv" | wc -l)"
ok 'the volume lies on itself' same "$(awk '/^Parameters:/ { for (i = 2; i <= 7; i++) if ($i > 0.01 || $i < -0.01) bad = 1; print NF - 1, bad + 0 }' "$launch/by-eye/align/volume_ras_transform.tfm")" '6 0'
aligned() { "$REAL_BIN/align" "$launch/by-eye/volume/volume.ome.zarr" "$tmp/ras.ome.zarr" --template "$results/volume/volume.ome.zarr" --input_orientation IPL --template_orientation IPL --pyramid_resolutions 4 8 -q && same_image "$tmp/ras.ome.zarr" "$launch/by-eye/align/volume_ras.ome.zarr"; }
ok 'with the same bytes as by hand' aligned
# The place of a slice, as view saves it.
echo '{"kind": "strata placement", "fixed": "slice_z00", "moving": "slice_z01", "transform": {"angle": 0.002, "tx": 1, "ty": -1, "cx": 40, "cy": 40, "fixed_z": 18, "moving_z": 1}}' >"$tmp/slice_z01_place.json"
"$REAL_BIN/manual" apply "$tmp/by-hand" "$tmp/slice_z01_place.json" -q || exit 1
warm by-hand run "$main" -params-file "$tmp/full.yml" --outdir by-hand --manual_transforms_dir "$tmp/by-hand" -resume
ok 'a slice that was placed by hand: the volume takes it' same "$status $(tasks "$log") $(awk -F , '$1 == 1 { print $4 }' "$launch/by-hand/volume/stacking_decisions.csv")" '0 1 REPORT 1 STACK manual'

# Every switch of the stages on its other side, in one run (switches_test.go tells which are where). With so few tiles a flat-field for
# each plane has to be smooth.
cat "$root/tests/nextflow/other.yml" <(grep -v '^skip' "$tmp/full.yml") >"$tmp/other.yml"
touch "$tmp/before-other"
warm other run "$main" -params-file "$tmp/other.yml" --outdir other --flatfield_smoothness_flatfield 500 --aip --preview -resume
ok 'with the switches of all stages on their other side: the run succeeds' has <(echo "$status $(tasks "$log")") \
  '^0 4 AIP 1 ASSESS .*1 BIAS_FIELD .*3 FOCAL .*3 MOSAIC .*[45] PREVIEW .*1 STACK .*'
# Joined lines of all commands of that run.
commands() { find "$launch/work" -name .command.sh -newer "$tmp/before-other" -exec sed -e :a -e '/\\$/{N;s/\\\n//;ba' -e '}' {} +; }
told() {
  local name value sets program flag
  commands >"$tmp/commands"
  while IFS=': ' read -r name value; do
    sets=$(sed -n "/^ *\"$name\": {/,/}/s/.*\"sets\": \"\(.*\)\",*$/\1/p" "$root/nextflow/nextflow_schema.json")
    program=${sets% --*}
    [ "$program" != format ] || program='[a-z-]+' # of all that write images
    flag=--
    [ "$program" != resample ] || program=mosaic flag=--resampled_ # in the same pass
    [ -z "$sets" ] || has "$tmp/commands" "^$program .*$flag$([ "$value" = true ] || echo no-)${sets#* --}( |$)" || return 1
  done < <(grep -v '^#' "$root/tests/nextflow/other.yml")
}
ok 'and each gets to its program' told
ok 'the corrected volume is valid' "$REAL_BIN/zarr-tool" validate "$launch/other/bias_field/volume.ome.zarr"
off=(--outdir off)
for s in aip resample focal flatfield stitch beam_profile crop attenuation normalize assess clean_shifts common_space interpolate register manual exclude stack bias_field preview qc_report align; do off+=("--$s" false); done
# All slices are there when it begins, and so is what says that no more will come.
warm off run "$main" -params-file "$tmp/full.yml" "${off[@]}" --watch --watch_end truth.json --watch_settle 1s --watch_interval 1s -resume
ok 'with every switch off, waiting for slices: the mosaics' same "$status $(tasks "$log") $(find "$launch/off/mosaics" -maxdepth 1 -name '*.ome.zarr' | wc -l)" '0 3 MOSAIC 3'
warm short run "$main" -params-file "$tmp/full.yml" --outdir short --chain short -stub-run
ok 'the short chain, from raw frames' same "$status $(tasks "$log")" '0 3 CROP 1 ESTIMATE 3 FOCAL 3 MOSAIC 1 REPORT 1 SHIFTS 1 STACK 3 STITCH 1 VERSIONS'
warm needs run "$main" -params-file "$tmp/full.yml" --common_space false --register true
ok 'a stage that lacks what it needs' same "$status $(sed -n 's/^ERROR ~ //p' "$log")" '2 parameter register: needs common_space, which is left out'

# Slices appear while the run waits; their numbers pass 99.
tile() { mkdir -p "$tmp/scan/z$1/tile_x00_y00_z$1" && echo 'nx: 4' >"$tmp/scan/z$1/tile_x00_y00_z$1/info.txt"; }
tile 98
tile 99
touch "$tmp/before-watch"
(while ! grep -qs 'MOSAIC (mosaic_grid_3d_z98)' "$tmp/watch.log"; do sleep 0.5; done; tile 100; tile 101; sleep 1; touch "$tmp/scan/DONE") &
warm watch run "$main" --raw "$tmp/scan" --outdir watch --watch --watch_settle 1s --watch_interval 1s --skip aip,preview,qc_report --keep_mosaic false -stub-run
wait $!
ok 'slices are taken as they appear' same "$status $(sed -n 's/.*process > STRATA:MOSAIC (mosaic_grid_3d_z\([0-9]*\))/\1/p' "$log" | sort -n | xargs)" '0 98 99 100 101'
ok 'three mosaics are written, for the estimate' same "$(find "$launch/work" -path '*/mosaics/*.ome.zarr' -prune -newer "$tmp/before-watch" | wc -l) $(sed -n 's/.*process > STRATA:ESTIMATE (\(.*\))/\1/p' "$log")" '3 3 mosaics'
ok 'and are neighbours by number' same "$(sed -n 's/.*process > STRATA:REGISTER (\(.*\))/\1/p' "$log" | sort -V | xargs)" 'slice_z99 slice_z100 slice_z101'
total
