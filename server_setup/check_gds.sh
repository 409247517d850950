#!/usr/bin/env bash
# Says whether files go straight into a GPU's memory here, and what to do if not:
# what doctor finds, and the next step for it. --help says how.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'HELP'
usage: check_gds.sh [--json FILE] [PATH]

Asks doctor whether reads go straight from storage to a GPU and, where they do not, says
why and what to do next. With PATH it is asked of that file or folder.

  --json FILE  what doctor --json wrote before, for example on another machine (- is standard input)
  --help       this text

doctor is taken from the PATH, from ../bin, or from an image (STRATA_IMAGE, or strata-gpu.sif or
strata.sif in ../build or the working folder) by apptainer, singularity or sif run-root.

exit code  0  reads go straight to the GPU
           1  they do not: the reason is written
           2  wrong usage
           3  no doctor, or what it wrote is not understood
HELP
}

fail() {
  echo "check_gds.sh: $2" >&2
  exit "$1"
}

json='' path=''
while [ $# -gt 0 ]; do
  case $1 in
    --json) [ -n "${2:-}" ] || fail 2 '--json needs a file'; json=$2; shift ;;
    -h | --help) usage; exit 0 ;;
    --) shift; [ $# -le 1 ] || fail 2 'one PATH at most'; path=${1:-}; break ;;
    -*) fail 2 "unknown argument $1 (--help lists what there is)" ;;
    *) [ -z "$path" ] || fail 2 'one PATH at most'; path=$1 ;;
  esac
  shift
done
[ -z "$json" ] || [ -z "$path" ] || fail 2 '--json FILE and PATH exclude each other'
[ -z "$path" ] || [ -e "$path" ] || fail 2 "$path does not exist"

# --- doctor ------------------------------------------------------------------------

# find_doctor: how it is called, in the array doctor.
find_doctor() {
  local image list=("$PWD/strata-gpu.sif" "$PWD/strata.sif" "$here/../build/strata-gpu.sif" "$here/../build/strata.sif")
  if command -v doctor >/dev/null 2>&1; then doctor=(doctor); return; fi
  if [ -x "$here/../bin/doctor" ]; then doctor=("$here/../bin/doctor"); return; fi
  [ -z "${STRATA_IMAGE:-}" ] || list=("$STRATA_IMAGE")
  for image in "${list[@]}"; do
    [ -f "$image" ] || continue
    local bind=()
    if command -v apptainer >/dev/null 2>&1 || command -v singularity >/dev/null 2>&1; then
      [ -z "$path" ] || bind=(--bind "$path")
      # A name that --bind would take apart is left to what is bound anyway.
      case $path in *[:,]*) bind=() ;; esac
      doctor=("$(command -v apptainer || command -v singularity)" exec --nv "${bind[@]}" "$image" doctor)
      return
    fi
    if command -v sif >/dev/null 2>&1; then doctor=(sif run-root "$image" doctor); return; fi
    fail 3 "$image has doctor, but there is no apptainer, singularity or sif to run it with"
  done
  fail 3 "no doctor on the PATH, in $here/../bin or in an image: make build, or set STRATA_IMAGE"
}

if [ -n "$path" ]; then path=$(cd "$(dirname "$path")" && pwd)/$(basename "$path"); fi
if [ "$json" = - ]; then
  text=$(cat)
elif [ -n "$json" ]; then
  text=$(cat -- "$json" 2>/dev/null) || fail 2 "$json cannot be read"
else
  doctor=()
  find_doctor
  rc=0
  errors=$(mktemp) || fail 3 'no temporary file can be made'
  text=$("${doctor[@]}" --json ${path:+"$path"} 2>"$errors") || rc=$?
  if [ "$rc" = 2 ] && [ -n "$path" ]; then
    echo 'note: this doctor does not look at paths; what follows is of the machine as a whole'
    rc=0
    text=$("${doctor[@]}" --json 2>"$errors") || rc=$?
  fi
  why=$(head -n 1 "$errors")
  rm -f "$errors"
  [ "$rc" = 0 ] || fail 3 "${doctor[*]} --json failed with exit code $rc${why:+: $why}"
fi

