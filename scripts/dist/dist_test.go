package main

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What these tests leave out, tests/install tries on packages that are installed.

// packed are the packages for this system, made once for all tests; said is what was said meanwhile.
var (
	packed string
	said   strings.Builder
)

const (
	version = "0.8.0"
	ldflags = "-s -w -X strata/pkg/cli/release.version=" + version + " -X strata/pkg/cli/release.linkedCommit=abc"
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
		if err := makeAll(filepath.Join(dir, "1"), "linux/amd64", &said); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

func makeAll(out, targets string, say io.Writer) error {
	os.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	return run(context.Background(), []string{"-root", "../..", "-version", version, "-ldflags", ldflags, "-targets", targets, "-out", out}, say)
}

func file(name string) string { return filepath.Join(packed, "1", name) }

// Before it begins it says how long it takes, and at the end what it made.
func TestSays(t *testing.T) {
	first, rest, _ := strings.Cut(said.String(), "\n")
	if !strings.Contains(first, "linux/amd64") || !strings.Contains(first, "minutes") {
		t.Errorf("it begins with %q", first)
	}
	_, list, _ := strings.Cut(rest, "wrote into "+filepath.Join(packed, "1"))
	files, err := os.ReadDir(filepath.Join(packed, "1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.Contains(list, f.Name()) {
			t.Errorf("%s is not listed:\n%s", f.Name(), rest)
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

// The archive has every program, its page and completions, the licences and the bill; all of it belongs to root and is
// as old as the commit.
func TestArchive(t *testing.T) {
	all, _ := archived(t)
	links, contents := map[string]string{}, map[string][]byte{}
	for name, e := range all {
		links[name], contents[name] = e.link, e.data
	}
	for name, want := range map[string]string{
		"share/strata/main.nf": "./nextflow/main", "share/strata/nextflow/main.nf": "workflow STRATA", "share/strata/nextflow/conf/base.config": "process",
		"share/strata/scripts/demo.sh": "#!/usr/bin/env bash", "share/strata/scripts/nextflow-pom.xml": "<project>",
		"share/strata/scripts/linumpy-params.sh": "linumpy-params.awk", "share/strata/scripts/linumpy-params.awk": "BEGIN {", "share/strata/scripts/linumpy-params.tsv": "debug_slices\t",
	} {
		if !strings.Contains(string(contents[name]), want) {
			t.Errorf("%s does not have %q", name, want)
		}
	}
	if links["share/strata/lib"] != "nextflow/lib" || contents["share/strata/nextflow/lib/Chain.groovy"] == nil {
		t.Error("the workflow's classes are missing")
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

// What cannot be packed is said in one line, and leaves nothing.
func TestRefused(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct{ targets, want string }{{"linux", `target "linux": want OS/ARCH`}, {"linux/none", "build for linux/none"}} {
		if err := makeAll(out, c.targets, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.targets, err)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a folder was made")
	}
}

// unpackWheel returns the files of a wheel.
func unpackWheel(t *testing.T, name string) map[string]string {
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
	}
	return files
}
