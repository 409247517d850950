package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"strata/pkg/sif/recipe"
	"strata/pkg/sif/spdx"
)

// entry is a file or link of a package.
type entry struct {
	name string // below the prefix: "bin/strata"
	mode int64
	data []byte
	link string // target
}

// tree lists the installed files, sorted by name.
type tree []entry

func (t tree) find(name string) *entry {
	i, ok := slices.BinarySearchFunc(t, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		return &entry{}
	}
	return &t[i]
}

func sorted(entries ...[]entry) tree {
	t := tree(slices.Concat(entries...))
	slices.SortFunc(t, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return t
}

// listPrograms lists the programs of cmd/.
func (r *release) listPrograms() error {
	mains, err := filepath.Glob(filepath.Join(r.root, "cmd", "*", "main.go"))
	if err != nil {
		return err
	}
	for _, file := range mains {
		if name := filepath.Base(filepath.Dir(file)); name != "strata" {
			r.programs = append(r.programs, name)
		}
	}
	if len(r.programs) == 0 {
		return fmt.Errorf("folder %s: no programs in cmd/", r.root)
	}
	return nil
}

// build builds strata for a system; "" stands for this one.
func (r *release) build(ctx context.Context, system, arch, to string) error {
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=urfave_cli_no_docs", "-buildvcs=false", "-ldflags", r.ldflags+" -buildid=", "-o", to, "./cmd/strata")
	c.Dir = r.root
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOWORK=off")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s/%s: %w: %s", system, arch, err, out)
	}
	return nil
}

// describe runs a program to get its manual pages and shell completions.
func (r *release) describe(ctx context.Context, program string) ([]entry, error) {
	var out []entry
	for _, name := range append([]string{"strata"}, r.programs...) {
		for _, part := range []struct{ file, flag string }{
			{"share/man/man1/" + name + ".1", "--man"},
			{"share/bash-completion/completions/" + name, "--completion=bash"},
			{"share/zsh/site-functions/_" + name, "--completion=zsh"},
			{"share/fish/vendor_completions.d/" + name + ".fish", "--completion=fish"},
		} {
			c := exec.CommandContext(ctx, program, part.flag)
			c.Args[0] = name
			text, err := c.Output()
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", name, part.flag, err)
			}
			out = append(out, entry{name: part.file, mode: 0o644, data: text})
		}
	}
	return out, nil
}

// tree returns the files to install for a program.
func (r *release) tree(program string) (tree, error) {
	binary, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	parts, texts, err := recipe.Modules(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(binary)
	bill, err := spdx.Write("strata-dist-"+r.version, r.at, spdx.Package{Name: "strata", Version: r.version, SHA256: hex.EncodeToString(sum[:]),
		Licences: []string{"Apache-2.0"}, Kind: "APPLICATION"}, parts)
	if err != nil {
		return nil, err
	}
	files := []entry{
		{name: "bin/strata", mode: 0o755, data: binary},
		{name: "share/doc/strata/LICENSE", mode: 0o644, data: licence},
		{name: "share/doc/strata/modules.txt", mode: 0o644, data: []byte(texts)},
		{name: "share/doc/strata/sbom.spdx.json", mode: 0o644, data: bill},
	}
	for _, name := range r.programs {
		files = append(files, entry{name: "bin/" + name, mode: 0o777, link: "strata"})
	}
	// Nextflow and scripts/steps.sh find the programs beside the workflow, whatever else is on the PATH.
	files = append(files, entry{name: "share/strata/bin", mode: 0o777, link: "../../bin"}, entry{name: "share/strata/nextflow/bin", mode: 0o777, link: "../../../bin"})
	return sorted(files, r.help, r.workflow), nil
}

// besides lists the files packed besides the workflow's own: those that start it from its folder, the demo's scripts,
// and the translator of linumpy's parameters.
var besides = []string{"main.nf", "nextflow.config", "scripts/demo.sh", "scripts/steps.sh", "scripts/times.sh",
	"scripts/linumpy-params.sh", "scripts/linumpy-params.awk", "scripts/linumpy-params.tsv"}

// readWorkflow reads the files for share/strata: the workflow and those besides.
func (r *release) readWorkflow() error {
	for _, name := range slices.Concat(recipe.Workflow, besides) {
		err := filepath.WalkDir(filepath.Join(r.root, name), func(file string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			below, err := filepath.Rel(r.root, file)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			mode := int64(0o644)
			if bytes.HasPrefix(text, []byte("#!")) {
				mode = 0o755
			}
			r.workflow = append(r.workflow, entry{name: "share/strata/" + filepath.ToSlash(below), mode: mode, data: text})
			return nil
		})
		if err != nil {
			return err
		}
	}
	r.workflow = append(r.workflow, entry{name: "share/strata/lib", mode: 0o777, link: "nextflow/lib"})
	return nil
}

// folders lists the folders that contain the files, parents first.
func (t tree) folders() []string {
	seen := map[string]bool{}
	for _, e := range t {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			seen[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// tarOf returns an archive of the tree, below prefix. Everything belongs to root.
func tarOf(t tree, prefix string, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	folders := []string{prefix}
	for _, dir := range t.folders() {
		folders = append(folders, prefix+dir+"/")
	}
	for _, dir := range folders {
		if dir == "" {
			continue
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755, Uname: "root", Gname: "root", ModTime: at}); err != nil {
			return nil, err
		}
	}
	for _, e := range t {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: prefix + e.name, Mode: e.mode, Size: int64(len(e.data)), Uname: "root", Gname: "root", ModTime: at}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func tarGz(t tree, prefix string, at time.Time) ([]byte, error) {
	b, err := tarOf(t, prefix, at)
	if err != nil {
		return nil, err
	}
	return gz(b, level)
}

// level is the compression level of archives: a third of the time of the best level, for 2 % more bytes.
const level = 6

// gz compresses data without a name and a time.
func gz(data []byte, level int) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		return nil, err
	}
	w.ModTime = time.Unix(0, 0) // none
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// writeAll writes files into a folder, with their checksums in SHA256SUMS.
func writeAll(dir string, files map[string][]byte) error {
	var sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	t := tree{{name: "SHA256SUMS", mode: 0o644, data: []byte(sums.String())}}
	for name, data := range files {
		t = append(t, entry{name: name, mode: 0o644, data: data})
	}
	return install(t, dir)
}

// install writes a tree into a folder. Each file is put in place when it is complete.
func install(t tree, dir string) error {
	for _, e := range t {
		to := filepath.Join(dir, filepath.FromSlash(e.name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		part := filepath.Join(filepath.Dir(to), ".strata-"+filepath.Base(to)+".part")
		_ = os.Remove(part) // of a run that was killed
		err := os.WriteFile(part, e.data, os.FileMode(e.mode))
		if e.link != "" {
			_ = os.Remove(part)
			err = os.Symlink(e.link, part)
		}
		if err == nil {
			err = os.Rename(part, to)
		}
		if err != nil {
			_ = os.Remove(part)
			return err
		}
	}
	return nil
}
