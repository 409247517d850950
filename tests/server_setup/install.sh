# install_gds.sh on recorded machines, with doubles of apt-get, dnf, dkms, dpkg and
# modprobe that do there what the real ones do. Sourced by run.sh.
# shellcheck shell=bash disable=SC2154 # $tmp, $root are of the library

doubles=$tmp/doubles
mkdir -p "$doubles"
# double NAME: a program whose body is on standard input; it notes its call first.
double() {
  { echo '#!/bin/bash'; echo "echo \"$1 \$*\" >>\"\$MACHINE/calls\""; cat; } >"$doubles/$1"
  chmod +x "$doubles/$1"
}
# What installing a package leaves behind, by its name; FAIL_PACKAGE cannot be installed.
cat >"$tmp/install-packages" <<'SH'
kernel=$(cat "$MACHINE/proc/sys/kernel/osrelease")
for package; do
  [ "$package" != "${FAIL_PACKAGE:-}" ] || { echo "E: Unable to locate package $package"; exit 100; }
  case $package in
    linux-headers-* | kernel-devel-*) mkdir -p "$MACHINE/lib/modules/$kernel/build" ;;
    build-essential) touch "$MACHINE"/usr/bin/{gcc,make}; chmod +x "$MACHINE"/usr/bin/{gcc,make} ;;
    nvidia-fs-dkms)
      cp -r "$SOURCES" "$MACHINE/usr/src/nvidia-fs-2.28.4"
      mkdir -p "$MACHINE/var/lib/dkms/nvidia-fs/2.28.4"
      # Its own build, as the package's scripts do it.
      dkms install -m nvidia-fs -v 2.28.4 -k "$kernel" || { touch "$MACHINE/half"; exit 100; } ;;
    -* | install | update) ;;
    *) touch "$MACHINE/usr/bin/${package%-utils}"; chmod +x "$MACHINE/usr/bin/${package%-utils}" ;;
  esac
done
SH
# shellcheck disable=SC2016 # for the doubles
{
  printf '%s\n' '[ "$1:${OFFLINE:-}" != update:1 ] || exit 100' '. "$DOUBLES/../install-packages"' | double apt-get
  echo '. "$DOUBLES/../install-packages"' | double dnf
  double dkms <<'SH'
kernel=$(cat "$MACHINE/proc/sys/kernel/osrelease")
[ "$1" != "${FAIL_DKMS:-}" ] || { echo "Error! Bad return status"; exit 10; }
case $1 in
  add) mkdir -p "$MACHINE/var/lib/dkms/nvidia-fs/2.28.4" ;;
  build | install)
    # The kernel that these sources do not build on.
    case $kernel in 7.*) grep -q blk_iter_t "$MACHINE/usr/src/nvidia-fs-2.28.4/nvfs-dma.c" || { echo 'error: incompatible-pointer-types'; exit 10; } ;; esac
    if [ "$1" = install ]; then mkdir -p "$MACHINE/lib/modules/$kernel/updates/dkms"; echo built >"$MACHINE/lib/modules/$kernel/updates/dkms/nvidia-fs.ko.zst"; fi ;;
esac
exit 0
SH
  double modprobe <<'SH'
[ -z "${FAIL_MODPROBE:-}" ] || { echo "modprobe: ERROR: could not insert 'nvidia_fs': Key was rejected by service"; exit 1; }
case $1 in
  -r) sed -i '/^nvidia_fs /d' "$MACHINE/proc/modules" ;;
  *) echo 'nvidia_fs 327680 0 - Live 0x0' >>"$MACHINE/proc/modules" ;;
esac
SH
  double dpkg <<'SH'
case $1 in
  --audit) [ ! -e "$MACHINE/half" ] || echo 'nvidia-fs-dkms: half configured' ;;
  --configure) rm -f "$MACHINE/half" ;;
esac
SH
}

