# nvfs_patch.sh. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154 # $tmp, $root are of the library

# patch FOLDER ARGUMENTS…: output in $log, errors in $log.err, the exit code in $status.
patch() {
  status=0
  log=$tmp/patch.log
  { NVFS_SRC=$1 TMPDIR=${temporary:-$tmp} "$root/server_setup/nvfs_patch.sh" "${@:2}" >"$log" 2>"$log.err" || status=$?; } 2>/dev/null
}
# tree FOLDER: what is in it, with modes.
tree() { (cd "$1" && find . -type f -printf '%p %m ' -exec sha256sum {} \; | sort); }
# refused CODE PATTERN: the exit code, one line that matches, and nothing changed since $before of $dir.
refused() {
  same "$status" "$1" && has "$log.err" "$2" && same "$(wc -l <"$log.err")" 1 && same "$(tree "$dir")" "$before"
}
# with FOLDER SED FILE: fresh sources, one file of which sed has changed.
with() {
  dir=$1
  rm -rf "$dir"
  sources "$dir"
  sed -i "$2" "$dir/$3"
  before=$(tree "$dir")
}
kept=(configure.strata-orig create_nv.symvers.sh.strata-orig nvfs-dma.c.strata-orig nvfs-mmap.c.strata-orig)
edited=(nvfs-mmap.c nvfs-dma.c configure create_nv.symvers.sh)

kernel "$tmp/old" old
kernel "$tmp/new" new

# --- Once, twice, back -----------------------------------------------------------

dir="$tmp/it's a \"folder\"/nvidia-fs-2.28.4"
sources "$dir"
before=$(tree "$dir")
ok 'as they come they compile for the old kernel' compiles "$dir" "$tmp/old"
ok 'but not for the new one' fails compiles "$dir" "$tmp/new"
rm -f "$dir/config-host.h"
patch "$dir" --check
ok '--check: four changes are missing, exit code 1' same "$status $(count '^\([abcd]\) missing' "$log")" '1 4'
ok '--check changes nothing' same "$(tree "$dir")" "$before"
patch "$dir" --dry-run
ok '--dry-run writes a unified diff of four files' same "$status $(count '^\+\+\+ b/' "$log")" '0 4'
ok '--dry-run changes nothing' same "$(tree "$dir")" "$before"
cp -r "$dir" "$tmp/by-hand"
(cd "$tmp/by-hand" && command patch -s -p1 <"$log") || echo 'patch failed'
patch "$dir"
ok 'patched' same "$status" 0
ok 'it says what to do next' has "$log" '^next: dkms build .* -v 2\.28\.4'
ok 'four files are kept' filled "${kept[@]/#/$dir/}"
for f in "${edited[@]}"; do ok "the diff said what is done to $f" cmp "$dir/$f" "$tmp/by-hand/$f"; done
ok 'modes are as before' same "$(cd "$dir" && stat -c %a configure create_nv.symvers.sh)" $'755\n640'
ok 'nothing else is left' same "$(find "$dir" -type f | wc -l)" 10
after=$(tree "$dir")
patch "$dir" --check
ok '--check: all in, exit code 0' same "$status $(count '^\([abcd]\) in: ' "$log")" '0 4'
patch "$dir"
ok 'a second run finds nothing to do' has "$log" '^nothing to do'
ok 'and changes nothing, what is kept included' same "$status $(tree "$dir")" "0 $after"
patch "$dir" --dry-run
ok 'nor would it' same "$(cat "$log")" ''

ok 'patched they compile for the new kernel' compiles "$dir" "$tmp/new"
ok 'where the probe finds the type' has "$dir/config-host.h" HAVE_BLK_MAP_ITER
ok 'patched they compile for the old kernel' compiles "$dir" "$tmp/old"
ok 'where the probe does not' fails has "$dir/config-host.h" HAVE_BLK_MAP_ITER
rm -f "$dir/config-host.h"
ok 'the typedef is used on the iterator path' same "$(count 'nvfs_blk_iter_t \*' "$dir/nvfs-dma.c")" 3
ok 'and not on the scatter list path' has "$dir/nvfs-dma.c" '^	struct req_iterator iter = '
ok 'comments are left alone' same "$(count 'takes a struct req_iterator' "$dir/nvfs-dma.c") $(count 'say ACCESS_PRIVATE\(vma, __vm_flags\)' "$dir/nvfs-mmap.c")" '1 1'

# --- The helper does what it is for ----------------------------------------------

