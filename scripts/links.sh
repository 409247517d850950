#!/usr/bin/env bash
# Makes links to the binaries by the names of the programs whose place they can take (NAME, and NAME.py with
# underscores), for the front of PATH: links.sh BIN_DIR LINK_DIR
# The names are what each binary's --help lists under "Also runs as". What already lies in LINK_DIR and is no link stays.
set -euo pipefail

if [ $# -ne 2 ] || [ ! -d "$1" ]; then
  echo "usage: $0 BIN_DIR LINK_DIR" >&2
  exit 2
fi
bin=$(cd "$1" && pwd)
mkdir -p "$2"
dir=$(cd "$2" && pwd)

link() { # link PROGRAM NAME
  if [ -e "$dir/$2" ] && [ ! -L "$dir/$2" ]; then
    echo "$dir/$2 is there and is no link: it stays as it is" >&2
    return 1
  fi
  [ "$(readlink "$dir/$2")" = "$1" ] || ln -sfn "$1" "$dir/$2"
  echo "$dir/$2 -> $1"
}

status=0
for program in "$bin"/*; do
  [ -f "$program" ] && [ -x "$program" ] || continue
  names=$("$program" --help | sed -n '/^Also runs as/,/^$/s/^  \([^ ][^ ]*\).*/\1/p')
  for name in $names; do
    link "$program" "$name" || status=1
    link "$program" "${name//-/_}.py" || status=1
  done
done
exit $status
