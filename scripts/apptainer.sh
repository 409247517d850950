#!/usr/bin/env bash
# usage: apptainer.sh DIR IMAGE.sif   puts an apptainer into DIR that starts containers as this user may on
# this machine, tried with IMAGE, and prints how. With DIR in front of the PATH, tests and workflows use it.
#
# It is a script around the Apptainer of this machine: STRATA_APPTAINER, else apptainer or singularity of the
# PATH. Neither is installed by this script: on a cluster it is a module (module load apptainer), for Debian,
# Ubuntu, Fedora and RHEL there are packages of the Apptainer project. How it starts containers, first what works:
#   plainly           as root, or with user namespaces and squashfuse (package squashfuse)
#   as root of a user namespace   where root has not all capabilities, as in many containers
#   unpacked          no /dev/fuse for this user: the image is unpacked (unsquashfs) at every start
set -euo pipefail
dir=${1:?usage: apptainer.sh DIR IMAGE.sif} image=${2:?usage: apptainer.sh DIR IMAGE.sif}
program=${STRATA_APPTAINER:-}
if [ -n "$program" ]; then
  found=$(type -P "$program") || { echo "STRATA_APPTAINER: $program is no program" >&2; exit 1; }
  program=$found
else
  # Not the script that an earlier call has left in front of the PATH.
  while read -r found; do
    [ "$found" -ef "$dir/apptainer" ] || { program=$found; break; }
  done < <(type -aP apptainer; type -aP singularity)
fi
if [ -z "$program" ]; then
  echo "apptainer is missing: load its module (module load apptainer), install a package of the Apptainer project (https://apptainer.org/docs/admin/latest/installation.html), or name it with STRATA_APPTAINER" >&2
  exit 1
fi
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
# The game of that name knows no version of this form.
version=$("$program" --version 2>&1 </dev/null | sed -nE 's/^(apptainer|singularity|singularity-ce) version ([0-9.]+).*/\1 \2/p') || version=
if [ -z "$version" ]; then
  echo "$program is neither Apptainer nor Singularity: name one with STRATA_APPTAINER" >&2
  exit 1
fi
[ -r "$image" ] || { echo "$image: no such image, or not readable" >&2; exit 1; }

mkdir -p "$dir"
why=''
# works HOW WORD...: writes the script that starts it with WORD... in front, and tries it.
works() {
  local how=$1
  shift
  {
    echo '#!/usr/bin/env bash'
    printf 'exec'
    printf ' %q' "$@" "$program"
    echo ' "$@"'
  } >"$dir/.apptainer"
  chmod 755 "$dir/.apptainer"
  mv "$dir/.apptainer" "$dir/apptainer"
  if why=$("$dir/apptainer" exec "$image" /bin/true 2>&1 </dev/null); then
    echo "$version, $program, $how"
    exit 0
  fi
}
works plainly
works 'as root of a user namespace' unshare --map-root-user
works 'the image unpacked at every start' env APPTAINER_UNSQUASH=1 SINGULARITY_UNSQUASH=1
rm -f "$dir/apptainer"
echo "$program starts no container here: $(tail -n 1 <<<"$why")" >&2
exit 1
