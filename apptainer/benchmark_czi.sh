#!/usr/bin/env bash
# Asks for a CZI file and how much of it to read, and lets bench-czi measure which way of reading its tiles is the fastest
# (profile_czi.sh: where the time goes).
#
# usage: benchmark_czi.sh [ARGUMENT of bench-czi run]...     with arguments nothing is asked
#
# Inside a container the data are looked for in /data, elsewhere in DATA_DIR or this folder. Answers are read from the standard
# input; where that ends, the rest are the defaults. bench-czi is the one beside this script, in ../bin, or on the PATH.
set -uo pipefail

case ${BASH_SOURCE[0]} in */*) here=${BASH_SOURCE[0]%/*} ;; *) here=. ;; esac
me=${0##*/}
command=${STRATA_CZI_COMMAND:-run}
usage=2

die() { # die CODE MESSAGE
  printf '%s: %s\n' "$me" "$2" >&2
  exit "$1"
}

# find_tool: sets tool.
find_tool() {
  for tool in "$here/bench-czi" "$here/../bin/bench-czi" "$(type -P bench-czi)"; do
    if [ -x "$tool" ] && [ ! -d "$tool" ]; then return; fi
  done
  die 1 "bench-czi is not beside this script, in ../bin or on the PATH: run make build, or put its folder on the PATH"
}

in_container() {
  [ -n "${APPTAINER_CONTAINER-}${SINGULARITY_CONTAINER-}" ] || [ -e /.singularity.d ] || [ -e /.dockerenv ] || [ -e /run/.containerenv ]
}

# find_data: sets data, the folder in which a file is looked for, and where, what it is called here.
find_data() {
  data=${DATA_DIR:-$PWD} where="your data folder"
  if in_container && [ -d /data ]; then data=/data where="your data folder, which this container has as /data"; fi
}

# find_file: sets file to the first CZI file in the data folder or up to two folders below; to nothing if there is none.
find_file() {
  local pattern list
  file=''
  shopt -s nullglob nocaseglob
  for pattern in '*.czi' '*/*.czi' '*/*/*.czi'; do
    local IFS=''
    # shellcheck disable=SC2206 # the pattern
    list=("$data"/$pattern)
    if [ ${#list[@]} -gt 0 ]; then file=${list[0]}; break; fi
  done
  shopt -u nullglob nocaseglob
}

# ask TEXT DEFAULT: sets answer; leaves on q, which may also be typed behind the default, where the cursor stands.
ask() {
  answer=''
  if [ -t 0 ]; then
    IFS= read -e -r -p "$1 (q: leave): " -i "$2" answer || exit 0
  else
    printf '%s (q: leave) [%s]: ' "$1" "$2" >&2
    IFS= read -r answer || true
    printf '\n' >&2
  fi
  answer=${answer:-$2}
  case $answer in
    q | Q) exit 0 ;;
    "$2"q | "$2"Q) [ -e "$answer" ] || exit 0 ;;
  esac
}

# ask_file: sets file to one that is there.
ask_file() {
  local tries=0
  find_data
  find_file
  while :; do
    ask "CZI file in $where" "$file"
    # shellcheck disable=SC2088 # typed, where no shell has expanded it
    case $answer in '~/'*) answer=$HOME/${answer#'~/'} ;; esac
    case $answer in
      *://*) file=$answer; return ;;
      '') printf 'no CZI file was found in %s: give its path\n' "$data" >&2 ;;
      *)
        # A name alone is one in the data folder.
        if [ ! -e "$answer" ] && [ -e "$data/$answer" ]; then answer=$data/$answer; fi
        if [ -f "$answer" ] && [ -r "$answer" ]; then file=$answer; return; fi
        if [ -d "$answer" ]; then
          printf '%s: is a folder (must be a CZI file)\n' "$answer" >&2
        elif [ -e "$answer" ]; then
          printf '%s: no permission to read it\n' "$answer" >&2
        else
          printf '%s: no such file in %s\n' "$answer" "$where" >&2
        fi ;;
    esac
    tries=$((tries + 1))
    if [ ! -t 0 ] && [ $tries -ge 3 ]; then die 3 "no CZI file to read in $data"; fi
  done
}

# ask_amount LINE...: sets flags. A line is NAME|FLAGS|TEXT; the first is the default.
ask_amount() {
  local n=0 line name words text number
  for line; do
    IFS='|' read -r name words text <<<"$line"
    n=$((n + 1))
    printf '%2d) %-9s %s\n' $n "$name" "$text" >&2
  done
  while :; do
    ask 'choice' 1
    number=0
    for line; do
      number=$((number + 1))
      IFS='|' read -r name words text <<<"$line"
      if [ "$answer" = "$number" ] || [ "$answer" = "$name" ]; then
        read -ra flags <<<"$words"
        return
      fi
    done
    printf "'%s' is no choice: want a number from 1 to %d, or a name\n" "$answer" $n >&2
    [ -t 0 ] || exit $usage
  done
}

find_tool
if [ $# -gt 0 ]; then exec "$tool" "$command" "$@"; fi
ask_file
declare -a flags=()
case $command in
  run) ask_amount 'quick|--max_tiles 100 --quick|100 tiles: one after the other, on 4 and on 8 threads' \
    'medium|--max_tiles 500|500 tiles in all ways: threads, batches, processes' \
    'full||all tiles in all ways: takes long for a large file' ;;
  *) ask_amount 'quick|--max_tiles 50|50 tiles' 'standard|--max_tiles 100|100 tiles' 'detailed|--max_tiles 200|200 tiles' ;;
esac
set -- "$tool" "$command" ${flags[@]+"${flags[@]}"} -- "$file"
printf '+' >&2
printf ' %q' "$@" >&2
printf '\n\n' >&2
exec "$@"
