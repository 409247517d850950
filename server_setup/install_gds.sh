#!/usr/bin/env bash
# Sets up nvidia-fs, the kernel module of GPUDirect Storage. --help says how.
#
# Each step looks whether it is done, and does it if not: a run that stopped half way
# is taken up by the next one. Without --yes a step prints its commands instead.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat <<'HELP'
usage: install_gds.sh [--yes] [--log FILE] [--root DIR]

Looks at this machine, says what GPUDirect Storage needs here and has, and prints the
commands that would set up what is missing: kernel headers, DKMS, the sources of nvidia-fs,
the patch for Linux 7.0 (nvfs_patch.sh), the module, loading it at boot. It sets up no
graphics driver and changes no firmware setting.

  --yes       run the commands (root)
  --log FILE  where to note the commands, what they wrote and how they ended;
              default with --yes: /var/log/strata-install-gds.log
  --root DIR  look at a machine that was recorded below DIR instead of this one
  --help      this text

exit code  0  nothing is missing, or it was printed or set up
           1  a command failed: it is named, and the log has what it wrote
           2  wrong usage
           3  this machine cannot have it yet: the line says why
HELP
}

fail() {
  echo "install_gds.sh: $2" >&2
  exit "$1"
}

yes='' log='' root=''
while [ $# -gt 0 ]; do
  case $1 in
    --yes) yes=1 ;;
    --log | --root)
      [ -n "${2:-}" ] || fail 2 "$1 needs a value"
      if [ "$1" = --log ]; then log=$2; else root=${2%/}; fi
      shift ;;
    -h | --help) usage; exit 0 ;;
    *) fail 2 "unknown argument $1 (--help lists what there is)" ;;
  esac
  shift
done
[ -z "$root" ] || [ -d "$root" ] || fail 2 "--root $root is no folder"
# Of a recorded machine nothing is set up, unless commands are named that do it there.
commands=${INSTALL_GDS_COMMANDS:-}
if [ -n "$root" ] && [ -n "$yes" ]; then
  [ -n "$commands" ] || fail 2 '--root is to look at a recorded machine: leave out --yes'
  PATH=$commands:$PATH
elif [ -n "$yes" ]; then
  [ "$(id -u)" = 0 ] || fail 2 '--yes needs root: sudo install_gds.sh --yes'
fi
if [ -n "$yes" ]; then
  log=${log:-$root/var/log/strata-install-gds.log}
  mkdir -p "$(dirname "$log")" 2>/dev/null
  { : >>"$log"; } 2>/dev/null || fail 1 "the log $log cannot be written"
fi

# --- What distributions call things ------------------------------------------------

# family ID LIKE: who packages for it.
family() {
  local id
  for id in $1 $2; do
    case $id in
      ubuntu | debian) echo debian; return ;;
      rhel | fedora | centos | rocky | almalinux | ol) echo redhat; return ;;
    esac
  done
}
# package FAMILY WHAT
package() {
  case $1:$2 in
    debian:headers) echo "linux-headers-$kernel" ;;
    debian:compiler) echo build-essential ;;
    redhat:headers) echo "kernel-devel-$kernel" ;;
    redhat:compiler) echo gcc ;;
    debian:xz) echo xz-utils ;;
    *:module) echo nvidia-fs-dkms ;;
    *) echo "$2" ;;
  esac
}
# installer FAMILY: the command that installs packages.
installer() {
  case $1 in
    debian) echo env DEBIAN_FRONTEND=noninteractive apt-get -y install ;;
    redhat) echo dnf -y install ;;
  esac
}

# --- What is found -------------------------------------------------------------------

