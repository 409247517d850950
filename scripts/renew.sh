#!/usr/bin/env bash
# usage: renew.sh [--link] FILE... DIR   puts FILEs into DIR as copies, or with --link as hard links where the
# file system has them; a symbolic link stays one. A file of DIR that has the same bytes already keeps its inode and its times, which
# Nextflow, make and rsync go by; another is replaced in one step, so that a program that runs goes on with the old one.
set -euo pipefail
link=
if [ "${1:-}" = --link ]; then
  link=yes
  shift
fi
[ $# -ge 2 ] || { echo "usage: renew.sh [--link] FILE... DIR" >&2; exit 2; }
dir=${*: -1}
mkdir -p "$dir"
part=
trap 'rm -f "$part"' EXIT
# same A B: the same file, or the same bytes and permissions; links with the same target.
same() {
  if [ -L "$1" ] || [ -L "$2" ]; then
    [ -L "$1" ] && [ -L "$2" ] && [ "$(readlink "$1")" = "$(readlink "$2")" ]
  else
    [ "$1" -ef "$2" ] || { cmp -s "$1" "$2" && [ "$(stat -c %a "$1")" = "$(stat -c %a "$2")" ]; }
  fi
}
for file in "${@:1:$#-1}"; do
  to=$dir/$(basename "$file")
  if same "$file" "$to"; then continue; fi
  part=$dir/.$(basename "$file").$$
  { [ -n "$link" ] && ln "$file" "$part" 2>/dev/null; } || cp -P "$file" "$part"
  mv -fT "$part" "$to"
done
