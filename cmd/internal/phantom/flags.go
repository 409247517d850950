package phantom

import (
	"fmt"
	"slices"

	"strata/pkg/cli"
	"strata/pkg/phantom"
)

var (
	fraction = cli.Between(0, 1)
	positive = cli.AtLeast(0)
)

// num returns a default as typed.
func num(v float64) string { return fmt.Sprintf("%g", v) }

// flags are the flags of the command.
func flags() []cli.Flag {
	d := phantom.Default()
	return slices.Concat(outputFlags(), rawFlags(), stageFlags(&d), opticsFlags(&d))
}

// outputFlags say what is written.
func outputFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "seed", Kind: cli.Int, Default: "1", Check: positive, Usage: "seed of the random numbers, from 0; another seed makes another specimen"},
		{Name: "slices", Kind: cli.Int, Default: "1", Check: cli.Between(1, 10000), Usage: "number of slices, 1 to 10000"},
		{Name: "tiles", Kind: cli.Ints, Default: "4,4", Value: "Y,X", Check: cli.Between(1, 1<<12), Usage: "number of tiles of a slice, along y and x"},
		{Name: "tile", Kind: cli.Ints, Default: "96,128,128", Value: "Z,Y,X", Check: cli.Between(1, 1<<14), Usage: "size of a tile in voxels"},
		{Name: "crop", Kind: cli.Ints, Default: "0,0", Value: "Y,X", Check: positive, Usage: "voxels to cut off from the last row (y) and the last column (x) of tiles"},
		{Name: "dtype", Default: "float32", Choices: []string{"uint8", "uint16", "int16", "float32", "float64"}, Usage: "data type of the voxels"},
		{Name: "voxel", Kind: cli.Floats, Default: "3.5,2,2", Value: "Z,Y,X", Check: cli.VoxelSize, Usage: "voxel size in µm"},
		{Name: "unit", Default: "millimeter", Choices: []string{"nanometer", "micrometer", "millimeter", "meter"}, Usage: "unit in which the metadata state the voxel size"},
		{Name: "gain", Kind: cli.Float, Note: "a tenth of the data type's range; 1000 for floats", Check: cli.Above(0), Usage: "stored value of bright tissue"},
		{Name: "czi", Kind: cli.Bool, Usage: "write slide scans (CZI) instead of mosaic grids; changes the defaults to --tile 1,512,512 --dtype uint16 --speckle 0.02 --water 0 --relief 0 --curvature 0"},
		{Name: "channels", Kind: cli.Int, Default: "1", Check: cli.Between(1, 64), Usage: "number of channels of the slide scans of --czi, 1 to 64"},
		{Name: "noise", Kind: cli.Bool, Usage: "fill tiles with 12-bit white noise instead of tissue, for benchmarks"},
		{Name: "ideal", Kind: cli.Bool, Usage: "simulate a perfect microscope: no curvature, vignette, focus, speckle, floor, jitter, rotation, galvo shift or glitches"},
	}
}

// rawFlags are those of raw tiles.
func rawFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "raw", Kind: cli.Bool, Usage: "write raw tiles instead of mosaic grids"},
		{Name: "galvo_extra", Kind: cli.Int, Default: "20", Check: cli.Between(0, 1<<14), Usage: "A-lines of each frame of --raw that are recorded while the mirror flies back"},
		{Name: "galvo_return", Kind: cli.Float, Default: "0.15", Check: positive, Usage: "brightness of these A-lines, where those of the image have 1"},
		{Name: "galvo_shift", Kind: cli.Int, Default: "0", Check: positive, Usage: "A-lines by which frames of --raw begin too late, so that the mirror's way back lies within them; below the tile's length along y"},
		{Name: "rehome", Kind: cli.Float, Default: "0", Check: fraction, Usage: "probability that the stage lost its home in a slice, so that its recorded positions are off, 0 to 1"},
		{Name: "rehome_mm", Kind: cli.Float, Default: "2", Check: positive, Usage: "standard deviation along each axis of how far --rehome puts them off, in mm"},
	}
}

