package recipe

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/google/go-cmp/cmp"

	"strata/pkg/sif"
	"strata/pkg/sif/deb"
	"strata/tests/debtest"
)

// contents are files of the packages of the test's archive.
var contents = map[string][]debtest.File{
	"bash": {{Name: "./bin/"}, {Name: "./bin/bash", Text: "#!shell", Mode: 0o4755}, {Name: "./etc/"}, {Name: "./etc/bash.bashrc", Text: "rc"}, {Name: "./usr/share/man/man1/bash.1", Text: "man"},
		{Name: "./usr/share/doc/bash/copyright", Text: "Format: x\n\nFiles: *\nLicense: GPL-3+\n"}, {Name: "./usr/share/doc/bash/README", Text: "long"}},
	"gawk": {{Name: "./usr/bin/gawk", Text: "awk", Mode: 0o755}, {Name: "./usr/share/doc/gawk/copyright", Text: "By hand."}},
	"ca-certificates": {{Name: "./usr/share/ca-certificates/mozilla/B.crt", Text: "second\n"}, {Name: "./usr/share/ca-certificates/mozilla/A.crt", Text: "first\n\n"},
		{Name: "./usr/share/ca-certificates/README", Text: "no"}},
	"tzdata":   {{Name: "./usr/share/zoneinfo/Etc/UTC", Text: "TZ"}, {Name: "./usr/share/zoneinfo/right/Etc/UTC", Text: "TZ"}},
	"libc-bin": {{Name: "./usr/sbin/ldconfig", Text: "x"}, {Name: "./lib64/"}, {Name: "./lib64/ld.so", Link: "/lib/real.so"}, {Name: "./lib/real.so", Text: "so"}, {Name: "./lib/same.so", Same: "./lib/real.so"}},
}

// libraries are what the test's own program needs when it is built with cgo.
var libraries = []debtest.File{{Name: "./lib/libc.so.6", Text: "libc"}, {Name: "./lib/libresolv.so.2", Text: "r"}, {Name: "./lib/libpthread.so.0", Text: "p"},
	{Name: "./lib/libdl.so.2", Text: "d"}, {Name: "./lib/libm.so.6", Text: "m"}, {Name: "./lib/librt.so.1", Text: "r"}}

