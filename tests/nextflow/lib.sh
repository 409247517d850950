# What the tests of the workflow share: checks that count, the data, and Nextflow.
# Sourced by run.sh here and by ../slurm/run.sh, after they set -uo pipefail.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/strata-test.XXXXXX")
passed=0 failed=0

# ok NAME COMMAND...: one line, one check.
ok() {
  local name=$1
  shift
  if "$@" >"$tmp/check" 2>&1; then
    passed=$((passed + 1))
    echo "ok    $name"
  else
    failed=$((failed + 1))
    echo "FAIL  $name: $*"
    tail -n 20 "$tmp/check" | sed 's/^/      | /'
  fi
}
# total: the last line, and the exit status.
total() {
  echo "$passed passed, $failed failed in $SECONDS s"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
fails() { ! "$@"; }
# same A B: equal text.
same() { [ "$1" = "$2" ] || { echo "is '$1', should be '$2'"; return 1; }; }
# same_image A B: the same chunks, byte for byte, and metadata. Of a group only what an image says of the files that were
# written with it may differ.
same_image() { diff -r -x zarr.json -x .zattrs "$1" "$2" && "$REAL_BIN/zarr-tool" validate "$1" "$2" -q; }
# last LOG [N]: the last lines of a run. An engine that stays between runs makes no report, and says so; it also says what it stops.
last() { grep -vE '^WARN: (Failed to render execution|Killing running tasks)' "$1" | tail -n "${2:-1}"; }
# has FILE PATTERN: a line matches (extended regular expression).
has() { grep -qE -- "$2" "$1" || { echo "no '$2' in $1:"; tail -n 15 "$1"; return 1; }; }
# filled FILE...: all exist and hold something.
filled() { local f; for f; do [ -s "$f" ] || { echo "$f is missing or empty"; return 1; }; done; }
is_png() { same "$(head -c 8 "$1" | od -An -tx1 | tr -d ' ')" 89504e470d0a1a0a; }
# count PATTERN FILE
count() { grep -cE -- "$1" "$2" || true; }
# ran LOG, cached LOG: how many tasks a run executed, or took from the cache.
ran() { count 'Submitted process|Re-submitted process' "$1"; }
cached() { count 'Cached process' "$1"; }
# A name is that of a mosaic, for aip; PROGRAM.NAME for another program.
planned() { case $1 in *.*) echo "$FAULTS/$1" ;; *) echo "$FAULTS/aip.$1" ;; esac; }
# attempts NAME: how many there were.
attempts() { count '^start' "$(planned "$1").log"; }
# attempt NAME N: the command line of the N-th attempt.
attempt() { grep '^start' "$(planned "$1").log" | sed -n "$2p"; }

# nf NAME ARGUMENTS...: runs Nextflow in $tmp/<folder of the test>, output in $log,
# status in $status (124: it hung).
# shellcheck disable=SC2034 # status is for the caller
nf() {
  local name=$1
  shift
  log=$tmp/$name.log
  status=0
  mkdir -p "$tmp/launch"
  (cd "${dir:-$tmp/launch}" && timeout -k 30 600 "$root/scripts/nextflow.sh" "$@") >"$log" 2>&1 || status=$?
}

# warm NAME ARGUMENTS...: the same as nf, but all in one Java process that the first of them starts in $tmp/launch (engine.groovy), in a third
# of the time. What depends on the environment or the folder, or is killed, is for nf; so is what looks at the execution report, which
# Nextflow writes once a process.
# shellcheck disable=SC2034
warm() {
  local name=$1
  shift
  log=$tmp/$name.log
  status=125
  # The descriptors of a coprocess are not for subshells, where checks run: copies of them are.
  local IFS=$'\1'
  printf '%s\n' "$log$IFS$*" >&"$engine_in"
  read -r -t 600 status <&"$engine_out" || { echo "the engine does not answer"; tail -n 20 "$tmp/engine.log"; }
}
start_engine() {
  mkdir -p "$tmp/launch"
  # Groovy drops what it has learned of its grammar after 64 files, of which a run has about as many. To learn it again takes
  # a quarter of a run.
  coproc ENGINE {
    cd "$tmp/launch" && NXF_OPTS="$NXF_OPTS -Dgroovy.antlr4.cache.threshold=1000000" STRATA_NEXTFLOW=jars STRATA_NEXTFLOW_MAIN=groovy.ui.GroovyMain \
      exec "$root/scripts/nextflow.sh" "$root/tests/nextflow/engine.groovy" 2>"$tmp/engine.log"
  }
  exec {engine_in}>&"${ENGINE[1]}" {engine_out}<&"${ENGINE[0]}"
}
stop_engine() { [ -z "${ENGINE_PID-}" ] || { echo >&"$engine_in"; wait "$ENGINE_PID"; } 2>/dev/null; }

# make_mosaics FOLDER N: phantom mosaics mosaic_grid_3d_z00 … of a small specimen.
make_mosaics() {
  "$root/bin/phantom" "$1" --slices "$2" --tiles 2,3 --tile 16,48,48 --quiet
}
# faults: empties the plans.
faults() {
  rm -rf "$FAULTS"
  mkdir -p "$FAULTS"
}
# plan NAME FAULT...: one for each attempt.
plan() { local name=$1; shift; printf '%s\n' "$@" >"$(planned "$name")"; }

# One of many short runs on few CPUs: what another collector does beside is time of the next one.
export NXF_OPTS="${NXF_OPTS:-} -XX:+UseSerialGC"
export FAULTS=$tmp/faults FAULTY_BIN=$tmp/faulty REAL_BIN=${REAL_BIN:-$root/bin}
stages=(aip resample focal stitch crop stack preview qc-report)
# What concerns no stage in particular is seen with one.
# shellcheck disable=SC2034,SC2054 # for the caller; commas are Nextflow's
aip_only=(--skip resample,focal,stitch,crop,stack,preview,qc-report)
mkdir -p "$FAULTY_BIN"
for program in "${stages[@]}" register; do ln -s "$root/tests/nextflow/faults/program" "$FAULTY_BIN/$program"; done
