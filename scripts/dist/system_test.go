package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// untar returns what an archive holds, by name without ./ and prefix, and its folders' names. All of it must belong to
// root, be as old as the commit, and have modes that let nobody else write.
func untar(t *testing.T, packed io.Reader, prefix string) (all map[string]entry, folders []string) {
	t.Helper()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]entry{}
	archive := tar.NewReader(z)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			return all, folders
		}
		if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(strings.TrimPrefix(h.Name, "./"), prefix)
		if !ok {
			t.Errorf("%s is not in the folder of the release", h.Name)
		}
		if h.ModTime.Unix() != 1700000000 || h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || h.Gname != "root" {
			t.Errorf("%s: %v, of %d:%d (%s:%s)", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname, h.Gname)
		}
		switch mode := h.Mode; {
		case h.Typeflag == tar.TypeDir && mode == 0o755, h.Typeflag == tar.TypeReg && (mode == 0o644 || mode == 0o755):
		case h.Typeflag == tar.TypeSymlink:
			if to := path.Join("/", prefix, path.Dir(name), h.Linkname); path.IsAbs(h.Linkname) || !strings.HasPrefix(to, path.Join("/", prefix)) {
				t.Errorf("%s is a link to %s, out of the package", h.Name, h.Linkname)
			}
		default:
			t.Errorf("%s: type %q, mode %o", h.Name, h.Typeflag, mode)
		}
		if h.Typeflag == tar.TypeDir {
			folders = append(folders, strings.TrimSuffix(name, "/"))
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = entry{name: name, mode: h.Mode, link: h.Linkname, data: data}
	}
}

