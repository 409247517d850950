package survey

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"strata/pkg/filter"
	"strata/pkg/rawtiles"
)

// rawName reports whether a folder is called as a raw tile is.
func rawName(path string) bool {
	_, ok, err := rawtiles.ParseName(path)
	return ok && err == nil
}

// mostRaw is the maximum size in bytes of a raw tile that is read to measure an overlap.
const mostRaw = 512 << 20

// mostMissing is the number of missing tiles that are named.
const mostMissing = 5

// lookRaw looks at folders of raw OCT tiles.
func lookRaw(ctx context.Context, l *Listing) ([]*Finding, error) {
	if len(l.Raw) == 0 {
		return nil, nil
	}
	var paths []string
	for _, p := range l.Raw {
		paths = append(paths, filepath.Join(l.Root, filepath.FromSlash(p)))
	}
	f := &Finding{Kind: Raw, Confidence: High}
	f.evidence("%d folders are called tile_x<XX>_y<YY>_z<ZZ>, such as %s", len(l.Raw), l.Raw[0])
	slices, err := rawtiles.Of(paths)
	if err != nil {
		f.Confidence = Low
		f.warn("%v", err)
		return []*Finding{f}, nil
	}
	ref := slices[0]
	for _, s := range slices {
		f.Slices = append(f.Slices, int64(s.ID))
		if len(s.Tiles) > len(ref.Tiles) {
			ref = s
		}
	}
	grid, err := ref.Grid()
	if err != nil {
		f.Confidence = Low
		f.warn("%v", err)
		return []*Finding{f}, nil
	}
	f.Grid, f.Tiles = &grid.Size, len(ref.Tiles) // rows of a mosaic run along the microscope's x
	names, all := grid.Missing(ref.ID, mostMissing)
	f.MissingAll = all
	if all > 0 {
		f.warn("slice %d: %d tiles are missing, such as %v", ref.ID, all, names)
	}
	missingSlices(f)
	f.What = fmt.Sprintf("raw OCT tiles of %s: slice %d has %d tiles in %d rows and %d columns", count(len(slices), "slice"), ref.ID, f.Tiles, f.Grid[0], f.Grid[1])
	middle := ref.Tiles[len(ref.Tiles)/2]
	info, err := middle.Info(ctx)
	if err != nil {
		f.Confidence = Medium
		f.warn("%v", err)
	} else {
		f.settings(middle, info)
		if err := f.rawOverlap(ctx, ref, grid, info); err != nil {
			return nil, err
		}
	}
	f.Commands = []string{"strata mosaic " + quote(l.Root) + " mosaics --all", "nextflow run nextflow/main.nf -params-file params.yml"}
	f.Params = []Param{{"raw", l.Root}, {"outdir", "results"}}
	if f.Overlap != nil {
		f.Params = append(f.Params, Param{"stitch_overlap", f.Overlap.Median})
	}
	return []*Finding{f}, nil
}

// settings copies the settings of a raw tile into the finding.
func (f *Finding) settings(t rawtiles.Tile, info rawtiles.Info) {
	x, y := info.Voxel()
	f.Shape, f.DType = []int{info.Depth, info.NX, info.NY}, "float32"
	f.Voxel, f.VoxelFrom = &[3]float64{info.Axial, x, y}, "info.txt of "+t.Name()
	f.evidence("info.txt of %s: %d frames of %d A-lines (and %d while the mirror flies back) of %d samples, %g × %g µm", t.Name(), info.NY, info.NX, info.Extra, info.Depth, info.Height, info.Width)
	if info.Axial == 0 {
		f.warn("info.txt does not state the distance of samples along the beam: give mosaic --axial_resolution, if its default is wrong")
	}
}