# facts: JSON as lines "gpus.0.name<tab>value".
facts=$(awk '
  function bad() { exit 1 }
  function space() { while (substr(s, p, 1) ~ /^[ \t\r\n]$/) p++ }
  function string(    from, out, c) {
    from = ++p
    for (;;) {
      c = substr(s, p, 1)
      if (c == "") bad()
      if (c == "\"") { p++; return out }
      if (c == "\\") {
        c = substr(s, ++p, 1)
        if (c == "u") { p += 4; c = "?" } else if (c ~ /[nrtbf]/) c = " "
      }
      out = out c
      p++
    }
  }
  function value(path,    key, n) {
    space()
    if (substr(s, p, 1) == "{") {
      p++; space()
      if (substr(s, p, 1) == "}") { p++; return }
      for (;;) {
        space()
        if (substr(s, p, 1) != "\"") bad()
        key = string()
        space()
        if (substr(s, p++, 1) != ":") bad()
        value(path == "" ? key : path "." key)
        space()
        n = substr(s, p++, 1)
        if (n == "}") return
        if (n != ",") bad()
      }
    }
    if (substr(s, p, 1) == "[") {
      p++; space()
      if (substr(s, p, 1) == "]") { p++; return }
      for (n = 0; ; n++) {
        value(path "." n)
        space()
        key = substr(s, p++, 1)
        if (key == "]") return
        if (key != ",") bad()
      }
    }
    if (substr(s, p, 1) == "\"") { print path "\t" string(); return }
    if (!match(substr(s, p, 40), /^[-+.0-9A-Za-z]+/)) bad()
    print path "\t" substr(s, p, RLENGTH)
    p += RLENGTH
  }
  { s = s $0 "\n" }
  END { p = 1; value(""); space(); if (p <= length(s)) exit 1 }' <<<"$text") || fail 3 'what doctor --json wrote is not understood'

declare -A known=()
while IFS=$'\t' read -r key value; do [ -z "$key" ] || known[$key]=$value; done <<<"$facts"
# fact PATH: its value.
fact() { printf '%s' "${known[$1]:-}"; }
[ -n "$(fact verdict)" ] || fail 3 'what doctor --json wrote has no verdict: is it of another program?'

# --- What to do next -----------------------------------------------------------------

# advise REASON: the next step. The patterns are what the programs write, and a test
# keeps them so.
advise() {
  case $1 in
    *"the NVIDIA driver's library cannot be opened"*)
      echo 'install the NVIDIA driver with open kernel modules; in a container, start that with --nv' ;;
    *'the NVIDIA driver sees no device'*)
      echo 'ask for a GPU (SLURM: --gres=gpu:1), start containers with --nv, and look at CUDA_VISIBLE_DEVICES' ;;
    *'the NVIDIA driver is for CUDA'* | *'the NVIDIA driver is older than CUDA 12.0'*)
      echo 'install a driver of the series 525 or newer; nvidia-fs wants one with open kernel modules' ;;
    *"cuFile's library cannot be opened"*)
      echo 'use an image made with --with_nvidia, or install libcufile (package libcufile-12-9 or the one of your CUDA), or set STRATA_LIBCUFILE' ;;
    *"cuFile's library is older than CUDA 12.0"*)
      echo 'install libcufile of CUDA 12.0 or newer, or unset STRATA_LIBCUFILE' ;;
    *'cuFile hangs where /proc/modules cannot be read'*)
      echo 'give the container a /proc: without it nothing goes straight' ;;
    *'neither the kernel module nvidia-fs nor PCI peer-to-peer transfers'* | *'compatibility mode: the kernel module nvidia-fs is not loaded'*)
      echo "modprobe nvidia-fs; where there is none: $here/install_gds.sh says what is missing" ;;
    *'cuFile is told to use its compatibility mode'*)
      echo 'unset CUFILE_FORCE_COMPAT_MODE, and take force_compat_mode out of cufile.json (CUFILE_ENV_PATH_JSON, /etc/cufile.json)' ;;
    *'STRATA_COMPAT_MODE or KVIKIO_COMPAT_MODE is on'*)
      echo 'unset STRATA_COMPAT_MODE and KVIKIO_COMPAT_MODE, or set them to auto' ;;
    *'cuFile does not start'* | *'cuFile does not say how it moves data'*)
      echo 'gdscheck -p says which part refuses; CUFILE_LOGFILE_PATH=~/cufile.log has the reason' ;;
    *)
      echo 'docs/gpu-direct.md lists what is needed, docs/troubleshooting.md what messages mean' ;;
  esac
}
# next REASON [WHAT]: the step that doctor names, or the one for its reason.
next() {
  local what=${2:-}
  case $what in '' | 'see docs/gpu-direct.md') what=$(advise "$1") ;; esac
  echo "  next: $what"
}

printf '%s\n' "$(fact verdict)"
straight=''
n=0
while [ -n "$(fact "gpus.$n.name")" ]; do
  name="GPU $n, $(fact "gpus.$n.name")"
  reason=$(fact "gpus.$n.reason")
  how=$(fact "gpus.$n.gds_reason")
  if [ -n "$reason" ]; then
    echo "$name: not usable: $reason"
    next "$reason"
  elif [ "$(fact "gpus.$n.gds")" = true ]; then
    echo "$name: reads go straight to it: $how"
    straight=1
  else
    echo "$name: reads go through the host: ${how:-no reason given}"
    next "$how"
  fi
  n=$((n + 1))
done
[ "$n" != 0 ] || echo 'no GPU: reads go to the host'

# What cuFile says of a GPU is not all: the file system, drives and the path decide too.
backend=$(fact reading.backend)
if [ -n "$backend" ]; then
  because=$(fact reading.because)
  of=$(fact reading.path)
  if [ "$backend" = gds ]; then
    straight=1
    echo "reads of ${of:-files} go $because"
  else
    straight=''
    echo "reads of ${of:-files} go through the host: $because"
    next "$because" "$(fact reading.next)"
  fi
elif [ "$n" = 0 ]; then
  next "$(fact verdict)"
fi
n=0
while [ -n "$(fact "checks.$n.name")" ]; do
  if [ "$(fact "checks.$n.mark")" = '!' ]; then
    echo "look at $(fact "checks.$n.name"): $(fact "checks.$n.text")"
    step=$(fact "checks.$n.next")
    [ -z "$step" ] || echo "  next: $step"
  fi
  n=$((n + 1))
done

if [ -n "$straight" ]; then
  echo 'GPUDirect Storage works here. A run counts what it moved so: gpu.bytes_straight_to_device in its --report'
  exit 0
fi
echo 'GPUDirect Storage does not work here: see "next" above'
exit 1