// archived returns the files of the archive for this system.
func archived(t *testing.T) (map[string]entry, []string) {
	f, err := os.Open(file("strata-" + version + "-linux-amd64.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return untar(t, f, "strata-"+version+"-linux-amd64/")
}

// members returns the members of an archive of ar(1).
func members(t *testing.T, data []byte) map[string][]byte {
	all := map[string][]byte{}
	for rest := bytes.TrimPrefix(data, []byte("!<arch>\n")); len(rest) > 0; {
		var size int
		if _, err := fmt.Sscan(string(rest[48:58]), &size); err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSpace(string(rest[:16]))] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	return all
}

// table returns the rows of the table of names that packages of Debian have.
func table(t *testing.T) (free []string, taken [][]string) {
	text, err := os.ReadFile("../../" + namesTable)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		switch fields := strings.Split(strings.TrimSpace(line), "\t"); {
		case strings.HasPrefix(line, "#"):
		case len(fields) == 4:
			taken = append(taken, fields)
		case fields[0] != "strata":
			free = append(free, fields[0])
		}
	}
	if len(free) < 20 || len(taken) < 3 {
		t.Fatalf("%d names that nobody has, %d files of others", len(free), len(taken))
	}
	return free, taken
}

// resolve follows the links of a package.
func resolve(all map[string]entry, folders []string, name string) (entry, bool) {
	for range 8 {
		e, ok := all[name]
		if !ok {
			return entry{}, slices.Contains(folders, name)
		}
		if e.link == "" {
			return e, true
		}
		name = path.Join(path.Dir(name), e.link)
	}
	return entry{}, false
}

// The Debian package has no file that another package of Debian has, and tells dpkg nothing about other packages; all
// programs are in a folder of its own.
func TestDebian(t *testing.T) {
	data, err := os.ReadFile(file("strata_" + version + "_amd64.deb"))
	if err != nil {
		t.Fatal(err)
	}
	parts := members(t, data)
	control, _ := untar(t, bytes.NewReader(parts["control.tar.gz"]), "")
	for name := range control {
		if !slices.Contains([]string{"control", "md5sums", "postinst"}, name) {
			t.Errorf("the package has a member %s", name)
		}
	}
	for line := range strings.Lines(string(control["control"].data)) {
		field, _, _ := strings.Cut(line, ":")
		if !strings.HasPrefix(line, " ") && !slices.Contains(strings.Fields("Package Version Architecture Maintainer Installed-Size Depends Section Priority Description"), field) {
			t.Errorf("control has %q", line)
		}
	}
	if script := string(control["postinst"].data); strings.Contains(script, "divert") || control["postinst"].mode != 0o755 {
		t.Errorf("postinst has mode %o:\n%s", control["postinst"].mode, script)
	}
	all, folders := untar(t, bytes.NewReader(parts["data.tar.gz"]), "")
	for name, e := range all {
		if _, ok := resolve(all, folders, name); !ok {
			t.Errorf("%s leads to %s, which is not there", name, e.link)
		}
	}
	isProgram := func(name string) {
		if e, ok := resolve(all, folders, name); !ok || e.name != "usr/lib/strata/bin/strata" || e.mode != 0o755 {
			t.Errorf("%s is not the program: %q", name, e.name)
		}
	}
	free, taken := table(t)
	for _, name := range append(free, "strata") {
		isProgram("usr/bin/" + name)
		isProgram("usr/lib/strata/bin/" + name)
	}
	notes := string(control["control"].data) + string(all["usr/share/doc/strata/README.Debian"].data)
	for _, row := range taken {
		name := row[0]
		isProgram("usr/lib/strata/bin/" + name)
		isProgram(path.Join("usr/share/strata", all["usr/share/strata/bin"].link, name)) // for the workflow
		for _, place := range []string{row[3], "usr/bin/%", "usr/share/man/man1/%.1.gz", "usr/share/bash-completion/completions/%",
			"usr/share/zsh/vendor-completions/_%", "usr/share/fish/vendor_completions.d/%.fish"} {
			if e, ok := all[strings.ReplaceAll(strings.TrimPrefix(place, "/"), "%", name)]; ok {
				t.Errorf("%s is there; package %s has the name", e.name, row[1])
			}
		}
		page, ok := resolve(all, folders, "usr/lib/strata/share/man/man1/"+name+".1.gz")
		if text := unzip(t, page.data); !ok || !strings.Contains(text, "\nstrata-"+name+` \- `) || !strings.Contains(text, "\nstrata "+name+" ") || strings.Contains(text, "\n"+name+" ") {
			t.Errorf("the manual page of %s is not of strata %[1]s: %.300s", name, text)
		}
		if page.name != "usr/share/man/man1/strata-"+name+".1.gz" || !strings.Contains(unzip(t, all["usr/share/man/man1/strata.1.gz"].data), `.BR strata\-`+name+" (1)") {
			t.Errorf("strata(1) does not lead to the manual page of %s, %s", name, page.name)
		}
		if !strings.Contains(string(all["usr/lib/strata/share/bash-completion/completions/"+name].data), "complete -F") || !strings.Contains(notes, " "+name+" (package ") {
			t.Errorf("%s has no completion, or no note", name)
		}
	}
	if !strings.Contains(notes, "/usr/lib/strata/bin has all of them") || !strings.Contains(notes, "\n    PATH=/usr/lib/strata/bin:$PATH\n") {
		t.Errorf("users are not told where the programs are:\n%s", notes)
	}
}

func unzip(t *testing.T, data []byte) string {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Who gets the archive, the wheel or the conda package, or reads how to install, is told which names come before
// others'.
func TestNotes(t *testing.T) {
	all, folders := archived(t)
	_, taken := table(t)
	install, err := os.ReadFile("../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := os.ReadFile("../../packaging/conda/recipe.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wheel, err := filepath.Glob(file("*.whl"))
	if err != nil || len(wheel) != 1 {
		t.Fatalf("wheels: %q, %v", wheel, err)
	}
	metadata := unpackWheel(t, wheel[0])["strata_microscopy-"+version+".dist-info/METADATA"]
	for _, row := range taken {
		name := row[0]
		for place, text := range map[string]string{"README": string(all["README"].data), "METADATA": metadata, "recipe.yaml": string(recipe), "install.md": string(install)} {
			if !strings.Contains(strings.ReplaceAll(text, "`", ""), name) {
				t.Errorf("%s does not name %s", place, name)
			}
		}
		for _, folder := range []string{"share/strata/bin", "share/strata/nextflow/bin"} {
			if e, ok := resolve(all, folders, path.Join(path.Dir(folder), all[folder].link, name)); !ok || e.name != "bin/strata" {
				t.Errorf("%s does not lead to %s", folder, name)
			}
		}
	}
}

// The links of an archive are files in a wheel, which has no links: the workflow finds its classes.
func TestWheelHasNoEmptyLinks(t *testing.T) {
	wheel, _ := filepath.Glob(file("*.whl"))
	files := unpackWheel(t, wheel[0])
	data := "strata_microscopy-" + version + ".data/data/share/strata/"
	if want := files[data+"nextflow/lib/Chain.groovy"]; want == "" || files[data+"lib/Chain.groovy"] != want {
		t.Error("share/strata/lib is not the folder of the workflow's classes")
	}
	for name, text := range files {
		if text == "" {
			t.Errorf("%s is empty", name)
		}
	}
}

// A program that is not in the table of names, or a name without a program, is refused before anything is packed.
func TestNamesOfPrograms(t *testing.T) {
	for _, c := range []struct{ table, want string }{
		{"crop\t-\nstrata\t-\nview\tvim\t/usr/bin/view\talternatives\n", ""},
		{"strata\t-\nview\tvim\t/usr/bin/view\talternatives\n", "packaging/debian/names.tsv: program crop is not in it: make debian-names looks up who has the name"},
		{"crop\t-\nstrata\t-\nview\t-\nfocal\t-\n", "packaging/debian/names.tsv: no program is called focal"},
		{"crop\tcropper\nstrata\t-\n", `packaging/debian/names.tsv: "crop\tcropper\n": want a name and -, or a name, package, file and suites`},
		{"crop\t-\nview\t-\nstrata\tother\t/usr/bin/strata\tsid\n", "packaging/debian/names.tsv: package other has files of the name strata: all of ours need another name"},
	} {
		r := &release{root: t.TempDir()}
		for name, text := range map[string]string{"cmd/strata/main.go": "", "cmd/crop/main.go": "", "cmd/view/main.go": "", namesTable: c.table} {
			write(t, filepath.Join(r.root, name), text)
		}
		if err := r.listPrograms(); err != nil {
			t.Fatal(err)
		}
		if err := r.readNames(); (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%q: %v, want %q", c.table, err, c.want)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// content returns what is at a place of a folder: the target of a link, the first bytes of a file; "" if nothing is.
func content(t *testing.T, file string) string {
	t.Helper()
	if to, err := os.Readlink(file); err == nil {
		return "-> " + to
	}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data[:min(len(data), 20)])
}

// make install takes no name from another program, leaves files of others, and clears away what a former version of
// ours had laid.
func TestInstall(t *testing.T) {
	all, _ := archived(t)
	var plain tree
	for _, e := range all {
		if e.name != "README" && !strings.HasPrefix(e.name, "share/strata/nextflow/") {
			plain = append(plain, e)
		}
	}
	plain = sorted(plain)
	r := &release{taken: map[string]string{"view": "vim", "stack": "haskell-stack"}}
	const foreign = "#!/bin/sh\n# mine\n"
	const man = "share/man/man1/"
	for _, c := range []struct {
		name    string
		before  map[string]string // files of others
		old     bool              // 0.10.0 is installed, but for these
		all     bool
		after   map[string]string
		says    []string
		refused string
	}{
		{name: "new", after: map[string]string{"bin/view": "", "bin/crop": "-> ../lib/strata/bin/crop", "lib/strata/bin/view": "-> strata", man + "view.1": "", man + "strata-view.1": ".TH STRATA-VIEW 1 \"\""},
			says: []string{"stack and view are other programs' names too: type strata NAME, or put PREFIX/lib/strata/bin first on PATH, or install with ALL_NAMES=1"}},
		{name: "others", before: map[string]string{"bin/view": foreign, "bin/crop": foreign, man + "crop.1": ".TH CROP 1", "share/bash-completion/completions/crop": "complete -F other crop", "bin/aip": "-> /opt/other/aip"},
			after: map[string]string{"bin/view": foreign, "bin/crop": foreign, man + "crop.1": ".TH CROP 1", "share/bash-completion/completions/crop": "complete -F other cr", "bin/aip": "-> /opt/other/aip", "bin/stack": ""},
			says:  []string{"PREFIX/bin/crop is not of strata: it stays as it is", "PREFIX/bin/aip is not", "PREFIX/" + man + "crop.1 is not", "completions/crop is not"}},
		{name: "0.10.0", old: true, after: map[string]string{"bin/view": "", "bin/stack": "", "bin/strata": "-> ../lib/strata/bin/strata", "bin/crop": "-> ../lib/strata/bin/crop", man + "view.1": "", "share/zsh/site-functions/_view": ""},
			says: []string{"PREFIX/bin/view was strata's: removed", "PREFIX/" + man + "stack.1 was strata's: removed"}},
		{name: "0.10.0 and others", old: true, before: map[string]string{"bin/view": foreign, man + "view.1": "-> /etc/alternatives/view.1"}, after: map[string]string{"bin/view": foreign, man + "view.1": "-> /etc/alternatives/view.1", "bin/stack": ""}},
		{name: "all names", all: true, before: map[string]string{"bin/stack": "-> ../elsewhere"}, after: map[string]string{"bin/view": "-> ../lib/strata/bin/view", "bin/stack": "-> ../elsewhere", man + "view.1": ".TH VIEW 1 \"\" \"strat"},
			says: []string{"PREFIX/bin: stack and view come before other programs of these names that come later on PATH", "PREFIX/bin/stack is not of strata"}},
		{name: "another strata", before: map[string]string{"bin/strata": foreign}, after: map[string]string{"bin/strata": foreign, "bin/crop": "", "lib/strata/bin/strata": ""},
			refused: "PREFIX/bin/strata is another program: move it away first, or install into another PREFIX"},
	} {
		prefix := t.TempDir()
		if c.old {
			if err := install(plain, prefix); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range c.before {
			_ = os.Remove(filepath.Join(prefix, name))
			if to, ok := strings.CutPrefix(text, "-> "); !ok {
				write(t, filepath.Join(prefix, name), text)
			} else if err := errors.Join(os.MkdirAll(filepath.Join(prefix, path.Dir(name)), 0o755), os.Symlink(to, filepath.Join(prefix, name))); err != nil {
				t.Fatal(err)
			}
		}
		for run := range 2 { // the second finds what the first has left
			var said strings.Builder
			err := r.installInto(plain, prefix, c.all, &said)
			if text := strings.ReplaceAll(fmt.Sprint(err), prefix, "PREFIX"); (err != nil) != (c.refused != "") || err != nil && text != c.refused {
				t.Errorf("%s: %v, want %q", c.name, err, c.refused)
			}
			for name, want := range c.after {
				if got := content(t, filepath.Join(prefix, name)); got != want {
					t.Errorf("%s: %s is %q, should be %q", c.name, name, got, want)
				}
			}
			text := strings.ReplaceAll(said.String(), prefix, "PREFIX")
			for _, want := range c.says {
				if !strings.Contains(text, want) && (run == 0 || !strings.Contains(want, "removed")) {
					t.Errorf("%s, run %d: does not say %q:\n%s", c.name, run, want, text)
				}
			}
			if n := strings.Count(text, "not of strata"); n > len(c.before) || run == 1 && strings.Contains(text, "removed") {
				t.Errorf("%s, run %d: says too much:\n%s", c.name, run, text)
			}
		}
	}
}
