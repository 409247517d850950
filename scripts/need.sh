#!/usr/bin/env bash
# usage: need.sh COMMAND PACKAGE   makes sure that COMMAND is there: installs the
# Debian package when this user may, else says in one line what is missing. It waits for another installation.
set -euo pipefail
command -v "$1" >/dev/null 2>&1 && exit 0
as_root=()
if [ "$(id -u)" != 0 ]; then
  if sudo -n true 2>/dev/null; then as_root=(sudo -n); else
    echo "$1 is missing: install it first (Debian/Ubuntu: apt-get install $2)" >&2
    exit 1
  fi
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "$1 is missing: install it first (the Debian package is called $2)" >&2
  exit 1
fi
echo "installing $2 (for $1)" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o=Dpkg::Use-Pty=0 -o=DPkg::Lock::Timeout=300 install -y --no-install-recommends "$2" >/dev/null 2>&1 ||
  { "${as_root[@]}" apt-get -qq update >/dev/null 2>&1 || true
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o=Dpkg::Use-Pty=0 -o=DPkg::Lock::Timeout=300 install -y --no-install-recommends "$2" >/dev/null; }
command -v "$1" >/dev/null 2>&1 || { echo "$1 is still missing after installing $2" >&2; exit 1; }
