package survey

import (
	"context"
	"fmt"

	"strata/pkg/tilefiles"
)

// Kinds of what is found.
const (
	Tiles   = "tiles"        // a file or more for each tile
	Raw     = "raw tiles"    // folders of OCT frames
	Mosaics = "mosaic grids" // OME-Zarr mosaic grids
	Scan    = "slide scan"   // CZI, SVS and other pyramids in one file
	Stack   = "stack"        // TIFF files of several pages, or several files of planes
	Volume  = "OME-Zarr image"
)

// Confidence.
const (
	High   = "high"
	Medium = "medium"
	Low    = "low"
)

// Finding is something that strata can work with.
type Finding struct {
	Kind       string   `json:"kind"`
	What       string   `json:"what"`       // a sentence
	Confidence string   `json:"confidence"` // High, Medium or Low
	Evidence   []string `json:"evidence"`
	Warnings   []string `json:"warnings,omitempty"`
	// Needs are flags that nothing in the folder makes unnecessary.
	Needs []string `json:"needs,omitempty"`

	Pattern      string        `json:"pattern,omitempty"`
	Alternatives []Alternative `json:"alternatives,omitempty"`
	Slices       []int64       `json:"slices,omitempty"`
	Grid         *[2]int       `json:"grid,omitempty"` // rows and columns
	Order        *Order        `json:"order,omitempty"`
	Tiles        int           `json:"tiles,omitempty"`   // of the slice looked at
	Missing      [][2]int      `json:"missing,omitempty"` // rows and columns of some places without a tile
	MissingAll   int           `json:"missing_tiles"`
	Overlap      *Overlap      `json:"overlap,omitempty"`

	Voxel     *[3]float64 `json:"voxel_size_um,omitempty"` // (z, y, x); 0: not known
	VoxelFrom string      `json:"voxel_size_from,omitempty"`
	DType     string      `json:"data_type,omitempty"`
	Shape     []int       `json:"shape,omitempty"` // of a tile (z, y, x), or of an image along its axes
	Axes      []string    `json:"axes,omitempty"`
	Channels  int         `json:"channels,omitempty"`
	Planes    int         `json:"planes,omitempty"`
	Times     int         `json:"times,omitempty"`

	Commands []string `json:"commands"`
	Params   []Param  `json:"params,omitempty"` // of the workflow

	mosaic *pictures // what a preview is made of; nil: there is none
	image  string    // the image to show instead; "": none
}

// Alternative is another pattern.
type Alternative struct {
	Pattern string `json:"pattern"`
	Why     string `json:"why"`
}

// Order says how the index of tiles runs through the grid.
type Order struct {
	Columns bool   `json:"columns"`
	Snake   bool   `json:"snake"`
	Start   string `json:"start"`
	From    string `json:"from"` // what says so
}

// Overlap is the fraction of a tile that its neighbour covers, too.
type Overlap struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Pairs  int     `json:"pairs"` // of tiles that agree
	From   string  `json:"from"`
}

// Param is a parameter of the workflow.
type Param struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// Options replace guesses by the user's values.
type Options struct {
	Pattern string // "": guessed from names
	Tiles   tilefiles.Options
	// Which of the options about {index} are given.
	Ordered, Snaked, Started bool
	Overlap                  *float64 // nil: measured
}

func (f *Finding) evidence(format string, args ...any) {
	f.Evidence = append(f.Evidence, fmt.Sprintf(format, args...))
}

func (f *Finding) warn(format string, args ...any) {
	f.Warnings = append(f.Warnings, fmt.Sprintf(format, args...))
}

// Look returns the findings in a folder, the most important first. A fault of one kind of files becomes a finding. Look
// returns an error only if an option does not fit (a [tilefiles.OptionError]), if ctx ends, or if it finds nothing
// useful.
func Look(ctx context.Context, l *Listing, opt Options) ([]*Finding, error) {
	var out []*Finding
	if opt.Pattern == "" {
		for _, look := range []func(context.Context, *Listing) ([]*Finding, error){lookRaw, lookMosaics} {
			found, err := look(ctx, l)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	found, err := lookTiles(ctx, l, opt)
	if err != nil {
		return nil, err
	}
	out = append(out, found...)
	if opt.Pattern == "" {
		found, err := lookImages(ctx, l, len(out) > 0)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, nothing(l)
	}
	return out, nil
}

// nothing returns the error that a folder contains nothing useful.
func nothing(l *Listing) error {
	some := ""
	for k, name := range l.Files[:min(3, len(l.Files))] {
		if k > 0 {
			some += ", "
		}
		some += tilefiles.Name(name)
	}
	if some != "" {
		some = ", such as " + some
	}
	return fmt.Errorf("%s: %d files%s, and none that strata reads: want TIFF, PNG or .npy tiles, tile_x…_y…_z… folders, OME-Zarr, CZI or slide scans", l.Root, len(l.Files), some)
}
