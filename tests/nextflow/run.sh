#!/usr/bin/env bash
# The workflow for real, on this machine: the whole chain on a phantom, parts of it,
# mosaics that other programs wrote, caching, failures, parameters, a pipeline that calls our
# programs by the names of others. One line for each check. The parts run side by side, and each can be run by itself.
# KEEP=1 leaves the folders of the runs.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")" || exit 1
../../scripts/nextflow.sh -v || exit 1 # fetches what is missing, before several want it
logs=$(mktemp -d "${TMPDIR:-/tmp}/strata-test.XXXXXX")
trap 'rm -rf "$logs"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM
parts=(chain full failures groups single swap readme tutorial)
declare -A pids=()
for part in "${parts[@]}"; do
  ./$part.sh >"$logs/$part" 2>&1 &
  pids[$part]=$!
done
bad=0
for part in "${parts[@]}"; do
  wait "${pids[$part]}" || bad=$((bad + 1))
  echo "--- $part"
  cat "$logs/$part"
done
awk -v bad=$bad -v s=$SECONDS '/^[0-9]+ passed, [0-9]+ failed in / { p += $1; f += $3; n++ }
  END { if (n < '${#parts[@]}') { print '${#parts[@]}' - n " parts ended early"; f += '${#parts[@]}' - n } printf "%d passed, %d failed\n", p, f; print "nextflow: " s " s"; exit n < '${#parts[@]}' || bad || f }' "$logs"/*
