package filter

import "math"

// DividePlane divides voxels by a number in float64 and rounds once.
func DividePlane(v []float32, by float64) {
	v = v[dividePlaneVector(v, by):]
	for i, f := range v {
		v[i] = float32(float64(f) / by)
	}
}

// ScalePlane clips voxels above high, then those below low, subtracts low and divides by divisor. NaN stays.
func ScalePlane(v []float32, low, high, divisor float32) {
	v = v[scalePlaneVector(v, low, high, divisor):]
	for i, f := range v {
		if f > high {
			f = high
		}
		if f < low {
			f = low
		}
		v[i] = (f - low) / divisor
	}
}

// A FlatField holds the gain and the dark field that correct the tiles of a mosaic. It repeats every Height rows and
// Width columns.
type FlatField struct {
	Gain, Dark    []float32 // of a tile, in C order; Dark is subtracted and may be nil
	Height, Width int
	Epsilon       float32 // added to Gain
	Keep          bool    // voxels that are not finite stay; else they become 0
}

// A Census counts voxels.
type Census struct {
	Some      int64 // other than 0 and NaN
	Above     int64 // finite ones above 0
	NonFinite int64
}

// Divide computes (v − Dark)/(Gain + Epsilon), at least 0, for planes of ny × nx voxels, of which the first lies at row
// y and column x of the mosaic. It counts the voxels before.
func (f *FlatField) Divide(v []float32, ny, nx, y, x int) (c Census) {
	for row := 0; len(v) > 0; row = (row + 1) % ny {
		at := (y + row) % f.Height * f.Width
		for i := 0; i < nx; {
			column := (x + i) % f.Width
			n := min(nx-i, f.Width-column)
			c.add(v[i : i+n])
			f.DivideRow(v[i:i+n], at+column)
			i += n
		}
		v = v[nx:]
	}
	return c
}

func (c *Census) add(v []float32) {
	for _, p := range v {
		switch {
		case p-p != 0:
			c.NonFinite++
			if p == p {
				c.Some++
			}
		case p > 0:
			c.Some++
			c.Above++
		case p < 0:
			c.Some++
		}
	}
}

// DivideRow corrects the voxels v, which are consecutive pixels of a row of the tile, from pixel number at on.
func (f *FlatField) DivideRow(v []float32, at int) {
	gain, dark := f.Gain[at:][:len(v)], f.Dark
	if dark != nil {
		dark = dark[at:][:len(v)]
	}
	for x, p := range v {
		if f.Keep && p-p != 0 {
			continue
		}
		if x < len(dark) {
			p -= dark[x]
		}
		q := p / (gain[x] + f.Epsilon)
		if !(q > 0 && q <= math.MaxFloat32) { // NaN, too
			q = 0
		}
		v[x] = q
	}
}