modules="$tmp/kernel modules"
mkdir -p "$modules" "$tmp/run"
module "$modules/nvidia.ko" "${absolute[@]}"
module "$modules/nvidia-local.ko" "${relative[@]}"
module "$modules/nvidia-global.ko" '.globl __crc_nvidia_p2p_get_pages' "${relative[@]}"
ok 'the compiler makes the kinds of symbols that are meant' same "$(nm "$modules"/nvidia-*.ko | grep -o ' [rR] __crc' | tr -d '\n')" ' R __crc r __crc'
helper() { (cd "$tmp/run" && timeout 20 bash "$dir/create_nv.symvers.sh" "$modules" </dev/null) >"$tmp/helper.log" 2>&1; }
helped() {
  ok "$1: the absolute CRC is taken" same "$(cat "$tmp/run/nv.symvers")" '0x12345678 nvidia_p2p_get_pages'
  ok "$1: relative CRCs are seen, global and local" same "$(sort "$tmp/helper.log")" $'relative: nvidia-global.ko\nrelative: nvidia-local.ko'
}
helper
helped 'plain modules'
xz -q "$modules"/*.ko
helper
helped '.ko.xz'
for f in nvidia nvidia-local nvidia-global; do echo stale >"$tmp/run/$f.ko"; done
helper
helped '.ko.xz, over what is there'
xz -d "$modules"/*.xz
zstd -q --rm "$modules"/*.ko
rm -f "$tmp/run"/*
helper
helped '.ko.zst'
for f in nvidia nvidia-local nvidia-global; do echo stale >"$tmp/run/$f.ko"; done
helper
helped '.ko.zst, over what is there'

# --- Back ------------------------------------------------------------------------

patch "$dir" --revert --dry-run
ok '--revert --dry-run shows it' same "$status $(count '^\+.*= ACCESS_PRIVATE|^\+.*\(\(ACCESS_PRIVATE' "$log")" '0 2'
ok 'and changes nothing' same "$(tree "$dir")" "$after"
echo '/* by hand */' >>"$dir/nvfs-dma.c"
before=$(tree "$dir")
patch "$dir" --revert
ok '--revert refuses what was changed since, and reverts nothing' refused 1 'nvfs-dma\.c was changed since it was patched: nothing was reverted; --force'
patch "$dir" --revert --force
sources "$tmp/fresh"
ok '--revert --force puts everything back' same "$status $(tree "$dir")" "0 $(tree "$tmp/fresh")"
before=$(tree "$dir")
patch "$dir" --revert
ok 'a second --revert says that there is nothing' refused 1 'nothing to revert: .* has no FILE\.strata-orig'
patch "$dir"
patch "$dir" --revert
ok 'patched and reverted without --force' same "$status $(tree "$dir")" "0 $before"

# --- What is partly or already done -----------------------------------------------

# shellcheck disable=SC2016 # scripts of sed
{
  with "$tmp/part" 's/"\\sR/"\\s[rR]/; s/xz -d/xz -df/' create_nv.symvers.sh
  patch "$dir" --check
  ok '--check tells (c) from (d)' same "$(grep -oE '^\([cd]\) [a-z]+' "$log" | tr '\n' ' ')" '(c) missing (d) in '
  patch "$dir"
  ok 'what is in is left' same "$status $(count 'grep -qe' "$dir/create_nv.symvers.sh") $(count 'ko\.zst\)' "$dir/create_nv.symvers.sh")" '0 1 1'
  with "$tmp/part" 's/^\(\t\t\)\*ko.xz)/\1*ko.zst)\n\1\tzstd -d --rm "$module" -o x\n\1\t;;\n&/' create_nv.symvers.sh
  patch "$dir"
  ok 'a branch for .ko.zst that asks is made not to' same "$status $(count 'zstd -fd --rm' "$dir/create_nv.symvers.sh") $(count 'ko\.zst\)' "$dir/create_nv.symvers.sh")" '0 1 1'
  with "$tmp/one" 's/^\(\t\t\)\*ko.xz)$/\1*ko.xz) xz -d "$module" ;;\n\t\t*.never)/' create_nv.symvers.sh
  patch "$dir"
  ok 'a branch on one line' same "$status $(count 'ko\.xz\) xz -fd "\$module" ;;' "$dir/create_nv.symvers.sh") $(bash -n "$dir/create_nv.symvers.sh" && echo parses)" '0 1 parses'
  with "$tmp/fine" 's/ACCESS_PRIVATE([ a-z]*, __vm_flags *)/vma->vm_flags/' nvfs-mmap.c
  sed -i 's/"\\sR/"\\s[Rr]/; s/xz -d/xz -f -d/; s/^\(\t\t\)\*ko.xz)/\1*ko.zst) zstdcat "$module" >x; module=x ;;\n&/' "$dir/create_nv.symvers.sh"
}
sed -i '/^#if defined/,$ {
  s/^static int more(.*/#if FIXED\nstatic int more(struct request *req, struct blk_map_iter *at)\n#else\n&\n#endif/
  s/^\tstruct req_iterator \*at/\tstruct blk_map_iter *at/; s/^\tstruct req_iterator \*shown/\tstruct blk_map_iter *shown/
}' "$dir/nvfs-dma.c"
before=$(tree "$dir")
patch "$dir" --check
ok 'sources that are fine in their own way are in' same "$status" 0
patch "$dir"
ok 'and left alone' same "$status $(tree "$dir")" "0 $before"
with "$tmp/older" '' configure
rm "$dir/nvfs-dma.h"
patch "$dir"
ok 'without nvfs-dma.h' same "$status" 0

