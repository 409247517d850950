#!/usr/bin/env bash
# usage: times.sh TRACE [WALL]   what the time of a run went into, from its
# pipeline_info/trace.tsv: stages, the longest way from a mosaic to the report, and
# what is left of WALL (seconds; default: from the first task to the last) for the
# engine, and for a CPU that had nothing to do.
set -euo pipefail
cpus=${CPUS:-$(nproc)}
awk -F '\t' -v wall="${2:-0}" -v cpus="$cpus" '
function seconds(text,   part, n, i, s) {
  n = split(text, part, " ")
  for (i = 1; i <= n; i++) {
    if (part[i] ~ /ms$/) s += part[i] / 1000
    else if (part[i] ~ /s$/) s += part[i]
    else if (part[i] ~ /m$/) s += part[i] * 60
    else if (part[i] ~ /h$/) s += part[i] * 3600
    else if (part[i] ~ /d$/) s += part[i] * 86400
  }
  return s
}
function clock(text,   t) { # 2026-01-31 12:00:00.123, seconds; days do not matter beyond midnight
  split(text, t, /[-: ]/)
  return mktime(t[1] " " t[2] " " t[3] " " t[4] " " t[5] " " int(t[6])) + t[6] - int(t[6])
}
function greater(a, b) { return a > b ? a : b }
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
$column["status"] != "COMPLETED" { other[$column["status"]]++; next }
{
  process = tag = $column["name"]
  sub(/ .*/, "", process); sub(/.*:/, "", process)
  sub(/^[^(]*\(?/, "", tag); sub(/\)$/, "", tag)
  s = seconds($column["realtime"])
  count[process]++; sum[process] += s; longest[process] = greater(longest[process], s)
  if (!(process in order)) { order[process] = ++processes; name[processes] = process }
  tasks++; all += s
  match(tag, /z[0-9]+/)
  slice = RSTART ? substr(tag, RSTART, RLENGTH) : tag
  if (process ~ /^(MOSAIC|RESAMPLE|FOCAL|FLATFIELD)$/) mosaic[slice] += s
  else if (process ~ /^(STITCH|BEAM_PROFILE|CROP|ATTENUATION|NORMALIZE)$/) made[slice] += s
  else if (process ~ /^(AIP|PREVIEW)$/ && tag == "volume") after = greater(after, s)
  from = clock($column["submit"]); to = clock($column["complete"])
  if (!first || from < first) first = from
  last = greater(last, to)
}
END {
  if (!tasks) { print "no task was run" > "/dev/stderr"; exit 1 }
  if (!wall) wall = last - first
  for (slice in mosaic) path = greater(path, mosaic[slice])
  path += sum["ESTIMATE"]
  for (slice in made) ends = greater(ends, (sum["ESTIMATE"] ? path : mosaic[slice]) + made[slice])
  # One task each, one after the other; of the gaps and of the pairs the longest.
  n = split("CONFIG ASSESS CLEAN COMMON_SPACE FINALISE EXCLUDE STACK BIAS_FIELD REPORT VERSIONS", one, " ")
  path = greater(path, ends) + longest["INTERPOLATE"] + longest["REGISTER"] + after
  for (i = 1; i <= n; i++) path += sum[one[i]]
  printf "%-14s %6s %8s %8s\n", "stage", "tasks", "sum s", "longest"
  for (i = 1; i <= processes; i++) { p = name[i]; printf "%-14s %6d %8.2f %8.2f\n", tolower(p), count[p], sum[p], longest[p] }
  for (status in other) printf "(%d tasks %s)\n", other[status], tolower(status)
  printf "whole run      %.1f s\n", wall
  printf "tasks          %.1f s, %d of them added up: %.1f s on %d CPUs at best, %.1f s where one has to wait for the other\n", all, tasks, all / cpus, cpus, path
  printf "engine         %.1f s, what the run took longer than its tasks on %d CPUs: %.2f s a task\n", wall - all / cpus, cpus, (wall - all / cpus) / tasks
}' "$1"
