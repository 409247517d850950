package nifti

import (
	"fmt"
	"math"

	"strata/pkg/volumes"
)

// Codes of units of length and time (xyzt_units).
const (
	meters, millimeters, micrometers = 1, 2, 3
	seconds, milliseconds            = 8, 16
	microseconds                     = 24
)

// pixdim returns pixdim[i].
func (f *fields) pixdim(i int) float64 { return f.real(76+4*i, 104+8*i) }

// space reads where voxels lie: by the sform, else by the qform, else by the voxel sizes alone (methods 3, 2 and 1 of
// nifti1.h).
func (f *fields) space(v *volumes.Volume) error {
	units := int64(f.b[123])
	if f.two {
		units = int64(f.order.Uint32(f.b[500:]))
	}
	mm := map[int64]float64{0: 1, meters: 1e3, millimeters: 1, micrometers: 1e-3}[units&7]
	if mm == 0 {
		return fmt.Errorf("xyzt_units is %d, an unknown unit of length", units)
	}
	if units&7 == 0 {
		v.Warnings = append(v.Warnings, "states no unit of length: mm is taken for it")
	}
	if s := map[int64]float64{seconds: 1, milliseconds: 1e-3, microseconds: 1e-6}[units&56]; f.pixdim(4) > 0 {
		v.Interval = s * f.pixdim(4)
	}
	sform, qform := f.whole(254, 348, 4), f.whole(252, 344, 4)
	v.Codes["sform_code"], v.Codes["qform_code"] = sform, qform
	byQ, errQ := f.qform()
	switch {
	case sform > 0:
		v.Space = f.sform()
		if size := v.Space.Sizes(); qform > 0 && errQ == nil && differ(&byQ, &v.Space, 1e-3*max(size[0], size[1], size[2])) {
			v.Warnings = append(v.Warnings, "sform and qform say different places: the sform is taken")
		}
	case qform > 0:
		if errQ != nil {
			return errQ
		}
		v.Space = byQ
	default:
		v.Warnings = append(v.Warnings, "states no place in space (sform and qform have code 0): x, y and z are taken for right, anterior and superior")
		for d := range 3 {
			if v.Space[d][d] = math.Abs(f.pixdim(d + 1)); v.Space[d][d] == 0 {
				return fmt.Errorf("pixdim[%d] is 0: a voxel has a length", d+1)
			}
		}
	}
	for r := range v.Space {
		for c := range v.Space[r] {
			v.Space[r][c] *= mm
		}
	}
	return v.Space.Check()
}

func differ(a, b *volumes.Affine, tolerance float64) bool {
	for r := range a {
		for c := range a[r] {
			if math.Abs(a[r][c]-b[r][c]) > tolerance {
				return true
			}
		}
	}
	return false
}

// sform reads the rows of the affine.
func (f *fields) sform() (a volumes.Affine) {
	for r := range a {
		for c := range a[r] {
			a[r][c] = f.real(280+16*r+4*c, 400+32*r+8*c)
		}
	}
	return a
}

// qform makes the affine of a quaternion, an offset and the voxel sizes.
func (f *fields) qform() (m volumes.Affine, err error) {
	b, c, d := f.real(256, 352), f.real(260, 360), f.real(264, 368)
	rest := 1 - (float64(b*b) + float64(c*c) + float64(d*d))
	if !(rest > -1e-3) {
		return m, fmt.Errorf("the quaternion %v, %v, %v is longer than 1", b, c, d)
	}
	var a float64
	if rest < 1e-7 { // half a turn
		n := 1 / math.Sqrt(float64(b*b)+float64(c*c)+float64(d*d))
		b, c, d = b*n, c*n, d*n
	} else {
		a = math.Sqrt(rest)
	}
	rotation := [3][3]float64{
		{float64(a*a) + float64(b*b) - float64(c*c) - float64(d*d), 2 * (float64(b*c) - float64(a*d)), 2 * (float64(b*d) + float64(a*c))},
		{2 * (float64(b*c) + float64(a*d)), float64(a*a) + float64(c*c) - float64(b*b) - float64(d*d), 2 * (float64(c*d) - float64(a*b))},
		{2 * (float64(b*d) - float64(a*c)), 2 * (float64(c*d) + float64(a*b)), float64(a*a) + float64(d*d) - float64(c*c) - float64(b*b)},
	}
	for r := range m {
		for k := range rotation[r] {
			size := f.pixdim(k + 1)
			if size == 0 {
				return m, fmt.Errorf("pixdim[%d] is 0: a voxel has a length", k+1)
			}
			if k == 2 && f.pixdim(0) < 0 { // qfac
				size = -size
			}
			m[r][k] = rotation[r][k] * size
		}
		m[r][3] = f.real(268+4*r, 376+8*r)
	}
	return m, nil
}
