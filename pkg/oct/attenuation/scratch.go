package attenuation

import (
	"os"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/oct"
)

// scratch keeps what is computed of each column of A-lines between passes: numbers of 32 bits, the mask as bits, and
// the outermost voxels, for the neighbours. It lies in memory if it fits into half of that, else in a file without a
// name.
type scratch struct {
	raw     []byte // nil: in the file
	file    *os.File
	named   bool             // the file has a name yet, as systems want it while it is open
	offsets [parts + 1]int64 // of the parts of a column, in bytes
}

// The parts of a column.
const (
	numbers = iota // smoothed, then medians, then optical depths
	bits           // rows of words, plane by plane
	heights        // optical depths of the four sides
	levels         // the same with minima filled to their rims
	parts
)

// newScratch makes room for n columns of up to size voxels (z, y, x), inFile says in any case in a file. It returns
// what is left of the resources.
func newScratch(n int, size [3]int, folder string, inFile bool, res oct.Resources) (*scratch, oct.Resources, error) {
	s := &scratch{}
	sides := mem.Product(4, 4, size[0], max(size[1], size[2]))
	for i, bytes := range [parts]int{numbers: mem.Product(4, size[0], size[1], size[2]), bits: mem.Product(8, size[0], size[1], words(size)), heights: sides, levels: sides} {
		s.offsets[i+1] = s.offsets[i] + int64(bytes)
	}
	total := int64(mem.Product(n, int(s.offsets[parts])))
	var err error
	if total <= res.Spare()/2 && !inFile {
		if s.raw, err = mem.Alloc(int(total)); err != nil {
			return nil, res, err
		}
		return s, res.Less(total), nil
	}
	if s.file, err = os.CreateTemp(folder, ".strata-scratch-*"); err != nil {
		return nil, res, err
	}
	s.named = os.Remove(s.file.Name()) != nil // without a name it lives as long as it is open, also of a process that is killed
	res = res.Would(total)
	res.Decided("%d MiB of intermediate results in a temporary file in %s", total>>20, folder)
	return s, res, nil
}

// words returns the number of words of a row of the mask.
func words(size [3]int) int { return (size[2] + 63) / 64 }

// close gives back the memory or the file.
func (s *scratch) close() {
	if s.file != nil {
		_ = s.file.Close()
		if s.named {
			_ = os.Remove(s.file.Name())
		}
		return
	}
	mem.Free(s.raw)
}

// read copies from a part of a column, from the element skip on.
func read[T dtype.Element](s *scratch, dst []T, column, part, skip int) error {
	at, raw := s.at(column, part)+int64(skip*dtype.Of[T]().Size()), dtype.Bytes(dst)
	if s.file == nil {
		copy(raw, s.raw[at:])
		return nil
	}
	_, err := s.file.ReadAt(raw, at)
	return err
}

// write copies to a part of a column, from the element skip on.
func write[T dtype.Element](s *scratch, src []T, column, part, skip int) error {
	at, raw := s.at(column, part)+int64(skip*dtype.Of[T]().Size()), dtype.Bytes(src)
	if s.file == nil {
		copy(s.raw[at:], raw)
		return nil
	}
	_, err := s.file.WriteAt(raw, at)
	return err
}

func (s *scratch) at(column, part int) int64 { return int64(column)*s.offsets[parts] + s.offsets[part] }
