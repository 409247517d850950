package deb_test

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/google/go-cmp/cmp"

	"strata/pkg/sif/deb"
	"strata/tests/debtest"
)

// The order that deb-version(7) gives, and pairs from its examples.
func TestCompareVersions(t *testing.T) {
	order := []string{"~~", "~~a", "~", "", "0.9~rc1", "0.9", "1.0~beta1~svn1245", "1.0~beta1", "1.0", "1.0-1", "1.0-1+b1", "1.0-1+deb12u1", "1.0-2",
		"1.0a", "1.0+dfsg", "1.0.1", "1.2", "1.10", "9999999999999999999999", "99999999999999999999990", "1:0.1", "2:0"}
	for i, a := range order {
		for j, b := range order {
			got := deb.CompareVersions(a, b)
			if (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
	for _, equal := range [][2]string{{"1.0", "1.00"}, {"0:1", "1"}, {"1.0-0", "1.0"}, {"01", "1"}} {
		if c := deb.CompareVersions(equal[0], equal[1]); c != 0 {
			t.Errorf("%q and %q: %d", equal[0], equal[1], c)
		}
	}
}

func TestParseRelations(t *testing.T) {
	got, err := deb.ParseRelations("libc6 (>= 2.36), debconf (>= 0.5) | debconf-2.0, awk, perl:any (<<6), x (= 1:2~3-4),")
	if err != nil {
		t.Fatal(err)
	}
	want := [][]deb.Relation{{{Name: "libc6", Op: ">=", Version: "2.36"}}, {{Name: "debconf", Op: ">=", Version: "0.5"}, {Name: "debconf-2.0"}},
		{{Name: "awk"}}, {{Name: "perl", Op: "<<", Version: "6"}}, {{Name: "x", Op: "=", Version: "1:2~3-4"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, bad := range []string{"A", "a b", "a (1)", "a (>= )", "a (>= 1", "a |", "-a"} {
		if _, err := deb.ParseRelations(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func index(t *testing.T, packages ...string) *deb.Index {
	t.Helper()
	var text strings.Builder
	for _, p := range packages {
		text.WriteString(p + "\nArchitecture: amd64\nFilename: pool/x.deb\nSize: 1\nSHA256: " + strings.Repeat("ab", 32) + "\n\n")
	}
	var x deb.Index
	if err := x.Read(strings.NewReader(text.String()), deb.Main); err != nil {
		t.Fatal(err)
	}
	return &x
}

func TestResolve(t *testing.T) {
	x := index(t,
		"Package: bash\nVersion: 5\nPre-Depends: libc (>= 2)\nDepends: files, asks | asks-2",
		"Package: files\nVersion: 1\nDepends: awk, old (<< 2) | new (>= 1)",
		"Package: mawk\nVersion: 1\nProvides: awk",
		"Package: gawk\nVersion: 1\nProvides: awk (= 1)\nDepends: libc",
		"Package: libc\nVersion: 1", "Package: libc\nVersion: 2.1", "Package: libc\nVersion: 2.0",
		"Package: old\nVersion: 3\nDepends: nothing-like-that", "Package: new\nVersion: 1", "Package: asks\nVersion: 1\nDepends: perl")
	names := func(roots []string, skip ...string) string {
		t.Helper()
		list, err := x.Resolve(roots, skip)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, p := range list {
			out = append(out, p.String())
		}
		return strings.Join(out, ", ")
	}
	if got, want := names([]string{"bash", "gawk"}, "asks"), "bash 5, files 1, gawk 1, libc 2.1, new 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := names([]string{"files"}), "files 1, mawk 1, new 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for roots, want := range map[string]string{"bash": "asks 1 needs perl, which is not in the index", "none": "no package none", "old": "old 3 needs nothing-like-that"} {
		if _, err := x.Resolve([]string{roots}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", roots, err, want)
		}
	}
}

func TestBadIndex(t *testing.T) {
	good := "Package: a\nVersion: 1\nArchitecture: amd64\nFilename: pool/a.deb\nSize: 1\nSHA256: " + strings.Repeat("00", 32) + "\n"
	var x deb.Index
	if err := x.Read(strings.NewReader(good), deb.Main); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{{"pool/a.deb", "../../etc/passwd"}, {"pool/a.deb", "/etc/passwd"}, {"Size: 1", "Size: -1"}, {"Size: 1", "Size: x"},
		{"00", "zz"}, {"Package: a", "Package: ../a"}, {"Version: 1", "Version: "}, {"Version: 1", "Version: 1\nDepends: A!"}, {"pool/a.deb", "pool/a?x"},
		{"Version: 1", "Version: 1\nVersion: 2"}, {"Package: a", " continued\nPackage: a"}, {"Size: 1", "Size"}} {
		var x deb.Index
		if err := x.Read(strings.NewReader(strings.Replace(good, change[0], change[1], 1)), deb.Main); err == nil {
			t.Errorf("%q is accepted", change[1])
		}
	}
}

var tool = debtest.Package{Name: "tool", Version: "1:2.0-1", Arch: "amd64", Fields: "Depends: libc6", Files: []debtest.File{
	{Name: "./bin/"}, {Name: "./bin/tool", Text: "#!/bin/sh\n", Mode: 0o755}, {Name: "./bin/other", Same: "./bin/tool"}, {Name: "./bin/link", Link: "tool"},
}}

func TestUnpack(t *testing.T) {
	for _, ext := range []string{".xz", ".gz", ".zst", ".tar"} {
		p := tool
		p.Ext = ext
		var got []string
		c, err := deb.Unpack(bytes.NewReader(p.Bytes()), func(h *tar.Header, r io.Reader) error {
			text, err := io.ReadAll(r)
			got = append(got, string(h.Typeflag)+" "+h.Name+" "+h.Linkname+" "+string(text))
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", ext, err)
		}
		want := []string{"5 .  ", "5 bin  ", "0 bin/tool  #!/bin/sh\n", "1 bin/other bin/tool ", "2 bin/link tool "}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", ext, d)
		}
		if c.Fields["Version"] != "1:2.0-1" || !strings.Contains(c.Fields["Description"], "\nof more") {
			t.Errorf("%s: %v", ext, c.Fields)
		}
	}
}

func TestBadPackages(t *testing.T) {
	nothing := func(*tar.Header, io.Reader) error { return nil }
	whole := tool.Bytes()
	for n := 0; n < len(whole)-1; n += 7 { // the last byte may be padding
		if _, err := deb.Unpack(bytes.NewReader(whole[:n]), nothing); err == nil {
			t.Errorf("accepted when cut off at byte %d of %d", n, len(whole))
		}
	}
	for name, file := range map[string]debtest.File{"dots": {Name: "../x", Text: "x"}, "inner dots": {Name: "./a/../../x", Text: "x"}, "hard link": {Name: "x", Same: "../../etc/passwd"}} {
		p := tool
		p.Files = []debtest.File{file}
		if _, err := deb.Unpack(bytes.NewReader(p.Bytes()), nothing); err == nil || !strings.Contains(err.Error(), "leads out of the root") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for from, to := range map[string]string{"debian-binary": "debian-binarx", "2.0\n": "3.0\n", "control.tar.xz": "contro1.tar.xz", "data.tar.xz": "data.tar.bz", "data.tar.xz ": "dota.tar.xz "} {
		if _, err := deb.Unpack(bytes.NewReader(bytes.Replace(whole, []byte(from), []byte(to), 1)), nothing); err == nil {
			t.Errorf("%q is accepted", to)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	for _, ext := range []string{".xz", ".gz", ".zst", ".tar"} {
		p := tool
		p.Ext = ext
		f.Add(p.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := deb.Unpack(bytes.NewReader(b), func(h *tar.Header, r io.Reader) error {
			if strings.HasPrefix(h.Name, "/") || h.Name == ".." || strings.HasPrefix(h.Name, "../") {
				t.Errorf("name %q", h.Name)
			}
			_, err := io.Copy(io.Discard, io.LimitReader(r, 1<<20))
			return err
		})
		_ = err
	})
}

func FuzzIndex(f *testing.F) {
	f.Add("Package: a\nVersion: 1\nArchitecture: amd64\nDepends: b (>= 1) | c\nFilename: pool/a.deb\nSize: 1\nSHA256: " + strings.Repeat("00", 32) + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		var x deb.Index
		if x.Read(strings.NewReader(text), deb.Main) == nil {
			_, _ = x.Resolve([]string{"a"}, nil)
		}
	})
}

func TestLock(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	l := &deb.Lock{Suite: "s", Arch: "amd64", Date: time.Date(2024, 1, 2, 3, 4, 5, 0, time.UTC),
		Packages: []*deb.Package{{Name: "a", Version: "1:1-1", Arch: "all", Archive: deb.Main, File: "pool/a.deb", Size: 7, SHA256: sum}},
		Extra:    []*deb.Package{{Name: "b", Version: "2", Arch: "amd64", Archive: deb.Security, File: "pool/b.deb", Size: 8, SHA256: sum}}}
	var b bytes.Buffer
	if err := l.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := deb.ReadLock(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(l, again, cmp.AllowUnexported(deb.Package{})); d != "" {
		t.Error(d)
	}
	if again.Package("b") == nil || again.Package("c") != nil {
		t.Error("Package finds the wrong ones")
	}
	for from, to := range map[string]string{"package a": "package a a", "suite s": "suit s", "extra b": "extra a", sum: "00", "date 2024": "date x2024", " 7 ": " seven ",
		"pool/a.deb": "../a.deb", "architecture amd64\n": "", "package a 1:1-1": "#"} {
		text := strings.Replace(b.String(), from, to, 1)
		if _, err := deb.ReadLock(strings.NewReader(text)); err == nil {
			t.Errorf("%q for %q is accepted", to, from)
		}
	}
}

func serve(t *testing.T, a *debtest.Archive) *deb.Mirror {
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return &deb.Mirror{URL: s.URL + "/debian/", Snapshot: s.URL + "/snapshot", Cache: filepath.Join(t.TempDir(), "cache")}
}

func TestMirror(t *testing.T) {
	ctx, at := context.Background(), time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	a := debtest.NewArchive()
	p := a.Add(deb.Main, tool)
	safe := tool
	safe.Name = "safe"
	q := a.Add(deb.Security, safe)
	m := serve(t, a)
	for _, one := range []*deb.Package{p, q} {
		path, err := m.Package(ctx, one, at, "")
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(path); int64(len(b)) != one.Size {
			t.Errorf("%s: %d bytes", one, len(b))
		}
	}
	// What is in the cache is not fetched, unless it was damaged.
	a.Replace("debian/"+p.File, []byte("something else"))
	path, err := m.Package(ctx, p, at, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Package(ctx, p, at, ""); err == nil || !strings.Contains(err.Error(), "14 bytes or more, want") || !strings.Contains(err.Error(), "404") {
		t.Errorf("wrong bytes: %v", err)
	}
	wrong := bytes.Repeat([]byte{1}, int(p.Size))
	a.Replace("debian/"+p.File, wrong)
	if _, err := m.Package(ctx, p, at, ""); err == nil || !strings.Contains(err.Error(), "want "+p.SHA256) {
		t.Errorf("wrong sum: %v", err)
	}
	// Gone from the mirror: the snapshot archive has it.
	a.Remove(q)
	m.Cache = filepath.Join(t.TempDir(), "another")
	if _, err := m.Package(ctx, q, at, ""); err != nil {
		t.Error(err)
	}
	left, _ := filepath.Glob(filepath.Join(m.Cache, ".*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestIndexOfMirror(t *testing.T) {
	ctx := context.Background()
	for _, ext := range []string{".xz", ".gz", ".tar"} {
		a := debtest.NewArchive()
		a.Add(deb.Main, tool)
		newer := tool
		newer.Version = "1:2.0-1+deb12u1"
		a.Add(deb.Security, newer)
		libc := debtest.Package{Name: "libc6", Version: "2.36", Arch: "amd64"}
		a.Add(deb.Main, libc)
		a.Publish("bookworm", "amd64", ext)
		m := serve(t, a)
		x, err := m.Index(ctx, "bookworm", "amd64", openpgp.EntityList{a.Key})
		if err != nil {
			t.Fatalf("%s: %v", ext, err)
		}
		list, err := x.Resolve([]string{"tool"}, nil)
		if err != nil || len(list) != 2 || list[1].Version != "1:2.0-1+deb12u1" || list[1].Archive != deb.Security {
			t.Fatalf("%s: %v, %v", ext, list, err)
		}
		if _, err := m.Index(ctx, "bookworm", "riscv64", nil); err == nil || !strings.Contains(err.Error(), "no packages for riscv64") {
			t.Errorf("%s: %v", ext, err)
		}
		other := debtest.NewArchive().Key
		if _, err := m.Index(ctx, "bookworm", "amd64", openpgp.EntityList{other}); err == nil || !strings.Contains(err.Error(), "signature") {
			t.Errorf("%s: %v", ext, err)
		}
		if _, err := m.Index(ctx, "sid", "amd64", nil); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("%s: %v", ext, err)
		}
		suffix := strings.TrimSuffix(ext, ".tar")
		a.Replace("debian/dists/bookworm/main/binary-amd64/Packages"+suffix, debtest.Compress(ext, []byte("Package: evil\n")))
		if _, err := m.Index(ctx, "bookworm", "amd64", openpgp.EntityList{a.Key}); err == nil || !strings.Contains(err.Error(), "Release file") {
			t.Errorf("%s: %v", ext, err)
		}
	}
}

func TestLicences(t *testing.T) {
	text := "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: x\nLicense: ignored\n\n" +
		"Files: *\nCopyright: 2020 A\nLicense: GPL-3+\n\nFiles: lib/*\nCopyright: B\nLicense: Expat\n text\n\nFiles: doc/*\nLicense: GPL-3+\n\nLicense: GPL-3+\n the text\n"
	if d := cmp.Diff([]string{"Expat", "GPL-3+"}, deb.Licences([]byte(text))); d != "" {
		t.Error(d)
	}
	for _, other := range []string{"", "This package was debianized by hand.\n\nLicense: GPL\n", "Format: x\nbroken\n"} {
		if got := deb.Licences([]byte(other)); got != nil {
			t.Errorf("%q: %v", other, got)
		}
	}
}
