package qc

import (
	"html/template"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/oct/stitch"
	"strata/pkg/pattern"
	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/webpage"
)

// Where joins and seams lie in the images, by the records and tables: the page marks their names with it, and where
// view serves the page they are links.

// joinSpots returns the places of the joins of stack, by the numbers of the fixed and the moving slice: the fixed slice
// with the moving one laid over it as it was measured, or the volume, at the middle of the overlap.
func (r *Report) joinSpots() map[[2]int]*webpage.Spot {
	run := r.stackRun()
	if run == nil {
		return nil
	}
	inputs := map[int]runrecord.Dataset{}
	for _, d := range run.Inputs {
		if id := sliceOf(path.Base(d.Path.String())); id >= 0 && len(d.Shape) == 3 && len(d.VoxelSize) == 3 {
			inputs[id] = d
		}
	}
	spots := map[[2]int]*webpage.Spot{}
	inVolume := volumeSpots(run.Outputs[0], inputs, r.placedMatches())
	for _, m := range r.placedMatches() {
		pair := [2]int{m.Fixed, m.Moving}
		spots[pair] = inVolume[pair]
		lay, ok := r.lay(run, m, inputs)
		if fixed := inputs[m.Fixed]; ok {
			spots[pair] = &webpage.Spot{Image: imagePath(fixed), Overlay: imagePath(inputs[m.Moving]), Lay: lay, Or: inVolume[pair],
				At: [3]float64{float64(fixed.Shape[0] - (m.Overlap+1)/2), webpage.Middle, webpage.Middle}}
		}
	}
	return spots
}

// stackRun returns the record of stack that made a volume, or nil.
func (r *Report) stackRun() *Run {
	for i := range slices.Backward(r.Runs) {
		if run := &r.Runs[i]; run.Tool == "stack" && len(run.Outputs) > 0 && len(run.Outputs[0].Shape) == 3 {
			return run
		}
	}
	return nil
}