# --- What is not known is named and left -------------------------------------------

unknown() { # PATTERN SED FILE
  with "$tmp/unknown" "$2" "$3"
  patch "$dir" --check
  ok "--check: $3: $1" refused 3 "$3: .*$1"
  patch "$dir"
  ok '  and a run changes nothing' refused 3 "$3: .*$1.*; nothing was changed"
}
unknown 'no read of vm_flags; looked for ACCESS_PRIVATE' '/vm_flags/d' nvfs-mmap.c
unknown 'line 11 uses __vm_flags in a way that is not known' 's/ACCESS_PRIVATE( vma, __vm_flags )/vma->__vm_flags/' nvfs-mmap.c
unknown 'writes to ACCESS_PRIVATE\(vma, __vm_flags\)' 's/seen = ACCESS_PRIVATE( vma, __vm_flags )/ACCESS_PRIVATE(vma, __vm_flags) |= 1/' nvfs-mmap.c
unknown 'no #ifdef HAVE_BLK_RQ_DMA_MAP_ITER_START' 's/HAVE_BLK_RQ_DMA_MAP_ITER_START/SOMETHING_ELSE/' nvfs-dma.c
unknown 'no struct req_iterator within' '/^#if defined/,$ s/struct req_iterator/struct walk/' nvfs-dma.c
unknown 'has struct blk_map_iter, but also struct req_iterator without it \(line 33\)' 's/int more(struct request \*req, struct req_iterator/int more(struct request *req, struct blk_map_iter/' nvfs-dma.c
unknown 'not one probe that ends in output_sym' '/output_sym "HAVE_BLK/d' configure
unknown 'is part of a probe for struct blk_map_iter' 's/struct blk_dma_iter iter;/& struct blk_map_iter x;/' configure
unknown 'no branch \*ko\.xz\)' 's/ko.xz)/ko.gz)/' create_nv.symvers.sh
unknown 'calls neither xz nor zstd' 's/xz -d/gzip -d/' create_nv.symvers.sh
unknown 'no grep for relative CRCs' '/grep -qe/d' create_nv.symvers.sh

# --- Other files than expected ------------------------------------------------------

with "$tmp/lf" '' configure
patch "$dir"
with "$tmp/crlf" '' configure
for f in "${edited[@]}"; do sed -i 's/$/\r/' "$dir/$f"; done
patch "$dir"
ok 'lines that end in CR LF' same "$status" 0
ok '  all of them still do' same "$(cd "$dir" && cat "${edited[@]}" | grep -vc $'\r$')" 0
ok '  and are the same otherwise' same "$(cd "$dir" && cat "${edited[@]}" | tr -d '\r' | sha256sum)" "$(cd "$tmp/lf" && cat "${edited[@]}" | sha256sum)"
patch "$dir" --check
ok '  and in' same "$status" 0
with "$tmp/newline" '' configure
for f in "${edited[@]}"; do printf '%s' "$(cat "$dir/$f")" >"$tmp/x" && cat "$tmp/x" >"$dir/$f"; done
patch "$dir"
patch "$dir" --check
ok 'a last line that does not end' same "$status $(tail -c 1 "$dir/create_nv.symvers.sh")" '0 e'
sources "$tmp/checkout/src"
patch "$tmp/checkout"
ok 'a checkout, whose sources lie in src' same "$status" 0
with "$tmp/nvidia-fs-2.28.4" '' configure
patch "$dir/"
ok 'a folder with a slash at its end' has "$log" '^next: dkms build .* -v 2\.28\.4'
with "$tmp/link" '' configure
mv "$dir/configure" "$dir/real"
ln -s real "$dir/configure"
before=$(tree "$dir")
patch "$dir"
ok 'a symbolic link is not replaced' refused 3 'configure is a symbolic link'
with "$tmp/missing" '' configure
rm "$dir/nvfs-mmap.c"
before=$(tree "$dir")
patch "$dir"
ok 'a missing file is named' refused 3 'has no nvfs-mmap\.c'
patch "$tmp/nowhere"
ok 'a missing folder is named' same "$status $(count 'NVFS_SRC=.*nowhere is no folder' "$log.err")" '3 1'
with "$tmp/foreign" '' configure
echo old >"$dir/configure.strata-orig"
before=$(tree "$dir")
patch "$dir"
ok 'what is kept of another state is not overwritten' refused 1 'configure\.strata-orig is of another state'
for wrong in --chek '--check --dry-run' --force '--check --revert'; do
  # shellcheck disable=SC2086 # arguments
  patch "$dir" $wrong
  ok "$wrong is wrong usage" refused 2 '--'
