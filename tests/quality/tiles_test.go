package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/tests/tilescan"
)

func TestCheckTiles(t *testing.T) {
	good := tileResult{kind: "base", picture: "moon.png", full: true, nominal: 2.8, rms: 0.9, tiles: 36}
	silent := tileResult{kind: "40 % empty", picture: "ihc.png", nominal: 2.6, rms: 1.2, wrong: 3, tiles: 20}
	told := silent
	told.warned = "3 tiles show nothing"
	lost := tileResult{kind: "rotation 1°", picture: "moon.png", full: true, nominal: 10.7, rms: 1.1, tiles: 36}
	worse := told
	worse.rms = 3.2
	known := tileResult{kind: "hard", picture: "camera.png", full: true, nominal: 12, rms: 1.1, wrong: 2, tiles: 36, warned: "2 tiles show nothing"}
	if err := checkTiles([]tileResult{good, told, known}); err != nil {
		t.Error(err)
	}
	most := append(slices.Repeat([]tileResult{good}, 95), slices.Repeat([]tileResult{lost}, 4)...)
	if err := checkTiles(append(most, lost)); err != nil {
		t.Errorf("five of a hundred further scans: %v", err)
	}
	if err := checkTiles(append(most, lost, lost)); err == nil {
		t.Error("six of a hundred further scans may be lost")
	}
	lost.first = true
	if err := checkTiles(append(slices.Repeat([]tileResult{good}, 99), lost)); err == nil {
		t.Error("one of the first scans may be lost")
	}
	err := checkTiles([]tileResult{good, silent, told, lost, worse})
	if err == nil {
		t.Fatal("a silent, a lost and a scan that is worse than nominal are no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 3 || !strings.Contains(lines[0], "40 % empty, ihc: 3 of 20") || !strings.Contains(lines[1], "rotation 1°, moon: off by 1.10 px, must be at most 1") ||
		!strings.Contains(lines[2], "40 % empty, ihc: off by 3.20 px, nominal places by 2.60") {
		t.Errorf("%q", lines)
	}
}

// Every scan that CI tries, or that other programs try, is one of all scans.
func TestTileCases(t *testing.T) {
	kinds := map[string]tilescan.Case{}
	for _, c := range tilescan.Cases() {
		if _, twice := kinds[c.Name]; twice {
			t.Errorf("two kinds of scans are called %q", c.Name)
		}
		kinds[c.Name] = c
	}
	for _, some := range []map[string][]string{smallTiles, besidePeers} {
		for kind, pictures := range some {
			c, known := kinds[kind]
			for _, p := range pictures {
				if !known || !slices.Contains(c.Pictures(), p) {
					t.Errorf("%s, %s is no scan", kind, p)
				}
			}
		}
	}
}

func TestFindWheels(t *testing.T) {
	dir := t.TempDir()
	wheel := filepath.Join(dir, "scikit_image-0.26.0-cp312-cp312-any.whl")
	for _, name := range []string{wheel, filepath.Join(dir, "nilearn-0.14.0-py3-none-any.whl")} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	wheels, missing, err := findWheels(dir)
	if err != nil || !slices.Equal(wheels, []string{wheel}) || !slices.Equal(missing, []string{"nilearn==0.14.1"}) {
		t.Errorf("%q, missing %q, %v", wheels, missing, err)
	}
}

// Ours and the others' wrong tiles count as silent unless they told.
func TestPeerTable(t *testing.T) {
	if s := peerTable([]tileResult{{kind: "base"}}); s != "" {
		t.Errorf("no programs, but a table: %s", s)
	}
	r := tileResult{kind: "base", picture: "ihc.png", tiles: 36, nominal: 2.8, rms: 0.02, seconds: 0.8,
		peers: []peerTiles{{rms: 9, wrong: 30, Told: true, Seconds: 1}, {rms: 7, wrong: 2, Seconds: 2}, {rms: 0.5, Seconds: 10}}}
	s := peerTable([]tileResult{r})
	for _, row := range []string{"| base | ihc | 36 | 2.8 | 0.02 / 0 | 9.00 / 30, told | 7.00 / 2 | 0.50 / 0 |\n", " 0 of 1 | 0 of 1 | 1 of 1 | 0 of 1 |\n", " 0.8 s | 1.0 s | 2.0 s | 10.0 s |\n"} {
		if !strings.Contains(s, row) {
			t.Errorf("no %q in\n%s", row, s)
		}
	}
}
