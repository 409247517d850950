package sysinfo

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// seeds adds all files of the recorded machines.
func seeds(f *testing.F) {
	f.Helper()
	names, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".txtar") {
			continue
		}
		a, err := txtar.ParseFile("testdata/" + n.Name())
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			f.Add(file.Data)
		}
	}
	f.Add([]byte(oldStats))
}

// Every parser takes every text.
func FuzzParsers(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s := string(b)
		parseNvfsStats(s)
		parseDriverVersion(s)
		parseGPU(s)
		if d := parseOSRelease(s); d.ID == "" && d.Reason == "" {
			t.Error("neither ID nor reason")
		}
		for _, m := range parseMounts(s) {
			supportOf(m)
			mountOf([]Mount{m}, m.Point)
		}
		if n, why := parseBAR1(s); why == "" && n <= 0 {
			t.Errorf("BAR1 of %d bytes", n)
		}
		parseLockdown(s)
		if l := parseLimit(s, "Max open files"); l.Known() && l.Value < -1 {
			t.Errorf("%+v", l)
		}
		parseGDSCheck(s)
		parseSMI(s)
		canonicalBus(s)
		ListGPU(s)
		listDistribution(Distribution{ID: "rhel", Version: s})
		listKernel(known(s))
		if versionLess(s, s) {
			t.Errorf("%q is older than itself", s)
		}
	})
}

// Comments go, lines stay, and an error is one line.
func FuzzCuFile(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		clean := withoutComments(b)
		if len(clean) != len(b) || bytes.Count(clean, []byte("\n")) != bytes.Count(b, []byte("\n")) {
			t.Errorf("%d bytes became %d", len(b), len(clean))
		}
		if !bytes.Equal(withoutComments(clean), clean) && !bytes.Contains(b, []byte("*/")) {
			t.Errorf("%q: comments in what has none", clean)
		}
		var c CuFile
		if err := c.parse(b); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q", err)
		}
	})
}
