package recipe

import (
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Words by which a licence is known, in a text without line breaks, and words
// that must not be there.
var licenceWords = []struct{ id, words, not string }{
	{"Apache-2.0", `apache license,? version 2\.0`, ""},
	{"BSD-3-Clause", `redistribution and use in source and binary forms.*(neither the name|names? of .{0,80}contributors|used to endorse)`, ""},
	{"BSD-2-Clause", `redistribution and use in source and binary forms`, `neither the name|used to endorse`},
	{"MIT", `permission is hereby granted, free of charge, to any person obtaining a copy of this software`, ""},
	{"MPL-2.0", `mozilla public license,? version 2\.0`, ""},
	{"Unlicense", `this is free and unencumbered software released into the public domain`, ""},
	{"ISC", `permission to use, copy, modify, and(/or)? distribute this software for any purpose`, ""},
}

// detect names the licences of a text.
func detect(text string) []string {
	flat := strings.ToLower(strings.Join(strings.Fields(text), " "))
	var out []string
	for _, l := range licenceWords {
		if regexp.MustCompile(l.words).MatchString(flat) && (l.not == "" || !regexp.MustCompile(l.not).MatchString(flat)) {
			out = append(out, l.id)
		}
	}
	return out
}

func TestDetect(t *testing.T) {
	const (
		redistribution = "Redistribution and use in source and\nbinary forms, with or without modification, are permitted: "
		permission     = "Permission is hereby granted, free of charge,\n to any person obtaining a copy of this software"
	)
	for text, want := range map[string]string{
		redistribution + "Neither the name of Google": "BSD-3-Clause",
		redistribution: "BSD-2-Clause",
		permission:     "MIT",
		"Apache License\n   Version 2.0, January 2004":                                               "Apache-2.0",
		"This is free and unencumbered software released into\nthe public domain.":                   "Unlicense",
		"Mozilla Public License Version 2.0":                                                         "MPL-2.0",
		"Permission to use, copy, modify, and distribute this software for any purpose":              "ISC",
		redistribution + "may not be used to endorse " + permission + " Apache License, Version 2.0": "Apache-2.0 BSD-3-Clause MIT",
		"All rights reserved": "",
	} {
		if got := strings.Join(detect(text), " "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// The licences of the modules, as they lie in the module cache, are those that
// images get.
func TestModules(t *testing.T) {
	var list []moduleLicence
	seen := map[string]bool{}
	add := func(name, dir string) {
		if seen[name] {
			return
		}
		seen[name] = true
		var text strings.Builder
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			base := strings.ToUpper(filepath.Base(file))
			if !regexp.MustCompile(`^(LICEN[CS]E|COPYING|UNLICENSE|NOTICE)(\.(TXT|MD))?$`).MatchString(base) {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.ReplaceAll(string(b), "\r", ""), "\n")
			for i := range lines {
				lines[i] = strings.TrimRight(lines[i], " \t")
			}
			text.WriteString(strings.Trim(strings.Join(lines, "\n"), "\n") + "\n\n")
		}
		l := moduleLicence{modules: []string{name}, licences: detect(text.String()), text: strings.TrimRight(text.String(), "\n") + "\n"}
		if len(l.licences) == 0 {
			t.Fatalf("%s: no licence that is known here in %s", name, dir)
		}
		for i := range list {
			if list[i].text == l.text {
				list[i].modules = append(list[i].modules, name)
				return
			}
		}
		list = append(list, l)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		c := exec.Command("go", "list", "-tags", strings.Join(build.Default.BuildTags, ","), "-deps",
			"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "strata/cmd/...")
		c.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch, "CGO_ENABLED=0")
		c.Stderr = os.Stderr
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(lines)
		for _, line := range slices.Compact(lines) {
			if name, dir, ok := strings.Cut(line, "\t"); ok {
				add(name, dir)
			}
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	// The version changes with the compiler, the licence does not.
	add(stdlib+" go", strings.TrimSpace(string(root)))
	first := "# Licences of the Go modules that the programs are built from. go test ./pkg/sif/recipe -run Modules -update\n# writes them anew.\n"
	text := writeModules(first, list)
	if *update {
		if err := os.WriteFile("modules.txt", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != modulesText {
		t.Errorf("modules.txt is not of the modules that are used now (%s): go test ./pkg/sif/recipe -run Modules -update\n%s", runtime.Version(), cmp.Diff(modulesText, text))
	}
	again, err := readModules(modulesText)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(list, again, cmp.AllowUnexported(moduleLicence{})); d != "" {
		t.Errorf("read again: %s", d)
	}
	for _, bad := range []string{"module a 1\n", "text\n", "module a 1 MIT\n\n  text\nother\n"} {
		if _, err := readModules(bad); err == nil || !strings.Contains(err.Error(), "modules.txt: line ") {
			t.Error(fmt.Sprintf("%q: ", bad), err)
		}
	}
}