# machine FOLDER DISTRIBUTION KERNEL: one with a driver and nothing of GDS.
machine() {
  rm -rf "$1"
  mkdir -p "$1"/{etc,proc/sys/kernel,proc/driver/nvidia,usr/bin,usr/src,"lib/modules/$3",sys/class}
  case $2 in
    ubuntu) printf 'ID=ubuntu\nID_LIKE=debian\nPRETTY_NAME="Ubuntu 26.04 LTS"\n' ;;
    rocky) printf 'ID="rocky"\nID_LIKE="rhel centos fedora"\nPRETTY_NAME="Rocky Linux 9.6 (Blue Onyx)"\n' ;;
    *) printf 'ID=%s\nPRETTY_NAME="%s"\n' "$2" "$2" ;;
  esac >"$1/etc/os-release"
  echo "$3" >"$1/proc/sys/kernel/osrelease"
  echo 'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build' >"$1/proc/driver/nvidia/version"
  : >"$1/proc/modules"
  echo 'BOOT_IMAGE=/vmlinuz root=/dev/sda1' >"$1/proc/cmdline"
}
# install FOLDER ARGUMENTS…: output in $log, errors in $log.err, the exit code in $status.
install() {
  local machine=$1
  status=0
  log=$tmp/install.log
  MACHINE=$machine DOUBLES=$doubles SOURCES=$tmp/pristine INSTALL_GDS_COMMANDS=$doubles \
    "$root/server_setup/install_gds.sh" --root "$machine" "${@:2}" >"$log" 2>"$log.err" || status=$?
}
sources "$tmp/pristine"
# calls FOLDER: the programs that were called, in order.
calls() { cut -d' ' -f1,2 "$1/calls" | tr '\n' ';'; }
everything() { (cd "$1" && find . | sort && cat proc/modules); }

# --- A machine with Linux 7.0 -----------------------------------------------------

m="$tmp/it's a \"machine\""
machine "$m" ubuntu 7.0.0-14-generic
before=$(everything "$m")
install "$m"
ok 'without --yes it exits with 0' same "$status" 0
ok '  and prints what it would do' has "$log" 'apt-get -y install linux-headers-7\.0\.0-14-generic build-essential make dkms zstd xz-utils'
ok '  in six steps' same "$(count '^  [0-9]\. ' "$log")" 6
ok '  and changes nothing' same "$(everything "$m")" "$before"
ok '  it names the distribution and the driver' has "$log" '^  driver  *580\.95\.05, open kernel modules'
ok '  and that this one could do without nvidia-fs' has "$log" 'can do without nvidia-fs for local NVMe'
install "$m" --yes
ok 'with --yes all steps are done' same "$status $(count '^done: 6 steps' "$log")" '0 1'
ok '  the commands, in order' same "$(calls "$m")" 'apt-get update;apt-get -y;apt-get -y;dkms install;dkms build;dkms install;dpkg --audit;dpkg --configure;modprobe nvidia-fs;'
ok '  the sources are patched' env NVFS_SRC="$m/usr/src/nvidia-fs-2.28.4" "$root/server_setup/nvfs_patch.sh" --check
ok '  the module is loaded, now and at boot' has "$m/proc/modules" '^nvidia_fs '
ok '  ' has "$m/etc/modules-load.d/nvidia-fs.conf" '^nvidia-fs$'
journal=$m/var/log/strata-install-gds.log
ok '  the log has every command' same "$(count ' run: ' "$journal")" 9
ok '  how it ended' has "$journal" 'exit code 100: env DEBIAN_FRONTEND=noninteractive apt-get -y install nvidia-fs-dkms$'
ok '  and what it wrote' has "$journal" '^error: incompatible-pointer-types'
before=$(everything "$m")
rm "$m/calls"
install "$m" --yes
ok 'a second run has nothing to do' same "$status $(count '^nothing to do' "$log") $(everything "$m")" "0 1 $(grep -vx ./calls <<<"$before")"

# --- Step by step ------------------------------------------------------------------

