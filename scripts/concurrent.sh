#!/usr/bin/env bash
# usage: concurrent.sh PACKAGE...
# Prints those of the packages that start goroutines, or share memory between them: what the race detector is for.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
"${GO:-go}" list -f '{{$p := .ImportPath}}{{range .Imports}}{{if or (eq . "sync") (eq . "sync/atomic") (eq . "strata/pkg/work")}}{{$p}}{{"\n"}}{{end}}{{end}}' "$@" |
  awk 'NF && !seen[$0]++'