# at_least VERSION LEAST
at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }
line() { printf '  %-14s %s\n' "$1" "$2"; }
# value FILE NAME: of a file of shell variables.
value() { sed -n "s/^$2=//p" "$1" 2>/dev/null | head -n 1 | tr -d "\"'"; }
have() {
  if [ -z "$root" ]; then command -v "$1" >/dev/null 2>&1; return; fi
  [ -x "$root/usr/bin/$1" ] || [ -x "$root/usr/sbin/$1" ]
}
# sources: the folder of the newest nvidia-fs sources.
sources() {
  local d
  d=$(printf '%s\n' "$root"/usr/src/nvidia-fs-[0-9]* | sort -V | tail -n 1)
  [ -d "$d" ] && echo "$d"
}
module() { find "$root/lib/modules/$kernel" -name 'nvidia-fs.ko*' 2>/dev/null | head -n 1; }
loaded() { grep -q '^nvidia_fs ' "$root/proc/modules" 2>/dev/null; }
at_boot() { grep -qsxE '[[:blank:]]*nvidia[-_]fs[[:blank:]]*' "$root"/etc/modules-load.d/*.conf "$root/etc/modules"; }
cufile() {
  find "$root"/usr/local/cuda*/targets/*/lib "$root"/usr/lib/x86_64-linux-gnu "$root"/usr/lib/aarch64-linux-gnu "$root"/usr/lib64 \
    -maxdepth 1 -name 'libcufile.so.0' 2>/dev/null | head -n 1
}

blocked=()
examine() {
  local release=$root/etc/os-release text lib firmware=$root/sys/firmware/efi/efivars
  echo 'found'
  [ -r "$release" ] || release=$root/usr/lib/os-release
  local name
  name=$(value "$release" PRETTY_NAME)
  os=$(family "$(value "$release" ID)" "$(value "$release" ID_LIKE)")
  line distribution "${name:-unknown}"
  [ -n "$os" ] || fail 3 "no table of packages for ${name:-this distribution}: there is one for Debian, Ubuntu, RHEL and what is made from them"
  kernel=$(cat "$root/proc/sys/kernel/osrelease" 2>/dev/null)
  [ -n "$kernel" ] || fail 3 "$root/proc/sys/kernel/osrelease cannot be read: which kernel is it?"
  line kernel "$kernel"
  headers=
  [ -e "$root/lib/modules/$kernel/build" ] && headers=1
  line headers "$([ -n "$headers" ] && echo there || echo missing)"

  text=$(head -n 1 "$root/proc/driver/nvidia/version" 2>/dev/null)
  driver=$(grep -oE '[0-9]{3,}\.[0-9]+(\.[0-9]+)?' <<<"$text" | head -n 1)
  open=
  case $text in *'Open Kernel Module'*) open=1 ;; esac
  if [ -z "$text" ]; then
    line driver missing
    blocked+=("the NVIDIA driver is not loaded: install the one with open kernel modules first, restart, and run this again")
  elif [ -z "$open" ]; then
    line driver "${driver:-unknown}, proprietary kernel modules"
    blocked+=("the driver has proprietary kernel modules: nvidia-fs 2.17.5 and newer load with the open ones only (they drive GPUs from Turing on)")
  else
    line driver "${driver:-unknown}, open kernel modules"
  fi

  secure=
  for text in "$firmware"/SecureBoot-*; do
    [ -r "$text" ] && [ "$(tail -c 1 "$text" | od -An -tu1 | tr -d ' ')" = 1 ] && secure=1
  done
  line 'secure boot' "$([ -n "$secure" ] && echo 'on: modules must be signed with a key that is enrolled' || echo off)"
  if [ -n "$root" ]; then
    text=$(cat "$root/usr/share/doc/mlnx-ofed/version" 2>/dev/null)
  else
    text=$(ofed_info -s 2>/dev/null | tr -d ':')
  fi
  line MOFED "${text:-none; local NVMe drives do not need it on Linux 6.2 and newer, NFS over RDMA and NVMe-oF do}"
  line IOMMU "$(iommu)"
  line DKMS "$(have dkms && echo there || echo missing)"
  text=$(sources)
  line 'nvidia-fs' "sources ${text:-missing}"
  text=$(module)
  line '' "module ${text:-missing for this kernel}, $(loaded && echo loaded || echo 'not loaded')$(at_boot && echo ', loaded at boot')"
  lib=$(cufile)
  line cuFile "${lib:-no libcufile.so.0 in the usual places; images made with --with_nvidia have their own}"
  if at_least "${kernel%%-*}" 6.2 && [ -n "$open" ] && at_least "${driver:-0}" 565; then
    line note 'this kernel and driver can do without nvidia-fs for local NVMe drives (PCI peer-to-peer): docs/gpu-direct.md'
  fi
}
# iommu: off, or what drives it.
iommu() {
  local units
  units=$(find "$root/sys/class/iommu" -mindepth 1 -maxdepth 1 2>/dev/null | sed 's|.*/||' | sort | paste -sd ' ')
  if [ -z "$units" ]; then
    echo off
  elif grep -qwE 'iommu=pt|iommu\.passthrough=1' "$root/proc/cmdline" 2>/dev/null; then
    echo 'on, passed through'
  else
    echo "on ($units): transfers between devices go by way of the host, or fail; off or iommu=pt is right"
  fi
}

# --- Steps -----------------------------------------------------------------------