// imagePath returns the last two parts of an image's path: its folder in a run's results, and its name.
func imagePath(d runrecord.Dataset) string {
	parts := strings.Split(strings.TrimRight(d.Path.String(), "/"), "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// placedMatches returns the matches with the overlaps after the consistency check, by the decisions.
func (r *Report) placedMatches() []registration.Match {
	all := slices.Clone(r.Matches)
	for i := range all {
		for _, d := range r.Decisions {
			if d.Fixed == all[i].Fixed && d.Slice == all[i].Moving {
				all[i].Overlap = d.Overlap
			}
		}
	}
	return all
}

// volumeSpots returns the joins in the volume; none if the depths of the slices do not add up to that of the volume, as
// where planes between slices are empty.
func volumeSpots(volume runrecord.Dataset, inputs map[int]runrecord.Dataset, matches []registration.Match) map[[2]int]*webpage.Spot {
	spots := map[[2]int]*webpage.Spot{}
	if len(matches) == 0 || len(inputs[matches[0].Fixed].Shape) == 0 || len(volume.VoxelSize) != 3 {
		return nil
	}
	first := inputs[matches[0].Fixed]
	end, planes := first.Shape[0], first.VoxelSize[0]/volume.VoxelSize[0]
	for _, m := range matches {
		moving, ok := inputs[m.Moving]
		if !ok {
			return nil
		}
		middle := (float64(end) - float64(m.Overlap)/2) * planes
		spots[[2]int{m.Fixed, m.Moving}] = &webpage.Spot{Image: imagePath(volume), Panel: "xz", At: [3]float64{math.Floor(middle), webpage.Middle, webpage.Middle}}
		end += max(0, moving.Shape[0]-m.MovingZ-m.Overlap)
	}
	if !(math.Abs(float64(end)*planes-float64(volume.Shape[0])) <= max(1, planes)) {
		return nil
	}
	return spots
}

// lay returns how the moving slice of a match lies on the fixed one, in the form of [webpage.Spot]; ok is false if the
// records and tables do not say.
func (r *Report) lay(run *Run, m registration.Match, inputs map[int]runrecord.Dataset) (numbers []float64, ok bool) {
	fixed, moving := inputs[m.Fixed], inputs[m.Moving]
	if len(fixed.Shape) == 0 || len(moving.Shape) == 0 || m.Overlap < 1 || m.Overlap > fixed.Shape[0] || run.has("--accumulate_translations") {
		return nil, false
	}
	shift, ok := r.shiftUsed(run, m)
	if !ok {
		return nil, false
	}
	dx, dy := -1000*shift[0]/fixed.VoxelSize[2], -1000*shift[1]/fixed.VoxelSize[1] // from pixels of the fixed slice to those of the moving one
	var angle, tx, ty float64
	for _, d := range r.Decisions {
		if d.Fixed == m.Fixed && d.Slice == m.Moving && d.TransformLoaded {
			if angle, tx, ty, ok = r.registeredAt(m.Moving); !ok || d.ManualOverride || d.TransformSource == "manual" {
				return nil, false
			}
		}
	}
	cx, cy := float64(fixed.Shape[2])/2, float64(fixed.Shape[1])/2 // about which register turns
	return []float64{angle, tx + dx, ty + dy, cx - dx, cy - dy, float64(fixed.Shape[0] - m.Overlap), float64(m.MovingZ)}, true
}

// has reports whether a flag is among the arguments of a run.
func (run *Run) has(flag string) bool {
	for _, a := range run.Arguments {
		if a.Reveal() == flag {
			return true
		}
	}
	return false
}

// shiftUsed returns the shift (x, y) in mm of the moving slice of a match against the fixed one that stack used.
func (r *Report) shiftUsed(run *Run, m registration.Match) (mm [2]float64, ok bool) {
	for _, s := range r.Found {
		switch {
		case s.Fixed != m.Fixed || s.Moving != m.Moving:
		case s.Repaired:
			return [2]float64{s.X, s.Y}, true
		default:
			return [2]float64{s.RecordedX, s.RecordedY}, true
		}
	}
	return mm, run.has("--no_xy_shift")
}

// registeredAt returns the transform of a slice's registration, by the metrics of register: radians and pixels.
func (r *Report) registeredAt(moving int) (angle, tx, ty float64, ok bool) {
	for _, s := range r.Steps {
		if s.Step.Name != "pairwise_registration" || sliceOf(s.Name) != moving {
			continue
		}
		ok = true
		for name, to := range map[string]*float64{"rotation": &angle, "translation_x": &tx, "translation_y": &ty} {
			v, _ := s.Metric(name)
			number, is := v.Value.(float64)
			*to, ok = number, ok && is && webpage.Finite(number)
		}
		return angle * math.Pi / 180, tx, ty, ok
	}
	return 0, 0, 0, false
}

// seam is where two neighbouring tiles of a stitched slice overlap.
type seam struct {
	text   string
	at     [2]float64 // (y, x) of the middle, in pixels of the slice
	across float64    // pixels to be shown
}

// mostSeams is the maximum number of seams that stand below a drawing.
const mostSeams = 12

// seamOf returns the seam of two tiles; ok is false if their places are not known.
func seamOf(s *stitch.Result, tiles [2][2]int, text string) (out seam, ok bool) {
	out = seam{text: text, across: 2 * float64(s.Tile[1])}
	known := 0
	for _, t := range s.Tiles {
		if t.Tile == tiles[0] || t.Tile == tiles[1] {
			known++
			for d := range out.at {
				out.at[d] += (t.Position[d] + float64(s.Tile[d])/2 - float64(s.Origin[d])) / 2
			}
		}
	}
	return out, known == 2 && s.Tile[1] > 0
}

// doubtful returns the seams of the pairs that a drawing marks or, if it marks none, the seam with the largest
// residual.
func doubtful(s *stitch.Result) (seams []seam) {
	var worst *stitch.TilePair
	for i := range s.Pairs {
		p := &s.Pairs[i]
		if slices.Contains(marked, p.Reason) && len(seams) < mostSeams {
			if one, ok := seamOf(s, p.Tiles, tipOf(p)); ok {
				seams = append(seams, one)
			}
		}
		if p.Used && p.Residual != nil && (worst == nil || *p.Residual > *worst.Residual) {
			worst = p
		}
	}
	if len(seams) > 0 || worst == nil {
		return seams
	}
	if one, ok := seamOf(s, worst.Tiles, "worst pair: "+tipOf(worst)); ok {
		seams = append(seams, one)
	}
	return seams
}

// seamSpot returns the place of a seam: in the stitched slice or, if that was not kept, in the slice made from it.
func (r *Report) seamSpot(f *Facts, s seam) *webpage.Spot {
	spot := func(folder string, moved [2]float64) *webpage.Spot {
		return &webpage.Spot{Image: folder + "/" + f.Name + ".ome.zarr", Width: s.across, At: [3]float64{webpage.Middle, s.at[0] + moved[0], s.at[1] + moved[1]}}
	}
	first := spot("stitched", [2]float64{})
	if moved, ok := r.moved[f.Name]; ok {
		first.Or = spot("slices", moved)
	}
	return first
}

// movedSlices returns by how many pixels (y, x) each stitched slice lies further in the slice that was made of it: by
// nothing, or by its place on the canvas of common-space. It returns none if the size of the canvas does not confirm
// the places.
func (r *Report) movedSlices() map[string][2]float64 {
	moved := map[string][2]float64{}
	i := slices.IndexFunc(r.Runs, func(run Run) bool { return run.Tool == "common-space" })
	for _, f := range r.Stitch {
		moved[f.Name] = [2]float64{}
	}
	if i < 0 {
		return moved
	}
	canvas := slices.IndexFunc(r.Runs[i].Outputs, func(d runrecord.Dataset) bool { return len(d.Shape) == 3 && len(d.VoxelSize) == 3 })
	shifts := r.Shifts
	if r.Cleaned != nil {
		shifts = r.Cleaned.Shifts()
	}
	if canvas < 0 || shifts == nil {
		return nil
	}
	onto := r.Runs[i].Outputs[canvas]
	at, _ := shifts.Positions(r.positionIDs())
	for d := range 2 {
		low, end := math.Inf(1), math.Inf(-1)
		for _, f := range r.Stitch {
			if f.size[d] > 0 {
				px := 1000 * at[sliceOf(f.Name)][1-d] / onto.VoxelSize[1+d]
				low, end = min(low, px), max(end, px+float64(f.size[d]))
				p := moved[f.Name]
				p[d] = px
				moved[f.Name] = p
			}
		}
		if math.Abs(end-low-float64(onto.Shape[1+d])) > 2 {
			return nil
		}
		for name, p := range moved {
			p[d] -= low
			moved[name] = p
		}
	}
	return moved
}

// seamList returns the seams of a slice's drawing, each marked with its place.
func (r *Report) seamList(f *Facts) template.HTML {
	var parts []string
	for _, s := range f.seams {
		parts = append(parts, string(r.seamSpot(f, s).Mark(s.text)))
	}
	return template.HTML(strings.Join(parts, "; ")) // Mark escapes
}

// pairInText is a pair of slices as messages name it.
var pairInText = pattern.Lazy(`slices (\d{1,9})(?: and |–)(\d{1,9})`)

// LinkPairs returns a text in which the names of pairs are marked with the places of their joins.
func (v *view) LinkPairs(text string) template.HTML {
	var b strings.Builder
	from := 0
	for _, m := range pairInText().FindAllStringSubmatchIndex(text, -1) {
		fixed, _ := strconv.Atoi(text[m[2]:m[3]]) // nine digits
		moving, _ := strconv.Atoi(text[m[4]:m[5]])
		b.WriteString(template.HTMLEscapeString(text[from:m[0]]))
		b.WriteString(string(v.Report.spots[[2]int{fixed, moving}].Mark(text[m[0]:m[1]])))
		from = m[1]
	}
	b.WriteString(template.HTMLEscapeString(text[from:]))
	return template.HTML(b.String()) // escaped above
}

// Places reports whether a join or a seam of the page has a place in an image.
func (v *view) Places() bool {
	for _, s := range v.Report.spots {
		if s != nil {
			return true
		}
	}
	return slices.ContainsFunc(v.Stitch, func(f *Facts) bool { return len(f.seams) > 0 })
}
