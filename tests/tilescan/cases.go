package tilescan

import (
	"fmt"
	"strings"
)

// Case is a kind of scan of pictures, and the overlap that stitch is told.
type Case struct {
	Name   string
	Stated float64
	Full   bool // every tile is full of tissue, and overlaps by 8 to 40 %: all must be found
	Scan   Scan
}

// usual are the pictures of every kind: tissue, a portrait, stones, and bricks, which repeat themselves; those of
// the base are more.
var usual = []string{"ihc.png", "camera.png", "gravel.png", "brick.png"}

var base = []string{"retina.jpg", "brick.png", "camera.png", "coins.png", "grass.png", "gravel.png", "moon.png", "ihc.png", "hubble_deep_field.jpg", "chelsea.png", "astronaut.png", "page.png"}

// Brain is the volume of all kinds of scans in 3-D: a T1-weighted template of the human brain, of 1 mm, without what
// surrounds it.
const Brain = "mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"

// Cases returns all kinds of scans.
func Cases() (out []Case) {
	add := func(name string, stated float64, s Scan) {
		if s.Tiles == 0 {
			s.Tiles = 6
		}
		if s.Side == 0 {
			s.Side = 256
		}
		if s.Overlap == 0 {
			s.Overlap = 0.1
		}
		if s.Jitter == 0 {
			s.Jitter = 2
		}
		s.Seed = 1
		full := s.Empty == 0 && s.End == 0 && s.Overlap >= 0.08 && s.Depth < 0.7
		out = append(out, Case{name, stated, full, s})
	}
	add("base", 0.1, Scan{})
	for _, tiles := range []int{6, 3} {
		for _, overlap := range []float64{0.05, 0.08, 0.12, 0.2, 0.3, 0.4} {
			add(fmt.Sprintf("%d × %d tiles, overlap %g %%, stated 20 %%", tiles, tiles, 100*overlap), 0.2, Scan{Tiles: tiles, Overlap: overlap})
		}
	}
	add("jitter 5 px", 0.1, Scan{Jitter: 5})
	add("backlash 6 px", 0.1, Scan{Backlash: 6})
	add("backlash 12 px", 0.1, Scan{Backlash: 12})
	add("rows slipped by 12 px", 0.1, Scan{Slips: 12})
	add("one slip of 25 px, overlap 20 %", 0.2, Scan{Slip: 25, Overlap: 0.2})
	add("rotation 1°", 0.1, Scan{Rotation: 1})
	add("rotation 2°, scale 3 %", 0.1, Scan{Rotation: 2, Scale: 1.03})
	add("noise 20 %", 0.1, Scan{Noise: 0.2})
	add("vignette 45 %", 0.1, Scan{Vignette: 0.45})
	add("columns 5 %", 0.1, Scan{Columns: 0.05})
	add("speckle 30 %", 0.1, Scan{Speckle: 0.3})
	add("40 % empty", 0.1, Scan{Empty: 0.4, Noise: 0.02})
	add("80 % empty", 0.1, Scan{Empty: 0.8, Noise: 0.02})
	add("80 % empty, columns, vignette", 0.1, Scan{Empty: 0.8, Noise: 0.02, Columns: 0.05, Vignette: 0.3})
	for end := 1; end <= 3; end++ {
		add(fmt.Sprintf("end of a specimen, %d", end), 0.1, Scan{End: end, Noise: 0.02, Columns: 0.02, Vignette: 0.45})
	}
	hard := Scan{Jitter: 3, Rotation: 1, Scale: 1.01, Backlash: 4, Noise: 0.1, Vignette: 0.3, Gain: 0.1}
	add("hard", 0.1, hard)
	for _, empty := range []float64{0.4, 0.8} {
		s := hard
		s.Empty = empty
		add(fmt.Sprintf("hard, %g %% empty", 100*empty), 0.1, s)
	}
	hard.Overlap = 0.05
	add("hard, overlap 5 %", 0.05, hard)
	hard.Overlap, hard.Tiles, hard.Side = 0.1, 12, 128
	add("hard, 12 × 12 tiles of 128 px", 0.1, hard)
	brain := Scan{Picture: Brain, Side: 128, Planes: 12, Overlap: 0.2, Jitter: 1.5, Vignette: 0.45, Curvature: 6, Depth: 0.45}
	add("3-D, middle slice", 0.2, brain)
	add("3-D, middle slice, stated 10 %", 0.1, brain)
	brain.Speckle = 1
	add("3-D, middle slice, speckle", 0.2, brain)
	brain.Depth = 0.75
	add("3-D, end slice, speckle", 0.2, brain)
	brain.Depth = 0.79
	add("3-D, last slice, speckle", 0.2, brain)
	return out
}

// Pictures names what is scanned in this way.
func (c *Case) Pictures() []string {
	switch {
	case c.Scan.Picture != "":
		return []string{c.Scan.Picture}
	case c.Name == "base":
		return base
	case strings.HasPrefix(c.Name, "hard"):
		return append([]string{"retina.jpg"}, usual...)
	}
	return usual
}

// Of returns the scan of a picture with a set of random numbers.
func (c *Case) Of(picture string, seed uint64) *Scan {
	s := c.Scan
	s.Picture, s.Seed = picture, seed
	return &s
}

// Hidden lists the kinds and pictures of full scans some of whose tiles show nothing by which they could be placed
// within MostRMS, and why: even where each pair is compared at its true displacement, not all are. They need a warning
// as all others do.
var Hidden = map[[2]string]string{
	{"hard", "camera.png"}:                          sky,
	{"speckle 30 %", "camera.png"}:                  sky,
	{"hard, 12 × 12 tiles of 128 px", "camera.png"}: sky,
	{"hard, 12 × 12 tiles of 128 px", "retina.jpg"}: "13 px of overlap under noise show little of what is coarse",
	{"speckle 30 %", "brick.png"}:                   "bricks repeat themselves, and speckle hides what tells one from the next",
	{"3-D, middle slice, speckle", Brain}:           "speckle is fully developed, and the brain smooth",
}

const sky = "the sky is even"
