package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every process has a target against its I/O, but for the one that reads only text, and against linumpy's program where
// LINUMPY has one. Nothing is left of the words that stand for paths.
func TestProcessUnits(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{filepath.Join(".venv", "bin", "python"), "scripts/x/none.py"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777), os.WriteFile(filepath.Join(dir, name), nil, 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	p := plan{tools: "t", data: "d", out: "o", bin: "b", python: "python", stages: "s", linumpy: dir}
	if _, err := p.processUnits(); err == nil || !strings.Contains(err.Error(), "linum_create_mosaic_grid_3d.py") {
		t.Errorf("error %v, want one that names the program", err)
	}
	for _, c := range processCases() {
		if script, _, ok := strings.Cut(c.theirs, " "); ok {
			if err := os.WriteFile(filepath.Join(dir, "scripts", "x", "linum_"+script+".py"), nil, 0o777); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := p.processUnits()
	if err != nil {
		t.Fatal(err)
	}
	if n := 2 * len(processCases()); len(all) != n {
		t.Errorf("%d cases, want %d", len(all), n)
	}
	for _, u := range all {
		name, _, _ := strings.Cut(u.Name, "/")
		for who, without := range map[string]string{ioAlone: "shifts-estimate", linumpy: "align"} {
			target := slices.ContainsFunc(u.Targets, func(g target) bool { return g.Against == who && g.Inverse == (who == ioAlone) })
			program := slices.ContainsFunc(u.who, func(c contestant) bool { return c.who == who })
			if want := name != without; target != want || program != want {
				t.Errorf("%s: target against %s %v, program %v, want both %v", u.Name, who, target, program, want)
			}
		}
		if u.Memory != 1024 || u.who[0].argv[0] != filepath.Join("b", strings.Split(name, "-")[0]) && u.who[0].argv[0] != filepath.Join("b", name) {
			t.Errorf("%s: %d MiB, %v", u.Name, u.Memory, u.who[0].argv)
		}
		for _, c := range u.who {
			for _, word := range slices.Concat(c.argv, u.diff, []string{c.diff, u.reads}) {
				if strings.ContainsAny(word, "{}") {
					t.Errorf("%s: %s: %q", u.Name, c.who, word)
				}
			}
		}
	}
}
