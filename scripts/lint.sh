#!/usr/bin/env bash
# Shell scripts through shellcheck, and what must never be in a tracked file.
set -euo pipefail
cd "$(dirname "$0")/.."
mapfile -t scripts < <(git ls-files -- '*.sh' .ci/run)
if command -v shellcheck >/dev/null 2>&1; then
  shellcheck -x -S warning "${scripts[@]}"
else
  for s in "${scripts[@]}"; do bash -n "$s"; done
  echo "shellcheck is not installed: scripts were only parsed" >&2
fi
bad=$(git ls-files -z | xargs -0 -r du -k 2>/dev/null | awk '$1 > 2048 {print $2}')
if [ -n "$bad" ]; then echo "tracked files over 2 MiB: $bad" >&2; exit 1; fi
