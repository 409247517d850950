#!/usr/bin/env bash
# The packages of make dist, installed as their users install them: in a Debian without Go by apt, by the lines of the
# Dockerfile, in a Python environment, from a conda channel, by make install. One line for each check. Debian comes from
# STRATA_DEBIAN_MIRROR (default: Debian's own). TARGETS: systems to pack for, besides this one.
# As root, or with passwordless sudo. KEEP=1 leaves the folder.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../nextflow/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../nextflow/lib.sh"
cd "$root" || exit 1
as_root=()
[ "$(id -u)" = 0 ] || as_root=(sudo -n)
debian=$tmp/debian viewer=
finish() {
  [ -z "$viewer" ] || "${as_root[@]}" kill "$viewer" 2>/dev/null
  if [ -n "${KEEP:-}" ]; then echo "kept: $tmp"; else "${as_root[@]}" rm -rf "$tmp"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM
for need in mmdebstrap:mmdebstrap lintian:lintian curl:curl git:git; do scripts/need.sh "${need%%:*}" "${need#*:}" || exit 1; done
arch=$(dpkg --print-architecture)
dist=$root/build/dist

# --- The same bytes, wherever they are made ------------------------------------------

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
make=("${MAKE:-make}" -s --no-print-directory dist "COMMIT=$(git describe --always --dirty=+dirty --exclude='*' --abbrev=40)"
  "TARGETS=linux/$arch${TARGETS:+,$TARGETS}")
rm -rf "$dist"
"${make[@]}" || exit 1
copy="$tmp/other place"
mkdir "$copy"
git ls-files -z --cached --others --exclude-standard | tar --null -T - --ignore-failed-read -cf - 2>/dev/null | tar -C "$copy" -xf -
ok 'make dist, of a copy of the sources elsewhere' "${make[@]}" -C "$copy"
ok 'has the same bytes' diff -r "$dist" "$copy/build/dist"
ok 'SHA256SUMS' bash -c "cd '$dist' && sha256sum --quiet -c SHA256SUMS"
deb=("$dist"/strata_*_"$arch".deb) wheel=("$dist"/*manylinux*_"$(uname -m)".whl)
version=${deb[0]##*/strata_} version=${version%_*}
said=$("$root/bin/aip" --version)
ok 'lintian finds no error' lintian --allow-root --fail-on error --tag-display-limit 0 "${deb[@]}"

# --- A Debian without Go --------------------------------------------------------------

# The root that apt needs is made once, below build/.
tar=$root/build/debian-$arch.tar
[ -f "$tar" ] || { "${as_root[@]}" rm -rf "$tar.part" && "${as_root[@]}" mmdebstrap --quiet --format=tar --variant=apt bookworm "$tar.part" ${STRATA_DEBIAN_MIRROR:+"$STRATA_DEBIAN_MIRROR"} && mv "$tar.part" "$tar"; } || exit 1
mkdir "$debian"
"${as_root[@]}" tar -C "$debian" --numeric-owner -xf "$tar"
# in_debian COMMAND...: runs it there, as root.
in_debian() {
  # shellcheck disable=SC2016 # for the shell inside
  "${as_root[@]}" unshare --mount /bin/sh -ec 'mount --rbind /proc "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"' "$debian" \
    /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}
"${as_root[@]}" cp "${deb[0]}" "$debian/root/"
ok 'there is no Go' fails in_debian sh -c 'command -v go'
ok 'apt installs the package, without a network' unshare --net bash -c "$(declare -f in_debian); as_root=(${as_root[*]@Q}) debian=${debian@Q}; in_debian apt-get install -y /root/${deb[0]##*/}"
ok 'dpkg finds it whole' same "$(in_debian dpkg --verify strata; in_debian dpkg-query -W -f '${db:Status-Abbrev}' strata)" 'ii '
ok 'a program of it' same "$(in_debian aip --version)" "$said"
ok 'the demo' in_debian sh -c 'cd /root && SLICES=3 /usr/share/strata/scripts/demo.sh none'
ok 'leaves volume, pictures and report' filled "$debian"/root/demo-out/results/{volume/volume.ome.zarr/zarr.json,previews/volume.png,qc-report.html}
in_debian strata view /root/demo-out/results/volume/volume.ome.zarr >"$tmp/view.log" 2>&1 &
viewer=$!
address=
for _ in $(seq 100); do
  address=$(grep -om 1 'http://127.0.0.1:[0-9]*/[^ ]*' "$tmp/view.log") && break
  sleep 0.1
done
ok 'view answers a browser' has <(curl -sSL --noproxy '*' "$address") '<title>'
ok 'and no one without its token' same "$(curl -s -o "$tmp/refused" -w '%{http_code}' --noproxy '*' "${address%%:[0-9]*}:$(sed 's#.*:\([0-9]*\)/.*#\1#' <<<"$address")/")" 404
"${as_root[@]}" kill "$viewer"
wait "$viewer" 2>/dev/null
viewer=
in_debian apt-get purge -y strata >"$tmp/purge.log" 2>&1
ok 'purged, it leaves nothing' same "$(in_debian sh -c 'find / -xdev -path /root -prune -o \( -path "*strata*" -o -lname "*strata*" \) ! -path "/var/log/*" ! -path "/var/lib/apt/*" -print')" ''

# --- Beside packages with programs of the same names -----------------------------------------

# shellcheck source-path=SCRIPTDIR source=neighbours.sh
. tests/install/neighbours.sh

# --- The Dockerfile, line by line, since building an image takes a daemon ---------------

# docker FILE: what docker build would do with build/dist as its context.
docker() {
  local word rest args=(VERSION="$version")
  path=
  while read -r word rest; do
    case "$word $rest" in
      'FROM debian:bookworm-slim' | 'ARG VERSION') ;;
      'RUN --mount=type=bind,target=/dist '*)
        "${as_root[@]}" mkdir -p "$debian/dist" && "${as_root[@]}" cp "$dist"/* "$debian/dist/" &&
          in_debian "${args[@]}" /bin/sh -c "${rest#* }" && "${as_root[@]}" rm -r "$debian/dist" || return 1 ;;
      'WORKDIR '*) "${as_root[@]}" mkdir -p "$debian$rest" || return 1 ;;
      'ENV PATH='*) path=${rest#PATH=} ;;
      'CMD ["strata", "--help"]') in_debian strata --help >"$tmp/docker.help" || return 1 ;;
      *) echo "what is $word $rest?"; return 1 ;;
    esac
  done < <(sed -e '/^#/d' -e :a -e '/\\$/{N;s/\\\n//;ba' -e '}' "$1")
}
ok 'the lines of the Dockerfile' docker packaging/docker/Dockerfile
ok 'give what workflow engines want' in_debian /bin/bash -euc 'ps -o pid= >/dev/null; test -s /etc/ssl/certs/ca-certificates.crt; cd /data; aip --version'
ok 'and all programs by their names' same "$(in_debian env PATH="$path" sh -c 'stack --version && view --version' | xargs)" "stack ${said#* } view ${said#* }"

# --- Python, conda, make install, module --------------------------------------------------

# A name with spaces, as a home folder may have.
python="$tmp/an environment/bin/python"
python3 -m venv "$tmp/an environment" || exit 1
ok 'pip installs the wheel, without a network' "$python" -m pip install -q --no-index --disable-pip-version-check "${wheel[0]}"
ln -s "$tmp/an environment/bin/aip" "$tmp/aip"
ok 'its programs run, by a link too' same "$("$tmp/an environment/bin/aip" --version) $("$tmp/aip" --version)" "$said $said"
ok 'also with arguments that have spaces' "$tmp/an environment/bin/phantom" "$tmp/a b" --slices 1 --tiles 1,1 --tile 8,16,16 -q
"$python" -m pip uninstall -q -y --disable-pip-version-check strata-microscopy
ok 'uninstalled, it leaves nothing' same "$(find "$tmp/an environment" -name '*strata*' -o -name aip -o -name 'aip.*')" ''

rm -rf build/conda
ok 'make conda builds the package, and tests it' "${make[0]}" -s --no-print-directory conda
ok 'it is there' filled build/conda/linux-*/strata-microscopy-"$version"-*.conda

ok 'make install' "${make[@]/dist/install}" DESTDIR="$tmp/stage" PREFIX=/usr
ok 'has the programs of the Debian package' same "$(cd "$tmp/stage" && find usr/bin usr/lib ! -type d ! -name '*.1' | sort)" \
  "$(dpkg-deb -c "${deb[0]}" | sed -nE '/^d/d; s/ -> .*//; s#.* \./(usr/(bin|lib)/)#\1#p' | grep -v '\.1\.gz$' | sort)"

rm -rf build/module
ok 'make module' "${make[0]}" -s --no-print-directory module NAME=example.org/owner/strata
ok 'its imports are of its own name' bash -c 'cd build/module && [ "$(GOWORK=off go list -m)" = example.org/owner/strata ] && go list -deps work >/dev/null'
total
