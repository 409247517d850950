# Runs the commands that a document shows, word for word: paragraphs indented by four spaces. Sourced by the parts that follow
# documents, after lib.sh. Fenced code is an output, or commands for another machine, and is not run.
# shellcheck shell=bash disable=SC2154 # of lib.sh

# commands FILE [SECTION...]: sets blocks to the commands below these headings of second rank (none: to all), an element for each paragraph.
commands() {
  local file=$1
  shift
  mapfile -d $'\036' -t blocks < <(printf '## %s\n' "$@" | awk -v wants=$(($# == 0)) -v all=$(($# == 0)) '
    function flush() { if (block != "") printf "%s\036", block; block = "" }
    NR == FNR { wanted[$0]; next }
    /^```/ { fenced = !fenced }
    !fenced && /^## / { wants = all || $0 in wanted }
    !fenced && wants && /^    / { block = block substr($0, 5) "\n"; next }
    { flush() }
    END { flush() }' - "$file")
}

# programs: the first words of all lines of blocks that continue no other line; of "strata NAME", the name.
programs() { printf '%s' "${blocks[@]}" | awk '!more { print $1 == "strata" ? $2 : $1 } { more = /\\$/ }' | xargs; }

# follow FOLDER: runs each of blocks in a folder as one check, and stops at the first that fails.
follow() {
  local block before=$failed
  mkdir -p "$1"
  for block in "${blocks[@]}"; do
    ok "${block%%$'\n'*}" env -C "$1" bash -euo pipefail -xc "$block"
    [ "$failed" = "$before" ] || return 1
  done
}

# A reader's PATH: the programs, Nextflow, and a strata whose view is asked for its page once.
mkdir "$tmp/programs"
ln -s "$root/scripts/nextflow.sh" "$tmp/programs/nextflow"
printf '#!/bin/sh\nif [ "$1" = view ]; then shift; exec "%s" "$@"; fi\nexec "$REAL_BIN/strata" "$@"\n' "$root/tests/nextflow/visit.sh" >"$tmp/programs/strata"
printf '#!/bin/sh\nexit 0\n' >"$tmp/programs/xdg-open" # no browser
chmod +x "$tmp/programs/"{strata,xdg-open}
PATH=$tmp/programs:$root/bin:$PATH
