#!/usr/bin/env bash
# The menu (apptainer/bmrc_run.sh): its arguments against a runtime that records what it is
# given, its screens in a terminal, and for real with a small image and sif run-root.
# usage: run.sh [FLAG of bats]...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for need in bats:bats tmux:tmux whiptail:whiptail mksquashfs:squashfs-tools yq:yq python3:python3 setpriv:util-linux; do
  scripts/need.sh "${need%%:*}" "${need#*:}"
done
export LC_ALL=C.UTF-8
MENU_ROOT=$PWD
MENU_TMP=$(mktemp -d "${TMPDIR:-/tmp}/strata-menu.XXXXXX")
export MENU_ROOT MENU_TMP
trap 'rm -rf "$MENU_TMP"' EXIT
chmod 755 "$MENU_TMP" # some tests are another user

# Alone in a folder, as on a cluster.
mkdir "$MENU_TMP/alone" "$MENU_TMP/real"
cp apptainer/bmrc_run.sh "$MENU_TMP/alone/"

# A PATH that has what the menu may count on, and nothing else of this machine.
mkdir "$MENU_TMP/tools"
for tool in bash env cat cksum cmp cp date dirname basename grep head infocmp ln mkdir mv od printf readlink realpath rm sh sleep \
  sort stat stty tail tar touch tr uname whiptail xargs; do
  ln -s "$(type -P "$tool")" "$MENU_TMP/tools/$tool"
done

# A slide scan.
bin/phantom "$MENU_TMP/scan" --czi --tiles 3,4 --tile 1,64,64 -q

# A real image: a shell, three programs and the scripts that ask for one of them, and the libraries that they want.
{
  printf 'Bootstrap: scratch\n%%files\n'
  for program in /bin/bash /bin/tar /usr/bin/env bin/aip bin/stack bin/bench-czi; do ldd "$program" | grep -o '/[^ ]*' || true; done | sort -u | sed 's/.*/    & &/'
  printf '    /bin/bash /bin/%s\n' bash sh
  printf '    /usr/bin/env /usr/bin/env\n'
  printf '    /bin/tar /bin/tar\n    %s /usr/share/strata/nextflow/main.nf\n    %s /usr/share/strata/scripts/nextflow.sh\n' \
    "$PWD/nextflow/main.nf" "$PWD/scripts/nextflow.sh"
  printf '    %s /usr/local/bin/%s\n' "$PWD/bin/aip" aip "$PWD/bin/stack" stack "$PWD/bin/bench-czi" bench-czi \
    "$PWD/apptainer/benchmark_czi.sh" benchmark_czi.sh "$PWD/apptainer/profile_czi.sh" profile_czi.sh
} >"$MENU_TMP/real.def"
bin/sif build -q "$MENU_TMP/real/strata.sif" "$MENU_TMP/real.def"

bats "$@" tests/menu
