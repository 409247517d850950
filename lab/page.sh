#!/usr/bin/env bash
# usage: lab/page.sh SOURCE DATA PAGE [HTML PICTURE.png]
# Runs the commands of a page (lines "$ …" of console blocks) in the folder DATA and writes
# PAGE with what they printed; and a picture of the page HTML that one of them made there.
# A line <!-- shown: SCRIPT --> before a block names the lines to show, by a script for sed -n.
# Other programs are those of the environment VIRTUAL_ENV. BENCH_SMOKE=1: sizes are small.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[ $# = 3 ] || [ $# = 5 ] || { echo "usage: lab/page.sh SOURCE DATA PAGE [HTML PICTURE.png]" >&2; exit 2; }
source=$1 data=$2 page=$3 html=${4:-} picture=${5:-}
PATH=$root/bin:$PATH
export PATH
mkdir -p "$data"
rm -rf "$data/mosaic.zarr" # what an earlier run kept

smaller() {
  if [ -n "${BENCH_SMOKE:-}" ]; then
    sed -e 's/--size [0-9]*MiB/--size 1MiB --reps 1/' -e 's/--width [0-9]* --height [0-9]*/--width 700 --height 600/' -e 's/--tile 1,[0-9]*,[0-9]*/--tile 1,64,64/' -e 's/256,256,256/32,32,32/g' -e 's/64,64,64/16,16,16/g'
  else
    cat
  fi
}

new=$(mktemp)
trap 'rm -f "$new"' EXIT
block='' shown=''
while IFS= read -r line <&3; do
  case $block$line in
    '<!-- shown: '*' -->') shown=${line#'<!-- shown: '} shown=${shown% -->} ;;
    '```console') block=+ ;;
    '+```') block='' shown='' ;;
    '+$ '*)
      printf '%s\n' "$line" >>"$new"
      command=$(smaller <<<"${line#\$ }")
      echo "$command" >&2
      (cd "$data" && bash -c "$command") </dev/null 2>"$new.errors" | sed -n "${shown:-p}" >>"$new" || { cat "$new.errors" >&2; rm -f "$new.errors"; exit 1; }
      rm -f "$new.errors"
      continue
      ;;
    '+'*) continue ;; # what it printed before
  esac
  printf '%s\n' "$line" >>"$new"
done 3<"$source"
sed "s|$root/||g" "$new" >"$page" # paths are those of a checkout

if [ -n "$picture" ]; then
  "$root/scripts/need.sh" chromium chromium
  place=$(cd "$(dirname "$picture")" && pwd)/$(basename "$picture")
  profile=$(mktemp -d)
  trap 'rm -rf "$new" "$profile"' EXIT
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$profile" --window-size=1100,1150 \
    --screenshot="$place" "file://$(cd "$data" && pwd)/$html" >/dev/null 2>&1
  size=$(stat -c %s "$picture")
  [ "$size" -le 409600 ] || { echo "$picture has $size bytes, 400 KiB are allowed" >&2; exit 1; }
fi
