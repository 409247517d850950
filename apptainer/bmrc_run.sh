#!/usr/bin/env bash
# The programs of one image file, from a menu or from a command line: bmrc_run.sh --help.
#
# This file needs nothing beside it: copy it and the image to a cluster. It runs
# from bash 4.2 on; what it finds on the machine decides what it uses (Apptainer,
# Singularity or sif run-root; whiptail or a plain menu).
#
# shellcheck disable=SC2317 # checks of answers are called by name
set -uo pipefail

version=0.19.0
me=bmrc_run.sh
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
config_file=${XDG_CONFIG_HOME:-${HOME:-/nonexistent}/.config}/strata/bmrc_run.conf
log_file=${XDG_STATE_HOME:-${HOME:-/nonexistent}/.local/state}/strata/bmrc_run.log
cache_dir=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/strata/bmrc_run

# Exit codes are those of the programs.
failed=1 usage=2 bad_input=3
went_back=200 # from a question to the menu; never leaves this script
newline=$'\n'

# A heading is |text. A choice is number|name|program in the image, - is done here|what it does. A number keeps its
# choice from version to version, so that they are not in order. tests/menu compares the programs with strata --help.
choices='|Workflow
1|pipeline|-|run the pipeline, from mosaics to one volume
22|start|strata start|look at a folder, and say what to do with it
16|qc-report|qc-report|write the quality report of a run
|Stages, from tiles to slices
23|mosaic|mosaic|make mosaics of the tiles of a microscope
2|aip|aip|compute average intensity projections
3|resample|resample|resample mosaics to another voxel size
4|focal|focal|correct the focal-plane curvature of mosaics
24|flatfield|flatfield|correct the uneven illumination of tiles
13|stitch|stitch|stitch the tiles of a mosaic into a slice
25|beam-profile|beam-profile|divide slices by the axial profile of the beam
14|crop|crop|crop slices below the tissue surface
26|attenuation|attenuation|undo the decay of the signal with depth
27|normalize|normalize|bring intensities of slices to a common scale
|Volumes, from slices
28|slices|slices|decide which slices are used
29|shifts|shifts|make and repair the table of shifts of slices
30|common-space|common-space|put slices onto one canvas
31|interpolate|interpolate|fill the gap of a missing slice
32|register|register|find how a slice lies on the one before it
33|manual|manual|correct the registration of slices by hand
5|stack|stack|assemble slices into one volume
34|bias-field|bias-field|even out the brightness of a volume
35|align|align|lay a volume on a template, such as an atlas
|Tools
21|view|view|look at images in a browser; --slurm: from a job
15|preview|preview|draw pictures of slices and volumes
17|zarr-tool|zarr-tool|inspect, convert and validate OME-Zarr
19|smooth|smooth|filter images by median, Gaussian or gradient
36|phantom|phantom|make test data whose truth is known
39|explain|strata explain|say how an image was made, from the raw data on
10|doctor|doctor|report what this machine has: GPU, storage
37|sif|sif|inspect, sign and build container images
11|shell|-|open a shell in the image
12|help|-|print this help; help CHOICE: that of a program
|Benchmarks
6|benchmark-czi|benchmark_czi.sh|find the fastest way to read a CZI file (asks)
7|profile-czi|profile_czi.sh|show where the time of a CZI file goes (asks)
20|bench-czi|bench-czi|measure how fast a CZI file is read (flags)
8|benchmark-zarr|bench-zarr|measure how fast an OME-Zarr image is read
9|benchmark-tiff|bench-tiff|measure how fast a TIFF file is read
18|benchmark-io|bench-io|measure how fast files are read and written
38|benchmark-tile|bench-tile|measure how fast tiles with a halo are read'

print_help() {
  cat <<'HELP'
usage: bmrc_run.sh [OPTION...]                          show the menu
       bmrc_run.sh [OPTION...] CHOICE [ARGUMENT...]     run one choice of it

CHOICE is a number or a name of this list. ARGUMENTs go to the program unchanged, and its exit
code is this script's.
HELP
  list '  '
  cat <<'HELP'

Options:
  --image FILE      image to use (STRATA_IMAGE); default: strata.sif beside this script, in
                    ../build, in the current folder or in ./build
  --data DIR        folder of your data, /data in the image (DATA_DIR); default: the
                    current folder
  --scratch DIR     folder for temporary files, /scratch in the image (SCRATCH_DIR, TMPDIR)
  --nv, --no-nv     make the GPU driver available in the image, or not
                    (STRATA_NV=on|off|auto); default: if this machine has a GPU
  --module NAME     environment module to load if Apptainer or Nextflow is missing
                    (STRATA_MODULE)
  --runtime FILE    program that runs the image: apptainer, singularity or sif
                    (STRATA_RUNTIME)
  --dry-run, -n     print the command without running it
  --yes, -y         do not ask for confirmation
  --plain           show the menu without whiptail (STRATA_MENU=plain)
  --config FILE     file in which answers are remembered
  --version, --help

Paths of this machine work unchanged: a program sees the data folder, the scratch folder
and the current folder under their own names, and the data folder also as /data.

Examples:
  bmrc_run.sh --image strata.sif doctor
  DATA_DIR=/well/group/data bmrc_run.sh aip /data/in.ome.zarr /data/out.ome.zarr
  bmrc_run.sh 5 --help
  bmrc_run.sh pipeline --input /well/group/mosaics --profile bmrc --account group.prj
  bmrc_run.sh shell zarr-tool info /data/in.ome.zarr | less
HELP
  printf '\nAnswers:  %s\nCommands: %s\n' "$config_file" "$log_file"
}

print_pipeline_help() {
  cat <<'HELP'
usage: bmrc_run.sh pipeline [--input DIR] [FLAG...] [PARAMETER...]

Writes params.yml, shows the command and asks before running it. On a terminal, asks for
missing settings; in a script, needs --input and asks nothing.

  --input DIR            folder of mosaics (mosaic_grid*_z<NN>.ome.zarr)
  --outdir DIR           folder for the results (default: INPUT-results)
  --profile NAME         where to run: local, slurm or bmrc (default: the last answer; else
                         slurm if this machine has it, else local)
  --gpu, --no-gpu        let tasks use GPUs, or not (default: the last answer, else as --nv)
  --account NAME         SLURM account to charge
  --partition NAME       SLURM partition
  --gpu_partition NAME   SLURM partition for tasks that use a GPU
  --params FILE          file to write the parameters to (default: OUTDIR/params.yml)
  --workflow DIR         folder with main.nf (STRATA_WORKFLOW; default: nextflow/ beside this
                         script or its folder, else the one in the image)

Other flags go to Nextflow, such as --stack_blend, -c my.config or -preview.
nextflow run main.nf --help lists the parameters of the workflow.
HELP
}

# --- Messages --------------------------------------------------------------------

warn() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { # die CODE MESSAGE
  local code=$1
  shift
  warn "$*"
  exit "$code"
}