done

# --- Stopped half way ----------------------------------------------------------------

# nobody COMMAND…: as a user who is not root.
nobody() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
with "$tmp/readonly" '' configure
chmod 644 "$dir/create_nv.symvers.sh"
chmod 555 "$dir"
before=$(tree "$dir")
cp "$root/server_setup/nvfs_patch.sh" "$tmp/script.sh"
status=0
NVFS_SRC=$dir TMPDIR=/tmp nobody bash "$tmp/script.sh" >"$log" 2>"$log.err" || status=$?
ok 'a folder that cannot be written' refused 1 'readonly cannot be written by this user: nothing was changed'
chmod 755 "$dir"

# stub NAME N COMMAND: from its N-th call on, NAME does COMMAND instead.
stub() {
  rm -rf "$tmp/stub" "$tmp/calls"
  mkdir "$tmp/stub"
  cat >"$tmp/stub/$1" <<SH
#!/bin/bash
n=\$(cat "$tmp/calls" 2>/dev/null || echo 0)
echo \$((n + 1)) >"$tmp/calls"
[ "\$n" -lt $(($2 - 1)) ] || { $3; }
exec $(command -v "$1") "\$@"
SH
  chmod +x "$tmp/stub/$1"
}
stubbed() { PATH="$tmp/stub:$PATH" patch "$@"; }
# kept_apart: what is in $dir but the kept originals.
kept_apart() { tree "$dir" | grep -v strata-orig; }
# The first four calls of mv keep the originals.
for n in 5 6 7 8; do
  with "$tmp/killed" '' configure
  # shellcheck disable=SC2016 # for the stub
  stub mv $n 'kill -KILL $PPID; exit 1'
  stubbed "$dir"
  ok "killed before move $((n - 4)) of 4" same "$status" 137
  patch "$dir"
  ok '  the next run does the rest' same "$status $(compiles "$dir" "$tmp/new" >/dev/null && echo compiles)" '0 compiles'
  rm -f "$dir/config-host.h"
  ok '  and leaves nothing but what is kept' same "$(find "$dir" -name '.*' -type f | wc -l) $(find "$dir" -name '*.strata-orig' | wc -l)" '0 4'
  patch "$dir" --revert
  ok '  which are the originals' same "$status $(tree "$dir")" "0 $before"
done
for n in 1 3; do
  with "$tmp/failed" '' configure
  stub mv $n 'exit 1'
  stubbed "$dir"
  ok "the originals cannot be kept, from number $n on" same "$status $(count 'nothing was changed' "$log.err") $(kept_apart)" "1 1 $before"
done
for n in 5 7; do
  with "$tmp/failed" '' configure
  stub mv $n 'exit 1'
  stubbed "$dir"
  ok "files cannot be replaced, from number $((n - 4)) on" same "$status $(count 'nothing was changed' "$log.err") $(kept_apart)" "1 1 $before"
done
with "$tmp/stopped" '' configure
# shellcheck disable=SC2016
stub awk 3 'kill -TERM $PPID; sleep 0.2'
mkdir "$tmp/temporary"
temporary=$tmp/temporary stubbed "$dir"
ok 'stopped by a signal, nothing is changed' same "$status $(tree "$dir")" "143 $before"
ok 'and no temporary folder is left' same "$(ls -A "$tmp/temporary")" ''
