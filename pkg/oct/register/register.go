// Package register lays a slice on the slice before it: [Run] finds the plane of the fixed slice that a plane of the
// moving one shows, and the rotation and translation between the two.
package register

import (
	"context"
	"fmt"
	"math"
	"path"
	"strings"

	"strata/pkg/filter"
	"strata/pkg/filter/bspline"
	"strata/pkg/filter/pairwise"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/oct/surface"
	"strata/pkg/registration"
)

// Start selects the initial transforms of the search, in addition to the identity.
type Start string

// Starts. If several initial transforms lead to a result, the one that agrees best is used.
const (
	StartNone     Start = "none"     // the identity only: for slices that are nearly aligned
	StartMass     Start = "com"      // centres of mass
	StartGradient Start = "gradient" // phase correlation at a set of angles
	StartBoth     Start = "both"     // both
)

// ZSearch selects how the matching plane of the fixed slice is found.
type ZSearch string

// Ways to find the plane.
const (
	// ZAligned compares the planes a second time after they have been aligned. It also compares those around the plane
	// that lies SlicingIntervalMM below the moving plane.
	ZAligned ZSearch = "aligned"
	// ZCentre compares the centres of the planes as they lie, as linumpy does.
	ZCentre ZSearch = "centre"
)

// Starts and ZSearches list the choices.
var (
	Starts    = []string{string(StartBoth), string(StartGradient), string(StartMass), string(StartNone)}
	ZSearches = []string{string(ZAligned), string(ZCentre)}
)

// Options of [Run].
type Options struct {
	SlicingIntervalMM float64 // thickness that the blade cuts off between two slices
	Apart             int     // cuts between the two; 0: the difference of the numbers in their names, or 1
	SearchRangeMM     float64 // how far from the expected plane the search goes, either way
	MovingZ           int     // plane of the moving slice
	ZSearch           ZSearch
	Rotation          bool
	MaxRotationDeg    float64
	MaxTranslationPx  float64
	Start             Start
	Elastic           bool    // also find the smooth displacements that are left
	ElasticSpacingUM  float64 // between their control points
	ElasticMaxPx      float64 // largest displacement, in pixels
}

// Defaults returns the options of linumpy's workflow, with our own search along z.
func Defaults() Options {
	return Options{
		SlicingIntervalMM: 0.2, SearchRangeMM: 0.1, ZSearch: ZAligned, Rotation: true, MaxRotationDeg: 5, MaxTranslationPx: 20, Start: StartBoth,
		ElasticSpacingUM: 500, ElasticMaxPx: 10,
	}
}

// Slice is a slice with the path that messages and metrics call it by.
type Slice struct {
	Path  string
	Image *ngff.Image
}

// interpolated reports whether a slice was made up from its neighbours.
func (s Slice) interpolated() bool {
	return strings.Contains(path.Base(strings.TrimRight(s.Path, "/")), "_interpolated")
}

// apart returns the number of cuts between two slices.
func (o *Options) apart(fixed, moving Slice) int {
	if o.Apart > 0 {
		return o.Apart
	}
	a, known := slicefiles.Number(fixed.Path)
	b, too := slicefiles.Number(moving.Path)
	if known && too && b > a {
		return b - a
	}
	return 1
}

// Result is the registration of a pair of slices.
type Result struct {
	Fixed, Moving Slice
	Options       Options
	// Transform maps the moving slice onto the fixed one, in pixels of the slices. It is the identity if Refused.
	Transform filter.Rigid
	// Elastic holds the displacements that remain after Transform, in pixels of the slices; nil: none. See
	// [pairwise.ElasticResult].
	Elastic *bspline.Warp
	Offsets registration.Offsets
	Drift   int // planes between Offsets.FixedZ and the expected plane
	// ZCorrelation is the correlation of the centres of the two planes: under the transform if ZSearch found the plane
	// under it, otherwise without a transform.
	ZCorrelation float64
	// Before, After, Overlap and Peak describe the registration of the planes: see [pairwise.Result].
	Before, After, Overlap, Peak float64
	Confidence                   float64
	Refused                      string // why the planes are not registered; "": they are
	Unread                       bool   // the pair could not be read: there are no offsets
	Warnings                     []string
	// Deformed holds how the displacements were judged, in pixels of the slices; nil: no displacements were searched
	// for.
	Deformed *pairwise.ElasticResult

	planes [2]*plane // that were compared last
	shrunk int       // pixels of the slices per pixel of these
}

// Run registers a pair. What the slices show never makes an error: planes that cannot be registered are refused.
func Run(ctx context.Context, fixed, moving Slice, o Options, res oct.Resources) (*Result, error) {
	p, err := plan(fixed, moving, o, res)
	if err != nil {
		return nil, err
	}
	if err := p.find(ctx); err != nil {
		return nil, err
	}
	if err := p.blame(ctx); err != nil {
		return nil, err
	}
	if err := p.deform(ctx); err != nil {
		return nil, err
	}
	return p.result(), nil
}

