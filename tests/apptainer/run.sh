#!/usr/bin/env bash
# Images, signatures, definition files and the workflow with a real Apptainer, which has to be on the machine
# (scripts/apptainer.sh says how it is found). IMAGE: the image, default build/strata.sif. KEEP=1 leaves the folder.
#
# As root it is tried a second time as a user without rights, and images are built as that user, from a Debian
# that debootstrap makes. An ordinary user gets by without these: a line says so.
set -uo pipefail
# shellcheck source-path=SCRIPTDIR source=../nextflow/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../nextflow/lib.sh"
here=$root/tests/apptainer
sif=$root/bin/sif
image=$(realpath -- "${IMAGE:-$root/build/strata.sif}")
canary=$(mktemp /tmp/strata-canary.XXXXXX)
finish() {
  rm -f "$canary"
  if [ -n "${KEEP:-}" ]; then echo "kept: $tmp"; else rm -rf "$tmp"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM
for need in jq:jq gpg:gnupg; do "$root/scripts/need.sh" "${need%%:*}" "${need#*:}" || exit 1; done

# Nothing of the user's own: no settings, keys or caches.
chmod 711 "$tmp"
mkdir -p "$tmp/home" "$tmp/bin"
export HOME=$tmp/home APPTAINER_CONFIGDIR=$tmp/home/.apptainer APPTAINER_CACHEDIR=$tmp/home/cache
unset "${!APPTAINERENV_@}" "${!SINGULARITYENV_@}" APPTAINER_BIND APPTAINER_BINDPATH SINGULARITY_BIND CUDA_VISIBLE_DEVICES
"$root/scripts/apptainer.sh" "$tmp/bin" "$image" || exit 1
apptainer=$tmp/bin/apptainer
# in_image ARGUMENTS...: its output alone; what Apptainer itself says is left in the log of the check.
in_image() { "$apptainer" --silent exec "$@"; }
cd "$tmp" || exit 1

# --- What images say of themselves ------------------------------------------------

said() { "$apptainer" --silent inspect "$@"; }
document() { jq -S . "$1"; }
# inspected IMAGE: Apptainer and we say the same of it.
inspected() {
  local flag
  diff <(said --json --all "$1" | jq -S .) <("$sif" inspect "$1" --json | jq -S .) || return 1
  for flag in labels deffile runscript test helpfile; do
    # Apptainer ends each with an empty line.
    diff <(said "--$flag" "$1" | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}') <("$sif" inspect "$1" "--$flag") || { echo "--$flag"; return 1; }
  done
  diff <(said --environment "$1" | grep -vE '^(=== .* ===)?$') <("$sif" inspect "$1" --environment | grep -v '^$')
}
# listed IMAGE: the same objects, at the same places.
listed() {
  diff <("$apptainer" sif list "$1" | sed -nE 's/ *\| */|/gp' | grep '^[0-9]' | sed 's/ *(G)//; s/ *$//') <("$sif" list "$1" --json | jq -r '.[] |
    "\(.id)|\(if .group then .group else "NONE" end)|\(if .linked then .linked else "NONE" end)|\(.offset)-\(.offset + .size)|" +
    (if .type == "FS" then "FS (" + ({"squashfs, primary system, amd64": "Squashfs/*System/amd64", "squashfs, primary system, arm64": "Squashfs/*System/arm64"}[.detail]) + ")"
     elif .type == "Signature" then "Signature (SHA-256)" else .type end)')
}
ok 'inspect: labels, definition, runscript, test, help, environment, the JSON document' inspected "$image"
ok 'the labels are ours' has <(said --json "$image" | jq -r '.data.attributes.labels | to_entries[] | "\(.key)=\(.value)"') \
  "^org.opencontainers.image.version=$("$root/bin/aip" --version | cut -d ' ' -f 2)$"
ok 'run-help' has <("$apptainer" --silent run-help "$image") 'apptainer run strata.sif aip'
ok 'run --help is that of strata' has <("$apptainer" --silent run "$image" --help) '^  strata COMMAND'
ok 'sif list: the same objects' listed "$image"
ok 'the header has its architecture' has <("$apptainer" sif header "$image") "Primary Architecture: *$(dpkg --print-architecture 2>/dev/null || echo amd64)"

# --- What runs in it --------------------------------------------------------------

version=$("$root/bin/aip" --version)
ok 'exec' same "$(in_image "$image" aip --version)" "$version"
ok 'run, with a command' same "$("$apptainer" --silent run "$image" aip --version)" "$version"
ok 'run, without one: the help' has <("$apptainer" --silent run "$image") 'apptainer run strata.sif aip'
ok 'test' same "$("$apptainer" --silent test "$image")" "$version"
ok 'shell' same "$(echo 'aip --version' | "$apptainer" --silent shell "$image")" "$version"
ok 'the image itself as a program' same "$(PATH=$tmp/bin:$PATH "$apptainer" --silent run "$image" sif --version | cut -d ' ' -f 2)" "$(cut -d ' ' -f 2 <<<"$version")"
all_programs() {
  local p
  for p in "$root"/cmd/*/main.go; do
    p=$(basename "$(dirname "$p")")
    has <(in_image "$image" "$p" --help) "^ *$p" || return 1
  done
}
ok 'every program has its name' all_programs
# shellcheck disable=SC2016 # the shell in the image
ok 'bash, ps, gawk, grep, sed, tar, gzip, certificates, time zones' in_image --containall "$image" bash -euc '
  ps -o pid= >/dev/null; printf "a b\n" | gawk "{ print \$2 }" | grep -qx b; [ "$(echo ab | sed s/a/b/)" = bb ]
  tar -C /etc -c passwd | gzip | gzip -d | tar -t | grep -qx passwd; test -s /etc/ssl/certs/ca-certificates.crt; TZ=Europe/London date +%Z | grep -Eqx "GMT|BST"'
ok '--containall: nothing of the machine is in folders for data' same "$(in_image --containall "$image" sh -c 'ls -A /data /scratch /tmp ~ | grep -v :; test -c /dev/null && test -d /proc/self || echo no /dev, /proc')" ''
ok 'it is read-only' fails in_image "$image" touch /usr/local/bin/x
ok '--writable-tmpfs' in_image --writable-tmpfs "$image" touch /usr/local/x
ok 'who one is outside' same "$(in_image "$image" id -u)" "$(id -u)"
# shellcheck disable=SC2016
ok 'the environment of the definition' same "$(in_image --cleanenv "$image" sh -c 'echo $LC_ALL')" C.UTF-8
# shellcheck disable=SC2016
ok '--cleanenv lets in what is named' same "$(CUDA_VISIBLE_DEVICES=1 OTHER=2 APPTAINERENV_CUDA_VISIBLE_DEVICES=3 in_image --cleanenv "$image" sh -c 'echo ${CUDA_VISIBLE_DEVICES-none} ${OTHER-none}')" '3 none'
ok '--nv without a GPU' same "$(in_image --nv "$image" aip --version 2>/dev/null)" "$version"

odd="$tmp/it's  a \"folder\""
mkdir -p "$odd/out"
"$root/bin/phantom" "$odd/in" --slices 1 --tiles 2,3 --tile 16,48,48 --quiet || exit 1
mosaic=$(basename "$odd"/in/mosaic_grid*.ome.zarr)
ok '--bind: data from a folder with blanks and quotes' in_image --containall --mount "type=bind,\"source=${odd//\"/\"\"}\",destination=/data" --pwd /data "$image" aip "in/$mosaic" out/a.ome.zarr --quiet
"$root/bin/aip" "$odd/in/$mosaic" "$odd/out/b.ome.zarr" --quiet
ok 'the same bytes as on the machine itself' diff -r "$odd/out/a.ome.zarr" "$odd/out/b.ome.zarr"
ok '--bind, read-only' same "$(in_image --containall --bind "$tmp/bin:/data:ro" "$image" sh -c 'ls /data; touch /data/x 2>/dev/null || echo no')" "$(printf 'apptainer\nno')"
cp "$image" "$odd/my image.sif"
ok 'an image with blanks in its name' same "$(in_image "$odd/my image.sif" aip --version)" "$version"

# The menu, with the strangest name that a folder may have. It keeps its answers in the home folder.
strange="$odd/a, b:c"
mkdir "$strange"
cp -r "$odd/in/$mosaic" "$strange/"
menu() { HOME=$tmp/home XDG_CONFIG_HOME='' XDG_STATE_HOME='' PATH=$tmp/bin:$PATH "$root/apptainer/bmrc_run.sh" --image "$image" --no-nv --data "$strange" "$@"; }
ok 'the menu: a stage, by the name in the image' menu aip "/data/$mosaic" /data/menu.ome.zarr --quiet
ok 'and by the name outside' menu aip "$strange/$mosaic" "$strange/again.ome.zarr" --quiet
# shellcheck disable=SC2016
ok 'the same bytes' eval 'diff -r "$strange/menu.ome.zarr" "$odd/out/b.ome.zarr" && diff -r "$strange/again.ome.zarr" "$odd/out/b.ome.zarr"'
ok "the menu: a program's exit code" same "$(menu aip /data/nothing.ome.zarr /data/x.ome.zarr >/dev/null 2>&1; echo $?)" 3

# --- Images that cannot be used ---------------------------------------------------

case $(uname -m) in x86_64) other=arm64 ;; *) other=amd64 ;; esac
printf 'Bootstrap: scratch\n%%files\n    %s /hello\n%%runscript\n    exec /hello\n' "$here/run.sh" >"$tmp/scratch.def"
"$sif" build "$tmp/foreign.sif" "$tmp/scratch.def" --arch "$other" -q || exit 1
# refused IMAGE PATTERN: Apptainer and run-root both refuse it; Apptainer says PATTERN.
refused() {
  "$apptainer" exec "$1" /bin/true >"$tmp/why" 2>&1 && { echo 'apptainer runs it'; return 1; }
  has "$tmp/why" "$2" && fails "$sif" run-root --cache "$tmp/roots" "$1" /bin/true
}
ok "an image for $other is refused, and Apptainer says so" refused "$tmp/foreign.sif" "architecture \($other\)"
ok 'sif run-root says so too' has <("$sif" run-root --cache "$tmp/roots" "$tmp/foreign.sif" /bin/true 2>&1) "it is for $other, this machine is"
head -c 1000000 "$image" >"$tmp/cut.sif"
ok 'a truncated image' refused "$tmp/cut.sif" 'FATAL|ERROR'
head -c -70000 "$image" >"$tmp/short.sif"
ok 'one that lacks its end' refused "$tmp/short.sif" 'FATAL|ERROR'
echo 'no image' >"$tmp/text.sif"
ok 'something else' refused "$tmp/text.sif" 'FATAL|ERROR'
ok 'none' refused "$tmp/none.sif" 'FATAL|ERROR'

# --- Signatures -------------------------------------------------------------------

# key NAME: an OpenPGP key in NAME.asc (private) and NAME.pub.
key() {
  local dir
  dir=$(mktemp -d "$tmp/gpg.XXXX")
  gpg --homedir "$dir" --batch --quiet --passphrase '' --quick-generate-key "$1 <$1@example.org>" rsa3072 sign never &&
    gpg --homedir "$dir" --batch --armor --export-secret-keys >"$1.asc" && gpg --homedir "$dir" --batch --armor --export >"$1.pub"
  gpgconf --homedir "$dir" --kill all
} 2>"$tmp/gpg.log"
if ! { key one && key two; }; then cat "$tmp/gpg.log"; exit 1; fi
verified() { "$apptainer" verify --local "$1"; }
cp "$image" ours.sif
ok 'sif sign' "$sif" sign ours.sif --keyring one.asc
ok 'apptainer verify: a key that it does not know' fails verified ours.sif
"$apptainer" key import one.pub >/dev/null 2>&1
ok 'apptainer verify: our signature' verified ours.sif
ok 'all objects are signed' same "$("$apptainer" --silent verify --local --json ours.sif | jq -r '[.SignerKeys[].Signer | select(.DataCheck) | .Partition] | sort | join(" ")')" 'Def.FILE FS JSON.Generic'
ok 'sif list: the signature too' listed ours.sif
ok 'a signed image runs' same "$(in_image ours.sif aip --version)" "$version"
"$apptainer" key import two.asc >/dev/null 2>&1
cp "$image" theirs.sif
ok 'apptainer sign' "$apptainer" sign --keyidx 0 theirs.sif
ok 'sif list: their signature' listed theirs.sif
ok 'sif verify: their signature' has <("$sif" verify theirs.sif --keyring two.pub) 'signed by two <two@example.org>.* objects \[1 2 3\]'
ok 'sif verify: a key that is not in the key ring' has <("$sif" verify theirs.sif --keyring one.pub 2>&1) 'by a key that is not in the key ring'
ok 'both on one image' "$sif" sign theirs.sif --keyring one.asc
ok 'sif verify: both' "$sif" verify theirs.sif --keyring one.pub,two.pub
ok 'sif verify: one of the two keys is not enough' fails "$sif" verify theirs.sif --keyring one.pub
"$apptainer" key import two.pub >/dev/null 2>&1
ok 'apptainer verify: both' verified theirs.sif
ok 'apptainer verify: an image that is not signed' fails verified "$image"
# One byte of the root.
printf '\377' | dd of=ours.sif bs=1 seek=40001 conv=notrunc 2>/dev/null
ok 'a changed image: apptainer verify' fails verified ours.sif
ok 'a changed image: sif verify' has <("$sif" verify ours.sif --keyring one.pub 2>&1) 'object 3 is not as it was signed'
if "$root/scripts/need.sh" openssl openssl; then
  openssl genpkey -algorithm RSA -out pem.key 2>/dev/null
  cp "$image" pem.sif
  ok 'apptainer sign --key: a signature of another kind' "$apptainer" sign --key pem.key pem.sif
  ok 'sif verify says which' has <("$sif" verify pem.sif --keyring one.pub 2>&1) 'with a PEM key: .* apptainer verify --key'
fi

# --- Definition files -------------------------------------------------------------

# of IMAGE COMMAND...: what the command prints in the root of the image, but for /.singularity.d, which Apptainer fills
# with its own; sorted by name. tree IMAGE: kinds, names and targets of links. sums IMAGE: what files have in them.
of() {
  local dir name=${1##*/}
  dir=$tmp/of-${name%.sif}-$(stat -c %i "$1")
  [ -e "$dir" ] || "$sif" extract "$1" "$dir" -q || return 1
  (cd "$dir" && shift && find . ! -path './.singularity.d*' ! -path . "$@" | sort -k 2)
}
tree() { of "$1" -printf '%y %p %l\n'; }
sums() { of "$1" -type f -exec sha256sum {} +; }
mkdir -p "$tmp/user/home"
: >"$tmp/user/build.log"
user=() who='as the same user'
[ "$(id -u)" = 0 ] && user=(setpriv --reuid=65534 --regid=65534 --clear-groups) who='as a user without rights'
[ "$(id -u)" = 0 ] && chown -R 65534:65534 "$tmp/user"
# as_user COMMAND...: as that user, who has a folder for himself.
as_user() {
  "${user[@]}" env HOME="$tmp/user/home" APPTAINER_CONFIGDIR="$tmp/user/home/.apptainer" APPTAINER_CACHEDIR="$tmp/user/home/cache" APPTAINER_TMPDIR="$tmp/user" "$@"
}
ok "$who: how containers start" as_user "$root/scripts/apptainer.sh" "$tmp/user/bin" "$image"
sed 's/^/      | /' "$tmp/check"
theirs=$tmp/user/bin/apptainer
ok "$who: exec" same "$(as_user "$theirs" --silent exec "$image" aip --version)" "$version"
ok "$who: who one is" same "$(as_user "$theirs" --silent exec "$image" id -u)" "$("${user[@]}" id -u)"

cp "$tmp/scratch.def" "$tmp/user/scratch.def"
ok "$who: apptainer build, Bootstrap: scratch" as_user "$theirs" build "$tmp/user/scratch.sif" "$tmp/user/scratch.def"
"$sif" build "$tmp/scratch.sif" "$tmp/scratch.def" -q
# What a build from nothing shares: our mount points come on top of theirs.
shared_files() { comm -23 <(tree "$tmp/user/scratch.sif" | grep -vE '^d|^l ./(environment|singularity|\.exec|\.run|\.shell|\.test) ' | sort) <(tree "$tmp/scratch.sif" | sort); }
ok 'sif build puts in what Apptainer puts in' same "$(shared_files)" ''
ok 'sif reads what Apptainer built' inspected "$tmp/user/scratch.sif"
ok 'and lists it' listed "$tmp/user/scratch.sif"
printf 'Bootstrap: localimage\nFrom: %s\n%%post\n    echo built >/etc/built\n' "$image" >"$tmp/user/local.def"
ok "$who: apptainer build, Bootstrap: localimage, from our image" as_user "$theirs" build "$tmp/user/local.sif" "$tmp/user/local.def"
ok 'and that image runs' same "$(as_user "$theirs" --silent exec "$tmp/user/local.sif" sh -c 'cat /etc/built; aip --version')" "$(printf 'built\n%s' "$version")"

# strata.def itself. What it takes from a registry and from Debian's snapshot archive comes from a Debian that is
# made here, and from the packages that the image was built from, which sif build has left in its cache.
debs=$(dirname "$(find "${DEB_CACHE:-${XDG_CACHE_HOME:-$(getent passwd "$(id -u)" | cut -d : -f 6)/.cache}/strata/deb}" -name '*.deb' -print -quit 2>/dev/null)" 2>/dev/null)
recipe() {
  "$root/scripts/need.sh" debootstrap debootstrap && "$root/scripts/need.sh" dpkg-scanpackages dpkg-dev && "$root/scripts/need.sh" fakeroot fakeroot || return 1
  # It mounts /proc in there: in a namespace of its own.
  unshare --mount debootstrap --variant=minbase bookworm "$tmp/user/debian" ${STRATA_DEBIAN_MIRROR:+"$STRATA_DEBIAN_MIRROR"} >"$tmp/debootstrap.log" 2>&1 || { tail -n 5 "$tmp/debootstrap.log"; return 1; }
  find "$tmp/user/debian/dev" -xdev -mindepth 1 -delete # devices cannot be copied
  rm -f "$tmp/user/debian/etc/hostname"   # this machine's
  local list=$tmp/user/debian/var/cache/lock
  mkdir "$list"
  local sum
  while read -r sum; do cp "$debs/$sum.deb" "$list/" || return 1; done < <(sed -nE 's/^package .* ([0-9a-f]{64})$/\1/p' "$root/pkg/sif/recipe/bookworm-amd64.lock")
  chmod a+r "$list"/*
  (cd "$list" && dpkg-scanpackages . >Packages 2>/dev/null) && chown -hR 65534:65534 "$tmp/user" || return 1
  sed -E -e 's|^Bootstrap: docker|Bootstrap: localimage|' -e "s|^From: .*|From: $tmp/user/debian|" -e '/rm -rf \/etc\/apt\/sources.list /d' \
    -e 's|^( *)echo "deb .*|\1echo "deb [trusted=yes] file:/var/cache/lock ./" >/etc/apt/sources.list.d/lock.list|' "$root/apptainer/strata.def" >"$tmp/user/strata.def"
  cd "$root" && as_user "$theirs" build "$tmp/user/strata.sif" "$tmp/user/strata.def"
}
if [ "$(id -u)" = 0 ] && [ "$(dpkg --print-architecture)" = amd64 ] && [ -n "$debs" ] && [ "$debs" != . ]; then
  ok "$who: apptainer build strata.def" recipe
  ok "the build leaves the machine's /tmp alone" test -e "$canary"
  # The bill of materials, dpkg's list, and what Debian puts into /root are as apptainer/README.md says.
  own=' \./(usr/share/doc/strata|var/lib/dpkg|root/\.(bashrc|profile))(/.*)? $'
  ok 'strata.def and sif build: the same files' diff <(tree "$tmp/user/strata.sif" | grep -vE "$own") <(tree "$image" | grep -vE "$own")
  ok 'with the same bytes, but for those that Apptainer and debootstrap write' same \
    "$(diff <(sums "$tmp/user/strata.sif") <(sums "$image") | sed -n 's/^[<>] [0-9a-f]*  //p' | sort | uniq -d | xargs)" './etc/group ./etc/hosts ./etc/nsswitch.conf ./etc/passwd ./etc/resolv.conf'
  ok 'its programs run' same "$(as_user "$theirs" --silent exec "$tmp/user/strata.sif" aip --version)" "$version"
  # scripts IMAGE: without comments and empty lines, of which Apptainer writes more.
  scripts() { "$sif" inspect "$1" --json | jq -r '.data.attributes | .runscript, .test, .helpfile, .environment["/.singularity.d/env/90-environment.sh"]' | grep -vE '^(#.*)?$'; }
  ok 'and it says the same of itself' diff <(scripts "$tmp/user/strata.sif") <(scripts "$image")
else
  echo 'not tried: strata.def, which takes root (debootstrap), amd64 and the packages of make image'
fi

# --- The workflow -----------------------------------------------------------------

export NXF_HOME=$tmp/nxf NXF_ANSI_LOG=false
"$root/scripts/nextflow.sh" -v || exit 1
"$root/bin/phantom" "$tmp/block" --slices 2 --tiles 2,2 --tile 64,80,80 --interval 120 --quiet || exit 1
one_cpu=()
for s in "${stages[@]}"; do [ "$s" = qc-report ] || one_cpu+=("--${s}_cpus" 1); done
# shellcheck disable=SC2054 # commas are Nextflow's
chain=("$root/nextflow/main.nf" "${one_cpu[@]}" --input "$tmp/block" --resample_resolution 4 --crop_depth 160 --stack_slicing_interval_mm 0.12
  --stack_search_range_mm 0.02 --stack_moving_z_first_index 1 --stack_pyramid_resolutions 4,8 --n_levels 1 --use_gpu false)
nf without run "${chain[@]}" --outdir without
ok 'the workflow without containers' same "$status" 0
PATH=$tmp/bin:$PATH nf within run "${chain[@]}" --outdir within -profile apptainer --container "$odd/my image.sif"
ok 'the workflow in the image' same "$status" 0
results() { (cd "$tmp/launch/$1" && find . -type f ! -path './pipeline_info/*' ! -path './reports/*' ! -name 'qc-report.html' -exec sha256sum {} + | sort -k 2); }
ok 'the same results' diff <(results without) <(results within)
ok 'its reports too' filled "$tmp/launch/within"/{qc-report.html,reports/volume.stack.json,pipeline_info/trace.tsv}
ok 'every task was in the container' same "$(grep -lE 'apptainer exec .*my.* image.sif' "$tmp"/launch/work/*/*/.command.run | wc -l)" "$(ran "$log")"
CUDA_VISIBLE_DEVICES=7 PATH=$tmp/bin:$PATH nf gpu run "${chain[@]}" "${aip_only[@]}" --use_gpu --outdir gpu -profile apptainer --container "$image"
ok 'with use_gpu where there is none: the run succeeds on the CPU' same "$status" 0

# --- Times ------------------------------------------------------------------------

# median COMMAND...: seconds of nine runs.
median() {
  local t
  for _ in 1 2 3 4 5 6 7 8 9; do
    t=$EPOCHREALTIME
    "$@" >/dev/null 2>&1
    awk -v a="$t" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }'
  done | sort -n | sed -n 5p
}
echo "times: aip --version $(median "$root/bin/aip" --version) s, in the image $(median in_image "$image" aip --version) s, /bin/true there $(median in_image "$image" /bin/true) s"
total
