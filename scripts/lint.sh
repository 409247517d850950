#!/usr/bin/env bash
# usage: lint.sh [FILE...]   shell scripts (of FILEs, else all) through shellcheck, and what must never be in a tracked file.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t scripts < <(git ls-files -- '*.sh' .ci/run)
if [ $# -gt 0 ]; then mapfile -t scripts < <(for f; do case $f in *.sh | .ci/run) [ ! -e "$f" ] || echo "$f" ;; esac; done); fi
if [ ${#scripts[@]} = 0 ]; then :
elif command -v shellcheck >/dev/null 2>&1; then
  shellcheck -x -S warning "${scripts[@]}"
else
  for s in "${scripts[@]}"; do bash -n "$s"; done
  echo "shellcheck is not installed: scripts were only parsed" >&2
fi
bad=$(git ls-files -z | xargs -0 -r du -k 2>/dev/null | awk '$1 > 2048 {print $2}')
if [ -n "$bad" ]; then echo "tracked files over 2 MiB: $bad" >&2; exit 1; fi
release=$(sed -n 's/^## \[\{0,1\}\([0-9][^] ]*\).*/\1/p' CHANGELOG.md | head -n 1)
for place in "nextflow/nextflow.config:    version         = '$release'" "apptainer/bmrc_run.sh:version=$release"; do
  grep -qxF -- "${place#*:}" "${place%%:*}" || { echo "${place%%:*}: its version is not that of CHANGELOG.md, $release" >&2; exit 1; }
done
