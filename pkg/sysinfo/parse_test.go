package sysinfo

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// As NVIDIA's troubleshooting guide shows it, with lines that go on.
const oldStats = `GDS Version: 1.0.0.71
NVFS statistics(ver: 4.0)
NVFS Driver(version: 2:7:47)
Mellanox PeerDirect Supported: False
IO stats: Enabled, peer IO stats: Disabled
Logging level: warn

Active Shadow-Buffer (MiB): 7
Active Process: 2
Reads                           : n=9 ok=8 err=1 readMiB=3 io_state_err=4
Reads                           : Bandwidth(MiB/s)=5 Avg-Latency(usec)=6
Sparse Reads : n=6 io=1 holes=2 pages=3
Writes                          : n=1 ok=2 err=3 writeMiB=4 io_state_err=5
        pg-cache=6 pg-cache-fail=7 pg-cache-eio=8
Writes                          : Bandwidth(MiB/s)=9 Avg-Latency(usec)=10
Mmap : n=183 ok=182 err=1 munmap=181
Bar1-map                        : n=183 ok=183 err=0 free=165 callbacks=18
        active=3
Error                           : cpu-gpu-pages=1 sg-ext=2 dma-map=3 dma-ref=4
Ops : Read=1 Write=2
GPU 0000:be:00.0  uuid:87e5c586-88ed-583b-df45-fcee0f1e7917 : Registered_MiB=4 Cache_MiB=5
        max_pinned_MiB=6 cross_root_port(%)=7
Something new: x=1
`

func TestNvfsStats(t *testing.T) {
	// 1+4 of reads, 3+5 of writes, 1 of mappings, 1+2+3+4 of transfers
	want := &NvfsStats{IOStats: true, Logging: "warn", Reads: NvfsIO{N: 9, MiB: 3}, Writes: NvfsIO{N: 1, MiB: 4}, Errors: 24}
	if got := parseNvfsStats(oldStats); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	// Without counting, and what newer versions count.
	s := parseNvfsStats("IO stats: Disabled, peer IO stats: Enabled\nReads : err=2 io_state_err=3\nWrites\t: err=4 io_state_err=5 pg-cache=6 pg-cache-fail=7 pg-cache-eio=8\n" +
		"Batches\t\t: n=1 ok=2 err=3 Avg-Submit-Latency(usec)=4\nBar1-map : n=1 delay-frees=9\nOps : Read=0 Write=0 BatchIO=5\nMmap : n=-1 err=99999999999999999999\n")
	if s.IOStats || s.Errors != 17 || s.Reads != (NvfsIO{}) {
		t.Errorf("%+v", s)
	}
}

func TestDriverVersion(t *testing.T) {
	for text, want := range map[string]struct {
		version string
		open    bool
	}{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version: 12.3.0":                     {"535.183.01", false},
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build  (dvs-builder@U16-I3-B10-06-5)  Thu Oct 10 2024": {"565.57.01", true},
		"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.65.06  Release Build":                                                {"580.65.06", true},
		"GCC version: 12.3.0\n": {"", false},
		"":                      {"", false},
	} {
		if v, open, why := parseDriverVersion(text); v != want.version || open != want.open || (v == "") != (why != "") {
			t.Errorf("%q: %q, %v, %q", text, v, open, why)
		}
	}
}

