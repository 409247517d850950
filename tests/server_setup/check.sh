# check_gds.sh with what doctor writes. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154 # $tmp, $root are of the library

# said FOLDER VERDICT GPUS: a doctor in FOLDER that says so.
said() {
  mkdir -p "$1"
  cat >"$1/doctor.json" <<JSON
{
  "version": "0.6.0",
  "gpus": [$3],
  "environment": {"A \"quoted\" {[,:": "\\\\ \u00e9 \t"},
  "leases": {"requests": [], "dir": "/dev/shm"},
  "verdict": "$2"
}
JSON
  cat >"$1/doctor" <<'SH'
#!/bin/bash
printf '%s\n' "$*" >"${0%/*}/arguments"
[ $# -eq 1 ] || [ -n "${KNOWS_PATHS:-}" ] || { echo 'doctor: unexpected argument' >&2; exit 2; }
[ -z "${BROKEN:-}" ] || { echo 'doctor: on fire' >&2; exit 1; }
cat "${0%/*}/doctor.json"
SH
  chmod +x "$1/doctor"
}
gpu() { # GDS REASON-OF-GDS [REASON]
  printf '{"index": 0, "name": "NVIDIA RTX A6000", "reason": "%s", "gds": %s, "gds_reason": "%s"}' "${3:-}" "$1" "$2"
}
# check ARGUMENTS…: with the doctor of $dir.
check() {
  status=0
  log=$tmp/check.log
  PATH="$dir:$PATH" "$root/server_setup/check_gds.sh" "$@" >"$log" 2>"$log.err" || status=$?
}

dir="$tmp/it's a \"doctor\""
said "$dir" 'stages that can compute on a GPU use GPU 0 (NVIDIA RTX A6000)' "$(gpu true 'nvidia-fs 2.28')"
check
ok 'reads that go straight: exit code 0, and how' same "$status $(count '^GPU 0, NVIDIA RTX A6000: reads go straight to it: nvidia-fs 2\.28' "$log")" '0 1'
"$dir/doctor" --json | tr -d '\n' >"$tmp/compact.json"
check --json "$tmp/compact.json"
ok 'the same from a file' same "$status" 0
check --json - <"$tmp/compact.json"
ok 'and from standard input' same "$status" 0
# next REASON WHAT: a reason that doctor gives, and what is to do.
next_step() {
  said "$dir" 'stages that can compute on a GPU use GPU 0 (NVIDIA RTX A6000)' "$(gpu false "$1")"
  check
  ok "next, where $1" same "$status $(count "^GPU 0.*reads go through the host" "$log") $(count "^  next: .*$2" "$log")" '1 1 1'
}
next_step 'cuFile is in its compatibility mode: the kernel module nvidia-fs is not loaded' 'modprobe nvidia-fs; .*install_gds\.sh'
next_step 'cuFile finds neither the kernel module nvidia-fs nor PCI peer-to-peer transfers: cuFileDriverOpen: 5001' 'modprobe nvidia-fs'
next_step 'cuFile is told to use its compatibility mode (CUFILE_FORCE_COMPAT_MODE or cufile.json)' 'unset CUFILE_FORCE_COMPAT_MODE'
next_step 'STRATA_COMPAT_MODE or KVIKIO_COMPAT_MODE is on' 'unset STRATA_COMPAT_MODE'
next_step "cuFile's library cannot be opened: libcufile.so.0: cannot open" 'with_nvidia'
next_step 'cuFile hangs where /proc/modules cannot be read: open' 'give the container a /proc'
next_step 'cuFile does not start: cuFileDriverOpen: 5006' 'gdscheck -p'
next_step 'something new' 'docs/gpu-direct\.md'
said "$dir" 'stages use the CPU, because there is no usable GPU: the NVIDIA driver sees no device (x)' ''
check
ok 'no GPU' same "$status $(count '^no GPU' "$log") $(count 'next: ask for a GPU' "$log")" '1 1 1'
said "$dir" 'stages use the CPU, because there is no usable GPU: GPU 0: x' "$(gpu false '' 'the NVIDIA driver is for CUDA 11.8, needed is 12.0 or newer')"
check
ok 'a GPU that cannot be used' same "$status $(count 'not usable: the NVIDIA driver is for CUDA 11\.8' "$log") $(count 'next: install a driver of the series 525' "$log")" '1 1 1'
said "$dir" 'verdict' "$(gpu false 'something'), $(gpu true 'PCI peer-to-peer transfers')"
check
ok 'one of two GPUs is enough' same "$status $(count '^GPU [01]' "$log")" '0 2'
# read BACKEND BECAUSE NEXT: what doctor says of a path, with a GPU that could.
read_of() {
  said "$dir" 'verdict' "$(gpu true 'nvidia-fs 2.28')"
  sed -i "s|^  \"verdict\"|  \"checks\": [{\"name\": \"kernel\", \"mark\": \"ok\", \"text\": \"7.0\", \"next\": \"\"},\n    {\"name\": \"ACS\", \"mark\": \"!\", \"text\": \"on at two bridges\", \"next\": \"turn it off\"}],\n  \"reading\": {\"path\": \"/a b\", \"backend\": \"$1\", \"because\": \"$2\", \"next\": \"$3\"},\n&|" "$dir/doctor.json"
  check
}
read_of gds "straight into the GPU's memory: nvidia-fs 2.28" ''
ok 'a path that goes straight' same "$status $(count "^reads of /a b go straight into the GPU's memory: nvidia-fs" "$log")" '0 1'
ok '  with what to look at all the same' same "$(grep -A1 '^look at' "$log")" $'look at ACS: on at two bridges\n  next: turn it off'
read_of bounce 'its file system (tmpfs on /a) is not supported' 'use ext4 or xfs on NVMe'
ok 'a path whose file system cannot, on a GPU that could' same "$status $(count '^reads of /a b go through the host: its file system' "$log") $(count '^  next: use ext4 or xfs' "$log")" '1 1 1'
read_of bounce 'cuFile does not start: x' 'see docs/gpu-direct.md'
ok 'where doctor names only the guide' same "$status $(count '^  next: gdscheck -p' "$log")" '1 1'
said "$dir" 'verdict' "$(gpu true 'nvidia-fs 2.28')"
mkdir -p "$tmp/some data"
check "$tmp/some data"
ok 'a doctor that knows no paths is asked without' same "$status $(count '^note: this doctor does not look at paths' "$log") $(cat "$dir/arguments")" '0 1 --json'
KNOWS_PATHS=1 check "$tmp/some data"
ok 'one that does gets the path' same "$status $(cat "$dir/arguments")" "0 --json $tmp/some data"
BROKEN=1 check
ok 'a doctor that fails is quoted' same "$status $(count 'failed with exit code 1: doctor: on fire' "$log.err")" '3 1'
for broken in '' '{' '{"a": }' '{"verdict": ["a" "b"]}' '{"verdict": "a" "b": 1}' '{"other": 1}' '{"verdict": "x"} y'; do
  echo "$broken" >"$dir/doctor.json"
  check
  ok "not what doctor writes: '$broken'" same "$status $(wc -l <"$log.err")" '3 1'
done
for wrong in --jsn '--json' 'a b' '--json a b' /does/not/exist; do
  # shellcheck disable=SC2086 # arguments
  check $wrong
  ok "$wrong is wrong usage" same "$status $(wc -l <"$log.err")" '2 1'
done

# Without a doctor on the PATH: an image, and what runs it.
tree=$tmp/elsewhere
mkdir -p "$tree/server_setup" "$tree/build" "$tmp/runner"
cp "$root/server_setup/check_gds.sh" "$tree/server_setup"
bare() { PATH="$tmp/runner:/usr/bin:/bin" "$tree/server_setup/check_gds.sh" "$@" >"$log" 2>"$log.err"; }
if PATH=/usr/bin:/bin command -v doctor >/dev/null; then
  echo 'skip  images: a doctor is installed on this machine'
else
  bare
  ok 'no doctor anywhere' same "$? $(count 'no doctor on the PATH' "$log.err")" '3 1'
  said "$tree" 'verdict' "$(gpu true 'nvidia-fs 2.28')"
  printf '#!/bin/bash\nprintf "%%s\\n" "$@" >"%s"\ncat "%s"\n' "$tmp/ran" "$tree/doctor.json" >"$tmp/runner/apptainer"
  chmod +x "$tmp/runner/apptainer"
  touch "$tree/build/strata.sif" "$tmp/my image.sif"
  bare
  ok 'the image in build' same "$? $(paste -sd ' ' "$tmp/ran")" "0 exec --nv $tree/server_setup/../build/strata.sif doctor --json"
  STRATA_IMAGE="$tmp/my image.sif" bare "$tmp/some data"
  ok 'STRATA_IMAGE, with the path bound' same "$? $(paste -sd '|' "$tmp/ran")" "0 exec|--nv|--bind|$tmp/some data|$tmp/my image.sif|doctor|--json|$tmp/some data"
fi

# The real one, on this machine: whatever there is, it is understood, with a path and without.
if [ -x "$root/bin/doctor" ]; then
  dir=$root/bin
  check
  ok 'the real doctor is understood' bash -c "[ $status -le 1 ] && [ ! -s '$log.err' ]"
  check "$tmp/some data"
  ok 'and looks at a path' same "$(count "^reads of $tmp/some data go" "$log") $(count '^note:' "$log") $(wc -c <"$log.err")" '1 0 0'
fi
