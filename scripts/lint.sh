#!/usr/bin/env bash
# usage: lint.sh [FILE...]   shell scripts (of FILEs, else all) through shellcheck, the workflow through Nextflow's strict parser, and
#                            what must never be in a tracked file.
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
for place in "nextflow/nextflow.config:    version         = '$release'" "apptainer/bmrc_run.sh:version=$release" \
  "nextflow/conf/docker.config:    container        = params.container ?: 'strata:$release'" "nextflow/conf/conda.config:process.conda = 'strata-microscopy=$release'"; do
  grep -qxF -- "${place#*:}" "${place%%:*}" || { echo "${place%%:*}: its version is not that of CHANGELOG.md, $release" >&2; exit 1; }
done
workflow=("$@")
if [ $# -gt 0 ]; then mapfile -t workflow < <(for f; do case $f in *.nf | *.config | *.groovy) echo "$f" ;; esac; done); fi
if [ $# -gt 0 ] && [ ${#workflow[@]} = 0 ]; then :
elif scripts/need.sh mvn maven 2>/dev/null; then
  tests/nextflow/lint.sh
else
  echo "maven is not installed: Nextflow's strict parser was not asked" >&2
fi
