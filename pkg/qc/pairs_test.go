package qc

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/affine"
)

// pairsOf makes a stitching of a grid whose pairs have the residual in px and the reason that of says.
func pairsOf(grid [2]int, of func(n int) (residual float64, reason string)) *stitch.Result {
	s := &stitch.Result{Grid: grid, Size: [2]int{100, 100}, Transform: affine.Transform{Spread: 0.6}}
	add := func(a, b [2]int) {
		r, reason := of(len(s.Pairs))
		p := stitch.TilePair{Tiles: [2][2]int{a, b}, Correlation: 0.9, Residual: &r, Used: reason == "", Reason: reason}
		if reason == "empty" {
			p.Residual = nil
		}
		s.Pairs = append(s.Pairs, p)
	}
	for i := range grid[0] {
		for j := range grid[1] {
			s.Tiles = append(s.Tiles, stitch.TilePlan{Tile: [2]int{i, j}, Used: true})
			if i > 0 {
				add([2]int{i - 1, j}, [2]int{i, j})
			}
			if j > 0 {
				add([2]int{i, j - 1}, [2]int{i, j})
			}
		}
	}
	return s
}

// drawn returns the facts of a stitching, whose drawing must be well-formed.
func drawn(t *testing.T, s *stitch.Result) *Facts {
	t.Helper()
	f := &Facts{Name: "slice_z01"}
	var b bytes.Buffer
	if err := stitch.WriteStitching(&b, s); err != nil {
		t.Fatal(err)
	}
	if !f.stitched(b.Bytes()) {
		t.Fatal("no stitching")
	}
	if f.pairs != nil {
		for d := xml.NewDecoder(strings.NewReader(string(f.pairs.SVG))); ; {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v: %s", err, f.pairs.SVG)
			}
		}
	}
	return f
}

