#!/usr/bin/env bash
# The scripts for administrators, on small sources and with doubles of what they call.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../nextflow/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../nextflow/lib.sh"
here=$root/tests/server_setup
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
for need in gcc:gcc nm:binutils xz:xz-utils zstd:zstd patch:patch setpriv:util-linux; do
  "$root/scripts/need.sh" "${need%%:*}" "${need#*:}" || exit 1
done
chmod 755 "$tmp"
# shellcheck source-path=SCRIPTDIR source=sources.sh
. "$here/sources.sh"
# shellcheck source-path=SCRIPTDIR source=patch.sh
. "$here/patch.sh"
# shellcheck source-path=SCRIPTDIR source=install.sh
. "$here/install.sh"
# shellcheck source-path=SCRIPTDIR source=check.sh
. "$here/check.sh"
total
