// Package phantom generates serial-sectioning OCT acquisitions with known ground truth.
//
// A [Specimen] is one virtual block of tissue: a random texture, and on demand an anatomy of layers, tracts and
// vessels, defined at every point of space, so that any part can be recomputed without storing it. A virtual microscope
// images it slice by slice, tile by tile, and adds the effects of real ones: a curved focal plane, a flat-field, a beam
// with a focus, speckle, attenuation, water above the tissue, agarose around it, stage rotation and jitter, motor
// shifts between slices, rotated and missing slices. A number in [Config] switches each effect off. Slices are written
// as mosaic grids ([Specimen.WriteMosaic]), slide scans ([Specimen.WriteCZI]) or raw tiles ([Specimen.WriteRaw]) with
// the way back of the scanning mirror and the positions of a stage that may lose its home.
//
// [Specimen.RenderTile] computes the voxels of one tile and needs no more memory than they take;
// [Specimen.RenderTruth] computes any box of a slice as an ideal microscope would see it. Both depend on the
// configuration alone, not on the order of calls or the number of workers.
package phantom

import (
	"fmt"
	"math"

	"strata/pkg/dtype"
)

// Config describes an acquisition. Lengths are in micrometres unless the field says otherwise; "px" is one
// voxel of the axis. The zero value of an effect switches it off; [Default] has all of them on.
type Config struct {
	Seed uint64 `json:"seed"`

	Slices int        `json:"slices"`         // sections of the block
	Tiles  [2]int     `json:"tiles"`          // tiles of a slice (y, x)
	Tile   [3]int     `json:"tile"`           // voxels of a tile (z, y, x)
	Crop   [2]int     `json:"crop_px"`        // voxels (y, x) missing from the last row and column of tiles
	Voxel  [3]float64 `json:"voxel_um"`       // voxel size (z, y, x)
	DType  dtype.Type `json:"-"`              // uint8, uint16, int16, float32 or float64
	Gain   float64    `json:"gain"`           // stored value of a reflectivity of 1; 0: a tenth of the type's range, 1000 for floats
	Noise  bool       `json:"noise,omitzero"` // 12-bit white noise instead of tissue: incompressible benchmark data

	Overlap float64       `json:"overlap"`                 // fraction of a tile that its neighbour sees too
	Matrix  [2][2]float64 `json:"matrix"`                  // stage frame to image frame, (y, x); identity: no rotation, no scale
	Jitter  float64       `json:"jitter_px"`               // standard deviation of a tile's position error
	Stage   float64       `json:"stage_error_um,omitzero"` // standard deviation of the error of recorded tile positions
	Shift   float64       `json:"shift_um"`                // standard deviation of the motor shift between slices
	Glitch  float64       `json:"glitch_prob"`             // probability that the CSV's shift of a pair is wrong
	Cut     float64       `json:"interval_um"`             // slicing interval: depth from one slice's surface to the next
	Water   float64       `json:"water_um"`                // water above the tissue surface
	Relief  float64       `json:"relief_um"`               // amplitude of the surface's slow undulation
	Bowl    float64       `json:"curvature_um"`            // depth range of the focal-plane curvature, the same in every tile

	Attenuation float64 `json:"attenuation_per_mm"` // μ in exp(−2μd), d the depth below the surface
	Texture     float64 `json:"texture"`            // contrast of the tissue's random texture, 0…1
	Anatomy     float64 `json:"anatomy,omitzero"`   // contrast of cortical layers, white matter, fibre tracts and vessels, 0…1; takes up to half of Texture's place
	Speckle     float64 `json:"speckle"`            // speckle contrast (standard deviation / mean); 1 is fully developed
	Floor       float64 `json:"floor"`              // detector floor, in reflectivities
	Agarose     float64 `json:"agarose"`            // reflectivity of the embedding medium; tissue has 1
	Vignette    float64 `json:"vignette"`           // how much darker the tile's corners are, 0…1
	FillTissue  bool    `json:"fill_tissue"`        // tissue everywhere, no agarose around it

	Turn  float64 `json:"slice_rotation_deg,omitzero"` // standard deviation of a slice's angle about its centre, degrees
	Focus float64 `json:"focus_um,omitzero"`           // depth of the beam's focus below the first plane
	Range float64 `json:"focus_range_um,omitzero"`     // distance from the focus at which the signal is half as bright; 0: it is the same everywhere

	Raw        bool    `json:"raw,omitzero"`             // slices are raw tiles
	Missing    []int   `json:"missing_slices,omitempty"` // slices that were not recorded
	Rehome     float64 `json:"rehome_prob,omitzero"`     // probability that the stage's positions of a slice are off
	RehomeBy   float64 `json:"rehome_um,omitzero"`       // by how much, standard deviation along each axis
	Extra      int     `json:"galvo_extra,omitzero"`     // A-lines of a raw frame that are recorded while the mirror flies back
	Return     float64 `json:"galvo_return,omitzero"`    // how bright they are, where the others have 1
	GalvoShift int     `json:"galvo_shift,omitzero"`     // A-lines by which raw frames begin too late
}