todo=0 done_now=0
note() { [ -z "$yes" ] || printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$1" >>"$log"; }
# run COMMAND…: does it, or says that it would.
run() {
  local shown rc=0
  shown=$(printf ' %q' "$@")
  if [ -z "$yes" ]; then echo "      $shown"; return 0; fi
  echo "      $shown"
  note "run:$shown"
  "$@" </dev/null >>"$log" 2>&1 || rc=$?
  note "exit code $rc:$shown"
  return "$rc"
}
# step TITLE: one that is not done.
step() {
  todo=$((todo + 1))
  [ "$todo" = 1 ] && if [ -n "$yes" ]; then echo 'doing'; else echo 'to do'; fi
  echo "  $todo. $1"
  note "step: $1"
}
stop() { fail 1 "$1 failed: see $log, mend it, and run this again; what is done stays done"; }
finished() { [ -z "$yes" ] || done_now=$((done_now + 1)); }

# install PACKAGE…: from lists of packages that are new.
fresh=''
install() {
  # Old lists are better than none: without a network packages may be in the cache.
  if [ "$os" = debian ] && [ -z "$fresh" ]; then run apt-get update; fi
  fresh=1
  # shellcheck disable=SC2046 # words
  run $(installer "$os") "$@"
}

install_tools() {
  local wanted=() tool
  [ -n "$headers" ] || wanted+=("$(package "$os" headers)")
  for tool in gcc:compiler make:make dkms:dkms zstd:zstd xz:xz; do
    have "${tool%%:*}" || wanted+=("$(package "$os" "${tool#*:}")")
  done
  [ "${#wanted[@]}" -gt 0 ] || return 0
  step 'kernel headers and what builds modules'
  install "${wanted[@]}" || stop "installing ${wanted[*]}$([ "$os" = redhat ] && echo ' (dkms is in EPEL)')"
  finished
}

install_sources() {
  [ -z "$(sources)" ] || return 0
  step 'the sources of nvidia-fs'
  # On newer kernels the package's own build fails, which the patch mends afterwards.
  install "$(package "$os" module)" || [ -n "$(sources)" ] ||
    stop "installing $(package "$os" module) (it is in NVIDIA's CUDA repository: is that set up?)"
  finished
}

# patched: is there nothing to patch? The first type that is new came with Linux 6.18.
patched() {
  local from
  from=$(sources)
  at_least "${kernel%%-*}" 6.18 || return 0
  [ -n "$from" ] || return 1
  NVFS_SRC=$from "$here/nvfs_patch.sh" --check >/dev/null 2>&1
}
patch_sources() {
  local from rc=0
  patched && return 0
  from=$(sources)
  if [ -z "$from" ]; then
    step 'the patch for Linux 7.0 (6.18 and newer), if these sources need it'
    run env NVFS_SRC=/usr/src/nvidia-fs-VERSION "$here/nvfs_patch.sh"
    return 0
  fi
  NVFS_SRC=$from "$here/nvfs_patch.sh" --check >/dev/null 2>&1 || rc=$?
  if [ "$rc" = 3 ]; then
    echo "  note: $from is not what nvfs_patch.sh knows: it is built as it is"
    return 0
  fi
  step 'the patch for Linux 7.0 (6.18 and newer)'
  rebuild=1
  run env NVFS_SRC="$from" "$here/nvfs_patch.sh" || stop 'nvfs_patch.sh'
  finished
}

build_module() {
  local from version=VERSION
  [ -z "$(module)" ] || [ -n "$rebuild" ] || return 0
  from=$(sources)
  [ -z "$from" ] || version=${from##*/nvidia-fs-}
  step "the module for $kernel"
  if [ -n "$from" ] && [ ! -e "$root/var/lib/dkms/nvidia-fs/$version" ]; then run dkms add -m nvidia-fs -v "$version" || stop 'dkms add'; fi
  run dkms build --force -m nvidia-fs -v "$version" -k "$kernel" || stop "dkms build (its own log: /var/lib/dkms/nvidia-fs/$version/build/make.log)"
  run dkms install --force -m nvidia-fs -v "$version" -k "$kernel" || stop 'dkms install'
  # A package whose own build failed before the patch is set up to the end.
  if [ "$os" = debian ] && [ -n "$yes" ] && [ -n "$(dpkg --audit 2>/dev/null)" ]; then run dpkg --configure -a || stop 'dpkg --configure -a'; fi
  finished
}

load_module() {
  if ! loaded || [ -n "$rebuild" ]; then
    step 'load it'
    if loaded; then run modprobe -r nvidia-fs || stop 'modprobe -r nvidia-fs (a program uses it: end that first)'; fi
    run modprobe nvidia-fs || stop "modprobe nvidia-fs$([ -n "$secure" ] && echo ' (secure boot: enrol the key of DKMS with mokutil --import /var/lib/dkms/mok.pub, restart, confirm)')"
    finished
  fi
  at_boot && return 0
  step 'load it at boot'
  # shellcheck disable=SC2016
  run sh -c 'mkdir -p "$(dirname "$1")" && echo nvidia-fs >"$1"' - "$root/etc/modules-load.d/nvidia-fs.conf" || stop 'writing /etc/modules-load.d/nvidia-fs.conf'
  finished
}

examine
if [ "${#blocked[@]}" -gt 0 ]; then
  for reason in "${blocked[@]}"; do echo "install_gds.sh: $reason" >&2; done
  exit 3
fi
rebuild=
note "install_gds.sh: kernel $kernel, driver $driver"
install_tools
install_sources
patch_sources
build_module
load_module

if [ "$todo" = 0 ]; then
  echo 'nothing to do: nvidia-fs is set up; check_gds.sh says what reads take'
elif [ -z "$yes" ]; then
  [ -z "$secure" ] || echo 'secure boot is on: before the module loads, its key must be enrolled (mokutil --import /var/lib/dkms/mok.pub, restart, confirm)'
  echo 'nothing was changed: install_gds.sh --yes does this'
else
  echo "done: $done_now steps; the log is $log; check_gds.sh says what reads take now"
fi