// pairPlan holds the plan of a pair's registration, and the results so far.
type pairPlan struct {
	fixed, moving Slice
	o             Options
	res           oct.Resources
	f, m          *blocks.Volume
	ny, nx        int     // of the part that both slices have
	shrink        int     // pixels of the slices per pixel of a plane, along y and x
	cx, cy        float64 // centre of rotation in pixels of the slices
	movingZ       int
	expected      [2]int   // planes of the fixed slice: as linumpy expects it, and by the interval below the surface
	window        [][2]int // ranges of planes, half-open, disjoint, of which the first holds expected[0]
	warnings      []string

	centre       *centre // of the moving plane
	target       *plane  // the moving plane
	planes       map[int]*plane
	ruled        int             // plane of the fixed slice by the centres
	first        *pairwise.Image // of that, until it is registered
	zCorrelation float64
	best         int // plane of the fixed slice in the end
	found        pairwise.Result
	deformed     *pairwise.ElasticResult
}

const (
	// perPixel is the memory in bytes that registering two planes takes per pixel.
	perPixel = 80
	// perDeformed is the memory in bytes that finding displacements takes per pixel, after that.
	perDeformed = 240
	// besides is the memory in bytes for shrunk planes and Fourier transforms.
	besides = 8 << 20
)

// mostPixels is the size of planes that are registered as they are. Larger ones are averaged over squares of pixels:
// the accuracy, a few hundredths of a pixel of those, suffices.
var mostPixels = 1 << 22

// plan checks a pair of slices and determines which planes will be read.
func plan(fixed, moving Slice, o Options, res oct.Resources) (*pairPlan, error) {
	p := &pairPlan{fixed: fixed, moving: moving, o: o, res: res, planes: map[int]*plane{}}
	var err error
	if p.f, err = blocks.Open(fixed.Image); err != nil {
		return nil, err
	}
	if p.m, err = blocks.Open(moving.Image); err != nil {
		return nil, err
	}
	for d := range 3 {
		if a, b := p.f.Voxel[d], p.m.Voxel[d]; math.Abs(a-b) > 1e-3*a {
			return nil, oct.BadInput("%s: voxel size is %v µm along %c, that of %s is %v µm: both slices must have the same", moving.Path, b, "zyx"[d], fixed.Path, a)
		}
	}
	p.ny, p.nx = min(p.f.Shape[1], p.m.Shape[1]), min(p.f.Shape[2], p.m.Shape[2])
	p.cx, p.cy = float64(p.f.Shape[2])/2, float64(p.f.Shape[1])/2
	for p.shrink = 1; (p.ny/p.shrink)*(p.nx/p.shrink) > mostPixels; p.shrink++ {
	}
	if p.shrink > 1 {
		res.Decided("planes of %d × %d pixels are averaged over %d × %d", p.ny, p.nx, p.shrink, p.shrink)
	}
	if need := p.need(); need > res.Mem {
		return nil, res.TooLittle(need, "registering planes of %d × %d pixels in chunks of %v", p.ny, p.nx, p.f.Chunk)
	}
	p.depths()
	return p, nil
}

// need returns the memory for a pair, which does not depend on the number of workers.
func (p *pairPlan) need() int64 {
	pixels := int64(p.ny/p.shrink) * int64(p.nx/p.shrink)
	scratch := max(p.f.Array.ScratchBytes(false), p.m.Array.ScratchBytes(false))
	row := int64(p.shrink) * int64(max(p.f.Shape[2], p.m.Shape[2])) * 12
	each := int64(perPixel)
	if p.o.Elastic {
		each = perDeformed
	}
	return each*pixels + scratch + row + besides
}

// Need returns the memory in bytes that [Run] takes for a pair at least.
func Need(fixed, moving Slice, o Options) (int64, error) {
	p, err := plan(fixed, moving, o, oct.Resources{Mem: math.MaxInt64})
	if err != nil {
		return 0, err
	}
	return p.need(), nil
}