// Default returns a small acquisition of random texture with every imperfection
// on. Anatomy is off: figures that are compared over years were measured on the
// texture alone.
func Default() Config {
	return Config{
		Seed: 1, Slices: 1, Tiles: [2]int{4, 4}, Tile: [3]int{96, 128, 128},
		Voxel: [3]float64{3.5, 2, 2}, DType: dtype.Float32,
		Overlap: 0.2, Matrix: [2][2]float64{{1, 0}, {0, 1}}, Jitter: 0.5, Shift: 15, Glitch: 0.05,
		Cut: 200, Water: 42, Relief: 10, Bowl: 28,
		Attenuation: 1.5, Texture: 0.6, Speckle: 0.35, Floor: 0.02, Agarose: 0.12, Vignette: 0.3,
	}
}

// Ideal returns c with every imperfection off: identical frames, no overlap errors, no noise. Only the
// specimen itself remains, and which slices there are.
func (c Config) Ideal() Config {
	c.Matrix = [2][2]float64{{1, 0}, {0, 1}}
	c.Jitter, c.Glitch, c.Bowl, c.Speckle, c.Floor, c.Vignette = 0, 0, 0, 0, 0, 0
	c.Turn, c.Range, c.Rehome, c.GalvoShift = 0, 0, 0, 0
	return c
}

// setDefaults sets unset fields whose defaults depend on other fields.
func (c *Config) setDefaults() {
	if c.Gain == 0 {
		switch c.DType {
		case dtype.Uint8:
			c.Gain = 25
		case dtype.Int16:
			c.Gain = 3277
		case dtype.Uint16:
			c.Gain = 6554
		default:
			c.Gain = 1000
		}
	}
	if c.Matrix == ([2][2]float64{}) {
		c.Matrix = [2][2]float64{{1, 0}, {0, 1}}
	}
}