// Each pair has the colour of its residual, what contradicts others or lies too far has a mark, and what says nothing
// is grey.
func TestPairMap(t *testing.T) {
	of := []struct {
		residual float64
		reason   string
	}{{0.05, ""}, {0.1, ""}, {0.11, ""}, {4, ""}, {50, ""}, {9, stitch.Outlier}, {3, stitch.TooFar}, {7, "no <texture>"}, {0, "empty"}, {0, ""}, {0, ""}, {0, ""}}
	s := pairsOf([2]int{3, 3}, func(n int) (float64, string) { return of[n].residual, of[n].reason })
	s.Tiles[3].Empty, s.Tiles[5].Used = true, false
	f := drawn(t, s)
	svg := string(f.pairs.SVG)
	lines := func(attributes string) int {
		_, rest, ok := strings.Cut(svg, "<g "+attributes+">")
		group, _, _ := strings.Cut(rest, "</g>")
		if !ok {
			return 0
		}
		return strings.Count(group, "M")
	}
	for look, want := range []int{5, 1, 0, 0, 0, 2, 2, 2} { // 0.1 is up to 0.1
		if got := lines(lineStyle(look)); got != want {
			t.Errorf("look %d: %d lines, want %d", look, got, want)
		}
	}
	if signs, halos := lines(signStyle("mark", 1)), lines(signStyle("halo", 1)); signs != 2 || halos != 2 {
		t.Errorf("%d marks and %d halos", signs, halos)
	}
	for kind, want := range []int{7, 1, 1} {
		if got := lines(tileClasses[kind]); got != want {
			t.Errorf("%s: %d tiles, want %d", tileClasses[kind], got, want)
		}
	}
	for _, want := range []string{"<title>tiles 0, 0 and 0, 1: residual 0.05 px, correlation 0.9</title>", ": contradicts the other pairs, residual 9 px, correlation 0.9<", ": empty<", "no &lt;texture&gt;, residual 7 px"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
	if used, spread, rejected := f.Values["Pairs used"], f.Values["Spread, px"], f.Values["Pairs rejected"]; used != "8 of 11" || spread != "0.6" || f.Values["Tiles unplaced"] != "1" ||
		rejected != "contradicts the other pairs: 1; no <texture>: 1; too far from where it should be: 1" {
		t.Errorf("%+v", f.Values)
	}
	page := write(t, &Report{Stitch: []*Facts{f}})
	for _, want := range []string{"<h3>Pairs of neighbouring tiles</h3>", "up to 0.1 px</span>", "<figcaption>slice_z01: 8 of 11 pairs used, spread 0.6 px; contradicts the other pairs: 1;", `style="max-width:120px"`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if colors := residualColors(); len(slices.Compact(slices.Sorted(slices.Values(colors)))) != len(residualClasses)+1 {
		t.Errorf("colours %v", colors)
	}
}

// An estimate by other rules than ours says so.
func TestPairMapOfReferenceRules(t *testing.T) {
	s := pairsOf([2]int{2, 2}, func(int) (float64, string) { return 0, "" })
	s.Transform.Rules = affine.RulesReference
	if f := drawn(t, s); f.Values["Estimated"] != "by the reference's rules" || f.pairs.Note != "4 of 4 pairs used, spread 0.6 px, by the reference's rules" {
		t.Errorf("%+v, %q", f.Values, f.pairs.Note)
	}
	s.Transform.Rules = affine.RulesConsensus
	if f := drawn(t, s); f.Values["Estimated"] != "" || f.pairs.Note != "4 of 4 pairs used, spread 0.6 px" {
		t.Errorf("%+v, %q", f.Values, f.pairs.Note)
	}
}

// Files of versions that did not say residuals, and grids that files only claim, draw nothing wrong.
func TestPairMapOfOtherFiles(t *testing.T) {
	s := pairsOf([2]int{2, 2}, func(int) (float64, string) { return 0, "" })
	for i := range s.Pairs {
		s.Pairs[i].Residual = nil
	}
	if f := drawn(t, s); f.pairs != nil || f.Values["Pairs used"] != "4 of 4" {
		t.Errorf("%+v", f)
	}
	s = pairsOf([2]int{2, 2}, func(int) (float64, string) { return 0, "" })
	s.Pairs[0].Tiles, s.Pairs[1].Tiles[1], s.Tiles[0].Tile = [2][2]int{{-5, 0}, {0, 0}}, [2]int{1, 1 << 40}, [2]int{9, 9}
	if svg := string(drawn(t, s).pairs.SVG); strings.Contains(svg, "M-") || strings.Contains(svg, "000000") || strings.Count(svg, "<title>") != 2 {
		t.Errorf("%s", svg)
	}
	s.Grid = [2]int{-3, 0}
	if svg := string(drawn(t, s).pairs.SVG); !strings.HasPrefix(svg, `<svg viewBox="0 0 0 0"`) || strings.Contains(svg, "<path") {
		t.Errorf("%s", svg)
	}
}

// Drawings of many tiles stay small: tooltips and then all pairs without a mark are left out.
func TestPairMapStaysSmall(t *testing.T) {
	of := func(n int) (float64, string) {
		switch n % 50 {
		case 0:
			return 20, stitch.Outlier
		case 1, 2:
			return 1.2, "no texture in common"
		}
		return float64(n%7) / 5, ""
	}
	d := regexp.MustCompile(` d="([^"]*)"`)
	for _, c := range []struct {
		side, bytes, titles, lines int
	}{
		{12, 40_000, 264 + 6, 264}, {50, 110_000, 98, 4900}, {80, 50_000, 253, 253}, {170, 200_000, mostMarks, mostMarks},
	} {
		svg := string(drawn(t, pairsOf([2]int{c.side, c.side}, of)).pairs.SVG)
		before, _, _ := strings.Cut(svg, `<g class="halo"`)
		before, _, _ = strings.Cut(before, `<g class="tile`)
		lines := 0
		for _, m := range d.FindAllStringSubmatch(before, -1) {
			lines += strings.Count(m[1], "M")
		}
		if titles := strings.Count(svg, "<title>"); len(svg) > c.bytes || titles != c.titles || lines != c.lines {
			t.Errorf("%d × %d tiles: %d bytes, %d tooltips, %d lines", c.side, c.side, len(svg), titles, lines)
		}
	}
}

// Of many slices, the first drawings stand in the open.
func TestManyPairMaps(t *testing.T) {
	r := &Report{}
	for i := range fewPictures + 3 {
		f := drawn(t, pairsOf([2]int{1, 2}, func(int) (float64, string) { return 0, "" }))
		f.pairs.Name = fmt.Sprintf("slice_z%02d", i)
		r.Stitch = append(r.Stitch, f)
	}
	page := write(t, r)
	at := func(name string) int { return strings.Index(page, "<figcaption>"+name+":") }
	if fold := strings.Index(page, "15 more slices"); fold < 0 || at("slice_z11") < 0 || at("slice_z11") > fold || at("slice_z12") < fold {
		t.Error("the drawings are not where they should be")
	}
}
