package nifti

import (
	"encoding/binary"
	"fmt"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/volumes"
)

// MostShort is the longest axis of NIfTI-1.
const MostShort = math.MaxInt16

// codeOf returns the code of a type; ok is false if NIfTI has none.
func codeOf(t dtype.Type) (code int, ok bool) {
	for c, known := range types {
		if known == t && c != rgb && c != rgba {
			return c, true
		}
	}
	return 0, false
}

// Header returns the header of a file of one volume whose voxels follow it, x fastest, then y, z, t and channels,
// little-endian: of NIfTI-1, or of NIfTI-2 if an axis is too long for that. Lengths are in mm, times in seconds. The
// codes of v.Codes say what space the affine leads to; without them it is a scanner's (1).
func Header(v *volumes.Volume) ([]byte, error) {
	code, ok := codeOf(v.Type)
	if !ok {
		return nil, fmt.Errorf("NIfTI has no type %s", v.Type)
	}
	if err := v.Check(); err != nil {
		return nil, err
	}
	w := &putter{}
	if w.two = max(v.Width, v.Height, v.Depth, v.Times, v.Channels) > MostShort; w.two {
		w.b = make([]byte, begin2)
		binary.LittleEndian.PutUint32(w.b, size2)
		copy(w.b[4:], magic2)
		binary.LittleEndian.PutUint64(w.b[168:], begin2)
		binary.LittleEndian.PutUint32(w.b[500:], millimeters|seconds)
	} else {
		w.b = make([]byte, begin1)
		binary.LittleEndian.PutUint32(w.b, size1)
		copy(w.b[344:], magic1)
		w.real(108, 0, begin1)
		w.b[38], w.b[123] = 'r', millimeters|seconds // regular, as ANALYZE wanted it
	}
	w.shape(v)
	w.whole(70, 12, 2, int64(code))
	w.whole(72, 14, 2, int64(8*v.Type.Size()))
	w.real(112, 176, 1) // scl_slope
	w.space(v)
	at := map[bool]int{false: 148, true: 240}[w.two]
	copy(w.b[at:at+79], v.Name)
	return w.b, nil
}

// putter stores a header's numbers at offsets that differ between the formats.
type putter struct {
	b   []byte
	two bool
}

func (w *putter) whole(at1, at2, bytes2 int, x int64) {
	switch {
	case !w.two:
		binary.LittleEndian.PutUint16(w.b[at1:], uint16(x))
	case bytes2 == 8:
		binary.LittleEndian.PutUint64(w.b[at2:], uint64(x))
	case bytes2 == 4:
		binary.LittleEndian.PutUint32(w.b[at2:], uint32(x))
	default:
		binary.LittleEndian.PutUint16(w.b[at2:], uint16(x))
	}
}

func (w *putter) real(at1, at2 int, x float64) {
	if w.two {
		binary.LittleEndian.PutUint64(w.b[at2:], math.Float64bits(x))
	} else {
		binary.LittleEndian.PutUint32(w.b[at1:], math.Float32bits(float32(x)))
	}
}

func (w *putter) shape(v *volumes.Volume) {
	size, n := []int{v.Width, v.Height, v.Depth, v.Times, v.Channels}, 3
	switch {
	case v.Channels > 1:
		n = 5
	case v.Times > 1:
		n = 4
	case v.Flat:
		n = 2
	}
	w.whole(40, 16, 8, int64(n))
	for i := range 7 {
		x := 1
		if i < len(size) {
			x = size[i]
		}
		w.whole(42+2*i, 24+8*i, 8, int64(x))
	}
	if v.Channels > 1 {
		w.whole(68, 504, 4, 1007) // NIFTI_INTENT_VECTOR
	}
}

// space stores the affine as the sform and, where axes are at right angles, as the qform.
func (w *putter) space(v *volumes.Volume) {
	code := func(name string) int64 {
		switch x := v.Codes[name].(type) {
		case int64:
			return x
		case float64: // of JSON
			return int64(x)
		}
		return 1
	}
	a, size := &v.Space, v.Space.Sizes()
	for r := range a {
		for c := range a[r] {
			w.real(280+16*r+4*c, 400+32*r+8*c, a[r][c])
		}
	}
	w.whole(254, 348, 4, max(code("sform_code"), 1))
	interval := v.Interval
	if interval <= 0 {
		interval = 1
	}
	qfac, q, ok := quaternion(a, size)
	for i, x := range []float64{qfac, size[0], size[1], size[2], interval, 1, 1, 1} {
		w.real(76+4*i, 104+8*i, x)
	}
	if !ok {
		return
	}
	w.whole(252, 344, 4, code("qform_code"))
	for i, x := range []float64{q[0], q[1], q[2], a[0][3], a[1][3], a[2][3]} {
		w.real(256+4*i, 352+8*i, x)
	}
}

// quaternion returns the parts b, c and d of the rotation of an affine, and qfac; ok is false if its axes are not at
// right angles.
func quaternion(a *volumes.Affine, size [3]float64) (qfac float64, q [3]float64, ok bool) {
	var r [3][3]float64
	for i := range r {
		for j := range r[i] {
			r[i][j] = a[i][j] / size[j]
		}
	}
	for i := range 3 {
		j := (i + 1) % 3
		if dot := float64(r[0][i]*r[0][j]) + float64(r[1][i]*r[1][j]) + float64(r[2][i]*r[2][j]); math.Abs(dot) > 1e-4 {
			return 1, q, false
		}
	}
	qfac = 1
	det := float64(r[0][0]*(float64(r[1][1]*r[2][2])-float64(r[1][2]*r[2][1]))) - float64(r[0][1]*(float64(r[1][0]*r[2][2])-float64(r[1][2]*r[2][0]))) +
		float64(r[0][2]*(float64(r[1][0]*r[2][1])-float64(r[1][1]*r[2][0])))
	if det < 0 {
		qfac = -1
		for i := range r {
			r[i][2] = -r[i][2]
		}
	}
	// the largest of the four parts first, which the others are divided by
	parts := [4]float64{
		math.Sqrt(max(0, 1+r[0][0]+r[1][1]+r[2][2])) / 2, math.Sqrt(max(0, 1+r[0][0]-r[1][1]-r[2][2])) / 2,
		math.Sqrt(max(0, 1-r[0][0]+r[1][1]-r[2][2])) / 2, math.Sqrt(max(0, 1-r[0][0]-r[1][1]+r[2][2])) / 2,
	}
	largest := 0
	for i, p := range parts {
		if p > parts[largest] {
			largest = i
		}
	}
	n := 4 * parts[largest]
	switch largest {
	case 0:
		parts = [4]float64{parts[0], (r[2][1] - r[1][2]) / n, (r[0][2] - r[2][0]) / n, (r[1][0] - r[0][1]) / n}
	case 1:
		parts = [4]float64{(r[2][1] - r[1][2]) / n, parts[1], (r[0][1] + r[1][0]) / n, (r[0][2] + r[2][0]) / n}
	case 2:
		parts = [4]float64{(r[0][2] - r[2][0]) / n, (r[0][1] + r[1][0]) / n, parts[2], (r[1][2] + r[2][1]) / n}
	case 3:
		parts = [4]float64{(r[1][0] - r[0][1]) / n, (r[0][2] + r[2][0]) / n, (r[1][2] + r[2][1]) / n, parts[3]}
	}
	if parts[0] < 0 {
		parts[1], parts[2], parts[3] = -parts[1], -parts[2], -parts[3]
	}
	return qfac, [3]float64{parts[1], parts[2], parts[3]}, true
}
