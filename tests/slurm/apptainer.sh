#!/usr/bin/env bash
# usage: apptainer exec|run|shell [FLAG...] IMAGE [COMMAND...]
# Stands in for Apptainer in tests, where there is none: what Nextflow and people
# call of it is done by sif run-root. SIF is that program, SIF_CACHE where it unpacks
# images, SIF_LOG where calls are noted. As with Apptainer the command sees the
# image, the home and working folders, /tmp, and what is bound; variables
# APPTAINERENV_NAME become NAME.
set -euo pipefail
action=${1:?usage: apptainer exec|run|shell [FLAG...] IMAGE [COMMAND...]}
shift
line=$(printf 'gpus=%s apptainer %s %s' "${APPTAINERENV_CUDA_VISIBLE_DEVICES:-${SINGULARITYENV_CUDA_VISIBLE_DEVICES:-}}" "$action" "$*" | tr '\n' ' ')
printf '%s\n' "$line" >>"${SIF_LOG:-/dev/null}" # at once: others write there, too
flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --no-home | --pid | --cleanenv | -e | --containall | -C | --contain | -c | --ipc | --writable-tmpfs) shift ;;
    --nv) flags+=(--nv); shift ;;
    --pwd)
      # Where we are run-root goes by itself, and only then binds it.
      [ "$2" = "$PWD" ] || flags+=(--pwd "$2")
      shift 2
      ;;
    -B | --bind) flags+=("$1" "$2"); shift 2 ;;
    --mount)
      # Names with spaces, which run-root takes by a link only; the working folder it sees anyway.
      source=$(sed -n 's/.*source=\([^,"]*\).*/\1/p' <<<"$2") target=$(sed -n 's/.*destination=\([^,"]*\).*/\1/p' <<<"$2")
      case $target in
        *[,:\ ]*) ;;
        *)
          links=${SIF_CACHE:-/tmp/sif-cache}/folders
          mkdir -p "$links"
          link=$links/$(cksum <<<"$source" | tr ' ' -)
          ln -sfn "$source" "$link"
          flags+=(--bind "$link:$target")
          ;;
      esac
      shift 2
      ;;
    --bind=*) flags+=("$1"); shift ;;
    --env) export "${2?}"; shift 2 ;;
    -*) echo "apptainer (test double): flag $1 is not known" >&2; exit 255 ;;
    *) break ;;
  esac
done
image=${1:?no image}
shift
case $action in
  exec) [ $# -gt 0 ] || { echo 'apptainer (test double): no command' >&2; exit 255; } ;;
  run) ;;
  shell) set -- /bin/bash ;;
  *) echo "apptainer (test double): $action is not known" >&2; exit 255 ;;
esac
while IFS= read -r name; do
  value=${!name}
  export "${name#*ENV_}=$value"
  unset "$name"
done < <(compgen -e | grep -E '^(APPTAINER|SINGULARITY)ENV_' || true)
# As Apptainer: 255 when the image cannot be started, else the command's status.
[ -r "$image" ] || { echo "FATAL: could not open image $image: no such file" >&2; exit 255; }
exec "${SIF:-sif}" run-root -q --cache "${SIF_CACHE:-/tmp/sif-cache}" "${flags[@]}" "$image" "$@"
