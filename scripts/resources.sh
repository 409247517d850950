#!/usr/bin/env bash
# usage: resources.sh RESULTS [FACTOR]
# What the tasks of a run needed, by the records that its programs left in
# RESULTS/reports, as parameters for runs like it:
#
#   scripts/resources.sh results >resources.yml
#   nextflow run nextflow/main.nf -params-file resources.yml …
#
# memory: the largest resident set × FACTOR (1.25), in steps of 100 MB, and what the
#         share of it that becomes --mem has to hold (mem_fraction; MEM_FRACTION sets another than 0.75)
#         Where memory held fewer workers than cores, a line says so, and memory and cpus are what lets all of them work
# cpus:   how many were busy on average in the task that kept most of them busy
# time:   the longest task × 4, in steps of 10 minutes
#
# Take records of the largest slices, of a run in which nothing was retried.
set -euo pipefail
results=${1:?usage: resources.sh RESULTS [FACTOR]}
[ -d "$results/reports" ] || { echo "resources.sh: no folder $results/reports: want the outdir of a run" >&2; exit 2; }
shopt -s nullglob
records=("$results"/reports/*.json)
[ ${#records[@]} -gt 0 ] || { echo "resources.sh: no records (*.json) in $results/reports" >&2; exit 2; }
# The records have a field a line, and a field's indent says how deep it is.
awk -v factor="${2:-1.25}" -v fraction="${MEM_FRACTION:-0.75}" '
function number(   v) { v = $0; sub(/^[^:]*: */, "", v); sub(/,?[ \r]*$/, "", v); gsub(/"/, "", v); return v }
function up(value, step) { return int((value + step - 0.000001) / step) * step }
function greater(a, b) { return a + 0 > b + 0 ? a : b }
function take(   stage, busy) {
  if (tool == "" || code != 0) return
  stage = tool == "qc-report" ? "preview" : tool ~ /^(shifts|slices)/ && tool !~ /assess/ ? "table" : tool ~ /assess/ ? "assess" : tool
  gsub(/-/, "_", stage)
  if (!(stage in tasks)) order[++stages] = stage
  tasks[stage]++
  memory[stage] = greater(memory[stage], resident)
  time[stage] = greater(time[stage], wall)
  busy = wall > 0 ? phases / wall : 0
  if (busy > threads && threads) busy = threads
  cpus[stage] = greater(cpus[stage], busy)
  if (forall > 0) { short[stage]++; all[stage] = greater(all[stage], forall); if (threads > wide[stage]) wide[stage] = threads }
}
FNR == 1 { take(); tool = ""; code = resident = wall = phases = threads = forall = inside = 0 }
/^  "tool":/ { tool = number() }
/^  "threads":/ { threads = number() }
/^  "mem_for_all_cores":/ { forall = number() }
/^  "wall_seconds":/ { wall = number() }
/^  "peak_resident_bytes":/ { resident = number() }
/^  "exit_code":/ { code = number() }
/^  "phases":/ { inside = 1; next }
inside && /^  }/ { inside = 0 }
inside { phases += number() }
END {
  take()
  if (!stages) { print "resources.sh: no record of a task that succeeded" > "/dev/stderr"; exit 3 }
  for (i = 1; i <= stages; i++) {
    s = order[i]
    if (!index(" mosaic aip resample focal flatfield stitch beam_profile crop attenuation normalize assess table common_space interpolate register manual stack bias_field align preview ", " " s " ")) continue
    printf "# %s: %d tasks, at most %.0f MiB resident, %.1f CPUs busy, %.1f s\n", s, tasks[s], memory[s] / 1048576, cpus[s], time[s]
    need = memory[s] * factor
    if (short[s]) {
      printf "# %s: memory held fewer workers than cores in %d of %d tasks: %d MiB of buffers are enough for all %d\n", s, short[s], tasks[s], all[s] / 1048576, wide[s]
      need = greater(need, all[s] / fraction)
      cpus[s] = greater(cpus[s], wide[s])
    }
    printf "%s_cpus: %d\n", s, greater(1, up(cpus[s], 1))
    printf "%s_memory: %d MB\n", s, greater(200, up(need / 1048576, 100))
    printf "%s_time: %d m\n", s, greater(10, up(time[s] * 4 / 60, 10))
  }
}' "${records[@]}"
