package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packed are the packages for this system, made once for all tests.
var packed string

const (
	version = "0.8.0"
	ldflags = "-s -w -X strata/pkg/cli.version=" + version + " -X strata/pkg/cli.linkedCommit=abc"
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "strata-dist-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		packed = dir
		if err := makeAll(filepath.Join(dir, "1"), "linux/amd64"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

func makeAll(out, targets string) error {
	os.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	return run(context.Background(), []string{"-root", "../..", "-version", version, "-ldflags", ldflags, "-targets", targets, "-out", out})
}

func file(name string) string { return filepath.Join(packed, "1", name) }

// A second run has the same bytes, wherever and whenever it is made.
func TestReproducible(t *testing.T) {
	again := filepath.Join(t.TempDir(), "other place")
	if err := makeAll(again, "linux/amd64"); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(again)
	if err != nil || len(names) != 5 {
		t.Fatalf("%d files, want archive, package, wheel, bill and sums; %v", len(names), err)
	}
	for _, e := range names {
		a, err := os.ReadFile(file(e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(again, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s has other bytes", e.Name())
		}
	}
}

// The sums are those of the files, as sha256sum reads them.
func TestSums(t *testing.T) {
	text, err := os.ReadFile(file("SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), text)
	}
	for _, line := range lines {
		sum, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(file(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != sum {
			t.Errorf("%s: %s, want %s", name, got, sum)
		}
	}
}

// The archive has every program, its page and completions, the licences and the bill; all of it belongs to root and is as old as the commit.
func TestArchive(t *testing.T) {
	f, err := os.Open(file("strata-" + version + "-linux-amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	links, contents := map[string]string{}, map[string][]byte{}
	archive := tar.NewReader(z)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() != 1700000000 || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: %v, of %d:%d", h.Name, h.ModTime, h.Uid, h.Gid)
		}
		name, ok := strings.CutPrefix(h.Name, "strata-"+version+"-linux-amd64/")
		if !ok {
			t.Errorf("%s is not in the folder of the release", h.Name)
		}
		if links[name] = h.Linkname; h.Linkname == "" {
			if contents[name], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"aip", "resample", "focal", "stitch", "crop", "stack", "zarr-tool", "qc-report", "sif"} {
		if links["bin/"+name] != "strata" {
			t.Errorf("bin/%s is a link to %q", name, links["bin/"+name])
		}
		for file, want := range map[string]string{
			"share/man/man1/" + name + ".1":                     ".TH " + strings.ToUpper(name) + " 1",
			"share/bash-completion/completions/" + name:         "complete -F",
			"share/zsh/site-functions/_" + name:                 "#compdef " + name,
			"share/fish/vendor_completions.d/" + name + ".fish": "complete -c " + name,
		} {
			if !strings.Contains(string(contents[file]), want) {
				t.Errorf("%s does not have %q", file, want)
			}
		}
	}
	if !strings.Contains(string(contents["share/doc/strata/modules.txt"]), "module github.com/klauspost/compress ") {
		t.Error("the licences of the modules are missing")
	}
	var bill struct {
		Packages []struct{ Name string }
	}
	if err := json.Unmarshal(contents["share/doc/strata/sbom.spdx.json"], &bill); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"strata", "stdlib", "github.com/klauspost/compress"} {
		if !slices.ContainsFunc(bill.Packages, func(p struct{ Name string }) bool { return p.Name == name }) {
			t.Errorf("the bill of materials does not list %s", name)
		}
	}
}

// said returns what a command prints, or fails the test.
func said(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// dpkg installs the package into a root of its own, finds all files as they were packed, and removes it without a trace.
func TestDebianPackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("dpkg is not installed")
	}
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// Dependencies are apt's business: this root has no C library.
	dpkg := []string{"--root=" + root, "--log=" + filepath.Join(root, "log"), "--force-depends", "--force-not-root", "--force-architecture"}
	said(t, "dpkg", append(dpkg, "--install", file("strata_"+version+"_amd64.deb"))...)
	if out := said(t, "dpkg", append(dpkg, "--verify", "strata")...); out != "" {
		t.Errorf("dpkg --verify: %s", out)
	}
	if out := said(t, filepath.Join(root, "usr/bin/aip"), "--version"); out != "aip "+version+" (abc)\n" {
		t.Errorf("aip --version: %s", out)
	}
	for _, name := range []string{"copyright", "changelog.gz", "modules.txt", "sbom.spdx.json"} {
		if _, err := os.Stat(filepath.Join(root, "usr/share/doc/strata", name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "usr/share/man/man1/zarr-tool.1.gz")); err != nil {
		t.Error(err)
	}
	said(t, "dpkg", append(dpkg, "--purge", "strata")...)
	if left, _ := filepath.Glob(filepath.Join(root, "usr/bin/*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLintian(t *testing.T) {
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Skip("lintian is not installed")
	}
	out, err := exec.Command("lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", file("strata_"+version+"_amd64.deb")).CombinedOutput()
	if err != nil {
		t.Errorf("lintian: %v\n%s", err, out)
	}
}

// pip installs the wheel without a network; its programs are on the environment's PATH, also by links from elsewhere, and leave with it.
func TestWheel(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	env := filepath.Join(t.TempDir(), "environment with spaces")
	said(t, python, "-m", "venv", env)
	wheels, err := filepath.Glob(file("*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("%d wheels; %v", len(wheels), err)
	}
	pip := filepath.Join(env, "bin", "python")
	said(t, pip, "-m", "pip", "install", "--no-index", "--disable-pip-version-check", wheels[0])
	link := filepath.Join(t.TempDir(), "aip")
	if err := os.Symlink(filepath.Join(env, "bin", "aip"), link); err != nil {
		t.Fatal(err)
	}
	for _, aip := range []string{filepath.Join(env, "bin", "aip"), link} {
		if out := said(t, aip, "--version"); out != "aip "+version+" (abc)\n" {
			t.Errorf("%s --version: %s", aip, out)
		}
	}
	said(t, filepath.Join(env, "bin", "phantom"), filepath.Join(env, "a b"), "--slices", "1", "--tiles", "1,1", "--tile", "8,16,16", "-q")
	if _, err := os.Stat(filepath.Join(env, "share/man/man1/aip.1")); err != nil {
		t.Error(err)
	}
	said(t, pip, "-m", "pip", "uninstall", "--yes", "--disable-pip-version-check", project)
	if _, err := os.Stat(filepath.Join(env, "bin", "aip")); err == nil {
		t.Error("aip was left behind")
	}
}

// make install puts the same tree into a prefix, over what is there.
func TestInstall(t *testing.T) {
	prefix := t.TempDir()
	if err := os.MkdirAll(filepath.Join(prefix, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(prefix, "bin", "aip"), []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), []string{"-root", "../..", "-version", version, "-ldflags", ldflags, "-install", prefix}); err != nil {
		t.Fatal(err)
	}
	if out := said(t, filepath.Join(prefix, "bin", "aip"), "--version"); out != "aip "+version+" (abc)\n" {
		t.Errorf("aip --version: %s", out)
	}
	if hidden, _ := filepath.Glob(filepath.Join(prefix, "bin", ".*")); len(hidden) > 0 {
		t.Errorf("left behind: %v", hidden)
	}
}

// What cannot be packed is said in one line, and leaves nothing.
func TestRefused(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct{ targets, want string }{{"linux", `target "linux": want OS/ARCH`}, {"linux/none", "build for linux/none"}} {
		if err := makeAll(out, c.targets); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.targets, err)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a folder was made")
	}
}
