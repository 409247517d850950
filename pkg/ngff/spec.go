package ngff

import (
	"errors"
	"fmt"

	"strata/pkg/dtype"
	"strata/pkg/meter"
	"strata/pkg/zarr/codec"
)

// ImageSpec describes an image to write. Shape, Chunks, DType, Axes and Scale are required. Lists have one
// element per axis, in the order of Axes.
type ImageSpec struct {
	Format int // Zarr format: 2 writes NGFF 0.4, 3 (also 0) writes NGFF 0.5
	Name   string
	Shape  []int // of level 0
	Chunks []int // of level 0; clipped to the level's shape below it
	Shard  []int // of level 0, a multiple of Chunks; nil: none. Clipped likewise
	DType  dtype.Type
	Codecs codec.Chain // codecs of all levels; nil stores chunks uncompressed
	Fill   any         // as in zarr.Spec
	// OmitFill leaves out chunks that hold only the fill value, on all levels.
	OmitFill bool

	Axes        []Axis
	Scale       []float64 // voxel size of level 0, in the unit of the axis
	Translation []float64 // centre of the first voxel of level 0; nil: not stated
	Omero       *Omero    // display settings; nil: none
	// Label makes a label image: levels below level 0 have voxels of the one above, no means. nil: an image of
	// intensities.
	Label *ImageLabel
	// Attributes of the image's group, such as those of another image. The writer ignores members that NGFF
	// defines and sets them itself.
	Attributes map[string]any

	// Levels is the number of levels below level 0, capped at [MaxLevels] with a warning.
	Levels int

	Workers int // goroutines that one call may use; 0: GOMAXPROCS, 1: the caller's only
	// Budget limits the memory for incomplete chunks, in bytes; 0: 256 MiB, or more if the chunks need it.
	// The caller's tiles and the scratch memory of codecs do not count.
	Budget int64
	Meter  *meter.Meter
}

// check returns the faults of a spec, by field.
func (s *ImageSpec) check() error {
	n := len(s.Axes)
	for _, l := range []struct {
		name string
		len  int
		need bool
	}{{"shape", len(s.Shape), true}, {"chunks", len(s.Chunks), true}, {"scale", len(s.Scale), true},
		{"shard", len(s.Shard), s.Shard != nil}, {"translation", len(s.Translation), s.Translation != nil}} {
		if l.need && l.len != n {
			return fmt.Errorf("%s has %d numbers for %d axes", l.name, l.len, n)
		}
	}
	var f findings
	checkAxes("axes", s.Axes, &f)
	for _, p := range f.list {
		if p.Severity == Error {
			return fmt.Errorf("%s: %s", p.Field, p.Message)
		}
	}
	if _, err := halvedAxes(s.Axes); err != nil {
		return fmt.Errorf("axes: %w", err)
	}
	for d := range n {
		switch {
		case s.Axes[d].Name == "":
			return fmt.Errorf("axes[%d] has no name", d)
		case s.Shape[d] < 1:
			return fmt.Errorf("shape %v: an image has at least one voxel along each axis", s.Shape)
		case s.Chunks[d] < 1:
			return fmt.Errorf("chunks %v: a chunk has at least one voxel along each axis", s.Chunks)
		case s.Shard != nil && (s.Shard[d] < 1 || s.Shard[d]%s.Chunks[d] != 0):
			return fmt.Errorf("shard %v must be a multiple of the chunks %v", s.Shard, s.Chunks)
		case !finitePositive(s.Scale[d]):
			return fmt.Errorf("scale[%d] is %v (must be a positive number)", d, s.Scale[d])
		}
	}
	if s.Label != nil && !s.DType.IsInteger() && s.DType != dtype.Bool {
		return fmt.Errorf("elements of type %s (labels must be integers)", s.DType)
	}
	switch {
	case s.Format != 2 && s.Format != 3:
		return fmt.Errorf("format is %d (must be 2 or 3)", s.Format)
	case s.Format == 2 && s.Shard != nil:
		return errors.New("shard: Zarr v2 has no shards")
	case s.Levels < 0:
		return fmt.Errorf("levels is %d (must not be negative)", s.Levels)
	}
	return nil
}

// levelChunks returns the chunks and shards of a level: those of level 0, clipped to what the level has. A
// shard that would hold one chunk is none.
func levelChunks(shape, chunks, shard []int) (c, s []int) {
	single := true
	for d, n := range shape {
		c = append(c, min(chunks[d], n))
		if shard != nil {
			per := min(shard[d]/chunks[d], (n+c[d]-1)/c[d])
			s = append(s, per*c[d])
			single = single && per == 1
		}
	}
	if single {
		s = nil
	}
	return c, s
}
