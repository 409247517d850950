#!/usr/bin/env bash
# usage: quick.sh [list]   (make quick)
# Checks what changed since the merge base with origin/main (without that branch, or on it: since the commit before), files
# that are not committed included: gofmt, go vet and staticcheck of the packages that changed, the build,
# and go test -short of them; then again, with the race detector, of those that share memory between goroutines, and of the packages that
# import them directly, in tests too. These two are given what is left of QUICK_SECONDS (180). list: prints the packages
# only, "changed" or "imports" before each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go=${GO:-go}

base=$(git merge-base HEAD origin/main 2>/dev/null || true)
if [ -z "$base" ] || [ "$base" = "$(git rev-parse HEAD)" ]; then base=$(git rev-parse --verify -q HEAD~ || git hash-object -t tree /dev/null); fi
mapfile -t files < <({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u)

# A file belongs to the package of its folder, or of the nearest one above: testdata, kernels.
declare -A changed=() imports=()
for file in "${files[@]}"; do
  dir=$(dirname "$file")
  while [ "$dir" != . ] && { [[ $dir == *testdata* ]] || ! compgen -G "$dir/*.go" >/dev/null; }; do dir=$(dirname "$dir"); done
  [ "$dir" = . ] || changed[./$dir]=yes
done
module=$(GOWORK=off $go list -m)
while read -r package list; do
  package=./${package#"$module"/}
  [ -z "${changed[$package]-}" ] || continue
  for one in $list; do
    if [ -n "${changed[./${one#"$module"/}]-}" ]; then imports[$package]=yes; fi
  done
done < <($go list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' work)
if [ "${1:-}" = list ]; then
  { printf 'changed %s\n' "${!changed[@]}"; printf 'imports %s\n' "${!imports[@]}"; } | grep ' .' | sort
  exit
fi

started=$SECONDS
scripts/lint.sh "${files[@]}"
if [ ${#changed[@]} = 0 ]; then
  echo "quick: no package changed since $(git log -1 --format='%h %s' "$base" 2>/dev/null || echo 'the beginning')"
  exit
fi
mapfile -t go_files < <(for file in "${files[@]}"; do case $file in *.go) [ ! -e "$file" ] || echo "$file" ;; esac; done)
if [ ${#go_files[@]} -gt 0 ]; then
  bad=$(gofmt -l "${go_files[@]}")
  [ -z "$bad" ] || { echo "gofmt: $bad" >&2; exit 1; }
fi
$go vet "${!changed[@]}"
$go tool staticcheck "${!changed[@]}"
"${MAKE:-make}" -s --no-print-directory build
export CGO_ENABLED=0
$go test -short "${!changed[@]}"

# in_time TARGET FLAG... -- PACKAGE...: go test -short, for as long as there is time; what is not done by then is left to TARGET.
in_time() {
  local target=$1 flags=() left=$((${QUICK_SECONDS:-180} - SECONDS + started)) status=124
  shift
  while [ "$1" != -- ]; do flags+=("$1"); shift; done
  shift
  [ $# -gt 0 ] || return 0
  if [ $left -gt 0 ]; then
    status=0
    timeout -k 10 $left $go test -short "${flags[@]}" "$@" || status=$?
  fi
  [ $status != 124 ] || { echo "quick: time is up: the rest of these is left to $target: $*"; status=0; }
  return $status
}
concurrent=$(scripts/concurrent.sh "${!changed[@]}")
mapfile -t shared < <(printf '%s' "$concurrent")
if [ ${#shared[@]} -gt 0 ]; then
  scripts/need.sh gcc gcc
  CGO_ENABLED=1 in_time "make test-race" -race -vet=off -- "${shared[@]}"
fi
in_time "make test" -- "${!imports[@]}"
