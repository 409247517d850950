#!/usr/bin/env bash
# usage: linumpy-params.sh [-profile NAME[,NAME]...] nextflow.config... >params.yml
# Translates the parameters of linumpy's workflows (preproc and reconst_3d) to those of ours. linumpy-params.tsv says how. Of several files
# a later one takes precedence, as with Nextflow's -c: first linumpy's own, which holds its defaults, then yours; or that of preproc, then that
# of reconst_3d. -profile takes the parameters of these profiles, too.
# Names that linumpy does not have, values that are computed and those without a counterpart are listed on standard error, and as comments.
# Exit codes: 0 done, 2 wrong usage, 3 a file cannot be read or has no parameters.
set -euo pipefail

usage() {
  sed -n '2s/^# //p' "$0" >&2
  exit 2
}
profiles=
case ${1-} in
-h | --help)
  sed -n '2,/^set/s/^# //p' "$0"
  exit 0
  ;;
-profile | --profile)
  [ $# -ge 2 ] || usage
  profiles=$2
  shift 2
  ;;
-*) usage ;;
esac
[ $# -gt 0 ] || usage
for file; do
  if [ ! -f "$file" ] || [ ! -r "$file" ]; then
    echo "$file is no file that can be read" >&2
    exit 3
  fi
done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PROFILES=$profiles TABLE=$here/linumpy-params.tsv LC_ALL=C awk -f "$here/linumpy-params.awk" "$@"
