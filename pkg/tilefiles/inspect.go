package tilefiles

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"

	"strata/pkg/registration"
	"strata/pkg/units"
	"strata/pkg/work"
)

// readFirst reads the header of the first file that can be read: [Set.Inspect] names those that cannot.
func (s *Set) readFirst(ctx context.Context, files []file) error {
	const tries = 16
	var first error
	for i := range files[:min(len(files), tries)] {
		h, err := s.ReadHeader(ctx, files[i].path)
		if err == nil {
			s.Header = h
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var option *OptionError
		if errors.As(err, &option) {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// readHeader reads the header of a file of the set.
func (s *Set) ReadHeader(ctx context.Context, file string) (*Header, error) {
	return readHeader(ctx, s.Path(file), s.Options.Axes)
}

// Voxel returns the voxel size (z, y, x) in µm: that of the options, or of the header. A size along z that nothing
// states is 0 if there is one plane. The error is an [OptionError].
func (s *Set) Voxel() ([3]float64, error) {
	v := s.Options.Voxel
	if v == [3]float64{} {
		v = s.Header.Voxel
	}
	for d, um := range v {
		if um == 0 {
			if d == 0 && s.Depth() == 1 {
				continue
			}
			return v, badOption("voxel_size", "is missing: neither resolution tags nor OME-XML, ImageJ's or MetaMorph's metadata of %s state a size along %c: give Z,Y,X in µm", Name(s.Header.Path), "zyx"[d])
		}
		if err := units.CheckVoxel(um); err != nil {
			return v, badOption("voxel_size", "along %c: %w", "zyx"[d], err)
		}
	}
	return v, nil
}

// Depth returns the number of planes of a tile.
func (s *Set) Depth() int { return max(1, len(s.Planes)) * s.Header.Planes }

// Inspect reads the headers of all files of a slice with a number of workers (0: as many as there are processors).
// Files that are cut off, or of another size or type than the first, are one error, which counts them and names some.
// It notes the positions that files record, unless names state them.
func (s *Set) Inspect(ctx context.Context, sl *Slice, workers int) error {
	type item struct {
		tile int
		file string
	}
	var list []item
	for k := range sl.Tiles {
		for _, f := range sl.Tiles[k].Files {
			if f != "" {
				list = append(list, item{k, f})
			}
		}
	}
	if workers < 1 {
		workers = runtime.GOMAXPROCS(0)
	}
	headers, faults := make([]*Header, len(list)), make([]error, len(list))
	err := work.Each(ctx, workers, len(list), func(_, i int) error {
		headers[i], faults[i] = s.ReadHeader(ctx, list[i].file)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	var first *Header
	for i, h := range headers {
		switch {
		case h == nil:
			continue
		case first == nil:
			first = h
		default:
			faults[i] = first.Unlike(h)
		}
		if t := &sl.Tiles[list[i].tile]; t.Position == nil && h.Stage != nil {
			t.Position = h.Stage
		}
	}
	if s.Pattern.Has(Row) || s.Options.Grid != [2]int{} {
		sl.orient()
	}
	return faulty(s.Root, faults)
}

// orient reverses positions that decrease along rows or columns, as those of a stage whose axis runs against that of
// the images do.
func (s *Slice) orient() {
	for d, axis := range [2][2]string{{"rows", "y"}, {"columns", "x"}} {
		var place, position float64 // means
		n := 0
		for _, t := range s.Tiles {
			if t.Position == nil {
				continue
			}
			place, position, n = place+float64(t.Place[d]), position+t.Position[d], n+1
		}
		place, position = place/float64(max(n, 1)), position/float64(max(n, 1))
		together := 0.0
		for _, t := range s.Tiles {
			if t.Position != nil {
				together += float64((float64(t.Place[d]) - place) * (t.Position[d] - position))
			}
		}
		if together >= 0 {
			continue
		}
		for k, t := range s.Tiles {
			if t.Position != nil {
				at := *t.Position
				at[d] = -at[d]
				s.Tiles[k].Position = &at
			}
		}
		s.warnf("recorded positions decrease along the %s: the axis %s of the stage is taken for reversed", axis[0], axis[1])
	}
}

// mostFaults limits the files that an error names.
const mostFaults = 3

// faulty makes one error of the faults of files.
func faulty(root string, faults []error) error {
	var named []string
	var first error
	n := 0
	for _, err := range faults {
		if err == nil {
			continue
		}
		if n++; n == 1 {
			first = err
		}
		if n <= mostFaults {
			named = append(named, strings.TrimPrefix(err.Error(), root+"/"))
		}
	}
	if n < 2 {
		return first
	}
	return fmt.Errorf("%s: %d of %d files cannot be used: %s%s", root, n, len(faults), strings.Join(named, "; "), more(n, len(named)))
}

// Positions returns the positions of a slice's tiles, nil unless all are known.
func (s *Set) Positions(sl *Slice) *registration.TilePositions {
	p := &registration.TilePositions{Grid: sl.Grid}
	for _, t := range sl.Tiles {
		if t.Position == nil {
			return nil
		}
		p.Tiles = append(p.Tiles, registration.TilePosition{Tile: t.Place, Position: *t.Position})
	}
	return p
}