// Validate returns an error about the first field that makes the acquisition impossible.
func (c *Config) Validate() error {
	bad := func(field, format string, args ...any) error {
		return fmt.Errorf("phantom: %s %s", field, fmt.Sprintf(format, args...))
	}
	switch c.DType {
	case dtype.Uint8, dtype.Uint16, dtype.Int16, dtype.Float32, dtype.Float64:
	default:
		return bad("dtype", "%v is not one of uint8, uint16, int16, float32, float64", c.DType)
	}
	if c.Slices < 1 {
		return bad("slices", "is %d, must be at least 1", c.Slices)
	}
	for d, n := range c.Tiles {
		if n < 1 {
			return bad("tiles", "has %d along %c, must be at least 1", n, "yx"[d])
		}
	}
	for d, n := range c.Tile {
		if n < 1 {
			return bad("tile", "has %d voxels along %c, must be at least 1", n, "zyx"[d])
		}
		if !(c.Voxel[d] >= 1e-6 && c.Voxel[d] <= 1e6) {
			return bad("voxel size", "along %c is %g µm, must be within 1e-06…1e+06", "zyx"[d], c.Voxel[d])
		}
	}
	for d, n := range c.Crop {
		if n < 0 || n >= c.Tile[d+1] {
			return bad("crop", "along %c is %d, must be within 0…%d", "yx"[d], n, c.Tile[d+1]-1)
		}
	}
	if !(c.Overlap >= 0 && c.Overlap < 1) {
		return bad("overlap", "is %g, must be within 0…1 (1 excluded)", c.Overlap)
	}
	if det := c.Matrix[0][0]*c.Matrix[1][1] - c.Matrix[0][1]*c.Matrix[1][0]; !(math.Abs(det) > 1e-6) || math.IsInf(det, 0) {
		return bad("matrix", "%v is singular", c.Matrix)
	}
	for _, f := range []struct {
		name   string
		v, max float64
	}{
		{"jitter", c.Jitter, 1e6}, {"stage error", c.Stage, 1e9}, {"shift", c.Shift, 1e9}, {"glitch probability", c.Glitch, 1}, {"interval", c.Cut, 1e9},
		{"water", c.Water, 1e9}, {"relief", c.Relief, 1e9}, {"curvature", c.Bowl, 1e9}, {"attenuation", c.Attenuation, 1e6},
		{"texture", c.Texture, 1}, {"anatomy", c.Anatomy, 1}, {"speckle", c.Speckle, 1}, {"floor", c.Floor, 1e6}, {"agarose", c.Agarose, 1e6}, {"vignette", c.Vignette, 1},
		{"gain", c.Gain, 1e30}, {"slice rotation", c.Turn, 180}, {"focus", c.Focus, 1e9}, {"focus range", c.Range, 1e9}, {"re-homing probability", c.Rehome, 1},
		{"re-homing distance", c.RehomeBy, 1e9}, {"brightness of the way back", c.Return, 1e6},
	} {
		if !(f.v >= 0 && f.v <= f.max) {
			return bad(f.name, "is %g, must be within 0…%g", f.v, f.max)
		}
	}
	if c.Raw && c.DType != dtype.Float32 {
		return bad("dtype", "%v: raw tiles are of float32", c.DType)
	}
	if c.Raw && c.Crop != [2]int{} {
		return bad("crop", "%v: raw tiles are whole", c.Crop)
	}
	for _, k := range c.Missing {
		if k < 0 || k >= c.Slices {
			return bad("missing slice", "%d is none of the %d slices, which are counted from 0", k, c.Slices)
		}
	}
	if c.Extra < 0 || c.Extra > 1<<14 {
		return bad("number of extra A-lines", "is %d, must be within 0…%d", c.Extra, 1<<14)
	}
	if c.GalvoShift < 0 || c.GalvoShift >= c.Tile[1] || c.GalvoShift > 0 && c.Extra == 0 {
		return bad("galvo shift", "is %d, must be within 0…%d, and 0 without extra A-lines", c.GalvoShift, c.Tile[1]-1)
	}
	// the tables of a row of A-lines reach that much above a tile's first plane
	if n := (c.Relief + c.Bowl) / c.Voxel[0]; n > maxHeight {
		return bad("relief and curvature", "together are %g voxels deep, must be at most %d", n, maxHeight)
	}
	return nil
}

// maxHeight is by how many voxels the tissue surface may vary within a slice.
const maxHeight = 4096

// Shape returns the shape (z, y, x) of one slice's mosaic grid.
func (c *Config) Shape() [3]int {
	return [3]int{c.Tile[0], c.Tiles[0]*c.Tile[1] - c.Crop[0], c.Tiles[1]*c.Tile[2] - c.Crop[1]}
}