// stageFlags say where tiles and slices lie.
func stageFlags(d *phantom.Config) []cli.Flag {
	return []cli.Flag{
		{Name: "overlap", Kind: cli.Float, Default: num(d.Overlap), Check: cli.Between(0, 0.99), Usage: "fraction of a tile that its neighbour covers too, 0 to 0.99"},
		{Name: "rotation", Kind: cli.Float, Default: "0", Check: cli.Between(-180, 180), Usage: "angle between the axes of stage and image, in degrees, -180 to 180"},
		{Name: "stage_scale", Kind: cli.Float, Default: "1", Check: cli.Above(0), Usage: "length of the stage's steps, as a multiple of what they should be"},
		{Name: "matrix", Kind: cli.Floats, Value: "A,B,C,D", Note: "from --rotation and --stage_scale", Usage: "2×2 matrix from stage to image positions (y, x): [[A, B], [C, D]]"},
		{Name: "jitter", Kind: cli.Float, Default: num(d.Jitter), Check: positive, Usage: "standard deviation of tile position errors, in pixels"},
		{Name: "stage_error", Kind: cli.Float, Default: "0", Check: positive, Usage: "standard deviation of the error of recorded tile positions, in µm; above 0 they are written to positions_z<NN>.json, and into files of --raw or --czi"},
		{Name: "shift", Kind: cli.Float, Default: num(d.Shift), Check: positive, Usage: "standard deviation of the motor shift between slices, in µm"},
		{Name: "glitch", Kind: cli.Float, Default: num(d.Glitch), Check: fraction, Usage: "probability that a recorded shift is wrong, 0 to 1"},
		{Name: "interval", Kind: cli.Float, Default: num(d.Cut), Check: positive, Usage: "slicing interval, in µm"},
		{Name: "slice_rotation", Kind: cli.Float, Default: "0", Check: cli.Between(0, 180), Usage: "standard deviation of the rotation of slices about their centre, in degrees, 0 to 180"},
		{Name: "missing_slices", Kind: cli.Ints, Value: "N", Check: positive, Usage: "slices that are not written, from 0"},
		{Name: "only_slices", Kind: cli.Ints, Value: "N", Check: positive, Note: "all", Usage: "write the voxels of these slices alone, from 0; shifts and truth are still those of --slices, so a specimen that does not fit onto a disk can be made slice by slice"},
	}
}

// opticsFlags say how the specimen looks, and what else is written.
func opticsFlags(d *phantom.Config) []cli.Flag {
	return []cli.Flag{
		{Name: "water", Kind: cli.Float, Default: num(d.Water), Check: positive, Usage: "depth of water above the tissue, in µm"},
		{Name: "relief", Kind: cli.Float, Default: num(d.Relief), Check: positive, Usage: "height of the undulation of the tissue surface, in µm"},
		{Name: "curvature", Kind: cli.Float, Default: num(d.Bowl), Check: positive, Usage: "depth range of the focal-plane curvature over a tile, in µm"},
		{Name: "attenuation", Kind: cli.Float, Default: num(d.Attenuation), Check: positive, Usage: "attenuation coefficient of tissue, in 1/mm"},
		{Name: "texture", Kind: cli.Float, Default: num(d.Texture), Check: fraction, Usage: "contrast of the random texture of tissue, 0 to 1"},
		{Name: "anatomy", Kind: cli.Float, Default: "1", Check: fraction, Usage: "contrast of cortical layers, white matter, fibre tracts and vessels, 0 to 1; 0 makes random texture alone"},
		{Name: "speckle", Kind: cli.Float, Default: num(d.Speckle), Check: fraction, Usage: "speckle contrast, 0 to 1; 1 is fully developed speckle"},
		{Name: "floor", Kind: cli.Float, Default: num(d.Floor), Check: positive, Usage: "brightness of the detector floor, where tissue has 1"},
		{Name: "agarose", Kind: cli.Float, Default: num(d.Agarose), Check: positive, Usage: "brightness of the agarose around the tissue, where tissue has 1"},
		{Name: "vignette", Kind: cli.Float, Default: num(d.Vignette), Check: fraction, Usage: "darkening of the corners of a tile, 0 to 1"},
		{Name: "focus", Kind: cli.Float, Default: "150", Check: positive, Usage: "depth of the beam's focus below the first plane, in µm"},
		{Name: "focus_range", Kind: cli.Float, Default: "0", Check: positive, Usage: "distance from --focus at which the signal is half as bright, in µm; 0: it is the same at all depths"},
		{Name: "fill_tissue", Kind: cli.Bool, Usage: "fill the field with tissue, without agarose around it"},
		{Name: "truth_surface", Kind: cli.Bool, Usage: "also write the true depth of the tissue surface under every A-line (truth/surface_z<NN>.npy)"},
		{Name: "truth_slices", Kind: cli.Bool, Usage: "also write each slice as a perfect microscope would see it (truth/slice_z<NN>.ome.zarr)"},
	}
}
