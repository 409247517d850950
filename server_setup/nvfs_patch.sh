#!/usr/bin/env bash
# Makes the sources of nvidia-fs (2.28.4) build on Linux 7.0. --help says how.
#
# Every edit is an awk program that reads a file and writes what it should be:
# the same text where nothing is to be done, exit code 3 and one line where it
# does not find what it knows. So one program says whether a change is in (its
# output is its input), makes it, and checks it (its output on its output).
set -uo pipefail
export LC_ALL=C

usage() {
  cat <<'HELP'
usage: nvfs_patch.sh [--check | --dry-run | --revert [--force]]

Makes the DKMS sources of nvidia-fs build on Linux 7.0 and load. Without an option
it makes what is missing of these four changes, all or none:
  (a) nvfs-mmap.c             reads a mapping's flags from the public field, not through the private accessor
  (b) configure, nvfs-dma.c   a probe for the new type of the block layer's iterator, and a typedef of it,
                              used on the iterator path only
  (c) create_nv.symvers.sh    unpacks nvidia.ko.zst as it does nvidia.ko.xz, both without asking
  (d) create_nv.symvers.sh    sees relative CRCs that are local to their section
The first run keeps each file that it changes as FILE.strata-orig.

  --check    says which changes are in, and changes nothing
  --dry-run  writes what would change as a unified diff, and changes nothing
  --revert   puts the kept files back, unless one was changed since
  --force    with --revert: even then
  --help     this text

NVFS_SRC names the sources. Default: /usr/src/nvidia-fs-2.28.4, else the newest /usr/src/nvidia-fs-*.

exit code  0  done; --check: all four changes are in
           1  failed, for example because the folder is read-only; --check: a change is missing; --revert: refused
           2  wrong usage
           3  no sources, or sources that it does not know: nothing was changed
HELP
}

# fail CODE MESSAGE: the end.
fail() {
  echo "nvfs_patch.sh: $2" >&2
  exit "$1"
}

action=patch dry='' force=''
for argument; do
  case $argument in
    --check) [ "$action" = patch ] || fail 2 "--check and --$action exclude each other"; action=check ;;
    --revert) [ "$action" = patch ] || fail 2 "--revert and --$action exclude each other"; action=revert ;;
    --dry-run) dry=1 ;;
    --force) force=1 ;;
    -h | --help) usage; exit 0 ;;
    *) fail 2 "unknown argument $argument (--help lists what there is)" ;;
  esac
done
[ -z "$force" ] || [ "$action" = revert ] || fail 2 '--force goes with --revert only'
[ -z "$dry" ] || [ "$action" != check ] || fail 2 '--dry-run goes with patching or with --revert'

# --- The sources -----------------------------------------------------------------

find_sources() {
  if [ -n "${NVFS_SRC:-}" ]; then
    [ -d "$NVFS_SRC" ] || fail 3 "NVFS_SRC=$NVFS_SRC is no folder"
    src=$NVFS_SRC
  elif [ -d /usr/src/nvidia-fs-2.28.4 ]; then
    src=/usr/src/nvidia-fs-2.28.4
  else
    src=$(printf '%s\n' /usr/src/nvidia-fs-[0-9]* | sort -V | tail -n 1)
    [ -d "$src" ] || fail 3 'no nvidia-fs sources in /usr/src: install nvidia-fs-dkms, or name them with NVFS_SRC'
  fi
  case $src in ?*/) src=${src%/} ;; esac
  case $src in /*) ;; *) src=./$src ;; esac
  # A checkout of the public repository has them one folder down.
  if [ ! -e "$src/nvfs-mmap.c" ] && [ -e "$src/src/nvfs-mmap.c" ]; then src=$src/src; fi
}

files=(configure nvfs-dma.c nvfs-mmap.c create_nv.symvers.sh)
kept=.strata-orig

src=
find_sources
for f in "${files[@]}"; do
  [ ! -L "$src/$f" ] || fail 3 "$src/$f is a symbolic link: set NVFS_SRC to the folder that the files are in"
  [ -f "$src/$f" ] || fail 3 "$src has no $f: these are no nvidia-fs sources that this script knows"
  [ -r "$src/$f" ] || fail 1 "$src/$f cannot be read by this user"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/nvfs_patch.XXXXXX") || exit 1
new=() # what lies beside the sources until it is moved
finish() {
  rm -rf -- "$work"
  [ "${#new[@]}" = 0 ] || rm -f -- "${new[@]}"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# --- The edits -------------------------------------------------------------------

# What the edits of C share: code(line) is the line with comments and literals
# blanked, character for character.
c_code='
function code(line,    i, n, two, out, quote) {
  n = length(line)
  for (i = 1; i <= n; i++) {
    two = substr(line, i, 2)
    if (comment) {
      if (two == "*/") { comment = 0; out = out " "; i++ }
      out = out " "
      continue
    }
    if (two == "/*") { comment = 1; out = out "  "; i++; continue }
    if (two == "//") break
    quote = substr(line, i, 1)
    if (quote == "\"" || quote == "\047") {
      out = out " "
      for (i++; i <= n && substr(line, i, 1) != quote; i++) {
        if (substr(line, i, 1) == "\\") { out = out " "; i++ }
        out = out " "
      }
      out = out " "
      continue
    }
    out = out quote
  }
  while (length(out) < n) out = out " "
  return out
}
function unknown(text) { print text >"/dev/stderr"; bad = 1; exit 3 }
'

