# The Debian package beside packages that have files of its programs' names: all keep what is theirs, whichever comes first and whichever goes, and
# what packages up to 0.10.0 took comes back. The others are small doubles, made of packaging/debian/names.tsv. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154 # of run.sh

# double PACKAGE VERSION: builds it of the files below $tmp/double, with the fields of control that standard input has.
double() {
  mkdir -p "$tmp/double/DEBIAN"
  { printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: a double\n' "$1" "$2"; cat; } >"$tmp/double/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$tmp/double" "$debian/root/doubles/$1_$2.deb" >"$tmp/double.log" 2>&1 || { cat "$tmp/double.log"; return 1; }
  rm -r "$tmp/double"
}
# put FILE TEXT: a file below $tmp/double; in bin a program that prints the text.
put() {
  mkdir -p "$tmp/double${1%/*}"
  case $1 in
    */bin/*) printf '#!/bin/sh\necho "%s"\n' "$2" >"$tmp/double$1" && chmod 755 "$tmp/double$1" ;;
    *) echo "$2" >"$tmp/double$1" ;;
  esac
}
mkdir "$debian/root/doubles"
names=packaging/debian/names.tsv
mapfile -t taken < <(awk -F '\t' '/^[^#]/ && NF == 4 { print $1 }' "$names" | sort -u)
mapfile -t others < <(awk -F '\t' '/^[^#]/ && NF == 4 { print $2 }' "$names" | sort -u)
ok 'packages of Debian have names of ours' test "${#taken[@]}" -ge 3 -a "${#others[@]}" -ge 3
for package in "${others[@]}"; do
  while read -r name file suites; do
    case $file in */bin/*) put "/usr/share/bash-completion/completions/$name" "completion of $package's $name" ;; esac # it may have one
    if [ "$suites" != alternatives ]; then
      put "$file" "$name of $package"
      continue
    fi
    # As vim does: two programs, of which the link goes to the better one, and their manual.
    for rank in basic tiny; do put "/usr/bin/$package.$rank" "$name of $package.$rank"; done
    put "/usr/share/man/man1/$package.1.gz" "manual of $package"
    mkdir -p "$tmp/double/DEBIAN"
    printf '#!/bin/sh\nset -e\nfor p in 30:basic 15:tiny; do\n  update-alternatives --install %s %s /usr/bin/%s.${p#*:} ${p%%:*} --slave %s %s %s\ndone\n' \
      "$file" "$name" "$package" "/usr/share/man/man1/$name.1.gz" "$name.1.gz" "/usr/share/man/man1/$package.1.gz" >"$tmp/double/DEBIAN/postinst"
    printf '#!/bin/sh\nset -e\nfor p in basic tiny; do update-alternatives --remove %s /usr/bin/%s.$p; done\n' "$name" "$package" >"$tmp/double/DEBIAN/prerm"
    chmod 755 "$tmp/double/DEBIAN/"{postinst,prerm}
  done < <(awk -F '\t' -v package="$package" '/^[^#]/ && $2 == package { print $1, $3, $4 }' "$names")
  double "$package" 1 </dev/null || exit 1
done
# What 0.10.0 laid over the names of others, and whom it drove away.
for name in strata "${taken[@]}"; do
  put "/usr/bin/$name" "strata 0.10.0"
  put "/usr/share/man/man1/$name.1.gz" 'manual of strata 0.10.0'
done
double strata 0.10.0 <<<'Conflicts: haskell-stack, resample' || exit 1

# theirs: what one gets by the names of others, who has each file, and whether all packages are whole.
theirs() {
  # shellcheck disable=SC2016 # for the shell inside
  in_debian sh -c '
    for name; do
      "$name" 2>&1 || true
      for file in "/usr/bin/$name" "/usr/share/man/man1/$name.1.gz" "/usr/share/bash-completion/completions/$name"; do
        ls -l "$file" 2>&1 | cut -c 1-10; readlink -f "$file"; [ ! -e "$file" ] || md5sum <"$file"; dpkg -S "$file" 2>&1
      done
      update-alternatives --query "$name" 2>/dev/null || true
    done
    dpkg --verify; dpkg --audit' - "${taken[@]}"
}
standing() { same "$(in_debian dpkg-query -W -f '${db:Status-Abbrev}' "${others[@]}")" "$(printf 'ii %.0s' "${others[@]}")"; }
doubles() { in_debian sh -c 'cd /root/doubles && for p; do echo "${p}_1.deb"; done | xargs dpkg -i' - "${others[@]}"; }
ours() { in_debian dpkg -i "/root/${deb[0]##*/}"; }

ok 'their packages, first' doubles
alone=$(theirs)
ok 'have the names' has <(echo "$alone") '^view of vim.basic$'
ours >"$tmp/ours.log" 2>&1
ok 'ours beside them, with no word of its own' same "$(grep -vE '^(\(Reading|Selecting |Preparing to unpack |Unpacking |Setting up )' "$tmp/ours.log")" ''
ok 'removes none' standing
ok 'takes no name from them' same "$(theirs)" "$alone"
for name in "${taken[@]}"; do
  ok "strata $name, and $name in a folder of ours" same "$(in_debian strata "$name" --version) $(in_debian env PATH="/usr/lib/strata/bin:/usr/bin:/bin" "$name" --version)" "$name ${said#* } $name ${said#* }"
done
in_debian dpkg --purge strata >"$tmp/purge.log" 2>&1
ok 'purged, it takes nothing along' same "$(theirs)" "$alone"

in_debian dpkg --purge "${others[@]}" >"$tmp/purge.log" 2>&1
ok 'ours first' ours
ok 'then theirs' doubles
ok 'have the names too' same "$(theirs)" "$alone"
in_debian dpkg --purge "${others[@]}" >"$tmp/purge.log" 2>&1
ok 'without them ours is whole' same "$(in_debian dpkg --verify; in_debian dpkg-query -W -f '${db:Status-Abbrev}' strata)" 'ii '
in_debian dpkg --purge strata >"$tmp/purge.log" 2>&1

# was_taken STATUS: after 0.10.0 has taken view, ours gives it back as it was: vim's choice, or the user's (manual).
was_taken() {
  in_debian dpkg -i /root/doubles/vim_1.deb >/dev/null && in_debian update-alternatives "${@:2}" >/dev/null 2>&1 || return 1
  local before
  before=$(theirs)
  in_debian dpkg -i /root/doubles/strata_0.10.0.deb >/dev/null || return 1
  same "$(in_debian view)" 'strata 0.10.0' && ours >/dev/null && has <(theirs) "^Status: $1\$" && same "$(theirs)" "$before"
}
ok 'an upgrade from 0.10.0 gives view back to vim' was_taken auto --auto view
in_debian dpkg --purge strata vim >"$tmp/purge.log" 2>&1
ok 'and to whom the user had given it' was_taken manual --set view /usr/bin/vim.tiny
in_debian update-alternatives --auto view >/dev/null
ok 'those whom 0.10.0 drove away can come back' doubles
ok 'with all names' same "$(theirs)" "$alone"
in_debian dpkg --purge strata "${others[@]}" >"$tmp/purge.log" 2>&1
"${as_root[@]}" rm -r "$debian/root/doubles"
