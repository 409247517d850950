// Package nifti reads and writes the headers of NIfTI-1 and NIfTI-2 files (nifti1.h and nifti2.h of the NIfTI Data
// Format Working Group), and shows a file's volume ([Open]).
package nifti

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/volumes"
)

// Lengths of headers, and the offset of voxels behind one without extensions.
const (
	size1, size2   = 348, 540
	begin1, begin2 = 352, 544
)

const (
	magic1 = "n+1\x00"
	magic2 = "n+2\x00\r\n\x1a\n"
	pair1  = "ni1\x00" // the voxels lie in another file
	pair2  = "ni2\x00\r\n\x1a\n"
)

// HeaderBytes is the number of bytes that hold any header.
const HeaderBytes = size2

// Is reports whether a file begins like one of NIfTI, or of Analyze, which Open refuses by name; head has 352 bytes, or
// all of a shorter file.
func Is(head []byte) bool {
	if len(head) >= 12 && (string(head[4:12]) == magic2 || string(head[4:12]) == pair2) {
		return true
	}
	return len(head) >= size1 && (string(head[344:348]) == magic1 || string(head[344:348]) == pair1) || isAnalyze(head)
}

// isPair reports whether a header lies in a file of its own (.hdr), and the voxels in another (.img).
func isPair(head []byte) bool {
	if len(head) >= 12 && (string(head[4:12]) == magic2 || string(head[4:12]) == pair2) {
		return string(head[4:12]) == pair2
	}
	return len(head) >= size1 && string(head[344:348]) == pair1
}

// isAnalyze reports whether a header is one of Analyze 7.5 (dbh.h of the Mayo Foundation), from which that of NIfTI was
// made.
func isAnalyze(head []byte) bool {
	if len(head) < size1 || head[38] != 'r' && head[38] != 0 || string(head[344:348]) != "\x00\x00\x00\x00" {
		return false
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		n, bits := order.Uint16(head[40:]), order.Uint16(head[72:])
		if order.Uint32(head) == size1 && n >= 1 && n <= 7 && order.Uint16(head[42:]) > 0 && order.Uint16(head[70:]) > 0 && (bits == 1 || bits > 0 && bits <= 128 && bits%8 == 0) {
			return true
		}
	}
	return false
}

// types are the element types by their codes; of the pairs, several samples to a voxel.
var types = map[int]dtype.Type{
	2: dtype.Uint8, 4: dtype.Int16, 8: dtype.Int32, 16: dtype.Float32, 64: dtype.Float64, 256: dtype.Int8, 512: dtype.Uint16, 768: dtype.Uint32,
	1024: dtype.Int64, 1280: dtype.Uint64, rgb: dtype.Uint8, rgba: dtype.Uint8,
}

const rgb, rgba = 128, 2304

// refused names the types that are not read.
var refused = map[int]string{1: "single bits", 32: "complex numbers", 1792: "complex numbers", 2048: "complex numbers", 1536: "floating-point numbers of 128 bits"}

// fields reads a header's numbers at offsets that differ between the formats.
type fields struct {
	b     []byte
	order binary.ByteOrder
	two   bool
}

func (f *fields) short(at int) int { return int(int16(f.order.Uint16(f.b[at:]))) }
func (f *fields) float(at int) float64 {
	return float64(math.Float32frombits(f.order.Uint32(f.b[at:])))
}

// either reads a number that is a short or float in one format and a long, an int or a double in the other.
func (f *fields) whole(at1, at2, bytes2 int) int64 {
	switch {
	case !f.two:
		return int64(f.short(at1))
	case bytes2 == 8:
		return int64(f.order.Uint64(f.b[at2:]))
	case bytes2 == 4:
		return int64(int32(f.order.Uint32(f.b[at2:])))
	}
	return int64(f.short(at2))
}

func (f *fields) real(at1, at2 int) float64 {
	if f.two {
		return math.Float64frombits(f.order.Uint64(f.b[at2:]))
	}
	return f.float(at1)
}