machine "$m" ubuntu 7.0.0-14-generic
FAIL_PACKAGE=zstd install "$m" --yes
ok 'a package that cannot be installed' same "$status $(count 'installing .*zstd.* failed: see .*strata-install-gds\.log' "$log.err")" '1 1'
ok '  ends it there' same "$(calls "$m")" 'apt-get update;apt-get -y;'
FAIL_PACKAGE=nvidia-fs-dkms install "$m" --yes
ok '  a package that is not found' same "$status $(count "NVIDIA's CUDA repository: is that set up" "$log.err")" '1 1'
OFFLINE=1 install "$m" --yes
ok '  and the next run does the rest, with the lists that there are' same "$status $(count '^nvidia_fs ' "$m/proc/modules")" '0 1'
machine "$m" ubuntu 6.8.0-60-generic
FAIL_DKMS=build install "$m" --yes
ok 'before Linux 6.18 nothing is patched' same "$status $(find "$m/usr/src" -name '*.strata-orig' | wc -l) $(count 'patch' "$log")" '0 0 0'
ok '  and the module that the package built is taken' same "$(calls "$m")" 'apt-get update;apt-get -y;apt-get -y;dkms install;modprobe nvidia-fs;'
rm "$m/lib/modules/6.8.0-60-generic/updates/dkms/nvidia-fs.ko.zst"
rm -r "$m/var/lib/dkms"
: >"$m/proc/modules"
FAIL_DKMS=build install "$m" --yes
ok 'a build that fails' same "$status $(count '^install_gds\.sh: dkms build .*make\.log.* failed' "$log.err")" '1 1'
FAIL_MODPROBE=1 install "$m" --yes
ok 'a module that does not load' same "$status $(count '^install_gds\.sh: modprobe nvidia-fs failed' "$log.err")" '1 1'
ok '  sources that DKMS does not know are added' has "$m/calls" '^dkms add -m nvidia-fs -v 2\.28\.4$'
mkdir -p "$m/sys/firmware/efi/efivars"
printf '\6\0\0\0\1' >"$m/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
FAIL_MODPROBE=1 install "$m" --yes
ok '  with secure boot it says why that may be' has "$log.err" 'modprobe nvidia-fs \(secure boot: enrol the key'
install "$m"
ok '  and says so before' has "$log" '^secure boot is on: .*mokutil'
printf '\6\0\0\0\0' >"$m/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
install "$m"
ok '  and not where it is off' has "$log" 'secure boot  *off'
machine "$m" ubuntu 7.0.0-14-generic
install "$m" --yes
NVFS_SRC=$m/usr/src/nvidia-fs-2.28.4 "$root/server_setup/nvfs_patch.sh" --revert >/dev/null
: >"$m/calls"
install "$m" --yes
ok 'a patch that was taken back is made again, and the module built and loaded anew' same "$(calls "$m")" 'dkms build;dkms install;dpkg --audit;modprobe -r;modprobe nvidia-fs;'
sed -i '/nvfs_blk_iter_t/d' "$m/usr/src/nvidia-fs-2.28.4/nvfs-dma.c"
install "$m"
ok 'sources that the patch does not know are left' same "$status $(count 'is not what nvfs_patch\.sh knows' "$log") $(count '^nothing to do' "$log")" '0 1 1'

machine "$m" ubuntu 6.18.2-arch1
cp -r "$tmp/pristine" "$m/usr/src/nvidia-fs-2.28.4"
install "$m"
ok 'from Linux 6.18 on there is the patch' has "$log" 'nvfs_patch\.sh$'

# --- RHEL ---------------------------------------------------------------------------

machine "$m" rocky 5.14.0-570.el9.x86_64
install "$m" --yes
ok 'on Rocky Linux it is dnf and its names' has "$m/calls" '^dnf -y install kernel-devel-5\.14\.0-570\.el9\.x86_64 gcc make dkms zstd xz$'
ok '  and works' same "$status $(count '^nvidia_fs ' "$m/proc/modules")" '0 1'

# --- What cannot be ------------------------------------------------------------------

machine "$m" ubuntu 7.0.0-14-generic
rm "$m/proc/driver/nvidia/version"
install "$m" --yes
ok 'without a driver' same "$status $(count 'the NVIDIA driver is not loaded' "$log.err") $(ls "$m/calls" 2>/dev/null)" '3 1 '
echo 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024' >"$m/proc/driver/nvidia/version"
install "$m"
ok 'with a proprietary one' same "$status $(count 'proprietary kernel modules: nvidia-fs' "$log.err") $(count '^  driver  *550\.54\.14' "$log")" '3 1 1'
machine "$m" arch 7.0.0
install "$m"
ok 'another distribution is named' same "$status $(count 'no table of packages for arch' "$log.err")" '3 1'
machine "$m" ubuntu 7.0.0-14-generic
mkdir -p "$m/sys/class/iommu/dmar0" "$m/sys/class/iommu/dmar1"
install "$m"
ok 'an IOMMU that translates is told' has "$log" '^  IOMMU  *on \(dmar0 dmar1\): .*iommu=pt'
echo 'root=/dev/sda1 iommu=pt' >"$m/proc/cmdline"
install "$m"
ok 'one that does not, too' has "$log" '^  IOMMU  *on, passed through'
for wrong in '--yse' '--log' '--root /does/not/exist'; do
  # shellcheck disable=SC2086 # arguments
  install "$m" $wrong
  ok "$wrong is wrong usage" same "$status $(wc -l <"$log.err")" '2 1'
done
status=0
"$root/server_setup/install_gds.sh" --root "$m" --yes >"$log" 2>"$log.err" || status=$?
ok '--yes is refused for a recorded machine' same "$status $(count 'leave out --yes' "$log.err")" '2 1'
status=0
cp "$root/server_setup/install_gds.sh" "$tmp/installer.sh"
nobody bash "$tmp/installer.sh" --yes >"$log" 2>"$log.err" || status=$?
ok '--yes needs root' same "$status $(count '^install_gds\.sh: --yes needs root' "$log.err")" '2 1'