// rawOverlap measures the overlap of raw tiles.
func (f *Finding) rawOverlap(ctx context.Context, s rawtiles.Slice, grid *rawtiles.Grid, info rawtiles.Info) error {
	bytes := float64(info.NY) * float64(max(1, info.Repeat)) * float64(info.Lines()) * float64(info.Depth) * 4
	if bytes > mostRaw {
		f.warn("the overlap was not measured: a tile has %.1f GB", bytes/1e9)
		return nil
	}
	m := newPictures(func(ctx context.Context, k int) (*picture, error) {
		t := s.Tiles[k]
		own, err := t.Info(ctx)
		if err != nil {
			return nil, err
		}
		frames, err := t.Open(ctx, own, nil)
		if err != nil {
			return nil, err
		}
		defer frames.Close()
		v, err := frames.Project(mostRaw)
		if err != nil {
			return nil, err
		}
		pix := make([]float32, 0, own.NY*own.NX)
		for y := range own.NY {
			pix = append(pix, v[y*own.Lines():][:own.NX]...)
		}
		turned := make([]float32, len(pix))
		filter.Transpose(turned, pix, own.NY, own.NX, own.NY, own.NX)
		return shrink(turned, own.NX, own.NY), nil
	})
	m.limit = max(8, int(min(mostPictures, 8*mostRaw/max(1, bytes))))
	m.grid, m.at = *f.Grid, map[[2]int]int{}
	for k, t := range s.Tiles {
		x, y := grid.Place(t)
		m.at[[2]int{x, y}] = k
	}
	return f.asMade(ctx, m)
}

// missingSlices warns of numbers that slices leave out.
func missingSlices(f *Finding) {
	var gaps []int64
	for i := 1; i < len(f.Slices); i++ {
		for id := f.Slices[i-1] + 1; id < f.Slices[i] && len(gaps) < mostMissing; id++ {
			gaps = append(gaps, id)
		}
	}
	if len(gaps) > 0 {
		f.warn("numbers of slices leave out %v", gaps)
	}
}

// measured measures the overlap of a mosaic, which counts unless it is given, and keeps the mosaic for a preview. It
// reports whether rows run from the bottom to the top, and columns from right to left.
func (f *Finding) measured(ctx context.Context, m *pictures, given *float64) (backward [2]bool, err error) {
	f.mosaic = m
	fits, direction, compared, err := m.measure(ctx)
	if err != nil {
		return backward, err
	}
	for axis, list := range fits {
		backward[axis] = len(list) > 0 && direction[axis] < 0
	}
	for _, fault := range m.faults[:min(len(m.faults), 2)] {
		f.warn("%v", fault)
	}
	if given != nil {
		f.Overlap = &Overlap{Median: *given, Low: *given, High: *given, From: "--overlap"}
		m.overlap = [2]float64{*given, *given}
		return backward, nil
	}
	f.Overlap = overlapOf(append(append([]fit(nil), fits[0]...), fits[1]...))
	if f.Overlap == nil {
		if compared > 0 {
			f.warn("the overlap could not be measured: none of %d pairs of neighbours correlates by %g or more; stitch takes 0.2 unless --overlap says otherwise", compared, good)
		}
		m.overlap = [2]float64{0.2, 0.2}
		return backward, nil
	}
	f.Overlap.From = "pictures"
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for axis, list := range fits {
		m.overlap[axis] = f.Overlap.Median
		if o := overlapOf(list); o != nil {
			m.overlap[axis] = o.Median
		}
		for _, x := range list {
			low, high, n = min(low, x.score), max(high, x.score), n+1
		}
	}
	f.evidence("overlap %.1f %% (%.1f to %.1f) from %d of %d pairs of neighbours, whose overlaps correlate by %.2f to %.2f", 100*f.Overlap.Median, 100*f.Overlap.Low, 100*f.Overlap.High, f.Overlap.Pairs, compared, low, high)
	return backward, nil
}

// runs says how rows and columns run if they run backward.
var runs = [2]string{"rows run from the bottom to the top", "columns run from right to left"}

// asMade measures a mosaic in the orientation in which strata assembles it, since no flag changes that, and warns if
// its rows or columns run backward.
func (f *Finding) asMade(ctx context.Context, m *pictures) error {
	backward, err := f.measured(ctx, m, nil)
	f.warnBackward(backward)
	return err
}

func (f *Finding) warnBackward(backward [2]bool) {
	for axis, is := range backward {
		if is {
			f.warn("%s: pictures fit their neighbours the other way round", runs[axis])
		}
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