// parse reads a header: the volume, and the offset of its voxels.
func parse(b []byte) (v *volumes.Volume, offset int64, err error) {
	f := &fields{b: b}
	switch {
	case len(b) >= size2 && (string(b[4:12]) == magic2 || string(b[4:12]) == pair2):
		f.two = true
	case isAnalyze(b):
		return nil, 0, fmt.Errorf("a header of Analyze 7.5, which does not say which side is left: convert it to .nii with a program that knows who wrote it, such as nibabel")
	case len(b) < size1 || string(b[344:348]) != magic1 && string(b[344:348]) != pair1:
		return nil, 0, fmt.Errorf("no header of NIfTI (n+1 at byte 344, or n+2 at byte 4)")
	}
	want := uint32(size1)
	if f.two {
		want = size2
	}
	switch {
	case binary.LittleEndian.Uint32(b) == want:
		f.order = binary.LittleEndian
	case binary.BigEndian.Uint32(b) == want:
		f.order = binary.BigEndian
	default:
		return nil, 0, fmt.Errorf("the header says that it has %d bytes (must be %d)", binary.LittleEndian.Uint32(b), want)
	}
	v = &volumes.Volume{BigEndian: f.order == binary.BigEndian, Codes: map[string]any{}}
	if err := f.shape(v); err != nil {
		return nil, 0, err
	}
	if err := f.values(v); err != nil {
		return nil, 0, err
	}
	if f.two {
		offset = int64(f.order.Uint64(b[168:]))
	} else if x := f.float(108); x-x == 0 && math.Abs(x) < 1<<53 {
		offset = int64(x)
	}
	least := map[bool]int64{false: begin1, true: begin2}[f.two]
	if isPair(b) {
		least = 0
	}
	if offset < least {
		return nil, 0, fmt.Errorf("vox_offset is %d (must be %d or more)", offset, least)
	}
	if err := f.space(v); err != nil {
		return nil, 0, err
	}
	v.Name = f.text(148, 240, 80)
	return v, offset, nil
}

// text reads a text of up to n bytes.
func (f *fields) text(at1, at2, n int) string {
	at := at1
	if f.two {
		at = at2
	}
	s, _, _ := bytes.Cut(f.b[at:at+n], []byte{0})
	return strings.TrimSpace(strings.ToValidUTF8(string(s), "�"))
}

// dim returns dim[i].
func (f *fields) dim(i int) int64 { return f.whole(40+2*i, 16+8*i, 8) }

// shape reads the dimensions: x, y, z, t, and a fifth one, which are channels.
func (f *fields) shape(v *volumes.Volume) error {
	n := f.dim(0)
	if n < 1 || n > 7 {
		return fmt.Errorf("dim[0] is %d (must be 1 to 7)", n)
	}
	size := [8]int{0, 1, 1, 1, 1, 1, 1, 1}
	for i := 1; i <= int(n); i++ {
		d := f.dim(i)
		if d < 1 || d > math.MaxInt32 {
			return fmt.Errorf("dim[%d] is %d (must be 1 to %d)", i, d, math.MaxInt32)
		}
		size[i] = int(d)
	}
	if size[6] > 1 || size[7] > 1 {
		return fmt.Errorf("dim[6] and dim[7] are %d and %d: more than five dimensions are not supported", size[6], size[7])
	}
	v.Width, v.Height, v.Depth, v.Times, v.Channels, v.Flat = size[1], size[2], size[3], size[4], size[5], n < 3
	return nil
}

// values reads what a voxel is.
func (f *fields) values(v *volumes.Volume) error {
	code := int(f.whole(70, 12, 2))
	t, ok := types[code]
	if !ok {
		what := refused[code]
		if what == "" {
			what = "an unknown type"
		}
		return fmt.Errorf("datatype is %d, %s, which is not supported", code, what)
	}
	v.Type = t
	if code == rgb || code == rgba {
		if v.Channels > 1 || v.Times > 1 {
			return fmt.Errorf("colours of several times or channels are not supported")
		}
		v.Channels, v.Together = 3, true
		if code == rgba {
			v.Channels = 4
		}
		return nil
	}
	slope, inter := f.real(112, 176), f.real(116, 184)
	if slope-slope == 0 && inter-inter == 0 && slope != 0 {
		v.Slope, v.Inter = slope, inter
	}
	return nil
}
