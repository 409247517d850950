#!/usr/bin/env bash
# usage: test-arm64.sh [PACKAGE...]   (make test-arm64)
# Builds all packages for arm64, vets those that differ there (assembly, files and constants of an architecture; what is the same
# text for both make lint vets), and runs the tests of the PACKAGEs, else of all numeric ones, as arm64 binaries under qemu-user: operators
# that promise the same bits everywhere are compared with the same expected bits there. Without CUDA: the double of a GPU is for this
# machine.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
export GOARCH=arm64 CGO_ENABLED=0
$go build work
mapfile -t differ < <($go list -f '{{if or .SFiles .IgnoredGoFiles .IgnoredOtherFiles}}{{.ImportPath}}{{end}}' work)
$go vet "${differ[@]}"
if ! scripts/need.sh qemu-aarch64-static qemu-user-static 2>/dev/null && ! command -v qemu-aarch64 >/dev/null; then
  echo "qemu-user is missing (Debian/Ubuntu: apt-get install qemu-user-static): arm64 was built and vetted only" >&2
  exit 0
fi
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64)
# What depends on no number: whether decoding stops in time, what is read, what a failure leaves. And what compares with a truth, not
# bit by bit.
others='^Test(DecodingEnds|RebuildFailures|Window|Trends|PositionsStartOver|StackReadsOnce|TilesAreReadOnce|StackMemoryIsFlat|FailuresKeepNothing|Pieces'
others+='|.*However(Done|Stored)?|Truth|Gap|Unrelated|TileOfItsOwn|.*Finds.*|Estimate.*|FocalDepthIsOfTheWholePlane|StitchedPhantomIsItsTruth|AlignedOverlap|RepairShifts|RepairOneFrame|StackOrigins|BlendMatch)$'
numeric() { $go test -short -vet=off -exec "$qemu" -tags nocuda "$@"; }
if [ $# = 0 ]; then set -- ./pkg/dtype ./pkg/filter ./pkg/phantom ./pkg/npy ./pkg/jpeg ./pkg/mem ./pkg/oct/... ./pkg/ngff ./pkg/tile ./pkg/zarr/codec/...; fi
list=$($go list "$@") # fails for a name that is none
mapfile -t packages <<<"$list"
mapfile -t bits < <(printf '%s\n' "${packages[@]}" | grep -v '/flatfield$')
[ ${#bits[@]} = 0 ] || numeric -skip "$others" "${bits[@]}"
# whose goldens take a solver that iterates, and agree in digits, not in bits
[[ " ${packages[*]} " != *"/pkg/oct/flatfield "* ]] || numeric -skip "${others%)$}|Golden|BadInput)$" ./pkg/oct/flatfield
