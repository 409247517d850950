// Package comparison compares two stitched images of one mosaic, such as one by the motor's positions and one by what
// tiles show: intensities, structure, the seams between tiles, and how far each tile was moved.
package comparison

import (
	"context"
	"math"

	"strata/pkg/ngff"
	"strata/pkg/oct"
)

// Image is one of the two images.
type Image struct {
	Label  string
	Path   string // name in messages
	Image  *ngff.Image
	Places *Places // where its tiles lie; nil: not known
}

// Options are the options of [Run].
type Options struct {
	Plane    int // of the first image; -1: the middle one of those that both have
	TileStep int // distance of seams in px where Places do not say where they are
}

// Defaults returns the defaults of the flags.
func Defaults() Options { return Options{Plane: -1, TileStep: 60} }

// Report is what [Run] finds. Lengths along y and x are in pixels of the images, unless the name says µm.
type Report struct {
	Plane        int           `json:"z_slice"`
	Region       Region        `json:"region"`
	Voxel        [2]float64    `json:"voxel_um"` // (y, x)
	Compared     int64         `json:"compared_px"`
	First        Side          `json:"first"`
	Second       Side          `json:"second"`
	Difference   Difference    `json:"difference"`
	Correlation  Agreement     `json:"correlation"`           // of intensities
	Structure    Agreement     `json:"structure_correlation"` // of the lengths of gradients
	Seams        Seams         `json:"seams"`
	Displacement *Displacement `json:"tile_displacement,omitempty"` // of tiles of the second image from those of the first

	picture *picture
}

// Region is the part of the plane that both images cover.
type Region struct {
	Origin [2]int `json:"origin_px"` // (y, x) in the first image
	Offset [2]int `json:"second_px"` // (y, x) of the second image's first pixel in the first image
	Size   [2]int `json:"size_px"`
}

// Side describes one image in the region.
type Side struct {
	Path  string  `json:"path"`
	Label string  `json:"label"`
	Mean  float64 `json:"mean"`
	Std   float64 `json:"std"`

	Vertical   *float64 `json:"vertical_seam_sharpness"`   // mean |∂x| of Sobel's operator in the overlaps of tiles beside each other
	Horizontal *float64 `json:"horizontal_seam_sharpness"` // mean |∂y| in the overlaps of tiles below each other
	Relative   *float64 `json:"relative_seam_sharpness"`   // mean length of the gradient in overlaps / in the rest
}

// Difference describes the second image less the first.
type Difference struct {
	Mean     float64 `json:"mean"` // of the absolute values, as are Max and Std
	Max      float64 `json:"max"`
	Std      float64 `json:"std"`
	Bias     float64 `json:"bias"` // mean with sign
	RMS      float64 `json:"rms"`
	Relative float64 `json:"relative_rms"` // RMS / standard deviation of the first image
}

// Agreement is Pearson's correlation in the region, in the overlaps of either image, and outside of them; nil where it
// is not defined.
type Agreement struct {
	All   *float64 `json:"all"`
	Seams *float64 `json:"at_seams"`
	Rest  *float64 `json:"elsewhere"`
}

// Seams says where overlaps of tiles were looked for.
type Seams struct {
	From  string  `json:"from"` // "positions", or "step": lines Step px apart
	Step  int     `json:"tile_step,omitempty"`
	Share float64 `json:"share"` // of the compared pixels
}

// Run compares one plane of two images of the same voxel size, where they cover the same place by their translations,
// rounded to pixels. Pixels that are 0 or not finite in one of the two do not count. It reads the plane in bands of
// rows, and fails for images without a place in common.
func Run(ctx context.Context, first, second Image, opt Options, res oct.Resources) (*Report, error) {
	p, err := open(first, second, opt)
	if err != nil {
		return nil, err
	}
	r := &Report{Plane: p.plane, Region: Region{Origin: p.at[0], Offset: p.offset, Size: p.size}, Voxel: p.voxel}
	s, err := p.read(ctx, res)
	if err != nil {
		return nil, err
	}
	if s.compared == 0 {
		return nil, oct.BadInput("%s: shows nothing where %s does, in plane %d", second.Path, first.Path, p.plane)
	}
	s.describe(r, p)
	if first.Places != nil && second.Places != nil {
		if r.Displacement, err = displacement(first.Places, second.Places); err != nil {
			return nil, err
		}
	}
	r.picture, err = p.draw(ctx, s, r, res)
	return r, err
}

// describe puts the sums into the report.
func (s *sums) describe(r *Report, p *pair) {
	n := float64(s.compared)
	r.Compared = s.compared
	for k, side := range []*Side{&r.First, &r.Second} {
		all := s.values.all
		side.Path, side.Label = p.images[k].Path, p.images[k].Label
		side.Mean, side.Std = oct.Digits(all.mean(k)), oct.Digits(all.std(k))
		g := &s.sharp[k]
		side.Vertical, side.Horizontal = ratio(g.across, g.acrossN), ratio(g.down, g.downN)
		if seam, rest := ratio(g.seam, g.seamN), ratio(g.rest, g.restN); seam != nil && rest != nil && *rest > 0 {
			side.Relative = finite(*seam / *rest)
		}
	}
	mean := s.absolute / n
	r.Difference = Difference{Mean: oct.Digits(mean), Max: oct.Digits(s.largest), Std: oct.Digits(math.Sqrt(max(0, s.squares/n-mean*mean))),
		Bias: oct.Digits(s.signed / n), RMS: oct.Digits(math.Sqrt(s.squares / n))}
	if std := s.values.all.std(0); std > 0 {
		r.Difference.Relative = oct.Digits(math.Sqrt(s.squares/n) / std)
	}
	r.Correlation, r.Structure = s.values.agreement(), s.gradients.agreement()
	r.Seams = Seams{From: "positions", Share: oct.Digits(float64(s.values.seams.n) / n)}
	if !p.known() {
		r.Seams.From, r.Seams.Step = "step", p.step
	}
}

// ratio returns a mean; nil of nothing.
func ratio(sum float64, n int64) *float64 {
	if n == 0 {
		return nil
	}
	return finite(sum / float64(n))
}

// finite returns a number with the digits of reports; nil if it is none.
func finite(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	v = oct.Digits(v)
	return &v
}
