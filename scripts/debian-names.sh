#!/usr/bin/env bash
# usage: debian-names.sh [--write]   (make debian-names)
# Looks up which names of our programs other packages of Debian have, in the indexes of files (Contents) of SUITES, and prints the table
# packaging/debian/names.tsv, or writes it. Rows of alternatives, which no index lists, stay as they are. Fetches 300 MB by apt, from the mirror
# that this machine's apt uses, into build/; apt's own lists stay as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
table=packaging/debian/names.tsv
suites=${SUITES:-oldoldstable oldstable stable testing unstable}
case ${1:-} in '' | --write) ;; *) echo "usage: $0 [--write]" >&2; exit 2 ;; esac
programs=$(cd cmd && for main in */main.go; do dirname "$main"; done)

mirror=${STRATA_DEBIAN_MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' 'Created-By: Packages' | sed -n '/ Debian Debian$/s/ .*//p' | head -n 1)}
[ -n "$mirror" ] || { echo "debian-names: apt has no mirror of Debian here: name one in STRATA_DEBIAN_MIRROR" >&2; exit 1; }
apt=$PWD/build/debian-names
mkdir -p "$apt"/{lists,cache}/partial
for suite in $suites; do
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main contrib non-free"
done >"$apt/sources.list"
cat >"$apt/apt.conf" <<END
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb { MetaKey "\$(COMPONENT)/Contents-\$(ARCHITECTURE)"; ShortDescription "Contents"; Description "\$(RELEASE)/\$(COMPONENT) \$(ARCHITECTURE) Contents"; KeepCompressed "true"; };
END
export APT_CONFIG=$apt/apt.conf
apt-get -qq update >&2 || true # what is missing is named below
# indexes SUITE: the files of its indexes, those that were fetched, each with the suite's codename before it.
indexes() { apt-get indextargets --format '$(CODENAME) $(FILENAME)' 'Created-By: Contents-deb' "Release: $1"; }
for suite in $suites; do
  for arch in all amd64; do
    indexes "$suite" | grep -q "_main_Contents-$arch" ||
      { echo "debian-names: suite $suite: its index main/Contents-$arch was not fetched: try again later, or leave the suite out of SUITES" >&2; exit 1; }
  done
done

# A path is taken, and so is the name, where a file of another package lies: a command, its page of the manual (a page in any language shows that
# there is a command), or its completion in a shell.
any=$(paste -sd '|' <<<"$programs")
taken="^((usr/)?s?bin/($any)|usr/games/($any)|usr/share/man/([^/]+/)?man[168]/(strata-)?($any)\.[168][^/]*|usr/share/bash-completion/completions/_?($any)(\.bash)?|\
etc/bash_completion\.d/($any)|usr/share/zsh/(vendor-completions|site-functions)/_($any)|usr/share/zsh/functions/.*/_($any)|\
usr/share/fish/(completions|vendor_completions\.d)/($any)\.fish|usr/(lib|share|share/doc)/strata/.*)[[:space:]]"
{
  echo "# The names of our programs that other packages of Debian have: make debian-names writes it, scripts/dist and its tests read it."
  echo "# Looked up on $(date -u +%F) in the indexes of: $suites."
  printf '# name\tpackage\tfile\tsuites\n'
  {
    for program in $programs; do
      printf '%s\t-\n' "$program"
    done
    for suite in $suites; do
      indexes "$suite" |
        while read -r codename index; do /usr/lib/apt/apt-helper cat-file "$index" | { grep -E "$taken" || true; } | sed "s/^/$codename /"; done |
        while read -r codename file packages; do
          name=${file##*/} name=${name#_}
          case $file in usr/share/man/*) name=${name%%.*} ;; *) name=${name%.*sh} ;; esac
          case $file in usr/*/strata/*) name=strata ;; esac
          for package in ${packages//,/ }; do printf '%s\t%s\t/%s\t%s\n' "$name" "${package##*/}" "$file" "$codename"; done
        done
    done
    { grep -P '\talternatives$' "$table" || true; } 2>/dev/null
  } | sort -u | awk -F '\t' '
    # One line for each file, with the suites that have it; "-" for a name that nobody has.
    { key = $1 FS $2 FS $3 }
    $2 == "-" { order[++n] = $1; next }
    { if (!(key in in_suites)) { lines[$1] = lines[$1] key "\n" }; in_suites[key] = in_suites[key] (in_suites[key] ? "," : "") $4 }
    END {
      for (i = 1; i <= n; i++) {
        if (!(order[i] in lines)) { print order[i] FS "-"; continue }
        count = split(lines[order[i]], keys, "\n")
        for (k = 1; k < count; k++) print keys[k] FS in_suites[keys[k]]
      }
    }'
} >"$apt/names.tsv"
if [ "${1:-}" = --write ]; then cp "$apt/names.tsv" "$table"; else cat "$apt/names.tsv"; fi