// depths fixes the planes to look at.
func (p *pairPlan) depths() {
	depth := p.f.Shape[0]
	p.movingZ = p.o.MovingZ
	if last := p.m.Shape[0] - 1; p.movingZ > last {
		p.warn("%s: there is no plane %d: its last plane, %d, is registered", p.moving.Path, p.movingZ, last)
		p.movingZ = last
	}
	apart := p.o.apart(p.fixed, p.moving)
	interval, search := planes(p.o.SlicingIntervalMM*float64(apart), p.f.Voxel[0]), planes(p.o.SearchRangeMM, p.f.Voxel[0])
	if at := interval + p.movingZ; apart > 1 && at >= depth {
		p.warn("%d cuts lie between the slices: plane %d is expected at plane %d of the fixed slice, which ends before that", apart, p.movingZ, at)
	}
	clamp := func(z int) int { return min(max(z, 0), depth-1) }
	p.expected = [2]int{clamp(depth - interval + p.movingZ), clamp(interval + p.movingZ)}
	for k, z := range p.expected {
		if k > 0 && p.o.ZSearch == ZCentre {
			break
		}
		w := [2]int{clamp(z - search), clamp(z+search) + 1}
		if k > 0 { // without what the first window has
			if first := p.window[0]; w[0] < first[0] {
				w[1] = min(w[1], first[0])
			} else {
				w[0] = max(w[0], first[1])
			}
		}
		if w[0] < w[1] {
			p.window = append(p.window, w)
		}
	}
}

// planes converts millimetres to whole voxels, half to even as Python rounds.
func planes(mm, voxelUM float64) int { return int(math.RoundToEven(min(mm*1000/voxelUM, 1e6))) }

func (p *pairPlan) warn(format string, args ...any) {
	p.warnings = append(p.warnings, fmt.Sprintf(format, args...))
}

// drift returns how far a plane is from where it is expected.
func (p *pairPlan) drift(z int) int {
	d := max(z-p.expected[0], p.expected[0]-z)
	if p.o.ZSearch == ZAligned {
		d = min(d, max(z-p.expected[1], p.expected[1]-z))
	}
	return d
}

// result sums up what was found.
func (p *pairPlan) result() *Result {
	r := &Result{
		Fixed: p.fixed, Moving: p.moving, Options: p.o, Transform: filter.Rigid{CX: p.cx, CY: p.cy}, Drift: p.drift(p.best),
		Offsets: registration.Offsets{FixedZ: p.best, MovingZ: p.movingZ}, ZCorrelation: p.zCorrelation,
		Before: p.found.Before, After: p.found.After, Overlap: p.found.Overlap, Peak: p.found.Peak, Refused: p.found.Refused, Warnings: p.warnings,
		planes: [2]*plane{p.planes[p.best], p.target}, shrunk: p.shrink,
	}
	if r.Refused != "" {
		if p.o.ZSearch == ZAligned { // a plane that was not registered says nothing: stack overlaps slices as expected
			r.Offsets.FixedZ, r.Drift = p.expected[1], 0
		}
		r.Warnings = append(r.Warnings, "not registered, the identity is written: "+r.Refused)
		return r
	}
	t := p.found.Transform
	r.Transform.Angle, r.Transform.TX, r.Transform.TY = t.Angle, t.TX*float64(p.shrink), t.TY*float64(p.shrink)
	if p.found.Limited {
		r.Warnings = append(r.Warnings, "the transform was cut to the largest rotation or translation")
	}
	r.Confidence = p.confidence(r)
	p.elastic(r)
	return r
}

// confidence judges a transform by how much it moves and by the correlation of the unaligned planes (workflow
// specification, register, 7).
func (p *pairPlan) confidence(r *Result) float64 {
	if p.fixed.interpolated() || p.moving.interpolated() {
		return 0
	}
	share := func(v, limit float64) float64 { return 1 - min(v/max(limit, 1), 1) }
	c := float64(0.5*max(0, r.ZCorrelation)) + float64(0.3*share(r.shift(), p.o.MaxTranslationPx)) + float64(0.2*share(r.Degrees(), p.o.MaxRotationDeg))
	return min(max(c, 0), 1)
}

// shift returns the length of the translation in pixels, Degrees the size of the rotation.
func (r *Result) shift() float64 {
	return math.Sqrt(float64(r.Transform.TX*r.Transform.TX) + float64(r.Transform.TY*r.Transform.TY))
}

// Degrees returns the size of the rotation.
func (r *Result) Degrees() float64 { return math.Abs(degrees(r.Transform.Angle)) }

func degrees(radians float64) float64 { return radians * 180 / math.Pi }

// blame refuses a pair of low confidence if one of its slices shows nothing, and names that slice: agreement with an
// empty slice is chance.
func (p *pairPlan) blame(ctx context.Context) error {
	if p.result().Confidence >= metrics.Limits["registration_confidence"].Error {
		return nil
	}
	var blank []string
	for _, s := range []Slice{p.fixed, p.moving} {
		is, err := surface.Blank(ctx, s.Image, p.res)
		if err != nil {
			return err
		}
		if is {
			blank = append(blank, s.Path)
		}
	}
	if blank == nil {
		return nil
	}
	why := strings.Join(blank, " and ") + ": " + surface.BlankText
	if p.found.Refused != "" {
		why = p.found.Refused + "; " + why
	}
	p.found.Refused = why
	return nil
}