// archive has the packages that the recipe asks for.
func archive(t *testing.T) (*debtest.Archive, *deb.Lock, *deb.Mirror) {
	t.Helper()
	a := debtest.NewArchive()
	l := &deb.Lock{Suite: Suite, Arch: runtime.GOARCH, Date: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	for _, name := range Packages {
		fields := ""
		if name == "bash" {
			fields = "Depends: debconf | debconf-2.0, libdep (>= 1)"
		}
		l.Packages = append(l.Packages, a.Add(deb.Main, debtest.Package{Name: name, Version: "1-1", Arch: runtime.GOARCH, Fields: fields, Files: contents[name]}))
	}
	l.Packages = append(l.Packages, a.Add(deb.Security, debtest.Package{Name: "libdep", Version: "2:1.5", Arch: runtime.GOARCH, Ext: ".zst", Files: libraries}))
	for _, name := range ForNVIDIA {
		l.Extra = append(l.Extra, a.Add(deb.Main, debtest.Package{Name: name, Version: "3", Arch: runtime.GOARCH}))
	}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, l, &deb.Mirror{URL: s.URL + "/debian", Snapshot: s.URL + "/snapshot", Cache: t.TempDir()}
}

// self is the test's own program, which has the modules of the tests.
func self(t *testing.T) string {
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func fill(t *testing.T, r *Recipe) (*sif.Root, error) {
	t.Helper()
	root, err := sif.NewRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, r.Populate(context.Background(), root)
}

func TestPopulate(t *testing.T) {
	_, lock, mirror := archive(t)
	r := &Recipe{Arch: runtime.GOARCH, Lock: lock, Mirror: mirror, Binaries: []string{self(t)}, Links: []string{"aip", "stack"}, Version: "1.2.3", Commit: "abc",
		Time: time.Unix(0, 0)}
	root, err := fill(t, r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := root.Files()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Base(self(t))
	want := []string{"/bin", "/etc/bash.bashrc", "/etc/localtime", "/etc/nsswitch.conf", "/etc/ssl/certs/ca-certificates.crt", "/etc/timezone", "/lib", "/lib64", "/sbin",
		"/usr/bin/awk", "/usr/bin/bash", "/usr/bin/gawk", "/usr/bin/sh", "/usr/lib/libc.so.6", "/usr/lib/libdl.so.2", "/usr/lib/libm.so.6", "/usr/lib/libpthread.so.0", "/usr/lib/libresolv.so.2", "/usr/lib/librt.so.1", "/usr/lib/real.so", "/usr/lib/same.so", "/usr/lib64/ld.so", "/usr/local/bin/aip",
		"/usr/local/bin/" + program, "/usr/local/bin/stack", "/usr/share/doc/bash/copyright", "/usr/share/doc/gawk/copyright", "/usr/share/doc/strata/copyright",
		"/usr/share/doc/strata/modules.txt", "/usr/share/doc/strata/packages.lock", "/usr/share/doc/strata/sbom.spdx.json", "/usr/share/zoneinfo/Etc/UTC", "/var/lib/dpkg/status"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for name, want := range map[string]string{"/usr/bin/awk": "gawk", "/usr/bin/sh": "bash", "/usr/local/bin/aip": program, "/bin": "usr/bin", "/etc/localtime": "/usr/share/zoneinfo/Etc/UTC"} {
		if target, err := root.Readlink(name); err != nil || target != want {
			t.Errorf("%s leads to %q, %v", name, target, err)
		}
	}
	for name, want := range map[string]string{"/etc/ssl/certs/ca-certificates.crt": "first\nsecond\n", "/usr/lib/same.so": "so"} {
		if text, err := root.Read(name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if info, err := os.Stat(filepath.Join(root.Dir(), "usr/bin/bash")); err != nil || info.Mode() != 0o755 {
		t.Errorf("bash: %v, %v: set-user-id must go", info.Mode(), err)
	}
	status, _ := root.Read("/var/lib/dpkg/status")
	if n := strings.Count(string(status), "Status: install ok installed\n"); n != len(lock.Packages) || !strings.Contains(string(status), "Package: libdep\nStatus: install ok installed\nVersion: 2:1.5\n") {
		t.Errorf("status:\n%s", status)
	}
	text, _ := root.Read(LockFile)
	again, err := deb.ReadLock(bytes.NewReader(text))
	if err != nil || len(again.Packages) != len(lock.Packages) {
		t.Errorf("lock in the image: %v, %v", again, err)
	}
	checkBill(t, root, len(lock.Packages))
}

// The image has the workflow, whatever the permissions of its source.
func TestWorkflow(t *testing.T) {
	_, lock, mirror := archive(t)
	source := t.TempDir()
	write := func(name string, perm os.FileMode) {
		t.Helper()
		file := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), perm); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]os.FileMode{}
	for _, name := range Workflow {
		perm := os.FileMode(0o600)
		if filepath.Ext(name) == "" {
			name += "/deep/x.nf"
		}
		want[name] = 0o644
		if name == "scripts/nextflow.sh" {
			perm, want[name] = 0o700, 0o755
		}
		write(name, perm)
	}
	for _, name := range guides {
		write(name, 0o700)
	}
	write("nextflow/bin/aip", 0o755) // stays out
	r := &Recipe{Arch: runtime.GOARCH, Lock: lock, Mirror: mirror, Binaries: []string{self(t)}, Source: source}
	root, err := fill(t, r)
	if err != nil {
		t.Fatal(err)
	}
	names, err := root.Files()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]os.FileMode{}
	for _, name := range names {
		if below, ok := strings.CutPrefix(name, shareDir+"/"); ok {
			info, err := os.Stat(filepath.Join(root.Dir(), name))
			if err != nil {
				t.Fatal(err)
			}
			got[below] = info.Mode()
			if text, err := root.Read(name); err != nil || string(text) != below {
				t.Errorf("%s: %q, %v", name, text, err)
			}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, name := range guides {
		place := binDir + "/" + filepath.Base(name)
		info, err := os.Stat(filepath.Join(root.Dir(), place))
		if err != nil || info.Mode() != 0o755 {
			t.Errorf("%s: %v, %v", place, info, err)
		}
		if text, err := root.Read(place); err != nil || string(text) != name {
			t.Errorf("%s: %q, %v", place, text, err)
		}
	}
	// The list fits the project's own tree.
	if err := (&Recipe{Source: "../../.."}).checkWorkflow(); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(source, "nextflow/lib")); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); !errors.Is(err, ErrRecipe) || !strings.Contains(err.Error(), source+": no source tree: it has no nextflow/lib") {
		t.Errorf("%v", err)
	}
}

func checkBill(t *testing.T, root *sif.Root, packages int) {
	t.Helper()
	text, err := root.Read(BillFile)
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		Packages []struct {
			Name, VersionInfo, LicenseDeclared string
			Checksums                          []struct{ ChecksumValue string }
			ExternalRefs                       []struct{ ReferenceLocator string }
		}
		Relationships []struct{ RelatedSpdxElement string }
	}
	if err := json.Unmarshal(text, &bill); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	debian := 0
	for _, p := range bill.Packages {
		purl := ""
		if len(p.ExternalRefs) > 0 {
			purl = p.ExternalRefs[0].ReferenceLocator
		}
		if strings.HasPrefix(purl, "pkg:deb/debian/") && len(p.Checksums) == 1 {
			debian++
		}
		found[p.Name] = p.VersionInfo + " " + p.LicenseDeclared + " " + purl
	}
	if debian != packages || len(bill.Relationships) != len(bill.Packages) {
		t.Errorf("%d Debian packages, %d relationships of %d", debian, len(bill.Relationships), len(bill.Packages))
	}
	for name, want := range map[string]string{
		"bash":   "1-1 GPL-3.0-or-later pkg:deb/debian/bash@1-1?arch=" + runtime.GOARCH + "&distro=bookworm",
		"gawk":   "1-1 NOASSERTION",
		"libdep": "2:1.5 NOASSERTION pkg:deb/debian/libdep@2%3A1.5?arch=" + runtime.GOARCH,
		"strata": "1.2.3 (abc) Apache-2.0", "stdlib": "1.", // a test's program names no modules
	} {
		if !strings.HasPrefix(found[name], want) {
			t.Errorf("%s: %q, want %q", name, found[name], want)
		}
	}
	if !strings.Contains(found["stdlib"], " BSD-3-Clause pkg:golang/stdlib@") {
		t.Errorf("stdlib: %q", found["stdlib"])
	}
	texts, err := root.Read(ModulesFile)
	if err != nil || !strings.Contains(string(texts), "\nmodule stdlib 1.") || !strings.Contains(string(texts), "  Copyright 2009 The Go Authors.") {
		t.Errorf("licences of modules: %v\n%s", err, texts)
	}
}

func TestMissingPackage(t *testing.T) {
	a, lock, mirror := archive(t)
	gone := lock.Package("tar")
	a.Remove(gone)
	r := &Recipe{Arch: runtime.GOARCH, Lock: lock, Mirror: mirror, Binaries: []string{self(t)}}
	if _, err := fill(t, r); err != nil {
		t.Errorf("with the snapshot archive: %v", err)
	}
	mirror.Cache, mirror.Snapshot = t.TempDir(), mirror.URL+"/nothing"
	if _, err := fill(t, r); err == nil || !strings.Contains(err.Error(), "package tar 1-1") || !strings.Contains(err.Error(), "404") {
		t.Errorf("without: %v", err)
	}
	mirror.Snapshot = strings.TrimSuffix(mirror.URL, "debian") + "snapshot"
	lock.Package("sed").Version = "9"
	if _, err := fill(t, r); err == nil || !strings.Contains(err.Error(), "package sed 9: it is sed 1-1") {
		t.Errorf("another version inside: %v", err)
	}
}

// A library that no package has is named with who needs it.
func TestMissingLibrary(t *testing.T) {
	_, lock, mirror := archive(t)
	program, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip("no /bin/sh here to take as a program with libraries")
	}
	file := filepath.Join(t.TempDir(), "tool")
	if err := os.WriteFile(file, program, 0o755); err != nil {
		t.Fatal(err)
	}
	lock.Packages = lock.Packages[:len(lock.Packages)-1] // the last has the libraries
	r := &Recipe{Arch: runtime.GOARCH, Lock: lock, Mirror: mirror, Binaries: []string{file}}
	if _, err := fill(t, r); err == nil || !strings.Contains(err.Error(), "/usr/local/bin/tool needs libc") {
		t.Errorf("%v", err)
	}
}

func TestCheck(t *testing.T) {
	_, lock, _ := archive(t)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	foreign := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for want, change := range map[string]func(r *Recipe){
		"no binaries":                   func(r *Recipe) { r.Binaries = nil },
		"links need one binary":         func(r *Recipe) { r.Binaries, r.Links = append(r.Binaries, text), []string{"a"} },
		"not an ELF program":            func(r *Recipe) { r.Binaries = []string{text} },
		"no such file":                  func(r *Recipe) { r.Binaries = []string{text + "x"} },
		"is not the name of a link":     func(r *Recipe) { r.Links = []string{"../x"} },
		"two programs are called a":     func(r *Recipe) { r.Links = []string{"a", "b", "a"} },
		"the lock file is for":          func(r *Recipe) { r.Arch = foreign },
		"the image for " + foreign:      func(r *Recipe) { r.Arch = foreign },
		"is a program for":              func(r *Recipe) { r.Arch = foreign; l := *lock; l.Arch = foreign; r.Lock = &l },
		"package bash is not in the lo": func(r *Recipe) { l := *lock; l.Packages = l.Packages[1:]; r.Lock = &l },
	} {
		r := &Recipe{Arch: runtime.GOARCH, Lock: lock, Binaries: []string{self(t)}}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		change(r)
		if err := r.Check(); !errors.Is(err, ErrRecipe) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The lists that are in the program fit the recipe.
func TestOwnLocks(t *testing.T) {
	for _, arch := range sif.Architectures {
		l, err := Lock(arch)
		if err != nil {
			t.Fatal(err)
		}
		if l.Arch != arch || l.Suite != Suite {
			t.Errorf("%s: %s %s", arch, l.Suite, l.Arch)
		}
		for _, name := range slices.Concat(Packages, ForNVIDIA) {
			if l.Package(name) == nil {
				t.Errorf("%s: no %s", arch, name)
			}
		}
		for _, name := range skip {
			if l.Package(name) != nil {
				t.Errorf("%s: %s, which is skipped", arch, name)
			}
		}
	}
	if _, err := Lock("riscv64"); !errors.Is(err, ErrRecipe) {
		t.Error(err)
	}
	if err := Definition().Check(); err != nil {
		t.Error(err)
	}
}

func TestRenew(t *testing.T) {
	a, want, mirror := archive(t)
	a.Add(deb.Main, debtest.Package{Name: "debconf", Version: "1", Arch: "all"})
	a.Publish(Suite, runtime.GOARCH, ".xz")
	now := time.Date(2025, 5, 5, 5, 5, 5, 5, time.UTC)
	got, err := Renew(context.Background(), mirror, runtime.GOARCH, openpgp.EntityList{a.Key}, now)
	if err != nil {
		t.Fatal(err)
	}
	names := func(list []*deb.Package) string {
		var out []string
		for _, p := range list {
			out = append(out, p.String()+" "+p.SHA256+" "+p.File)
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	}
	if d := cmp.Diff(names(want.Packages), names(got.Packages)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(names(want.Extra), names(got.Extra)); d != "" {
		t.Error(d)
	}
	if !got.Date.Equal(now.Truncate(time.Second)) {
		t.Error(got.Date)
	}
}

// wheel makes a wheel with a library and a licence.
func wheel(t *testing.T, dir, name string, members map[string]string) Wheel {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, member := range slices.Sorted(func(yield func(string) bool) {
		for m := range members {
			if !yield(m) {
				return
			}
		}
	}) {
		w, err := z.Create(member)
		if err == nil {
			_, err = w.Write([]byte(members[member]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	file := strings.ReplaceAll(name, "-", "_") + "-1.0-py3-none-any.whl"
	if err := os.WriteFile(filepath.Join(dir, file), b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return Wheel{name, "1.0", hex.EncodeToString(sum[:])}
}

func TestWheels(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("NVIDIA's libraries are taken for amd64 only")
	}
	_, lock, mirror := archive(t)
	dir := filepath.Join(t.TempDir(), "with [brackets]")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	good := wheel(t, dir, "nvidia-x-cu12", map[string]string{"nvidia/x/lib/libx.so.0": "library", "nvidia/x/lib/notes.txt": "no", "nvidia/x/include/x.h": "no", "nvidia/x/lib/": "", "nvidia_x_cu12-1.0.dist-info/licenses/": "",
		"nvidia_x_cu12-1.0.dist-info/licenses/License.txt": "terms", "nvidia_x_cu12-1.0.dist-info/METADATA": "no"})
	r := &Recipe{Arch: "amd64", Lock: lock, Mirror: mirror, Binaries: []string{self(t)}, NVIDIA: true, Wheels: &Wheels{Dir: dir, List: []Wheel{good}, Pip: []string{"/nonexistent/pip"}}}
	root, err := fill(t, r)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"/usr/lib/x86_64-linux-gnu/libx.so.0": "library", "/usr/share/doc/nvidia-x-cu12/License.txt": "terms", WheelsFile: "wheel nvidia-x-cu12 1.0 " + good.SHA256 + "\n"} {
		if text, err := root.Read(name); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if names, _ := root.Files(); slices.ContainsFunc(names, func(n string) bool {
		return strings.HasSuffix(n, "x.h") || strings.HasSuffix(n, "notes.txt") || strings.HasSuffix(n, "/licenses")
	}) {
		t.Error(names)
	}
	if status, _ := root.Read("/var/lib/dpkg/status"); !strings.Contains(string(status), "Package: libstdc++6\n") {
		t.Error("what the libraries need is not there")
	}
	bare := wheel(t, dir, "nvidia-bare-cu12", map[string]string{"nvidia/x/lib/libx.so.0": "library"})
	r.Wheels.List = []Wheel{bare}
	if _, err := fill(t, r); err == nil || !strings.Contains(err.Error(), "1 libraries and 0 licences") {
		t.Errorf("without a licence: %v", err)
	}
	// pip is asked for what is not there, and believed only if the sum is right.
	script := filepath.Join(t.TempDir(), "pip")
	text := "#!/bin/sh\nfor a; do case $a in --dest=*) cp '" + filepath.Join(dir, "nvidia_x_cu12-1.0-py3-none-any.whl") + "' \"${a#--dest=}\";; --requirement=*) cp \"${a#--requirement=}\" " + script + ".list;; esac; done\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	r.Wheels = &Wheels{List: []Wheel{good}, Pip: []string{script}}
	if _, err := fill(t, r); err != nil {
		t.Error(err)
	}
	if list, _ := os.ReadFile(script + ".list"); string(list) != "nvidia-x-cu12==1.0 --hash=sha256:"+good.SHA256+"\n" {
		t.Errorf("pip was asked for %q", list)
	}
	wrong := good
	wrong.SHA256 = strings.Repeat("0", 64)
	r.Wheels = &Wheels{List: []Wheel{wrong}, Pip: []string{script}}
	if _, err := fill(t, r); err == nil || !strings.Contains(err.Error(), "no file with the SHA-256") {
		t.Errorf("wrong sum: %v", err)
	}
	r.Wheels.Pip = []string{"false"}
	if _, err := fill(t, r); err == nil || !strings.Contains(err.Error(), "false download") {
		t.Errorf("pip fails: %v", err)
	}
	for _, bad := range []string{"wheel a 1", "wheel a 1 00", "whee a 1 " + good.SHA256, "wheel -a 1 " + good.SHA256} {
		if _, err := readWheels(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestStripped(t *testing.T) {
	for name, want := range map[string]bool{
		"usr/share/man": true, "usr/share/man/man1/x.1": true, "usr/share/manual": false, "usr/lib/x86_64-linux-gnu/gconv/UTF-7.so": true, "usr/lib/gconv": false,
		"usr/share/doc": false, "usr/share/doc/x": false, "usr/share/doc/x/copyright": false, "usr/share/doc/x/README": true, "usr/share/doc/x/copyright.gz": false,
		"usr/share/zoneinfo/right/UTC": true, "usr/share/zoneinfo/Etc/UTC": false, "etc/cron.daily/x": true, "usr/bin/bash": false,
	} {
		if stripped(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