func TestCommented(t *testing.T) {
	for text, want := range map[string]string{
		"{\n// x \" y\n\"a\": \"//no\", /* 1\n2 */ \"b\": \"\\\"/*\" }": "",
		"{\n  \"a\": \"x\",\n  // c\n  \"b\": }":                        "line 4: invalid character '}' looking for beginning of value",
		"{\"properties\": {\n\"use_poll_mode\": \"yes\"}}":              "line 2: properties.use_poll_mode is of type string, want bool",
		"{ /* never ends": "line 1: unexpected end of JSON input",
		"":                "line 1: unexpected end of JSON input",
		"[1]":             "line 1: the document is of type array, want struct",
		"{\"properties\": {\"rdma_dev_addr_list\": [\"10.0.0.1\"]}}\n// end": "",
	} {
		var c CuFile
		err := c.parse([]byte(text))
		if got := errorText(err); got != want {
			t.Errorf("%q:\n%q, want\n%q", text, got, want)
		}
	}
	var c CuFile
	if err := c.parse([]byte(`{"properties": {"use_pci_p2pdma": true, "rdma_peer_type": "dmabuf"}, "block": {"nvme": {"use_pci_p2pdma": true}, "raid": {"use_pci_p2pdma": false}, "x": {}}, "blacklist": {"mounts": ["/a"]}, "denylist": {"mounts": ["/b"], "filesystems": ["xfs"], "devices": 7}}`)); err != nil ||
		!On(c.P2PDMA) || c.PeerType != "dmabuf" || len(c.BlockP2PDMA) != 2 || !c.BlockP2PDMA["nvme"] || len(c.DenyMounts) != 2 || c.DenyFileSystems[0] != "xfs" || c.DenyDevices != nil {
		t.Errorf("%+v, %v", c, err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSmallParsers(t *testing.T) {
	if m := parseMounts("36 35 98:0 /a\\040b /mnt\\0112 rw,noatime master:1 - ext4 /dev/x rw,errors=continue\nnonsense\n1 2 0:3 / / rw - tmpfs\n"); len(m) != 1 ||
		!reflect.DeepEqual(m[0], Mount{"98:0", "/mnt\t2", "ext4", "/dev/x", []string{"rw", "noatime", "errors=continue"}}) {
		t.Errorf("%+v", m)
	}
	mounts := []Mount{{Point: "/", Type: "a"}, {Point: "/data", Type: "b"}, {Point: "/data", Type: "c"}, {Point: "/database", Type: "d"}}
	for name, want := range map[string]string{"/": "a", "/data": "c", "/data/x": "c", "/database/x": "d", "/dat": "a"} {
		if m := mountOf(mounts, name); m == nil || m.Type != want {
			t.Errorf("%s: %+v", name, m)
		}
	}
	for text, want := range map[string]int64{
		"0x1 0x2 0x3\n0x28000000000 0x28fffffffff 0x14220c\n": 1 << 36, "0x1\n0x0 0x0 0x0": 0, "x": 0, "0x1\n0x9 0x1": 0, "a\nb c": 0,
	} {
		if n, why := parseBAR1(text); n != want || (n == 0) != (why != "") {
			t.Errorf("%q: %d, %q", text, n, why)
		}
	}
	if _, why := parseLockdown("none integrity"); why == "" {
		t.Error("no lockdown is marked, and that is no reason")
	}
	if l := parseLimit("Max open files            1024                 unlimited            files     \n", "Max open files"); l.Value != 1024 {
		t.Errorf("%+v", l)
	}
	for bus, want := range map[string]string{"00000000:C1:00.0": "0000:c1:00.0", "41:00.0": "0000:41:00.0", "10000:e1:00.0": "10000:e1:00.0"} {
		if got := canonicalBus(bus); got != want {
			t.Errorf("%s: %s", bus, got)
		}
	}
	names := []string{"nvme10", "nvme2", "b", "nvme02", "a1b", "a1a"}
	sortNames(names)
	if got := strings.Join(names, " "); got != "a1a a1b b nvme2 nvme02 nvme10" && got != "a1a a1b b nvme02 nvme2 nvme10" {
		t.Error(got)
	}
	for _, c := range []struct {
		a, b string
		less bool
	}{{"6.2", "6.10.3-generic", true}, {"6.10", "6.2", false}, {"2.28.4", "2.28.4", false}, {"7.0.0-1", "7.0", false}, {"", "1", true}} {
		if versionLess(c.a, c.b) != c.less {
			t.Errorf("%q < %q is %v", c.a, c.b, !c.less)
		}
	}
	v := shellVariables("A=\"x \\\"y\\\" \\$z\"\n# B=1\nC='q\"'\nD=plain\n=5\nE=\"\n")
	if v["A"] != `x "y" $z` || v["C"] != `q"` || v["D"] != "plain" || v["B"] != "" || v["E"] != `"` {
		t.Errorf("%q", v)
	}
}

func TestSupport(t *testing.T) {
	for line, want := range map[string]bool{
		"ext4 rw": false, "ext4 rw,data=ordered": true, "ext4 rw,data=journal": false, "ext4 data=writeback": false, "xfs rw": true, "nfs4 vers=4.2,proto=tcp": false, "nfs vers=3,proto=rdma": true,
		"nfs rw,rdma": true, "lustre rw": true, "beegfs rw": true, "gpfs rw": true, "wekafs rw": true, "mmfs rw": true, "fhgfs rw": true, "tmpfs rw": false, "overlay rw": false, "zfs rw": false, "btrfs rw": false, "9p rw": false,
		"fuse.sshfs rw": false, "fuseblk rw": false, "made-up rw": false,
	} {
		kind, options, _ := strings.Cut(line, " ")
		s := supportOf(Mount{Type: kind, Options: strings.Split(options, ",")})
		if s.Supported != want || s.Reason == "" || s.Supported != ((s.Driver != "" || s.PeerMem) && s.Next == "") {
			t.Errorf("%s: %+v", line, s)
		}
	}
	for model, want := range map[string]bool{
		"NVIDIA RTX A6000": true, "NVIDIA A100-SXM4-80GB": true, "Tesla V100-SXM3-32GB": true, "NVIDIA H100 80GB HBM3": true, "NVIDIA GeForce RTX 4090": false, "NVIDIA L40S": true,
		"Quadro RTX 8000": true, "NVIDIA RTX 6000 Ada Generation": true, "NVIDIA TITAN RTX": false, "NVIDIA A10G": true, "": false, "NVIDIA GH200 480GB": true, "something": false,
	} {
		if l := ListGPU(model); l.Listed != want || l.Note == "" {
			t.Errorf("%q: %+v", model, l)
		}
	}
	for d, want := range map[Fact[string]]bool{{Value: "ubuntu 24.04"}: true, {Value: "ubuntu 23.10"}: false, {Value: "rhel 8.3"}: false, {Value: "rhel 8.10"}: true, {Value: "rocky 9.4"}: true, {Value: "debian 12"}: false} {
		id, version, _ := strings.Cut(d.Value, " ")
		if l := listDistribution(Distribution{ID: id, Version: version}); l.Listed != want || l.Listed == (l.Note != "") {
			t.Errorf("%s: %+v", d.Value, l)
		}
	}
	for release, want := range map[string]bool{"4.14.0": false, "4.18.0-553.el8": true, "6.8.0-45-generic": true, "7.0.0-12": true, "7.1.2": false} {
		if l := listKernel(known(release)); l.Listed != want {
			t.Errorf("%s: %+v", release, l)
		}
	}
	if KernelOf("2.28.4") != "6.17" || KernelOf("2.30") != "7.0" || KernelOf("2.7") != "" {
		t.Error(KernelOf("2.28.4"), KernelOf("2.30"), KernelOf("2.7"))
	}
}

func TestGDSCheck(t *testing.T) {
	// GDS 1.18 says by which way, has no version of nvidia-fs, and speaks before it begins.
	c, why := parseGDSCheck(" No GPU found in the system, use this library only for sysmem\n GDS release version: 1.18.1.6\n nvidia_fs minimum version: 2.12\n =====\n DRIVER CONFIGURATION:\n =====\n NVMe               : nvfs\n NFS : compat\n --rdma_multipath            : Disabled\n" +
		" =====\n GPU INFO:\n =====\n GPU index 0 NVIDIA T4 bar:1 bar size (MiB):256 supports GDS, IOMMU State: Pass-through or Enabled\n GPU index x\n =====\n PLATFORM INFO:\n =====\n IOMMU: disabled\n Platform verification failed\n")
	if why != "" || c.Release != "1.18.1.6" || len(c.Drivers) != 3 || c.Drivers["NVMe"] != "nvfs" || c.Drivers["NFS"] != "compat" || c.Drivers["rdma_multipath"] != "Disabled" {
		t.Errorf("%+v, %s", c, why)
	}
	if _, why := parseGDSCheck("error: no such file\n"); why != `gdscheck printed nothing that is known: "error: no such file"` {
		t.Error(why)
	}
	if _, why := parseSMI("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"); !strings.HasPrefix(why, "nvidia-smi lists no GPU: ") {
		t.Error(why)
	}
}

// A tree in which links lead out, pipes block and folders stand where files should be.
func TestHostileTree(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"proc/self/mountinfo", "sys/bus/pci/devices/0000:01:00.0/class", "etc/os-release", "proc/driver/nvidia-fs/stats"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("6.6.6"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"proc/sys/kernel/osrelease": secret, "proc/cmdline": "/proc/cmdline", "proc/modules": "../../../../../../../../etc/passwd", "sys/block": "/",
		"proc/driver/nvidia-fs/version": "../../../up",
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "up"), bytes.Repeat([]byte("9.9\n"), 1<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := At(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := Read(context.Background(), r, Options{Path: "/../../etc"})
	if m.Kernel.Release.Known() || m.Kernel.Line.Reason != "/proc/cmdline: too many symbolic links" || m.Distribution.Reason != "/etc/os-release: not a regular file" ||
		m.Path.Reason != "/proc/self/mountinfo: not a regular file" || m.NvidiaFS.Version.Value == "" || len(m.NvidiaFS.Version.Value) > 100 || m.NvidiaFS.Stats != nil {
		t.Errorf("%+v\n%+v", m, m.Path)
	}
	if _, err := At(secret); err == nil || !strings.Contains(err.Error(), "is not a folder: want one with proc, sys and etc") {
		t.Error(err)
	}
	if _, err := At(dir + "/missing"); err == nil {
		t.Error("a folder that is not there")
	}
}

// The machine that the test runs on: whatever it is, it is read and can be written.
func TestLive(t *testing.T) {
	m := Read(context.Background(), Live(), Options{Path: t.TempDir(), NoTools: true})
	if _, err := json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if !m.Kernel.Release.Known() || m.Path.Reason != "" || !m.Limits.Files.Known() {
		t.Errorf("%+v, %+v", m.Kernel, m.Path)
	}
	if p := Live().path("/no/such/file"); p.Reason != "there is no /no/such/file" {
		t.Errorf("%+v", p)
	}
}

func TestRunTool(t *testing.T) {
	ctx := context.Background()
	if f := runTool(ctx, 30*time.Second, "/bin/sh", "-c", "echo out; echo err >&2; exit 3"); f.Value != "out\n" {
		t.Errorf("%+v", f)
	}
	if f := runTool(ctx, 50*time.Millisecond, "/bin/sh", "-c", "sleep 100"); f.Known() || !strings.Contains(f.Reason, "did not end within 50ms") {
		t.Errorf("%+v", f)
	}
	if f := runTool(ctx, 30*time.Second, "/bin/sh", "-c", "exit 1"); f.Reason != "/bin/sh: exit status 1" {
		t.Errorf("%+v", f)
	}
	if f := runTool(ctx, 30*time.Second, "/bin/sh", "-c", "head -c 3000000 /dev/zero"); len(f.Value) != mostBytes {
		t.Errorf("%d bytes, %s", len(f.Value), f.Reason)
	}
}

// tree writes files, folders (name/) and symbolic links (name -> target) below a folder of its own.
func tree(t *testing.T, lines ...string) Root {
	t.Helper()
	dir := t.TempDir()
	for _, line := range lines {
		name, rest, link := strings.Cut(line, " -> ")
		name, text, _ := strings.Cut(name, " = ")
		at := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(at), 0o777)
		switch {
		case err != nil:
		case link:
			err = os.Symlink(rest, at)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(at, 0o777)
		default:
			err = os.WriteFile(at, []byte(text+"\n"), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := At(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A drive with two paths, a file system of several devices, a device of the mapper by its name, and a chain that is a
// circle.
func TestBlocks(t *testing.T) {
	const pci = "sys/devices/pci0000:00/0000:00:01.0/"
	r := tree(t,
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/queue/rotational = 0",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1/device -> ../../nvme-subsys0",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme1 -> /"+pci+"0000:02:00.0/nvme/nvme1",
		"sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0 -> /"+pci+"0000:01:00.0/nvme/nvme0",
		pci+"0000:01:00.0/nvme/nvme0/transport = pcie", pci+"0000:01:00.0/nvme/nvme0/model = Dual port", pci+"0000:01:00.0/nvme/nvme0/device -> ../../../0000:01:00.0",
		pci+"0000:02:00.0/nvme/nvme1/transport = pcie",
		"sys/class/block/nvme0n1 -> ../../devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1",
		"dev/mapper/vg-data -> ../dm-3", "dev/dm-3 = ",
		"sys/class/block/dm-3 -> ../../devices/virtual/block/dm-3", "sys/devices/virtual/block/dm-3/dm/name = vg-data", "sys/devices/virtual/block/dm-3/dm/uuid = LVM-x",
		"sys/devices/virtual/block/dm-3/slaves/dm-3 -> ../../dm-3",
		"sys/devices/virtual/block/nvme9n1/queue/rotational = 0", "sys/class/block/nvme9n1 -> ../../devices/virtual/block/nvme9n1",
	)
	b, why := r.blockOf(Mount{Device: "0:45", Type: "btrfs", Source: "/dev/nvme0n1"})
	if b == nil || b.NVMe == nil || b.NVMe.Paths != 2 || b.NVMe.Model != "Dual port" || b.NVMe.Bus.Value != "0000:01:00.0" {
		t.Errorf("%+v, %s", b, why)
	}
	b, why = r.blockOf(Mount{Device: "254:7", Type: "ext4", Source: "/dev/mapper/vg-data"})
	deep := 0
	if b != nil {
		b.Walk(func(Block) { deep++ })
	}
	if b == nil || b.Kind != "lvm" || b.Name != "vg-data" || deep != mostDeep+1 {
		t.Errorf("%+v, %s, %d devices", b, why, deep)
	}
	if b, why = r.blockOf(Mount{Device: "259:9", Source: "/dev/nvme9n1"}); b == nil || b.NVMe.Paths != 0 || b.NVMe.Bus.Known() || b.NVMe.NUMA.Reason != "the drive has no controller" {
		t.Errorf("%+v, %s", b, why)
	}
	if b, why = r.blockOf(Mount{Device: "8:1", Source: "none"}); b != nil || why != "there is no /sys/dev/block/8:1" {
		t.Errorf("%+v, %s", b, why)
	}
}

func TestContainerKinds(t *testing.T) {
	for want, lines := range map[string][]string{
		"":               {"proc/self/cgroup = 0::/user.slice", "proc/self/mountinfo = 1 2 8:1 / / rw - ext4 /dev/sda1 rw"},
		"docker":         {".dockerenv = "},
		"podman":         {"run/.containerenv = engine=\"podman-4.9.3\""},
		"apptainer":      {".singularity.d/"},
		"kubernetes":     {"proc/self/cgroup = 1:name=systemd:/kubepods/besteffort/pod1/2", "run/.containerenv.d/"},
		"lxc":            {"proc/1/cgroup = 2:cpu:/lxc/web"},
		"systemd-nspawn": {"run/systemd/container = systemd-nspawn"},
		"oci":            {"proc/1/environ = container=oci\x00X=1"},
		"container":      {"proc/self/mountinfo = 1 2 0:66 / / rw - overlay overlay rw"},
	} {
		r := tree(t, lines...)
		if kind, by := r.containerKind(map[string]string{"container": "my own image"}); kind != want || (by == "") != (want == "") {
			t.Errorf("%q by %q, want %q", kind, by, want)
		}
	}
	if kind, _ := tree(t).containerKind(map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}); kind != "kubernetes" {
		t.Errorf("%q", kind)
	}
}

// Which configuration is in force, and what the environment says before it.
func TestCuFileInForce(t *testing.T) {
	r := tree(t, `etc/cufile.json = {"properties": {"allow_compat_mode": true, "use_pci_p2pdma": true}}`, `usr/local/cuda/gds/cufile.json = {}`, `own.json = {"properties": {"allow_compat_mode": false}}`,
		"bad.json = {\"properties\": {,}}")
	for _, c := range []struct {
		env          map[string]string
		file, from   string
		allow, force string
		reason       string
	}{
		{nil, "/etc/cufile.json", "", "true", "null", ""},
		{map[string]string{"CUFILE_ENV_PATH_JSON": "/own.json"}, "/own.json", "CUFILE_ENV_PATH_JSON", "false", "null", ""},
		{map[string]string{"CUFILE_ALLOW_COMPAT_MODE": "false", "CUFILE_FORCE_COMPAT_MODE": "TRUE", "CUFILE_USE_PCIP2PDMA": "0"}, "/etc/cufile.json", "", "false", "true", ""},
		{map[string]string{"CUFILE_FORCE_COMPAT_MODE": "perhaps"}, "/etc/cufile.json", "", "true", "null", ""},
		{map[string]string{"CUFILE_ENV_PATH_JSON": "/none.json"}, "/none.json", "CUFILE_ENV_PATH_JSON", "null", "null", "there is no /none.json"},
		{map[string]string{"CUFILE_ENV_PATH_JSON": "/bad.json"}, "/bad.json", "CUFILE_ENV_PATH_JSON", "null", "null", "/bad.json: line 1: invalid character ',' looking for beginning of object key string"},
	} {
		got := r.cuFile(c.env)
		allow, _ := json.Marshal(got.AllowCompat)
		force, _ := json.Marshal(got.ForceCompat)
		if got.File != c.file || got.From != c.from || string(allow) != c.allow || string(force) != c.force || got.Reason != c.reason {
			t.Errorf("%v: %+v, %s, %s", c.env, got, allow, force)
		}
	}
	if got := r.cuFile(map[string]string{"CUFILE_USE_PCIP2PDMA": "0"}); On(got.P2PDMA) {
		t.Error("CUFILE_USE_PCIP2PDMA does not count")
	}
}

// Variables of other processes are looked at and not recorded.
func TestRecordingIsDiscreet(t *testing.T) {
	r, recording := tree(t, "proc/1/environ = container=lxc\x00TOKEN=secret", "proc/self/environ = TOKEN=secret\x00SLURM_JOB_ID=1").Recorded()
	if m := Read(context.Background(), r, Options{}); m.Container.Kind != "lxc" || m.Job == nil {
		t.Errorf("%+v, %+v", m.Container, m.Job)
	}
	for name, content := range recording.files {
		if bytes.Contains(content, []byte("TOKEN")) {
			t.Errorf("%s has %q", name, content)
		}
	}
}
