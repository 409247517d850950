package comparison

import (
	"math"
	"slices"

	"strata/pkg/oct"
)

// Displacement says how far the tiles of one image lie from those of another, less their common displacement, which
// moves the image as a whole.
type Displacement struct {
	Tiles  int        `json:"tiles"`
	Common [2]float64 `json:"common_px"` // mean (y, x)
	Mean   float64    `json:"mean_px"`
	Max    float64    `json:"max_px"`
	RMS    float64    `json:"rms_px"`
	MeanUM *float64   `json:"mean_um,omitempty"`
	MaxUM  *float64   `json:"max_um,omitempty"`
	RMSUM  *float64   `json:"rms_um,omitempty"`
	Far    [2]int     `json:"farthest_tile"` // (i, j)
	Fit    *Fit       `json:"fit,omitempty"`
}

// Fit is the linear map of tiles' places that fits the displacements best: second = A · first + t, A = scale · rotation
// · shear.
type Fit struct {
	ScaleY   float64 `json:"scale_y"` // above 1: tiles lie farther apart in the second image
	ScaleX   float64 `json:"scale_x"`
	Rotation float64 `json:"rotation_deg"` // from x to y
	Shear    float64 `json:"shear_deg"`    // of y against x, beyond a right angle
	Residual float64 `json:"residual_rms_px"`
}

// displacement compares the places of tiles that both images have.
func displacement(first, second *Places) (*Displacement, error) {
	if first.Grid != second.Grid || first.Tile != second.Tile {
		return nil, oct.BadInput("%s: is of %d × %d tiles of %d × %d px, %s of %d × %d of %d × %d px: want two stitchings of one mosaic",
			second.Name, second.Grid[0], second.Grid[1], second.Tile[0], second.Tile[1], first.Name, first.Grid[0], first.Grid[1], first.Tile[0], first.Tile[1])
	}
	var tiles [][2]int
	for t := range first.At {
		if _, ok := second.At[t]; ok {
			tiles = append(tiles, t)
		}
	}
	if len(tiles) == 0 {
		return nil, oct.BadInput("%s: places no tile that %s places", second.Name, first.Name)
	}
	slices.SortFunc(tiles, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	d := &Displacement{Tiles: len(tiles)}
	n := float64(len(tiles))
	for _, t := range tiles {
		for k := range d.Common {
			d.Common[k] += (second.At[t][k] - first.At[t][k]) / n
		}
	}
	var um [3]float64 // sum, greatest, squares
	for _, t := range tiles {
		v := [2]float64{second.At[t][0] - first.At[t][0] - d.Common[0], second.At[t][1] - first.At[t][1] - d.Common[1]}
		l, lum := math.Hypot(v[0], v[1]), math.Hypot(v[0]*first.Voxel[0], v[1]*first.Voxel[1])
		if l > d.Max {
			d.Max, d.Far = l, t
		}
		d.Mean += l / n
		d.RMS += float64(l * l)
		um[0], um[1], um[2] = um[0]+lum/n, max(um[1], lum), um[2]+float64(lum*lum)
	}
	d.RMS, um[2] = math.Sqrt(d.RMS/n), math.Sqrt(um[2]/n)
	for _, v := range []*float64{&d.Mean, &d.Max, &d.RMS, &d.Common[0], &d.Common[1]} {
		*v = oct.Digits(*v)
	}
	if first.Voxel[0] > 0 && first.Voxel[1] > 0 {
		d.MeanUM, d.MaxUM, d.RMSUM = finite(um[0]), finite(um[1]), finite(um[2])
	}
	d.Fit = fit(tiles, first, second)
	return d, nil
}

// fit fits a linear map by least squares; nil unless tiles lie in several rows and columns.
func fit(tiles [][2]int, first, second *Places) *Fit {
	n := float64(len(tiles))
	var p, q [2]float64 // means
	for _, t := range tiles {
		for k := range p {
			p[k], q[k] = p[k]+first.At[t][k]/n, q[k]+second.At[t][k]/n
		}
	}
	var c, m [2][2]float64 // Σ p pᵀ and Σ q pᵀ about the means
	for _, t := range tiles {
		for k := range 2 {
			for l := range 2 {
				c[k][l] += float64((first.At[t][k] - p[k]) * (first.At[t][l] - p[l]))
				m[k][l] += float64((second.At[t][k] - q[k]) * (first.At[t][l] - p[l]))
			}
		}
	}
	det := float64(c[0][0]*c[1][1]) - float64(c[0][1]*c[1][0])
	if !(det > 1e-6*c[0][0]*c[1][1]) {
		return nil
	}
	inverse := [2][2]float64{{c[1][1] / det, -c[0][1] / det}, {-c[1][0] / det, c[0][0] / det}}
	var a [2][2]float64
	for k := range 2 {
		for l := range 2 {
			a[k][l] = float64(m[k][0]*inverse[0][l]) + float64(m[k][1]*inverse[1][l])
		}
	}
	squares := 0.0
	for _, t := range tiles {
		for k := range 2 {
			e := second.At[t][k] - q[k] - float64(a[k][0]*(first.At[t][0]-p[0])) - float64(a[k][1]*(first.At[t][1]-p[1]))
			squares += float64(e * e)
		}
	}
	turned := math.Atan2(a[0][1], a[1][1]) // of the axis x
	leans := math.Atan2(-a[1][0], a[0][0]) // of the axis y
	const degrees = 180 / math.Pi
	return &Fit{ScaleY: oct.Digits(math.Hypot(a[0][0], a[1][0])), ScaleX: oct.Digits(math.Hypot(a[0][1], a[1][1])),
		Rotation: oct.Digits(turned * degrees), Shear: oct.Digits((leans - turned) * degrees), Residual: oct.Digits(math.Sqrt(squares / n))}
}