# (a) ACCESS_PRIVATE(vma, __vm_flags), read, becomes vma->vm_flags.
edit_mmap() {
  awk "$c_code"'
  {
    line = $0; text = code(line); done = ""
    while (match(text, /ACCESS_PRIVATE[ \t]*\([ \t]*[A-Za-z_][A-Za-z_0-9]*[ \t]*,[ \t]*__vm_flags[ \t]*\)/)) {
      name = substr(text, RSTART, RLENGTH)
      sub(/^ACCESS_PRIVATE[ \t]*\([ \t]*/, "", name); sub(/[ \t]*,.*/, "", name)
      rest = substr(text, RSTART + RLENGTH)
      before = substr(text, 1, RSTART - 1)
      if (rest ~ /^[ \t]*([-+|&^*\/%]|<<|>>)?=([^=]|$)/ || rest ~ /^[ \t]*(\+\+|--)/ || before ~ /(\+\+|--|[^&]&)[ \t]*$/)
        unknown("line " NR " writes to ACCESS_PRIVATE(" name ", __vm_flags); looked for reads of it")
      done = done substr(line, 1, RSTART - 1) name "->vm_flags"
      line = substr(line, RSTART + RLENGTH); text = rest
      reads++
    }
    if (text ~ /__vm_flags/) unknown("line " NR " uses __vm_flags in a way that is not known; looked for ACCESS_PRIVATE(vma, __vm_flags)")
    if (text ~ /->[ \t]*vm_flags[^A-Za-z_0-9]/) reads++
    print done line
  }
  END { if (!bad && !reads) unknown("no read of vm_flags; looked for ACCESS_PRIVATE(vma, __vm_flags)") }'
}

# (b) On the iterator path (what HAVE_BLK_RQ_DMA_MAP_ITER_START guards) struct
# req_iterator becomes a typedef. A struct req_iterator is right where another
# branch of the same #if has struct blk_map_iter. The file is read twice.
edit_dma() { # FILE HEADER
  local header=
  grep -q 'struct[[:blank:]]*blk_map_iter[^A-Za-z_0-9]' "$2" 2>/dev/null && header=1
  awk -v header="$header" "$c_code"'
  function guards(text) {
    return text ~ /^[ \t]*#[ \t]*(ifdef|if)[^A-Za-z_0-9]/ && text ~ /[^A-Za-z_0-9]HAVE_BLK_RQ_DMA_MAP_ITER_START([^A-Za-z_0-9]|$)/ && text !~ /!/
  }
  NR == 1 { pass = 1 }
  FNR == 1 && NR != 1 { pass = 2; comment = 0 }
  pass == 1 {
    text = code($0)
    if (text ~ /^[ \t]*#[ \t]*if/) {
      depth++
      has[depth] = 0; old[depth] = ""
      if (!inside && guards(text)) { inside = depth; guard = FNR; opened = 1 }
    } else if (text ~ /^[ \t]*#[ \t]*el/ && inside && depth == inside) {
      take(old[depth])
      inside = 0
    } else if (text ~ /^[ \t]*#[ \t]*endif/) {
      # What is old in this group is wrong unless the group knows the new type.
      if (inside && depth > inside && !has[depth]) old[depth - 1] = old[depth - 1] old[depth]
      else if (inside && depth == inside) take(old[depth])
      if (depth == inside) inside = 0
      if (depth) depth--
    }
    if (inside && (text " ") ~ /struct[ \t]+blk_map_iter[^A-Za-z_0-9]/) { has[depth] = 1; knows = 1 }
    if (inside && (text " ") ~ /struct[ \t]+req_iterator[^A-Za-z_0-9]/) { old[depth] = old[depth] " " FNR }
    next
  }
  function take(list,    i, n, a) { n = split(list, a, " "); for (i = 1; i <= n; i++) { wrong[a[i]] = 1; count++; if (!at) at = guard } }
  pass == 2 && FNR == 1 {
    if (!opened) unknown("no #ifdef HAVE_BLK_RQ_DMA_MAP_ITER_START; looked for the block iterator path that it guards")
    if (count && (knows || header)) unknown("the iterator path has struct blk_map_iter, but also struct req_iterator without it (line " where() "); looked for one or the other")
    if (!count && !knows && !header) unknown("no struct req_iterator within #ifdef HAVE_BLK_RQ_DMA_MAP_ITER_START; looked for the iterator of struct blk_dma_iter")
  }
  function where(    i, low) { for (i in wrong) if (!low || i + 0 < low) low = i + 0; return low }
  pass == 2 {
    line = $0; text = code(line)
    if (FNR in wrong) {
      done = ""
      while (match(text " ", /struct[ \t]+req_iterator[^A-Za-z_0-9]/)) {
        done = done substr(line, 1, RSTART - 1) "nvfs_blk_iter_t"
        line = substr(line, RSTART + RLENGTH - 1); text = substr(text, RSTART + RLENGTH - 1)
      }
      line = done line
    }
    print line
    if (count && FNR == at) {
      cr = line ~ /\r$/ ? "\r" : ""
      print cr
      print "/* What walks through a request inside struct blk_dma_iter; its type is new in Linux 6.18. */" cr
      print "#ifdef HAVE_BLK_MAP_ITER" cr
      print "typedef struct blk_map_iter nvfs_blk_iter_t;" cr
      print "#else" cr
      print "typedef struct req_iterator nvfs_blk_iter_t;" cr
      print "#endif" cr
    }
  }' "$1" "$1"
}

# (b) The probe behind HAVE_BLK_MAP_ITER, after that for the iterator itself.
edit_configure() { # wanted: does nvfs-dma.c need it?
  awk -v wanted="$1" '
  function unknown(text) { print text >"/dev/stderr"; bad = 1; exit 3 }
  { line[NR] = $0; text = $0; sub(/\r$/, "", text); sub(/^[ \t]*#.*/, "", text) }
  text ~ /struct[ \t]+blk_map_iter[^A-Za-z_0-9]/ { names = NR }
  text ~ /output_sym[ \t]+"?HAVE_BLK_MAP_ITER"?[ \t]*$/ { ours = NR }
  text ~ /output_sym[ \t]+"?HAVE_BLK_RQ_DMA_MAP_ITER_START"?[ \t]*$/ { probes++; open = 1 }
  open && text ~ /^[ \t]*fi[ \t]*;?[ \t]*$/ { after = NR; open = 0 }
  END {
    if (bad) exit 3
    if (wanted && !(ours && names)) {
      if (ours || names) unknown("line " (ours + names) " is part of a probe for struct blk_map_iter; looked for all of it or none")
      if (probes != 1 || !after) unknown("not one probe that ends in output_sym \"HAVE_BLK_RQ_DMA_MAP_ITER_START\" and fi; looked for it, to put another one after it")
    } else after = 0
    for (i = 1; i <= NR; i++) {
      print line[i]
      if (i != after) continue
      cr = line[i] ~ /\r$/ ? "\r" : ""
      print cr
      print "cat > $TEST_C <<EOF" cr
      print "#include <linux/blkdev.h>" cr
      print "#include <linux/blk-mq.h>" cr
      print "#include <linux/blk-mq-dma.h>" cr
      print "#include \"test.h\"" cr
      print cr
      print "int test (void)" cr
      print "{" cr
      print "\tstruct blk_dma_iter dma = { };" cr
      print "\tstruct blk_map_iter map = dma.iter;" cr
      print cr
      print "\treturn map.bio != NULL;" cr
      print "}" cr
      print cr
      print "EOF" cr
      print "if compile_prog \"Checking if blk_dma_iter holds a struct blk_map_iter...\"; then" cr
      print "        output_sym \"HAVE_BLK_MAP_ITER\"" cr
      print "fi" cr
    }
  }'
}

# (c) and (d), or the one of the two that is named.
edit_symvers() {
  awk -v only="${1:-}" '
  function unknown(text) { print text >"/dev/stderr"; bad = 1; exit 3 }
  # Is letter among the short options, or long among the long ones, that follow a command?
  function given(options, letters, longs,    i, n, w) {
    n = split(options, w, /[ \t]+/)
    for (i = 1; i <= n; i++) {
      if (w[i] == "") continue
      if (w[i] !~ /^-/) return 0
      if (w[i] ~ /^--/ ? w[i] ~ ("^--(" longs ")$") : w[i] ~ ("^-[^e]*[" letters "]")) return 1
    }
    return 0
  }
  # The line with a letter put into the options of the command that ends at position p.
  function add(line, p, letter,    rest) {
    rest = substr(line, p + 1)
    if (match(rest, /^[ \t]+-[A-Za-z0-9]/)) return substr(line, 1, p + RLENGTH - 1) letter substr(line, p + RLENGTH)
    return substr(line, 1, p) " -" letter rest
  }
  # An unpacker on this line is made to overwrite without asking.
  function overwrite(line, tool, pattern,    p) {
    pattern = "(^|[ \t;&|(])(/[a-z/]*/)?(un)?" tool "([ \t]|$)"
    if (!match(line, pattern)) return line
    p = RSTART + RLENGTH - 1
    if (substr(line, p, 1) ~ /[ \t]/) p--
    unpacks = 1
    if (given(substr(line, p + 1), "fc", "force|stdout|to-stdout")) return line
    return add(line, p, "f")
  }
  {
    line = $0; cr = ""
    if (sub(/\r$/, "", line)) cr = "\r"
    text = line
    if (text ~ /^[ \t]*#/) text = ""
    if (match(text, /case[ \t]+"?\$\{?[A-Za-z_][A-Za-z_0-9]*\}?"?[ \t]+in/)) {
      variable = substr(text, RSTART, RLENGTH)
      sub(/^case[ \t]+"?\$\{?/, "", variable); sub(/\}?"?[ \t]+in$/, "", variable)
    }
    if (text ~ /^[ \t]*\(?[^ \t#()]*ko\.xz[^)]*\)/) { branch = 1; xz++; at = line; sub(/[^ \t].*/, "", at) }
    if (text ~ /^[ \t]*\(?[^ \t#()]*ko\.zst[^)]*\)/) { branch = 1; zst++ }
    if (branch && text != "") {
      if (text ~ /(xzcat|zstdcat)([ \t]|$)/) unpacks = 1
      fixed = overwrite(overwrite(line, "xz"), "zstd")
      if (only != "d") text = line = fixed
    }
    # The last command "grep" before a literal __crc, whose pattern has the letter of a symbol in .rodata.
    if ((crc = index(text, "__crc")) && match(substr(text, 1, crc), /.*grep[ \t]/)) {
      p = RLENGTH - 1
      pattern = substr(text, p + 1, crc - p - 1)
      letters = pattern
      gsub(/\\[sbSBwW<>]|\[\[:(space|blank):\]\]/, " ", letters)
      if (letters ~ /\[(rR|Rr)\]/) { looks++ }
      else if (letters ~ /[^A-Za-z]R([^A-Za-z]|$)/) {
        looks++
        if (only != "c" && !given(pattern, "iy", "ignore-case")) line = add(line, p, "i")
      }
    }
    out[NR] = line cr
    if (branch && text ~ /;;[ \t]*$/) {
      if (!unpacks) unknown("line " NR " ends a branch for packed modules that calls neither xz nor zstd; looked for xz -d or zstd -d")
      if (!end) { end = NR; subject = variable; margin = at; eol = cr }
      branch = unpacks = 0
    }
  }
  END {
    if (bad) exit 3
    if (branch) unknown("the branch for packed modules does not end; looked for ;;")
    if (!xz && !zst) unknown("no branch *ko.xz) of a case; looked for where nvidia.ko.xz is unpacked")
    if (!zst && (xz != 1 || subject == "" )) unknown("not one case \"$variable\" in with a branch *ko.xz); looked for where nvidia.ko.xz is unpacked")
    if (!looks) unknown("no grep for relative CRCs; looked for a pattern with R and __crc, like \"\\sR\\s*__crc\"")
    for (i = 1; i <= NR; i++) {
      print out[i]
      if (zst || only == "d" || i != end) continue
      v = "\"$" subject "\""
      print margin "*ko.zst)" eol
      print margin "\tzstd -q -d -f -o \"./$(basename " v " .zst)\" " v eol
      print margin "\t" subject "=$(basename " v " .zst)" eol
      print margin "\t;;" eol
    }
  }'
}

# edit FILE OUT COMMAND…: the edit's output. awk ends the last line: where FILE
# does not, OUT does not either.
edit() {
  local file=$1 out=$2
  shift 2
  "$@" <"$file" >"$out" || return
  if [ -s "$file" ] && [ -n "$(tail -c 1 "$file")" ]; then
    printf '%s' "$(cat "$out")" >"$out.line" && mv -f -- "$out.line" "$out"
  fi
}

# plan IN OUT: what the files in IN should be; returns 3 after one line about what is not known.
plan() {
  local in=$1 out=$2 f why wanted=
  mkdir -p "$out"
  for f in nvfs-mmap.c nvfs-dma.c configure create_nv.symvers.sh; do
    case $f in
      nvfs-mmap.c) edit "$in/$f" "$out/$f" edit_mmap ;;
      nvfs-dma.c) edit "$in/$f" "$out/$f" edit_dma "$in/$f" "$in/nvfs-dma.h" ;;
      configure)
        grep -q HAVE_BLK_MAP_ITER "$out/nvfs-dma.c" && wanted=1
        edit "$in/$f" "$out/$f" edit_configure "$wanted" ;;
      create_nv.symvers.sh) edit "$in/$f" "$out/$f" edit_symvers ;;
    esac 2>"$work/why" || {
      why=$(head -n 1 "$work/why")
      echo "nvfs_patch.sh: $src/$f: ${why:-awk failed}; nothing was changed" >&2
      return 3
    }
  done
}

# snapshot FOLDER [kept]: copies of the files, of the kept ones where there are.
snapshot() {
  local f from
  mkdir -p "$1"
  for f in "${files[@]}" nvfs-dma.h; do
    from=$src/$f
    if [ -n "${2:-}" ] && [ -e "$from$kept" ]; then from=$from$kept; fi
    [ -e "$from" ] || continue
    cp -- "$from" "$1/$f" || fail 1 "$from cannot be copied to $1"
  done
}

# show FROM TO: a unified diff of the files.
show() {
  local f
  for f in "${files[@]}"; do diff -u --label "a/$f" --label "b/$f" "$1/$f" "$2/$f"; done
  return 0
}

# stage FILE FROM: FROM with the mode and owner of FILE, hidden beside it, as $staged.
stage() {
  staged=${1%/*}/.${1##*/}.strata-new.$$
  new+=("$staged")
  { cp -p -- "$1" "$staged" && cat -- "$2" >"$staged"; } 2>/dev/null
}

# move FROM TO FROM TO …: nothing but renames, which no signal interrupts. When
# one fails, those before it are taken back.
move() {
  local undone=("$@") from=() i
  trap '' INT TERM HUP
  for ((i = 0; i < ${#undone[@]}; i += 2)); do
    cp -p -- "${undone[i + 1]}" "$work/undo.$i" 2>/dev/null
    if ! mv -f -- "${undone[i]}" "${undone[i + 1]}" 2>/dev/null; then
      for ((i -= 2; i >= 0; i -= 2)); do cp -p -- "$work/undo.$i" "${undone[i + 1]}"; done
      fail 1 "$src: a file cannot be replaced; nothing was changed"
    fi
  done
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
}

# --- What to do ------------------------------------------------------------------

# state LETTER MISSING WHAT: one line.
state() {
  if [ -n "$2" ]; then missed=1; echo "($1) missing: $3"; else echo "($1) in:      $3"; fi
}
differs() { cmp -s "$work/in/$1" "$2" || echo 1; }
states() {
  local f=create_nv.symvers.sh
  missed=
  edit "$work/in/$f" "$work/c" edit_symvers c
  edit "$work/in/$f" "$work/d" edit_symvers d
  state a "$(differs nvfs-mmap.c "$work/out/nvfs-mmap.c")" 'nvfs-mmap.c reads the flags of a mapping from the public field'
  state b "$(differs configure "$work/out/configure")$(differs nvfs-dma.c "$work/out/nvfs-dma.c")" \
    'configure and nvfs-dma.c know the type of the block iterator'
  state c "$(differs $f "$work/c")" "$f unpacks .ko.xz and .ko.zst without asking"
  state d "$(differs $f "$work/d")" "$f sees relative CRCs that are local symbols"
}

if [ "$action" = revert ]; then
  kepts=()
  for f in "${files[@]}"; do [ -e "$src/$f$kept" ] && kepts+=("$f"); done
  [ "${#kepts[@]}" -gt 0 ] || fail 1 "nothing to revert: $src has no FILE$kept"
  snapshot "$work/in"
  snapshot "$work/orig" kept
  if [ -z "$force" ]; then
    plan "$work/orig" "$work/out" || exit 3
    for f in "${kepts[@]}"; do
      cmp -s "$work/in/$f" "$work/orig/$f" || cmp -s "$work/in/$f" "$work/out/$f" ||
        fail 1 "$src/$f was changed since it was patched: nothing was reverted; --force throws those changes away"
    done
  fi
  if [ -n "$dry" ]; then show "$work/in" "$work/orig"; exit 0; fi
  [ -w "$src" ] || fail 1 "$src cannot be written by this user: nothing was reverted"
  moves=()
  for f in "${kepts[@]}"; do moves+=("$src/$f$kept" "$src/$f"); done
  move "${moves[@]}"
  for f in "${kepts[@]}"; do echo "reverted $src/$f"; done
  exit 0
fi

snapshot "$work/in"
plan "$work/in" "$work/out" || exit 3
if [ "$action" = check ]; then
  echo "nvidia-fs sources in $src"
  states
  [ -z "$missed" ]
  exit
fi
if [ -n "$dry" ]; then show "$work/in" "$work/out"; exit 0; fi

# The results are checked before anything is touched.
plan "$work/out" "$work/again" || exit 3
changed=()
for f in "${files[@]}"; do
  cmp -s "$work/out/$f" "$work/again/$f" || fail 3 "$src/$f: the change would not be stable; nothing was changed"
  cmp -s "$work/in/$f" "$work/out/$f" || changed+=("$f")
done
if [ "${#changed[@]}" = 0 ]; then
  echo "nothing to do: all four changes are in $src"
  exit 0
fi
for f in configure create_nv.symvers.sh; do
  if bash -n "$work/in/$f" 2>/dev/null; then
    bash -n "$work/out/$f" 2>/dev/null || fail 3 "$src/$f: the change would break the script; nothing was changed"
  fi
done
for f in "${changed[@]}"; do
  if [ -e "$src/$f$kept" ] && ! cmp -s "$src/$f" "$src/$f$kept"; then
    fail 1 "$src/$f$kept is of another state of $f: move it away first; nothing was changed"
  fi
done
[ -w "$src" ] || fail 1 "$src cannot be written by this user: nothing was changed (sudo?)"

# What a run that was killed left.
for f in "${files[@]}"; do rm -f -- "$src/.$f.strata-new."* "$src/.$f$kept."*; done
moves=()
for f in "${changed[@]}"; do
  stage "$src/$f" "$work/out/$f" || fail 1 "$src cannot be written (full or read-only?): nothing was changed"
  moves+=("$staged" "$src/$f")
done
for f in "${changed[@]}"; do
  cmp -s "$src/$f" "$work/in/$f" || fail 1 "$src/$f changed while this ran; nothing was changed"
  [ -e "$src/$f$kept" ] && continue
  # Renamed when it is whole: what is kept is the original or is not there.
  staged=$src/.$f$kept.$$
  new+=("$staged")
  { cp -p -- "$src/$f" "$staged" && mv -- "$staged" "$src/$f$kept"; } 2>/dev/null ||
    fail 1 "$src/$f$kept cannot be written: nothing was changed"
done
move "${moves[@]}"

for f in "${changed[@]}"; do echo "patched $src/$f (kept: $f$kept)"; done
name=${src%/src} name=${name##*/} version=${name#nvidia-fs-}
if [ "$version" != "$name" ]; then
  echo "next: dkms build --force -m nvidia-fs -v $version && dkms install --force -m nvidia-fs -v $version && modprobe nvidia-fs"
fi
