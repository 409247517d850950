package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"strata/pkg/cli"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"strata": main, "phantom": main, "linum-aip": main, "zarr-tool": main, "cuttiles": clitest.CutTiles})
}

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// Every program of cmd/ is in it, and nothing else.
func TestAllPrograms(t *testing.T) {
	mains, err := filepath.Glob("../*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"start": true, "explain": true} // have no programs of their own: their names would be taken for others'
	for _, path := range mains {
		if name := filepath.Base(filepath.Dir(path)); name != "strata" {
			want[name] = true
		}
	}
	if len(mains) == 0 {
		wd, _ := os.Getwd()
		t.Fatal("no programs beside ", wd)
	}
	for _, m := range members {
		c := m.Command()
		if c.Name != m.Name || !want[c.Name] {
			t.Errorf("%s is the program %s, which is no program of its own", m.Name, c.Name)
		}
		var aliases []string
		for _, a := range c.Aliases {
			aliases = append(aliases, a.Name)
		}
		if c.Usage != m.Usage || !slices.Equal(aliases, m.Aliases) {
			t.Errorf("%s: the table says %q, %q, its command %q, %q", m.Name, m.Usage, m.Aliases, c.Usage, aliases)
		}
		delete(want, m.Name)
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
}

// Two commands must not go by one name.
func TestNamesAreUnique(t *testing.T) {
	owner := map[string]string{}
	for _, m := range members {
		c := m.Command()
		for _, a := range append(c.Aliases, cli.Alias{Name: c.Name}) {
			if other, ok := owner[a.Name]; ok {
				t.Errorf("%s is %s and %s", a.Name, other, c.Name)
			}
			owner[a.Name] = c.Name
		}
	}
}
