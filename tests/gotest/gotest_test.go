package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes a module of tests that pass, fail, are skipped and panic, and goes there.
func module(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module strata\n\ngo 1.26\n",
		"good/good_test.go": `package good
import ("fmt"; "testing")
func TestMain(m *testing.M) { fmt.Println("a line of a package that passes"); m.Run() }
func TestQuiet(t *testing.T) { t.Log("a message of a test that passes") }
func TestDisk(t *testing.T) { t.Log("looks for a disk"); t.Run("part", func(t *testing.T) { t.Skipf("no disk\nof %d MB", 3) }); t.Run("other", func(t *testing.T) { t.Skipf("no disk\nof %d MB", 3) }) }
func TestLong(t *testing.T) { if testing.Short() { t.Skip("takes long") } }
func TestLongAlways(t *testing.T) { t.Skip("takes very long") }
`,
		"none/none.go": "package none\n",
		"bad/bad_test.go": `package bad
import "testing"
func TestPasses(t *testing.T) { t.Log("a message of a test that passes") }
func TestFails(t *testing.T) { t.Log("before"); t.Run("part", func(t *testing.T) { t.Error("is 1, want 2") }) }
func TestSilent(t *testing.T) { t.Skip() }
`,
		"panics/panics_test.go": `package panics
import "testing"
func TestPanics(t *testing.T) { t.Log("on the way"); panic("planned") }
`,
		"broken/broken_test.go": "package broken\nfunc f() int { return missing }\n",
		"skips.txt":             "# a comment\n\nalways ^good TestDisk/.*: no disk of [0-9]+ MB$ # a machine without\nshort  : takes (very )?long$ # make test runs it\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// What go test says of a module stands there as without -json, the skipped tests are listed, and one that
// was skipped for no listed reason fails the run.
func TestRun(t *testing.T) {
	module(t)
	for _, c := range []struct {
		args   string
		status int
		want   []string
		not    []string
	}{
		{"-short ./good ./none", 0,
			[]string{"ok  \tstrata/good\t", "?   \tstrata/none\t[no test files]\n", "skipped: 4\n", "    2 good TestDisk: no disk of 3 MB (a machine without)\n", "    1 good TestLong: takes long (make test runs it)\n"},
			[]string{"a message of", "a line of a package", "unexpected", "FAIL", "PASS"}},
		{"./good", 1,
			[]string{"ok  \tstrata/good\t", "skipped: 3\n", "  unexpected: good TestLongAlways: takes very long: mend", "\nFAIL\n"},
			[]string{"unexpected: good TestDisk", "TestLong:"}},
		{"-run TestQuiet ./good", 0, []string{"ok  \tstrata/good\t"}, []string{"skipped"}},
		{"./bad", 1,
			[]string{"--- FAIL: TestFails (", "before\n", "--- FAIL: TestFails/part (", "bad_test.go:4: is 1, want 2\n", "FAIL\tstrata/bad\t", "  unexpected: bad TestSilent: without a reason: mend", "\nFAIL\n"},
			[]string{"a message of", "=== RUN", "ok  \t"}},
		{"./panics ./good", 1, []string{"on the way\n", "panic: planned", "goroutine ", "FAIL\tstrata/panics\t", "ok  \tstrata/good\t"}, nil},
		{"./broken ./good", 1, []string{"undefined: missing", "FAIL\tstrata/broken [build failed]", "ok  \tstrata/good\t"}, nil},
		{"./nowhere", 1, []string{"FAIL\t./nowhere [setup failed]"}, []string{"ok  \t"}},
	} {
		var out bytes.Buffer
		status, err := run(&out, "skips.txt", strings.Fields(c.args))
		if (status != 0) != (c.status != 0) || err != nil {
			t.Errorf("%s: exit status %d, want %d; %v", c.args, status, c.status, err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: lacks %q", c.args, want)
			}
		}
		for _, not := range c.not {
			if strings.Contains(out.String(), not) {
				t.Errorf("%s: has %q", c.args, not)
			}
		}
		if t.Failed() {
			t.Fatal(out.String())
		}
	}
}

func TestReadSkips(t *testing.T) {
	file := filepath.Join(t.TempDir(), "skips.txt")
	for text, want := range map[string]string{
		"always x # y":                 "",
		"\n# x\nnever x # y":           ":3: \"never x # y\", want: always or short",
		"always x":                     "want: always or short, a pattern, # and why",
		"always # y":                   "want: always or short, a pattern, # and why",
		"always ( # why":               ":1: error parsing regexp",
		"short only with -short # why": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		list, err := readSkips(file, false)
		switch {
		case want == "" && (err != nil || len(list) != strings.Count(text, "always")):
			t.Errorf("%q: %v, %v", text, list, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := readSkips("../skips.txt", true); err != nil {
		t.Error(err)
	}
}
