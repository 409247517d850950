package sif_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"strata/pkg/sif"
)

func parse(t *testing.T, text string) *sif.Definition {
	t.Helper()
	d, err := sif.ParseDefinition("x.def", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestParseDefinition(t *testing.T) {
	d := parse(t, "# a comment\r\nBootstrap: Scratch\n\n%files\n  a /b   # copied\n  'with space' \"/d \\\"e\\\"\"\n\n%labels\n# none\n  KEY a value\n\tOther x\n"+
		"%runscript\n    exec tool \"$@\"  # kept\n\n  % not a section\n\n%help\ntext\n\n\n%files\nc\\ d\n")
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	files, err := d.Files()
	want := []sif.FileLine{{Source: "a", Destination: "/b", Line: 5}, {Source: "with space", Destination: `/d "e"`, Line: 6}, {Source: "c d", Line: 22}}
	if d := cmp.Diff(want, files); d != "" || err != nil {
		t.Error(d, err)
	}
	labels, err := d.Labels()
	if d := cmp.Diff(map[string]string{"KEY": "a value", "Other": "x"}, labels); d != "" || err != nil {
		t.Error(d, err)
	}
	if got, want := d.Script("runscript"), "    exec tool \"$@\"  # kept\n\n  % not a section\n"; got != want {
		t.Errorf("runscript %q, want %q", got, want)
	}
	if d.Script("help") != "text\n" || d.Script("test") != "" || d.Bootstrap() != sif.Scratch {
		t.Errorf("%+v", d)
	}
}

// What cannot be built is named, with its line.
func TestUnsupported(t *testing.T) {
	for text, want := range map[string][]string{
		"Bootstrap: docker\nFrom: debian\n%post\n apt-get\n%appinstall x\n%setup\n": {"line 1: Bootstrap: docker is not supported: want scratch or strata",
			"line 2: keyword from is not supported", "line 3: %post is not supported", "line 5: %appinstall is not supported", "line 6: %setup is not supported"},
		"Bootstrap: scratch\n%files from build\n/a\n":        {"line 2: %files from build is not supported"},
		"Bootstrap: scratch\n%runscript -c /bin/zsh\n":       {"line 2: %runscript -c /bin/zsh is not supported"},
		"Bootstrap: scratch\n%help\na\n%help\nb\n":           {"line 4: %help stands twice"},
		"Bootstrap: scratch\n%labels\n\nKEY\n":               {`line 4: label "KEY" has no value`},
		"Bootstrap: scratch\n%files\na b c\n":                {"line 3: \"a b c\" is not SOURCE [DESTINATION]"},
		"Bootstrap: scratch\n%files\n'a\n":                   {"line 3: a quote ' is not closed"},
		"Bootstrap: scratch\n%files\na\\\n":                  {"line 3: a backslash at the end"},
		"Bootstrap: scratch\nStage: one\n%unknown\n%files\n": {"line 2: keyword stage", "line 3: %unknown is not supported"},
	} {
		err := parse(t, text).Check()
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, want %q", text, err, part)
			}
		}
	}
	for text, want := range map[string]string{
		"":                                    "no line says Bootstrap",
		"%files\na\n":                         "no line says Bootstrap",
		"Bootstrap: scratch\nsomething\n":     "line 2: \"something\" is neither KEY: VALUE nor %SECTION",
		"Bootstrap: scratch\nbootstrap: x\n":  "line 2: bootstrap stands twice",
		"Bootstrap: scratch\n%help\n\x00":     "zero bytes",
		"Bootstrap: a\n%post\nBootstrap: b\n": "line 3: a second Bootstrap",
	} {
		if _, err := sif.ParseDefinition("x.def", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.def") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzDefinition(f *testing.F) {
	f.Add("Bootstrap: scratch\n%files\n a 'b c' # d\n%labels\nK V\n%runscript\nx\n")
	f.Add("Bootstrap: docker\nFrom: x\n%post\ny\n%appenv z\n")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := sif.ParseDefinition("x", strings.NewReader(text))
		if err != nil {
			return
		}
		_ = d.Check()
		if d.Text != text {
			t.Error("the text is not kept")
		}
		for i := range d.Sections {
			if n := d.Sections[i].Line; !strings.HasPrefix(strings.Split(text, "\n")[n-1], "%") {
				t.Errorf("section %s does not begin on line %d", d.Sections[i].Name, n)
			}
		}
	})
}

func TestRoot(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	r, err := sif.NewRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Symlink(outside, "/evil"); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteText("/evil/file", 0o644, "x"); err == nil {
		t.Error("a link led out of the root")
	}
	if err := r.WriteText("/../../up/file", 0o6755, "x"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "up/file"))
	if err != nil || info.Mode() != 0o755 {
		t.Errorf("%v, %v: want mode 0755 inside", info.Mode(), err)
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Error("something was written outside")
	}
	if err := r.WriteText("/up", 0o644, "x"); err == nil {
		t.Error("a file replaced a folder that is not empty")
	}
	if err := r.Remove("/"); err == nil {
		t.Error("the root removed itself")
	}
	if err := r.Copy(filepath.Join(dir, "nothing"), "x"); err == nil {
		t.Error("a missing file was copied")
	}
	loop := t.TempDir()
	if err := os.Symlink(".", filepath.Join(loop, "self")); err != nil {
		t.Fatal(err)
	}
	if err := r.Copy(loop, "loop"); err == nil {
		t.Error("a loop of links was copied to its end")
	}
}

func TestParseBind(t *testing.T) {
	for text, want := range map[string]sif.Bind{
		"/a":        {Source: "/a", Target: "/a"},
		"/a b:/c/":  {Source: "/a b", Target: "/c"},
		"/a:/b:ro":  {Source: "/a", Target: "/b", ReadOnly: true},
		"/a:/b:rw":  {Source: "/a", Target: "/b"},
		"/a/../b:/": {}, "": {}, "/a:b": {}, "/a:/b:no": {}, "/a:/b:ro:x": {}, ":/b": {},
	} {
		got, err := sif.ParseBind(text)
		if (err == nil) != (want.Source != "") || err == nil && got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
