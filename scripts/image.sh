#!/usr/bin/env bash
# usage: image.sh OUT.sif [FLAG...]   builds the container image with sif build (FLAGs go to it), and checks it:
# a second build has the same bytes, programs run in it, its bill lists what is in it, and it is not too large.
# OUT is written when all of that holds, and keeps its time when its bytes do not change.
#
# The programs are bin/strata, and links to it by the names of all of cmd/. Debian packages come from
# STRATA_DEBIAN_MIRROR (default: Debian's own) and are kept in the user's cache. LIMIT_MIB (default 27; with --with_nvidia none) is the largest size of an image.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: image.sh OUT.sif [FLAG...]}
shift
scripts/need.sh mksquashfs squashfs-tools
nvidia=
for flag in "$@"; do
  case $flag in --with[-_]nvidia) nvidia=yes; scripts/need.sh pip3 python3-pip ;; esac
done
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
[ -x bin/strata ] || { echo "image: bin/strata is missing: run make build" >&2; exit 1; }
mapfile -t names < <(dirname cmd/*/main.go | xargs -n 1 basename | grep -vx strata)
sif=$again/sif
ln -s "$PWD/bin/strata" "$sif" # it is what it is called
programs=(--binaries bin/strata --links "$(IFS=,; echo "${names[*]}")" --workflow .)

started=$(date +%s.%N)
mkdir "$again/new"
new=$again/new/$(basename "$out")
"$sif" build "$new" "${programs[@]}" "$@"
seconds=$(awk -v a="$started" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
bytes=$(stat -c %s "$new")
echo "image: built in $seconds s; now built again, to compare the bytes, and tried"

"$sif" build "$again/again.sif" "${programs[@]}" -j 1 -q "$@"
cmp "$new" "$again/again.sif" || { echo "image: a second build has other bytes" >&2; exit 1; }
"$sif" extract "$new" "$again/root" -q
bill=$again/root/usr/share/doc/strata/sbom.spdx.json
for part in pkg:deb/debian/bash@ pkg:deb/debian/procps@ pkg:golang/github.com/sylabs/sif/v2@v2 pkg:golang/stdlib@; do
  grep -q "$part" "$bill" || { echo "image: the bill of materials does not list $part" >&2; exit 1; }
done
for name in strata "${names[@]}" benchmark_czi.sh profile_czi.sh; do
  [ -e "$again/root/usr/local/bin/$name" ] || { echo "image: $name is missing" >&2; exit 1; }
done
[ -e "$again/root/usr/share/strata/nextflow/main.nf" ] || { echo "image: the workflow is missing" >&2; exit 1; }
# The licences: ours, those of the Go modules, of each Debian package, and the text that most of them refer to.
mapfile -t packages < <(grep -o 'pkg:deb/debian/[^@]*' "$bill" | sort -u)
for licence in strata/copyright strata/modules.txt ../common-licenses/Apache-2.0 "${packages[@]/%//copyright}"; do
  [ -s "$again/root/usr/share/doc/${licence#pkg:deb/debian/}" ] || { echo "image: ${licence#pkg:deb/debian/} is missing in /usr/share/doc" >&2; exit 1; }
done
if [ -n "$nvidia" ]; then
  for library in libcufile.so.0 libnvcomp.so.6; do
    [ -e "$again/root/usr/lib/x86_64-linux-gnu/$library" ] || { echo "image: $library is missing" >&2; exit 1; }
  done
fi

# What workflow engines call inside, and a program of ours.
if unshare --user --map-root-user --mount true 2>/dev/null; then
  XDG_CACHE_HOME=$again/cache "$sif" run-root "$new" /bin/bash -euc '
    ps -o pid= >/dev/null; printf "a b\n" | gawk "{ print \$2 }" | grep -qx b; sed --version >/dev/null; tar --version >/dev/null
    gzip --version >/dev/null; date >/dev/null; TZ=Europe/London date +%Z | grep -Eqx "GMT|BST"; test -s /etc/ssl/certs/ca-certificates.crt
    test -d /data; test -d /scratch; aip --version'
  grep -q '^  strata COMMAND' < <(XDG_CACHE_HOME=$again/cache "$sif" run-root "$new" --help) || { echo "image: what runs on --help is not strata" >&2; exit 1; }
else
  echo "image: user namespaces are off here: nothing was run in it" >&2
fi
limit=${LIMIT_MIB:-27}
if [ -n "$nvidia" ]; then
  echo "image: it has NVIDIA's libraries: the limit of $limit MiB is for images without"
elif [ "$bytes" -gt $((limit * 1048576)) ]; then
  echo "image: larger than $limit MiB" >&2
  exit 1
fi
scripts/renew.sh "$new" "$(dirname "$out")"
echo "image: $out, $(awk -v n="$bytes" 'BEGIN { printf "%.2f", n / 1048576 }') MiB"
