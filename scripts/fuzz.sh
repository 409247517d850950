#!/usr/bin/env bash
# usage: fuzz.sh [TIME]   runs every fuzz target of the module for TIME (default 5m), one after the other, also after one that fails.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${1:-5m} failed=()
while read -r file; do
  dir=$(dirname "$file")
  while read -r target; do
    echo "== $dir $target ($time)"
    CGO_ENABLED=0 go test "./$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 20x </dev/null || failed+=("$dir $target")
  done < <(grep -oE '^func Fuzz[A-Za-z0-9_]+' "$file" | sed 's/^func //')
done < <(grep -rlE '^func Fuzz' --include='*_test.go' cmd pkg tests | sort)
[ ${#failed[@]} = 0 ] || { printf 'failed: %s\n' "${failed[@]}" >&2; exit 1; }
