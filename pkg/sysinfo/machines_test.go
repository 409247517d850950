package sysinfo_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"strata/pkg/sysinfo"
	"strata/tests/sysinfotest"
)

// read unpacks a recorded machine and reads it.
func read(t *testing.T, name, path string) *sysinfo.Machine {
	t.Helper()
	dir := t.TempDir()
	if err := sysinfotest.Unpack(filepath.Join("testdata", name+".txtar"), dir); err != nil {
		t.Fatal(err)
	}
	r, err := sysinfo.At(dir)
	if err != nil {
		t.Fatal(err)
	}
	return sysinfo.Read(context.Background(), r, sysinfo.Options{Path: path})
}

// lookup finds a field of decoded JSON: "pci.gpus.0.bus", "pci.gpus.length".
func lookup(v any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			if part == "length" {
				v = float64(len(x))
				continue
			}
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// Every line is a field of a machine's JSON and its value.
func TestMachines(t *testing.T) {
	for _, c := range []struct{ machine, path, want string }{
		{"a6000", "/data/run/a.zarr", `
kernel.release.value "6.8.0-45-generic"
kernel.wsl.value false
kernel.pci_p2pdma.value true
distribution.id "ubuntu"
distribution.version "24.04"
security.secure_boot.value false
security.lockdown.value "none"
security.sig_enforce.value false
container.kind ""
container.udev.value 2
job null
limits.memlock.value 67108864
limits.nofile.value 65536
limits.cgroup_memory.value null
limits.cgroup_memory.reason "the control group sets none"
driver.version.value "565.57.01"
driver.open.value true
driver.arch "x86_64"
driver.gpus.length 2
driver.gpus.1.bus "0000:c1:00.0"
driver.gpus.0.model "NVIDIA RTX A6000"
driver.gpus.0.uuid "GPU-c7a1f0d2-5d3c-8b1e-9f0a-1b2c3d4e5f60"
driver.nvidia_peermem.loaded true
nvidia_fs.reason ""
nvidia_fs.version.value "2.24"
nvidia_fs.module.version "2.24.2"
nvidia_fs.drivers.0 "nvme"
nvidia_fs.stats.io_stats true
nvidia_fs.stats.logging "info"
nvidia_fs.stats.reads.mib 5137
nvidia_fs.stats.writes.n 12
cufile.file "/etc/cufile.json"
cufile.reason ""
cufile.library "/usr/local/cuda/lib64/libcufile.so.0"
cufile.allow_compat_mode true
cufile.force_compat_mode null
cufile.max_direct_io_size_kb 16384
pci.gpus.0.link.speed.value "2.5 GT/s PCIe"
pci.gpus.0.link.max_speed.value "16.0 GT/s PCIe"
pci.gpus.0.bar1.value 68719476736
pci.gpus.1.numa.value 1
iommu.mode "off"
iommu.line.0 "amd_iommu=off"
listed.distribution.listed true
listed.kernel.listed true
tools.gdscheck.value.release "1.12.0.25"
tools.gdscheck.value.drivers.NVMe "Supported"
tools.nvidia_smi.value.0.memory_mib 49140
path.name "/data/run/a.zarr"
path.mount.type "ext4"
path.mount.point "/data"
path.support.supported true
path.support.driver "nvme"
path.direct.value true
path.block.name "md0"
path.block.raid.level "raid0"
path.block.raid.disks 4
path.block.raid.faulty 0
path.block.parts.length 4
path.block.parts.3.nvme.link.speed.value "8.0 GT/s PCIe"
path.block.parts.0.nvme.model "SAMSUNG MZQL23T8HCLS-00A07"
path.block.parts.0.nvme.firmware "GDC5902Q"
path.block.parts.0.nvme.bus.value "0000:47:00.0"
path.block.parts.0.nvme.transport "pcie"
path.block.parts.2.nvme.numa.value 1`},
		{"a6000", "/dev/shm/x", `
path.mount.type "tmpfs"
path.support.supported false
path.block null
path.no_block "tmpfs has no block device"`},
		{"a6000", "/", `
path.mount.point "/"
path.block.name "nvme0n1"`},
		{"a6000", "relative/../data", `path.mount.point "/data"`},
		{"compat", "/scratch", `
nvidia_fs.reason "the module nvidia_fs is not loaded"
nvidia_fs.version.reason "there is no /proc/driver/nvidia-fs/version"
nvidia_fs.stats null
nvidia_fs.source "/usr/src/nvidia-fs-2.18.3"
nvidia_fs.module.file "/lib/modules/5.15.0-101-generic/updates/dkms/nvidia-fs.ko"
iommu.mode "translated"
tools.gdscheck.value.drivers.NVMe "Unsupported"
tools.nvidia_smi.reason "no output of nvidia-smi was recorded"
path.mount.type "xfs"
path.block.name "nvme0n1"`},
		{"no-gpu", "/home/a", `
driver.version.reason "there is no /proc/driver/nvidia/version"
driver.gpus.length 0
pci.gpus.length 0
security.secure_boot.value true
security.lockdown.value "integrity"
cufile.file ""
cufile.library ""
path.block.name "vg-root"
path.block.kind "lvm"
path.block.parts.0.kind "crypt"
path.block.parts.0.parts.0.kind "nvme"
path.block.parts.0.parts.0.nvme.model "SAMSUNG MZVL21T0HCLR-00BL7"
listed.distribution.listed false`},
		{"docker-no-udev", "/data/x", `
container.kind "docker"
container.by "/.dockerenv"
container.udev.reason "there is no /run/udev/data"
limits.cgroup_memory.value 34359738368
limits.cgroup_cpus.value 8
cufile.file "/usr/local/cuda/gds/cufile.json"
security.lockdown.reason "there is no /sys/kernel/security/lockdown"
path.block.name "nvme1n1"`},
		{"docker-no-udev", "/home", `
path.mount.type "overlay"
path.support.supported false`},
		{"wsl", "/mnt/c/data", `
kernel.wsl.value true
driver.version.reason "there is no /proc/driver/nvidia/version"
path.mount.type "9p"
path.mount.source "C:\\"
tools.nvidia_smi.value.0.name "NVIDIA GeForce RTX 4090"`},
		{"mig", "/raid", `
iommu.mode "passthrough"
pci.gpus.0.bar1.value 137438953472
distribution.id "rhel"
listed.distribution.listed true
path.mount.type "xfs"`},
		{"slurm-apptainer", "/well/group/data", `
container.kind "apptainer"
container.by "environment variable APPTAINER_CONTAINER"
job.id "4711"
job.partition "gpu_short"
job.gpus "2"
limits.memlock.value -1
limits.cgroup_memory.value 64424509440
limits.cgroup_cpus.value 6
driver.open.value false
driver.version.value "550.90.07"
path.mount.type "gpfs"
path.support.driver ""
path.support.peer_memory true
path.block null`},
		{"slurm-apptainer", "/tmp", `path.block.kind "scsi"`},
		{"lockdown", "/", `
security.secure_boot.value true
security.lockdown.value "integrity"
nvidia_fs.module.loaded false
nvidia_fs.module.file "/lib/modules/6.8.0-45-generic/updates/dkms/nvidia-fs.ko.zst"`},
		{"degraded-raid", "/data", `
path.block.name "md127"
path.block.raid.level "raid10"
path.block.raid.degraded 1
path.block.raid.faulty 1
path.block.raid.action "recover"
path.block.raid.done "1250001920 / 7501212672"
path.block.parts.1.nvme.link.width.value 2
path.block.parts.1.nvme.link.max_width.value 4`},
		{"nfs-rdma", "/vast/run", `
path.mount.type "nfs4"
path.support.supported true
path.support.driver "rpcrdma"
nvidia_fs.drivers.1 "rpcrdma"
rdma.devices.0.name "mlx5_0"
rdma.devices.0.state "ACTIVE"
rdma.devices.0.rate "200 Gb/sec (4X HDR)"`},
		{"nfs-rdma", "/home", `
path.support.supported false
path.support.reason "it is mounted with proto=tcp, only RDMA is supported"`},
		{"lustre", "/ai400/x", `
path.mount.source "192.168.1.5@o2ib:/ai400"
path.support.driver "lnet"
driver.open.value false
distribution.id "rocky"`},
		{"kernel-7.0", "/", `
listed.kernel.listed true
listed.distribution.listed true
nvidia_fs.source "/usr/src/nvidia-fs-2.28.4"
nvidia_fs.module.file ""`},
	} {
		t.Run(c.machine+strings.ReplaceAll(c.path, "/", "_"), func(t *testing.T) {
			t.Parallel()
			text, err := json.Marshal(read(t, c.machine, c.path))
			if err != nil {
				t.Fatal(err)
			}
			var got any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(strings.TrimSpace(c.want)) {
				field, wanted, _ := strings.Cut(strings.TrimSpace(line), " ")
				var want any
				if err := json.Unmarshal([]byte(wanted), &want); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				if v := lookup(got, field); v != want {
					t.Errorf("%s is %#v, want %s", field, v, wanted)
				}
			}
		})
	}
}

// What was recorded of a recorded machine is the same machine.
func TestRecording(t *testing.T) {
	for machine, path := range map[string]string{
		"a6000": "/data/run", "compat": "/scratch", "no-gpu": "/home", "docker-no-udev": "/data", "wsl": "/mnt/c", "mig": "/raid", "slurm-apptainer": "/well/x", "lockdown": "/",
		"degraded-raid": "/data", "nfs-rdma": "/vast", "lustre": "/ai400", "kernel-7.0": "/",
	} {
		t.Run(machine, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := sysinfotest.Unpack(filepath.Join("testdata", machine+".txtar"), dir); err != nil {
				t.Fatal(err)
			}
			r, err := sysinfo.At(dir)
			if err != nil {
				t.Fatal(err)
			}
			r, recording := r.Recorded()
			want, err := json.Marshal(sysinfo.Read(context.Background(), r, sysinfo.Options{Path: path}))
			if err != nil {
				t.Fatal(err)
			}
			copied := t.TempDir()
			if err := recording.Write(copied); err != nil {
				t.Fatal(err)
			}
			if r, err = sysinfo.At(copied); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(sysinfo.Read(context.Background(), r, sysinfo.Options{Path: path}))
			if err != nil || string(got) != string(want) {
				t.Errorf("%s, %v\nwant %s", got, err, want)
			}
		})
	}
}