# quoted WORD...: as it can be pasted into a shell. The PATH is shown by its name.
quoted() {
  # shellcheck disable=SC2016 # for another shell
  local text path shown=':"$PATH"'
  printf -v text '%q ' "$@"
  printf -v path '%q' ":$PATH"
  text=${text//"$path"/$shown}
  printf '%s' "${text% }"
}

# nearest WORD CANDIDATE...: the one that differs least, if it is not too far off.
nearest() {
  local word=$1 best='' least=99 candidate i j above left now cost
  local -a row
  shift
  for candidate; do
    for ((j = 0; j <= ${#candidate}; j++)); do row[j]=$j; done
    for ((i = 1; i <= ${#word}; i++)); do
      left=$i above=$((i - 1))
      for ((j = 1; j <= ${#candidate}; j++)); do
        cost=1
        [ "${word:i-1:1}" != "${candidate:j-1:1}" ] || cost=0
        now=$((above + cost))
        ((now <= left + 1)) || now=$((left + 1))
        ((now <= row[j] + 1)) || now=$((row[j] + 1))
        above=${row[j]} row[j-1]=$left left=$now
      done
      row[${#candidate}]=$left
    done
    if ((row[${#candidate}] < least)); then least=${row[${#candidate}]} best=$candidate; fi
  done
  if ((least * 2 <= ${#word})); then printf '%s' "$best"; fi
}

# did_you_mean WORD CANDIDATE...: the middle of a message, or nothing.
did_you_mean() {
  local near
  near=$(nearest "$@")
  if [ -n "$near" ]; then printf ' (nearest: %s)' "$near"; fi
}

# --- Answers ---------------------------------------------------------------------

# The file has lines KEY=VALUE. Nothing in it is run or expanded: a value is all that
# stands behind the first =.
config_keys=(image data scratch nv module runtime workflow profile gpu account partition gpu_partition input outdir)
declare -A config=()

load_config() {
  local line key n=0
  [ -e "$config_file" ] || return 0
  [ -r "$config_file" ] || { warn "$config_file: no permission to read it: answers of earlier runs are not used"; return 0; }
  while IFS= read -r line || [ -n "$line" ]; do
    n=$((n + 1))
    case $line in '' | '#'*) continue ;; esac
    key=${line%%=*}
    case " ${config_keys[*]} " in
      *" $key "*) [ "$line" = "$key" ] || { config[$key]=${line#*=}; continue; } ;;
      *) case $line in args_*=*) config[$key]=${line#*=}; continue ;; esac ;;
    esac
    warn "$config_file, line $n: '$key' is no setting$(did_you_mean "$key" "${config_keys[@]}"): it is left out"
  done <"$config_file"
}

# beside FILE TEXT: writes TEXT to a new file beside FILE and sets new to its path. In a folder of several people,
# a name that can be guessed may be somebody's link by then.
beside() {
  new=$1.$$.$RANDOM$RANDOM
  mkdir -p "$(dirname "$1")" && (set -C && printf '%s' "$2" >"$new")
} 2>/dev/null

# remember KEY VALUE: for the next time. Other lines of the file stay as they are.
remember() {
  local key=$1 value=$2 line text='' found='' new
  [ "${config[$key]-}" != "$value" ] || return 0
  config[$key]=$value
  if [ -r "$config_file" ]; then
    while IFS= read -r line || [ -n "$line" ]; do
      if [ "${line%%=*}" = "$key" ]; then
        [ -z "$found" ] || continue
        line=$key=$value found=yes
      fi
      text+=$line$newline
    done <"$config_file"
  fi
  [ -n "$found" ] || text+=$key=$value$newline
  if ! { beside "$config_file" "$text" && mv -f "$new" "$config_file" 2>/dev/null; }; then
    warn "$config_file: it cannot be written: answers are not remembered"
  fi
}

# setting KEY OPTION ENVIRONMENT: the first of both and the remembered one that is not empty.
setting() { printf '%s' "${2:-${3:-${config[$1]-}}}"; }

# log_command WORD...: with date and folder, so that it can be pasted.
log_command() {
  if ! { mkdir -p "$(dirname "$log_file")" && printf '# %s %s\ncd %s && %s\n' "$(date +%Y-%m-%dT%H:%M:%S%z)" "$(uname -n)" \
    "$(quoted "$PWD")" "$(quoted "$@")" >>"$log_file"; } 2>/dev/null; then
    warn "$log_file: it cannot be written: commands are not logged"
  fi
}

# --- Paths -----------------------------------------------------------------------

# absolute PATH: without .. and the like, but with the links that are in it. Also with the user's ~.
absolute() {
  local path=$1
  # shellcheck disable=SC2088 # typed into the menu, where no shell has expanded it
  case $path in '~') path=$HOME ;; '~/'*) path=$HOME/${path#'~/'} ;; esac
  case $path in /*) ;; *) path=$PWD/$path ;; esac
  realpath -sm -- "$path"
}

# existing PATH: it, or the folder above it that is there.
existing() {
  local path=$1
  while [ ! -e "$path" ] && [ "$path" != / ]; do path=$(dirname "$path"); done
  printf '%s' "$path"
}

mode_of() { stat -Lc '%A %U:%G' "$1" 2>/dev/null; }

# folder_problem DIR: what is wrong with a folder of input, or nothing.
folder_problem() {
  local dir=$1 above
  case $dir in *[[:cntrl:]]*) echo "has a line break or another control character in its name: rename it"; return ;; esac
  if [ ! -e "$dir" ]; then
    above=$(existing "$dir")
    if [ -d "$above" ] && [ ! -x "$above" ]; then
      echo "no permission to look into $above ($(mode_of "$above")): ask its owner, or to join its group"
    else
      echo "no such folder"
    fi
  elif [ ! -d "$dir" ]; then
    echo "not a folder"
  elif [ ! -r "$dir" ] || [ ! -x "$dir" ]; then
    echo "no permission to read it ($(mode_of "$dir")): ask its owner, or to join its group"
  fi
}

# output_problem DIR: what is wrong with a folder that will be made.
output_problem() {
  local dir=$1 above
  case $dir in *[[:cntrl:]]*) echo "has a line break or another control character in its name"; return ;; esac
  above=$(existing "$dir")
  if [ ! -d "$above" ]; then
    echo "$above is not a folder"
  elif [ ! -w "$above" ] || [ ! -x "$above" ]; then
    echo "no permission to write to $above ($(mode_of "$above"))"
  fi
}

# find_data, find_scratch: set data and scratch; scratch may stay empty.
find_data() {
  local problem
  data=$(setting data "$opt_data" "${DATA_DIR-}")
  data=$(absolute "${data:-$PWD}")
  problem=$(folder_problem "$data")
  [ -z "$problem" ] || die $bad_input "data folder (DATA_DIR) $data: $problem"
}

find_scratch() {
  local problem
  scratch=$(setting scratch "$opt_scratch" "${SCRATCH_DIR-}")
  if [ -z "$scratch" ]; then
    # A job's own folder, which is gone on other nodes: not there is no mistake.
    if [ -n "${TMPDIR-}" ] && [ -z "$(folder_problem "$TMPDIR")" ]; then scratch=$(absolute "$TMPDIR"); fi
    return 0
  fi
  scratch=$(absolute "$scratch")
  problem=$(folder_problem "$scratch")
  [ -z "$problem" ] || die $bad_input "scratch folder (SCRATCH_DIR) $scratch: $problem"
}

# --- The image -------------------------------------------------------------------

# image_problem FILE: what is wrong with an image, or nothing.
image_problem() {
  local file=$1 above size offset length
  case $file in *://*) return ;; esac # whoever runs it fetches it
  if [ ! -e "$file" ]; then
    above=$(existing "$file")
    if [ -d "$above" ] && [ ! -x "$above" ]; then
      echo "no permission to look into $above ($(mode_of "$above"))"
    else
      echo "no such file"
    fi
  elif [ -d "$file" ]; then
    [ -d "$file/.singularity.d" ] || echo "a folder that is no unpacked image"
  elif [ ! -r "$file" ]; then
    echo "no permission to read it ($(mode_of "$file"))"
  else
    # The header has SIF_MAGIC at 32, and at 112 where its data begin and how long they are.
    size=$(stat -Lc %s "$file")
    if [ "$size" -lt 128 ] || [ "$(od -An -tx1 -j32 -N9 "$file" | tr -d ' \n')" != 5349465f4d41474943 ]; then
      echo "not an image, or not a whole one: it has no SIF header"
      return
    fi
    read -r offset length < <(od -An -td8 -j112 -N16 "$file")
    if [ "$size" -lt $((offset + length)) ]; then
      echo "not a whole image: $size bytes of $((offset + length)) are there: copy it again"
    fi
  fi
}

# find_image: sets image; when there is none, problem and the exit code that goes with it.
find_image() {
  local place name
  problem=''
  image=$(setting image "$opt_image" "${STRATA_IMAGE-}")
  if [ -z "$image" ]; then
    for place in "$here" "$here/.." "$here/../build" "$PWD" "$PWD/build"; do
      for name in strata.sif strata-gpu.sif; do
        [ -e "$place/$name" ] || continue
        image=$(readlink -f "$place/$name")
        break 2
      done
    done
    if [ -z "$image" ]; then
      problem="no image: there is no strata.sif beside this script or in this folder: name one with --image FILE or STRATA_IMAGE" code=$usage
      return 1
    fi
  fi
  case $image in *://*) ;; *)
    image=$(absolute "$image")
    if [ -d "$image" ] && [ ! -d "$image/.singularity.d" ] && [ -e "$image/strata.sif" ]; then image=$image/strata.sif; fi ;;
  esac
  problem=$(image_problem "$image")
  [ -z "$problem" ] || { problem="image $image: $problem" code=$bad_input; return 1; }
}

# --- What runs it ----------------------------------------------------------------

# load_module: loads environment modules, where the site has them and one is named.
load_module() {
  local file name
  name=$(setting module "$opt_module" "${STRATA_MODULE-}")
  [ -n "$name" ] || return 1
  set +u # these files and functions are not ours
  if ! type module >/dev/null 2>&1; then
    for file in "${MODULESHOME-}/init/bash" "${LMOD_PKG-}/init/bash" /etc/profile.d/{z00_lmod,lmod,modules}.sh; do
      # shellcheck source=/dev/null
      if [ -r "$file" ]; then . "$file"; break; fi
    done
  fi
  if ! type module >/dev/null 2>&1; then
    set -u
    die $usage "module $name: there is no module command here: leave --module out"
  fi
  local -a names
  read -ra names <<<"$name"
  module load "${names[@]}" || { set -u; die $usage "module $name could not be loaded: module avail lists those that exist"; }
  set -u
}

# kind_of FILE: which of the three a program is.
kind_of() {
  case $(basename "$1") in
    apptainer*) echo apptainer ;;
    singularity*) echo singularity ;;
    sif*) echo sif ;;
  esac
}

# look_for NAME...: the first that is on the PATH.
look_for() {
  local name
  for name; do type -P "$name" && return 0; done
  return 1
}

# find_runtime: sets runtime and kind, and loaded when modules brought it; else problem and code.
find_runtime() {
  local file
  loaded=''
  runtime=$(setting runtime "$opt_runtime" "${STRATA_RUNTIME-}")
  if [ -n "$runtime" ]; then
    case $runtime in */*) runtime=$(absolute "$runtime") ;; esac
    kind=$(kind_of "$runtime")
    [ -n "$kind" ] || { problem="runtime $runtime: want apptainer, singularity or sif" code=$usage; return 1; }
    runtime=$(type -P "$runtime") || { problem="runtime $(setting runtime "$opt_runtime" "${STRATA_RUNTIME-}"): no such program" code=$usage; return 1; }
    return 0
  fi
  if ! runtime=$(look_for apptainer singularity) && load_module && runtime=$(look_for apptainer singularity); then
    loaded=$(setting module "$opt_module" "${STRATA_MODULE-}")
  fi
  if [ -z "$runtime" ]; then
    for file in "$here/sif" "$here/../bin/sif" "$PWD/bin/sif" "$(type -P sif)"; do
      if [ -x "$file" ] && [ ! -d "$file" ]; then runtime=$(readlink -f "$(dirname "$file")")/sif; break; fi
    done
  fi
  if [ -z "$runtime" ]; then
    problem="neither apptainer, singularity nor sif is on the PATH: load a module (--module NAME), or put the program sif beside this script" code=$failed
    return 1
  fi
  kind=$(kind_of "$runtime")
}

# gpu_wanted: is the GPU's driver to be in the image?
gpu_wanted() {
  local nv
  nv=$(setting nv "$opt_nv" "${STRATA_NV-}")
  case ${nv:-auto} in
    on) return 0 ;;
    off) return 1 ;;
    auto) ;;
    *) die $usage "STRATA_NV is '$nv': want on, off or auto" ;;
  esac
  # A job that was given no GPU has an empty list, or -1.
  case ${CUDA_VISIBLE_DEVICES-unset} in
    '' | -1 | NoDevFiles) return 1 ;;
    unset) [ -e /dev/nvidiactl ] || type -P nvidia-smi >/dev/null ;;
  esac
}

# own_name DIR: may it be seen under its own name, without hiding what is in the image?
own_name() {
  case $1 in
    *[[:cntrl:]]*) return 1 ;;
    / | /home | /root | /run | /tmp | /var) return 1 ;;
    /bin | /boot | /dev | /etc | /lib | /lib32 | /lib64 | /proc | /sbin | /sys | /usr | /.singularity.d) return 1 ;;
    /bin/* | /boot/* | /dev/* | /etc/* | /lib/* | /lib32/* | /lib64/* | /proc/* | /sbin/* | /sys/* | /usr/* | /.singularity.d/*) return 1 ;;
  esac
}

# csv TEXT: a field of a CSV line.
csv() {
  local quote='"'
  case $1 in *[\",]*) printf '"%s"' "${1//$quote/$quote$quote}" ;; *) printf '%s' "$1" ;; esac
}

# add_bind DIR TARGET: appends to cmd. What a name may have in it differs: --bind takes
# commas and colons apart (and others, in some versions); --mount takes CSV, any name;
# sif run-root has --bind only, so that a link leads it to such a folder.
add_bind() {
  local dir=$1 target=$2 link
  case $targets in *"$newline$target$newline"*) return ;; esac # it is there already
  targets+=$target$newline
  if [ "$kind" != sif ]; then
    case $dir$target in
      *[!A-Za-z0-9._/@%+=-]*) cmd+=(--mount "type=bind,$(csv "source=$dir"),$(csv "destination=$target")") ;;
      *) cmd+=(--bind "$dir:$target") ;;
    esac
    return
  fi
  case $target in *[,:]* | *' ') return ;; esac # cannot be said
  case $dir in
    *[,:]*)
      link=$cache_dir/folders/$(printf '%s' "$dir" | cksum | tr ' ' -)
      case $link in *[,:]*) die $failed "$dir: sif run-root cannot be given a name with a comma or colon: rename it, or set XDG_CACHE_HOME" ;; esac
      { mkdir -p "$cache_dir/folders" && ln -sfn "$dir" "$link"; } || die $failed "$link: it cannot be written"
      dir=$link ;;
  esac
  cmd+=(--bind "$dir:$target")
}

# container_command WORD...: sets cmd to what runs WORD... in the image, or with strata where there is none.
container_command() {
  local name prefix
  if [ -n "$strata" ]; then
    case $1 in
      strata) cmd=("$strata" "${@:2}") ;;
      *.sh) cmd=(env "DATA_DIR=$data" "$here/$1" "${@:2}") ;;
      *) cmd=("$strata" "$@") ;;
    esac
    return
  fi
  cmd=()
  # The names that Apptainer lets in even where a site empties the environment. They are
  # part of the command, so that a pasted one does the same. sif run-root lets all in.
  if [ "$kind" != sif ]; then
    prefix=APPTAINERENV_
    [ "$kind" = apptainer ] || prefix=SINGULARITYENV_
    while IFS= read -r name; do
      case $name in CUDA_VISIBLE_DEVICES | STRATA_* | KVIKIO_*) cmd+=("$prefix$name=${!name}") ;; esac
    done < <(compgen -e)
    [ ${#cmd[@]} = 0 ] || cmd=(env "${cmd[@]}")
    cmd+=("$runtime" exec)
  else
    cmd+=("$runtime" run-root)
  fi
  if gpu_wanted; then cmd+=(--nv); fi
  targets=$newline
  add_bind "$data" /data
  [ -z "$scratch" ] || add_bind "$scratch" /scratch
  own_name "$data" && add_bind "$data" "$data"
  [ -z "$scratch" ] || { own_name "$scratch" && add_bind "$scratch" "$scratch"; }
  if [ "$kind" != sif ] && own_name "$PWD"; then # sif run-root does this by itself
    case $PWD/ in "$data"/* | "${scratch:-$data}"/*) ;; *) add_bind "$PWD" "$PWD" ;; esac
    cmd+=(--pwd "$PWD")
  fi
  cmd+=("$image" "$@")
}

# hint TEXT: what to do about what a runtime said, where that is known.
hint() {
  case $1 in
    *[Nn]amespace* | *newuidmap* | *setuid*)
      echo "users may not make namespaces on this machine: try another node (srun --pty bash), or ask the administrators" ;;
    *[Ff][Uu][Ss][Ee]* | *[Ss]quash* | *"mount image"* | *"mounting image"*)
      echo "the image could not be mounted here: copy it to a local disk, try another node, or have it unpacked: APPTAINER_UNSQUASH=1" ;;
    *architecture* | *"machine is"*) echo "take an image that was built for this kind of machine ($(uname -m))" ;;
  esac
}

# explain STATUS TEXT: what a runtime said when it failed, and what to do.
explain() {
  local what
  printf '%s\n' "$2" >&2
  warn "image $image: $(basename "$runtime") could not run anything in it (exit code $1)"
  what=$(hint "$2")
  [ -z "$what" ] || warn "$what"
}

# image_key WORD...: what the cache calls things of this image: by its name, size and date, and WORDs.
image_key() { printf '%s\n' "$image" "$(stat -Lc '%s %Y' "$image")" "$@" | cksum | tr ' ' -; }

# kept_programs: the file with the names of the programs in the image, by machine and runtime; nothing for an image that
# is no file.
kept_programs() { [ ! -f "$image" ] || printf '%s' "$cache_dir/programs/$(image_key "$(uname -n)" "$runtime")"; }

# image_programs: the names of the programs in the image. On each machine it is asked once.
image_programs() {
  local kept said status line
  kept=$(kept_programs)
  if [ -n "$kept" ] && [ -r "$kept" ]; then cat "$kept"; return; fi
  local -a cmd
  container_command /bin/sh -c 'cd /usr/local/bin && echo programs: *'
  said=$("${cmd[@]}" 2>&1)
  status=$?
  [ $status = 0 ] || { explain $status "$said"; return $failed; }
  while read -r line; do # there may be notes of the runtime, too
    case $line in 'programs: '*) said=${line#*: } ;; esac
  done <<<"$said"
  [ -z "$kept" ] || { mkdir -p "$cache_dir/programs" && printf '%s\n' "$said" >"$kept"; } 2>/dev/null
  printf '%s\n' "$said"
}

# held: the programs in the image, if that was asked before; held ask: it is asked.
held() {
  local problem code kept data scratch
  find_image && find_runtime || return
  check_image_kind
  if [ "${1-}" = ask ]; then find_data; find_scratch; image_programs; return; fi
  kept=$(kept_programs)
  [ -n "$kept" ] && [ -r "$kept" ] && cat "$kept"
}

# offered [ask]: the choices that the image holds, under their headings; all of them while it is not known what it holds.
offered() {
  local number name program text have heading=''
  have=$(held "$@" 2>/dev/null) || have=''
  while IFS='|' read -r number name program text; do
    if [ -z "$number" ]; then heading=$name; continue; fi
    case $program:" ${have:-${program%% *}} " in
      -:* | *" ${program%% *} "*)
        [ -z "$heading" ] || printf '|%s\n' "$heading"
        heading=''
        printf '%s|%s|%s|%s\n' "$number" "$name" "$program" "$text" ;;
    esac
  done <<<"$choices"
}

# list INDENT [ask]: what is offered, one line each.
list() {
  local indent=$1 number name program text
  shift
  while IFS='|' read -r number name program text; do
    if [ -z "$number" ]; then printf '\n%s\n' "$name"; else printf '%s%2s  %-15s %s\n' "$indent" "$number" "$name" "$text"; fi
  done < <(offered "$@")
}

# names COLUMNS [ask]: what is offered without what it does, for a screen that the list does not fit on.
names() {
  local columns=$1 number name program text line=''
  shift
  while IFS='|' read -r number name program text; do
    if [ -z "$number" ]; then
      [ -z "$line" ] || printf '%s\n' "$line"
      printf '%s\n' "$name"
      line=''
      continue
    fi
    if ((${#line} + ${#number} + ${#name} + 3 > columns)); then printf '%s\n' "$line" && line=''; fi
    line+="  $number $name"
  done < <(offered "$@")
  printf '%s\n' "$line"
}

# need_program NAME: stops when the image does not have it. choice is what was chosen.
need_program() {
  local have
  [ -z "$strata" ] || return 0
  have=$(image_programs) || exit
  case " $have " in *" $1 "*) return ;; esac
  [ "$choice" = "$1" ] || choice+=" ($1)"
  die $usage "$choice is not in this image, $image, which has: $have"
}

# run WORD...: the command, or with --dry-run its text. From a command line it takes our
# place, so that signals and exit code are its own; the menu goes on after it.
run() {
  if [ -n "$opt_dry" ]; then
    quoted "$@"
    echo
    exit 0
  fi
  log_command "$@"
  [ -n "$in_menu" ] || exec "$@"
  printf '+ %s\n' "$(quoted "$@")" >&2
  "$@"
  exit $?
}

check_image_kind() {
  case $kind:$image in sif:*://*) die $usage "image $image: sif takes files only: apptainer pull fetches it" ;; esac
}

# find_strata: sets strata to the one that is built or installed.
find_strata() {
  strata=$(look_for "$here/../bin/strata" strata) && strata=$(readlink -f "$(dirname "$strata")")/strata
}

# find_all: what every command in the image needs. Where there is no image but strata is built or installed, that is
# used: strata is set.
find_all() {
  local problem code
  strata=''
  if ! find_image; then
    if [ "$code" != $usage ] || ! find_strata; then die "$code" "$problem"; fi
    warn "$problem: the programs of this machine are used"
  else
    find_runtime || die "$code" "$problem"
    check_image_kind
  fi
  find_data
  find_scratch
}

run_program() { # run_program PROGRAM ARGUMENT...
  find_all
  [ -n "$opt_dry" ] || need_program "$1"
  container_command "$@"
  run "${cmd[@]}"
}

# run_view ARGUMENT...: with --slurm in a job, which is started here, as the image has no srun. What the viewer prints comes
# here: the address, and the ssh line that leads to the job's node.
run_view() {
  local word job=''
  local -a words=() where=()
  for word; do
    if [ "$word" = --slurm ]; then job=yes; else words+=("$word"); fi
  done
  if [ -z "$job" ] || [ -n "${SLURM_JOB_ID-}" ]; then
    run_program view "${words[@]}"
    return
  fi
  type -P srun >/dev/null || die $failed "view --slurm: srun is not on the PATH: run it on a login node of a SLURM cluster"
  find_all
  [ -n "$opt_dry" ] || need_program view
  container_command view "${words[@]}"
  if [ -n "${config[partition]-}" ] && [ -z "${SLURM_PARTITION-}" ]; then where=(--partition "${config[partition]}"); fi
  run srun --job-name=view --unbuffered --ntasks=1 --cpus-per-task=2 --mem=1G "${where[@]}" "${cmd[@]}"
}

run_shell() {
  find_all
  [ -z "$strata" ] || die $usage "shell: it is one in the image: name one with --image FILE or STRATA_IMAGE"
  [ $# -gt 0 ] || set -- /bin/bash --norc
  container_command "$@"
  run "${cmd[@]}"
}

# --- The pipeline ----------------------------------------------------------------

# yaml TEXT: as a string of YAML, whatever is in it.
yaml() {
  local quote="'"
  printf "'%s'" "${1//$quote/$quote$quote}"
}

# value_of FLAG VALUE...: of an option that has to have one.
value_of() {
  [ $# -ge 2 ] || die $usage "$1 needs a value"
  printf '%s' "$2"
}

# check_account, check_profile VALUE
check_account() {
  case $1 in *[!A-Za-z0-9._@-]*) echo "'$1' is no account: want letters, digits and . _ - @" ;; esac
}
check_profile() {
  case $1 in local | slurm | bmrc) ;; *) echo "'$1' is no profile$(did_you_mean "$1" local slurm bmrc): want local, slurm or bmrc" ;; esac
}

# partitions: of this cluster, in a line; or what sinfo says instead.
partitions() {
  local said
  said=$(sinfo -h -o %R 2>&1) || { echo "sinfo: ${said##*"$newline"}"; return 1; }
  said=$(sort -u <<<"$said" | tr '\n' ' ')
  echo "${said% }"
}

# partitions_problem LIST...: NAME or NAME,NAME; when this machine can ask SLURM.
partitions_problem() {
  local have name lists=$*
  [ -n "$(type -P sinfo)" ] || return 0
  have=$(partitions) || { echo "$have"; return; }
  for name in ${lists//,/ }; do
    # shellcheck disable=SC2086 # names of partitions have no spaces
    case " $have " in *" $name "*) ;; *) echo "partition $name does not exist$(did_you_mean "$name" $have): this cluster has $have"; return ;; esac
  done
}

# find_workflow: sets workflow to the folder of main.nf.
find_workflow() {
  local place problem code
  workflow=$(setting workflow "$workflow" "${STRATA_WORKFLOW-}")
  if [ -n "$workflow" ]; then
    workflow=$(absolute "$workflow")
    [ "$(basename "$workflow")" != main.nf ] || workflow=$(dirname "$workflow")
    [ -e "$workflow/main.nf" ] || die $bad_input "workflow $workflow: there is no main.nf in it"
    return
  fi
  for place in "$here/../nextflow" "$here/nextflow" "$PWD/nextflow"; do
    if [ -e "$place/main.nf" ]; then workflow=$(readlink -f "$place"); return; fi
  done
  if find_image && find_runtime && workflow_of_image; then return; fi
  die $usage "no workflow: there is no nextflow/main.nf beside this script, and none in an image: name its folder with --workflow DIR or STRATA_WORKFLOW"
}

# workflow_of_image: sets workflow to the one that the image has, unpacked in the cache.
workflow_of_image() {
  local dir said status
  local -a cmd
  [ -e "$image" ] || return 1
  dir=$cache_dir/workflow/$(image_key)
  workflow=$dir/nextflow
  [ ! -e "$workflow/main.nf" ] || return 0
  find_data
  find_scratch
  container_command /bin/sh -c 'cd /usr/share/strata && [ -e nextflow/main.nf ] && exec tar -cf - nextflow scripts || echo none'
  mkdir -p "$dir.$$" || die $failed "$dir: it cannot be written"
  said=$("${cmd[@]}" 2>&1 >"$dir.$$/tar")
  status=$?
  [ $status = 0 ] || { rm -rf "$dir.$$"; explain $status "$said"; exit $failed; }
  if ! tar -xf "$dir.$$/tar" -C "$dir.$$" 2>/dev/null; then rm -rf "$dir.$$"; return 1; fi # it has none
  rm -f "$dir.$$/tar"
  mv "$dir.$$" "$dir" 2>/dev/null || rm -rf "$dir.$$" # another one was faster
}

# find_nextflow: sets nextflow.
find_nextflow() {
  local place
  nextflow=$(type -P nextflow) && return
  if load_module && nextflow=$(type -P nextflow); then return; fi
  for place in "$workflow/../scripts" "$here/../scripts" "$here"; do
    if [ -x "$place/nextflow.sh" ]; then nextflow=$(readlink -f "$place/nextflow.sh"); return; fi
  done
  die $failed "nextflow is not on the PATH: load a module (--module NAME), or install it (nextflow.io)"
}

# find_programs: where the tasks take the programs from: sets container and engine when they
# come from an image, or path, a folder to put before the PATH.
find_programs() {
  local problem code
  container='' engine='' path=''
  if find_image && find_runtime; then
    check_image_kind
    case $kind in
      apptainer | singularity) container=$image engine=$kind ;;
      sif)
        # The programs need nothing of the image but the C library, which this machine has, too.
        path=$cache_dir/bin/$(image_key)
        if [ ! -d "$path" ]; then
          { mkdir -p "$cache_dir/bin" && "$runtime" extract "$image" "$path" --path /usr/local/bin -q >&2; } || exit $failed
        fi
        path+=/usr/local/bin ;;
    esac
  elif [ "$code" != $bad_input ] && { [ -x "$workflow/bin/aip" ] || [ -n "$(type -P aip)" ]; }; then
    warn "$problem: the programs of this machine are used"
  else
    die "$code" "$problem"
  fi
}

# host_path PATH: what is under /data in the image is under the data folder here.
host_path() {
  local path=$1
  case $path in
    /data | /data/*) [ -e "$path" ] || path=$(setting data "$opt_data" "${DATA_DIR-}")${path#/data} ;;
  esac
  absolute "$path"
}

# ask_for NAME TEXT CHECK DEFAULT...: into the variable NAME; asks until CHECK finds no problem. What is offered is the
# first DEFAULT that has none: a wrong answer is not, nor an earlier one that is wrong by now.
ask_for() {
  local name=$1 text=$2 check=$3 default='' problem candidate
  for candidate in "${@:4}"; do
    if [ -n "$candidate" ] && [ -z "$($check "$candidate")" ]; then default=$candidate; break; fi
  done
  while ask "$text" "$default"; do
    case $check:$answer in
      *_problem:*://*) ;;
      *_problem:?*) answer=$(typed_path "$answer") ;;
    esac
    problem=$($check "$answer")
    if [ -z "$problem" ]; then
      printf -v "$name" '%s' "$answer"
      remember "$name" "$answer"
      return
    fi
    case $check in *_problem) problem="$answer: $problem" ;; esac
    say "$problem"
  done
  [ -n "$in_menu" ] || { echo 'nothing was run' >&2; exit 0; }
  exit $went_back
}

ask_for_the_rest() {
  local default have last=${config[input]-} before=''
  [ -n "$input" ] || ask_for input 'Input: folder of mosaics (mosaic_grid*_z<NN>.ome.zarr)' folder_problem "$last" "$(setting data "$opt_data" "${DATA_DIR-}")" "$PWD"
  [ "$input" != "$last" ] || before=${config[outdir]-}
  [ -n "$outdir" ] || ask_for outdir 'Output: folder for the results' output_problem "$before" "$input-results"
  default=local
  [ -z "$(type -P sinfo)" ] || default=slurm
  [ -n "$profile" ] || ask_for profile 'Profile: local, slurm or bmrc' check_profile "${config[profile]-}" "$default"
  if [ -z "$gpu" ]; then
    default=yes
    gpu_wanted || default=no
    ask_for gpu 'Use GPUs: yes or no' check_yes_no "${config[gpu]-}" "$default"
  fi
  if [ "$profile" != local ] && [ -z "$account" ]; then
    ask_for account 'SLURM account to charge (may be empty)' check_account "${config[account]-}"
  fi
  [ "$profile" = slurm ] || return 0
  if [ -n "$(type -P sinfo)" ] && have=$(partitions); then have=" of $have"; else have=''; fi
  [ -n "$partition" ] ||
    ask_for partition "SLURM partition$have (empty: the default one)" check_partition "${config[partition]-}"
  [ -n "$gpu_partition" ] || [ "$gpu" = no ] ||
    ask_for gpu_partition "SLURM partition of the GPUs$have (empty: the same)" check_partition "${config[gpu_partition]-}"
}
check_yes_no() { case $1 in yes | no) ;; *) echo "want yes or no" ;; esac; }
check_partition() { [ -z "$1" ] || partitions_problem "$1"; }

# defaults_for_the_rest: what a script did not say. Folders are never taken from earlier answers.
defaults_for_the_rest() {
  [ -n "$input" ] || die $usage "pipeline: --input is missing: the folder with mosaic_grid*_z<NN>.ome.zarr"
  outdir=${outdir:-$(host_path "$input")-results}
  profile=${profile:-${config[profile]-}}
  if [ -z "$profile" ]; then
    profile=local
    [ -z "$(type -P sinfo)" ] || profile=slurm
  fi
  gpu=${gpu:-${config[gpu]-}}
  if [ -z "$gpu" ]; then
    gpu=yes
    gpu_wanted || gpu=no
  fi
  account=${account:-${config[account]-}}
  [ "$profile" != slurm ] || partition=${partition:-${config[partition]-}} gpu_partition=${gpu_partition:-${config[gpu_partition]-}}
}

check_pipeline() { # check_pipeline ARGUMENT...: those for Nextflow
  local problem
  local -a wanted=()
  input=$(host_path "$input") outdir=$(host_path "$outdir")
  problem=$(folder_problem "$input")
  [ -z "$problem" ] || die $bad_input "input folder $input: $problem"
  problem=$(output_problem "$outdir")
  [ -z "$problem" ] || die $bad_input "output folder $outdir: $problem"
  problem=$(check_profile "$profile")
  [ -z "$problem" ] || die $usage "--profile: $problem"
  problem=$(check_account "$account")
  [ -z "$problem" ] || die $usage "--account: $problem"
  [ "$profile" != local ] || return 0
  [ -n "$(type -P sbatch)" ] || die $usage "profile $profile: there is no sbatch here: log in to the cluster, or use --profile local"
  [ -z "$partition" ] || wanted+=("$partition")
  [ -z "$gpu_partition" ] || wanted+=("$gpu_partition")
  # The workflow picks by time limit; it checks names that are given to it itself.
  case $profile:" $* " in
    bmrc:*[_-]partition*) ;;
    bmrc:*)
      [ -n "$partition" ] || wanted+=(short long)
      [ -n "$gpu_partition" ] || [ "$gpu" = no ] || wanted+=(gpu_short gpu_long) ;;
  esac
  [ ${#wanted[@]} -gt 0 ] || return 0
  problem=$(partitions_problem "${wanted[@]}")
  [ -z "$problem" ] || die $usage "profile $profile: $problem"
}

params_text() {
  printf '# Written by bmrc_run.sh, %s. All parameters: nextflow run main.nf --help\n' "$(date +%Y-%m-%dT%H:%M:%S%z)"
  printf 'input: %s\noutdir: %s\n' "$(yaml "$input")" "$(yaml "$outdir")"
  if [ "$gpu" = yes ]; then echo 'use_gpu: true'; else echo 'use_gpu: false'; fi
  [ -z "$account" ] || printf 'account: %s\n' "$(yaml "$account")"
  [ -z "$partition" ] || printf 'partition: %s\n' "$(yaml "$partition")"
  [ -z "$gpu_partition" ] || printf 'gpu_partition: %s\n' "$(yaml "$gpu_partition")"
  [ -z "$container" ] || printf 'container: %s\n' "$(yaml "$container")"
  [ -z "$loaded" ] || [ "$profile" = local ] || printf 'modules: %s\n' "$(yaml "$loaded")"
}

# write_params FILE: whole or not at all; one that is there and differs is kept as FILE~.
write_params() {
  local file=$1 text=$2 new
  beside "$file" "$text$newline" || die $failed "$file: it cannot be written"
  if [ -e "$file" ] && ! cmp -s <(grep -v '^#' "$file") <(grep -v '^#' "$new"); then mv -f "$file" "$file~"; fi
  mv -f "$new" "$file" || die $failed "$file: it cannot be written"
}

run_pipeline() {
  local input='' outdir='' profile='' gpu='' account='' partition='' gpu_partition='' params='' workflow='' text profiles loaded=''
  local container engine path nextflow
  local -a rest=() cmd=()
  while [ $# -gt 0 ]; do
    case $1 in
      --input=* | --outdir=* | --output=* | --profile=* | --account=* | --partition=* | --gpu[_-]partition=* | --params=* | --workflow=*)
        set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    esac
    case $1 in
      --input) input=$(value_of "$@") || exit; shift ;;
      --outdir | --output) outdir=$(value_of "$@") || exit; shift ;;
      --profile | -profile) profile=$(value_of "$@") || exit; shift ;;
      --account) account=$(value_of "$@") || exit; shift ;;
      --partition) partition=$(value_of "$@") || exit; shift ;;
      --gpu_partition | --gpu-partition) gpu_partition=$(value_of "$@") || exit; shift ;;
      --params) params=$(value_of "$@") || exit; shift ;;
      --workflow) workflow=$(value_of "$@") || exit; shift ;;
      --gpu) gpu=yes ;;
      --no-gpu | --no_gpu) gpu=no ;;
      --yes | -y) opt_yes=yes ;;
      --dry-run | -n) opt_dry=yes ;;
      --help | -h) print_pipeline_help; exit 0 ;;
      --) rest+=("${@:2}"); break ;;
      *) rest+=("$1") ;;
    esac
    shift
  done
  find_workflow
  if [ -z "$opt_yes$opt_dry" ] && [ -t 0 ] || [ -n "$in_menu" ]; then ask_for_the_rest; else defaults_for_the_rest; fi
  if [ ${#rest[@]} = 0 ]; then check_pipeline; else check_pipeline "${rest[@]}"; fi
  find_programs
  find_nextflow
  params=$(absolute "${params:-$outdir/params.yml}")
  text=$(params_text)
  profiles=$profile
  [ -z "$engine" ] || profiles+=,$engine
  [ -z "$path" ] || cmd+=(env "PATH=$path:$PATH")
  cmd+=("$nextflow" run "$workflow/main.nf" -params-file "$params" -profile "$profiles" -work-dir "$outdir/work" -resume)
  [ ${#rest[@]} = 0 ] || cmd+=("${rest[@]}")

  printf '%s:\n%s\n\n' "$params" "  ${text//$newline/$newline  }" >&2
  if [ -z "$opt_dry" ]; then
    printf '%s\n\n' "$(quoted "${cmd[@]}")" >&2
    if [ -z "$opt_yes" ] && { [ -t 0 ] || [ -n "$in_menu" ]; }; then
      confirm 'Run it?' || { echo 'nothing was run' >&2; exit 0; }
    fi
    write_params "$params" "$text"
  fi
  run "${cmd[@]}"
}

# --- The menu --------------------------------------------------------------------

# find_choice WORD: sets choice and program, or says that there is no such choice.
find_choice() {
  local n name prog text last=0 all=''
  while IFS='|' read -r n name prog text; do
    [ -n "$n" ] || continue
    if [ "$1" = "$n" ] || [ "$1" = "$name" ] || [ "$1" = "$prog" ] && [ "$1" != - ]; then
      choice=$name program=$prog
      return
    fi
    ((n <= last)) || last=$n
    all+=" $name"
    [ "$prog" = - ] || all+=" $prog"
  done <<<"$choices"
  # An image may be newer than this list.
  case $1 in
    *[!A-Za-z0-9_.-]*) ;;
    *) case " $(held ${opt_dry:-ask} 2>/dev/null) " in *" $1 "*) choice=$1 program=$1; return ;; esac ;;
  esac
  # shellcheck disable=SC2086 # names have no spaces
  warn "unknown choice '$1'$(did_you_mean "$1" $all): want a number from 1 to $last or a name, --help lists them"
  return $usage
}

run_choice() { # run_choice ARGUMENT...: of choice and program
  case $choice in
    pipeline) run_pipeline "$@" ;;
    shell) run_shell "$@" ;;
    help)
      if [ $# = 0 ]; then print_help; exit 0; fi
      find_choice "$1" || exit
      if [ "$choice" = pipeline ]; then print_pipeline_help; exit 0; fi
      if [ "$program" = - ]; then print_help; exit 0; fi
      # shellcheck disable=SC2086 # strata start is two words
      run_program $program --help ;;
    view) run_view "$@" ;;
    *)
      # shellcheck disable=SC2086
      run_program $program "$@" ;;
  esac
}

# terminal_for_whiptail: one that it can draw on.
terminal_for_whiptail() {
  local rows columns
  [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && [ -n "$(type -P whiptail)" ] || return 1
  case ${TERM:-dumb} in dumb) return 1 ;; esac
  [ -z "$(type -P infocmp)" ] || infocmp "$TERM" >/dev/null 2>&1 || return 1
  read -r rows columns < <(stty size 2>/dev/null)
  [ "${rows:-0}" -ge 20 ] && [ "${columns:-0}" -ge 70 ]
}

# whip FLAG...: whiptail; what it answers goes to standard output.
whip() { whiptail --title Strata "$@" 3>&1 1>&2 2>&3 3>&-; }

# ask TEXT DEFAULT: sets answer; fails when the user wants to go back, by q, Escape or the end of input. The cursor
# stands behind the default, so that q may be typed there; a folder that is called so is there already. One that is called q is ./q.
ask() {
  answer=''
  if [ "$ui" = whiptail ]; then
    answer=$(whip --inputbox -- "$1 (q: back)" 10 76 "$2") || return
  elif [ -t 0 ]; then
    IFS= read -e -r -p "$1 (q: back): " -i "$2" answer || return
  else
    printf '%s (q: back) [%s]: ' "$1" "$2" >&2
    IFS= read -r answer || [ -n "$answer" ] || return 1
    answer=${answer:-$2}
  fi
  case $answer in
    q | Q) return 1 ;;
    "$2"q | "$2"Q) [ -e "$answer" ] ;;
  esac
}

say() {
  if [ "$ui" = whiptail ]; then whip --msgbox -- "$1" 10 76; else printf '%s\n' "$1" >&2; fi
}

# back_to PLACE: whiptail takes the whole screen, so that what stands there waits until it is read. Fails when the user
# wants to leave that place, too.
back_to() {
  local reply=''
  [ "$ui" = whiptail ] || return 0
  read -r -p "Enter: back to $1, q: leave it " reply && [ "$reply" != q ] && [ "$reply" != Q ]
}

# page: shows what is longer than the screen, where that can be done.
page() { if [ -t 1 ] && [ -n "$(type -P less)" ]; then less -FRX; else cat; fi; }

# confirm TEXT: in the terminal, where the command stands that it is about. What is no yes, such as q, is a no.
confirm() {
  local reply
  printf '%s [y/N] ' "$1" >&2
  IFS= read -r reply || return 1
  case $reply in y | Y | yes | Yes | YES) ;; *) return 1 ;; esac
}

# split_words LINE: sets words as a shell would split them, quotes and all; nothing is expanded
# but a leading ~. Fails when a quote is not closed.
split_words() {
  local word
  words=()
  while IFS= read -r -d '' word; do
    # shellcheck disable=SC2088
    case $word in '~/'*) word=$HOME/${word#'~/'} ;; esac
    words+=("$word")
  done < <(printf '%s' "$1" | xargs -r printf '%s\0' 2>/dev/null || printf 'unmatched\0\1\0')
  [ ${#words[@]} = 0 ] || [ "${words[${#words[@]} - 1]}" != $'\1' ]
}

# typed_path TEXT: the path that was meant. The Tab key puts a \ before a space.
typed_path() {
  local -a words
  case $1 in
    *\\*) if [ ! -e "$1" ] && split_words "$1" && [ ${#words[@]} = 1 ]; then set -- "${words[0]}"; fi ;;
  esac
  host_path "$1"
}

# data_is_known: or nobody asks for it: without an image nothing is /data.
data_is_known() { [ -n "$opt_data${DATA_DIR-}${config[data]-}" ] || ! (find_image); }

ask_data() {
  local data
  ask_for data 'Folder of your data, which programs see as /data' folder_problem "$opt_data" "${DATA_DIR-}" "${config[data]-}" "$PWD"
}

# from_menu WORD: one round. It runs in a subshell: what stops it does not stop the menu.
from_menu() {
  local word=$1 last code
  local -a words=()
  in_menu=yes
  if [ "$word" = s ]; then ask_settings; exit 0; fi
  find_choice "$word" || exit
  case $choice in
    pipeline | shell | help | doctor) ;;
    benchmark-czi | profile-czi) # they ask themselves
      data_is_known || ask_data ;;
    *)
      data_is_known || ask_data
      (find_all; need_program "${program%% *}") || exit # before anything else is asked
      last=${config[args_$choice]-}
      while :; do
        ask "$choice: arguments (none: its help)" "$last" || exit $went_back
        split_words "$answer" || { say "unclosed quote: $answer"; continue; }
        [ ${#words[@]} = 0 ] || break
        # shellcheck disable=SC2086
        (run_program $program --help) | page
        back_to 'the arguments' || exit $went_back
      done
      (run_choice "${words[@]}")
      code=$?
      # What the program could not take is not offered again.
      [ $code = $usage ] || remember "args_$choice" "$answer"
      exit $code ;;
  esac
  if [ "$choice" = help ]; then print_help | page; else run_choice; fi
}

ask_settings() {
  local image data scratch nv module
  ask_for image 'Image file' image_answer_problem "$opt_image" "${STRATA_IMAGE-}" "${config[image]-}"
  ask_data
  ask_for scratch 'Folder for temporary files, /scratch in the image (may be empty)' scratch_answer_problem "$opt_scratch" "${SCRATCH_DIR-}" "${config[scratch]-}"
  ask_for nv 'Make the GPU driver available in the image: auto, on or off' check_nv "${config[nv]-}" auto
  ask_for module 'Environment modules to load (may be empty)' true "${config[module]-}"
  echo "kept in $config_file" >&2
}
image_answer_problem() { [ -z "$1" ] || image_problem "$1"; }
scratch_answer_problem() { [ -z "$1" ] || folder_problem "$1"; }
check_nv() { case $1 in auto | on | off) ;; *) echo "want auto, on or off" ;; esac; }

header() {
  local problem code data strata
  if ! find_image; then
    image="none: $problem"
    if [ "$code" = $usage ]; then
      image='none: name one with --image FILE or STRATA_IMAGE'
      ! find_strata || image="none: the programs in ${strata%/*} are run"
    fi
  fi
  data=$(setting data "$opt_data" "${DATA_DIR-}")
  printf 'image: %s\ndata:  %s\n' "$image" "${data:-not set yet}"
}

pick_with_whiptail() {
  local number name program text
  local -a items=()
  while IFS='|' read -r number name program text; do
    if [ -z "$number" ]; then text=$name; else printf -v text '  %-15s %s' "$name" "$text"; fi
    items+=("$number" "$text")
  done < <(offered ask)
  pick=''
  while [ -z "$pick" ]; do # a heading is no choice
    pick=$(whip --cancel-button Quit --default-item 1 --menu -- "$(header)" 0 0 0 "${items[@]}" '' 'Menu' s '  settings' q '  quit') || pick=q
  done
}

pick_by_typing() {
  local rows='' columns='' shown lines
  shown=$(list '' ask)
  [ ! -t 0 ] || read -r rows columns < <(stty size 2>/dev/null)
  lines=${shown//[!$newline]/}
  echo
  header
  echo
  if ((${rows:-0} > 0 && ${#lines} + 7 > rows)); then
    names "${columns:-80}" ask
    echo 'help: what each of them does'
  else
    printf '%s\n\n' "${shown#"$newline"}"
  fi
  pick=''
  while [ -z "$pick" ]; do
    printf 'choice (s: settings, q: quit): '
    IFS= read -r pick || [ -n "$pick" ] || pick=q
    pick=${pick// /}
  done
} >&2

menu() {
  local status
  ui=plain
  if [ "${STRATA_MENU-}" != plain ] && terminal_for_whiptail; then ui=whiptail; fi
  while :; do
    if [ "$ui" = whiptail ]; then pick_with_whiptail; else pick_by_typing; fi
    case $pick in q | Q | quit) exit 0 ;; esac
    # An interrupt ends what runs, not the menu.
    trap : INT
    (trap - INT; from_menu "$pick")
    status=$?
    trap - INT
    config=()
    load_config
    [ $status != $went_back ] || continue
    [ $status = 0 ] || printf '(exit code %s)\n' $status >&2
    back_to 'the menu' || exit 0
  done
}

main() {
  opt_image='' opt_data='' opt_scratch='' opt_nv='' opt_module='' opt_runtime='' opt_dry='' opt_yes='' in_menu='' ui=plain strata=''
  local known=(--image --data --scratch --nv --no-nv --module --runtime --dry-run --yes --plain --config --version --help)
  while [ $# -gt 0 ]; do
    case $1 in
      --image=* | --data=* | --scratch=* | --module=* | --runtime=* | --config=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
    esac
    case $1 in
      --image) opt_image=$(value_of "$@") || exit; shift ;;
      --data) opt_data=$(value_of "$@") || exit; shift ;;
      --scratch) opt_scratch=$(value_of "$@") || exit; shift ;;
      --module) opt_module=$(value_of "$@") || exit; shift ;;
      --runtime) opt_runtime=$(value_of "$@") || exit; shift ;;
      --config) config_file=$(value_of "$@") || exit; config_file=$(absolute "$config_file"); shift ;;
      --nv) opt_nv=on ;;
      --no-nv | --no_nv) opt_nv=off ;;
      --dry-run | --dry_run | -n) opt_dry=yes ;;
      --yes | -y) opt_yes=yes ;;
      --plain) STRATA_MENU=plain ;;
      --version) echo "$me $version"; exit 0 ;;
      --help | -h) print_help; exit 0 ;;
      --) shift; break ;;
      -*) die $usage "unknown option $1$(did_you_mean "$1" "${known[@]}"): --help lists them" ;;
      *) break ;;
    esac
    shift
  done
  load_config
  if [ $# = 0 ]; then menu; fi
  find_choice "$1" || exit
  shift
  run_choice "$@"
}

main "$@"
