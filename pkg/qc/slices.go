package qc

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"strata/pkg/oct/crop"
	"strata/pkg/oct/stitch"
	"strata/pkg/pattern"
	"strata/pkg/webpage"
)

// What stitch and crop leave behind is shown in words and numbers that a person
// compares from slice to slice. Files that only look like theirs, or of another
// version, are shown as they are.

// stitched summarises where stitch put the tiles; ok is false if the file does not mention tiles.
func (f *Facts) stitched(b []byte) bool {
	var s stitch.Result
	if json.Unmarshal(b, &s) != nil || len(s.Tiles) == 0 {
		return false
	}
	f.clear()
	f.set("Tiles", fmt.Sprintf("%d × %d", s.Grid[0], s.Grid[1]))
	pixel, unit := s.Voxel, "µm"
	if pixel[0] <= 0 || pixel[1] <= 0 { // of a file that does not say
		pixel, unit = [2]float64{1, 1}, "px"
	}
	f.set("Slice, "+unit, webpage.Short(float64(s.Size[0])*pixel[0])+" × "+webpage.Short(float64(s.Size[1])*pixel[1]))
	f.set("Blending", string(s.Blending))
	f.size = s.Size
	residual, empty := 0.0, 0
	for _, t := range s.Tiles {
		residual = max(residual, math.Hypot(t.Residual[0]*pixel[0], t.Residual[1]*pixel[1]))
		if t.Empty {
			empty++
		}
	}
	f.set("Empty tiles", strconv.Itoa(empty))
	if s.Holes > 0 {
		f.set("Pixels without a tile", strconv.FormatInt(s.Holes, 10))
	}
	f.number("Largest residual, "+unit, residual)
	sum, weight, worst, least := 0.0, 0.0, 0.0, 1.0
	var worstTiles [2][2]int
	for _, p := range s.Seams {
		if p.Voxels <= 0 || !webpage.Finite(p.Relative) {
			continue
		}
		sum += p.Relative * float64(p.Voxels)
		weight += float64(p.Voxels)
		if p.Relative > worst {
			worst, worstTiles = p.Relative, p.Tiles
		}
		least = min(least, p.Correlation)
	}
	if weight > 0 {
		f.set(seamMean, webpage.Short(100*sum/weight)+" %")
		f.set(seamWorst, webpage.Short(100*worst)+" %")
		if at, ok := seamOf(&s, worstTiles, ""); ok {
			f.worst = &at
		}
		f.number("Lowest seam correlation", least)
		f.plot = map[string]float64{seamMean: 100 * sum / weight, seamWorst: 100 * worst}
	}
	f.agrees(&s)
	return true
}

const (
	seamMean  = "Difference at seams"
	seamWorst = "At the worst seam"
)

// cropped summarises the result of crop; ok is false if the file does not mention an interface.
func (f *Facts) cropped(b []byte) bool {
	var c crop.Metrics
	if json.Unmarshal(b, &c) != nil || c.InputPlanes == 0 {
		return false
	}
	f.clear()
	f.set("Interface", yesNo(c.Found, "found", "not found"))
	f.number("Interface depth, µm", c.InterfaceUM)
	f.set("A-lines used", strconv.FormatInt(c.ALinesUsed, 10)+" of "+strconv.FormatInt(c.ALines, 10))
	f.set("First plane kept", strconv.Itoa(c.First))
	f.set("Planes kept", fmt.Sprintf("%d of %d", c.Kept, c.InputPlanes))
	f.set("Planes padded", strconv.Itoa(c.Padded))
	f.set("Planes missing", strconv.Itoa(c.Missing))
	if c.Found && webpage.Finite(c.InterfaceUM) {
		f.plot = map[string]float64{cropDepth: c.InterfaceUM}
	}
	return true
}

const cropDepth = "interface"

func yesNo(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func (f *Facts) clear() { f.Fields, f.Values = nil, map[string]string{} }

func (f *Facts) number(name string, v float64) { f.set(name, webpage.Short(v)) }

// apart returns the files with numbers in common forms, and the others.
func apart(all []*Facts) (known, others []*Facts) {
	for _, f := range all {
		if f.known {
			known = append(known, f)
		} else {
			others = append(others, f)
		}
	}
	return known, others
}

var sliceName = pattern.Lazy(`z(\d{1,6})`)

// perSlice plots values against the number in the slices' names; nil where fewer
// than two have one.
func perSlice(all []*Facts, title, yLabel, unit, caption string, names ...string) *webpage.Plot {
	c := &webpage.Chart{Title: title, XLabel: "slice", YLabel: yLabel, Whole: true, Zero: true}
	ids := map[int]bool{}
	for _, name := range names {
		s := webpage.Series{Name: name, Joined: true}
		for _, f := range all {
			m := sliceName().FindStringSubmatch(f.Name)
			v, ok := f.plot[name]
			if m == nil || !ok {
				continue
			}
			id, err := strconv.Atoi(m[1])
			if err != nil {
				continue
			}
			ids[id] = true
			s.Points = append(s.Points, webpage.Point{X: float64(id), Y: v, Tip: fmt.Sprintf("%s: %s %s", f.Name, webpage.Short(v), unit)})
		}
		slices.SortStableFunc(s.Points, func(a, b webpage.Point) int { return int(a.X - b.X) })
		c.Series = append(c.Series, s)
	}
	if len(ids) < 2 {
		return nil
	}
	return c.Plot(caption)
}
