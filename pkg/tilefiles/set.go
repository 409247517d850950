package tilefiles

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Options says how files are arranged. The zero value takes everything from names and files.
type Options struct {
	// Grid is the number of rows and columns. 0, 0: as the numbers of {row} and {col}, or positions, say. {index} needs
	// it unless files record positions.
	Grid [2]int
	// Columns and Snake say how {index} runs through the grid: column by column instead of row by row, and every other
	// line backwards.
	Columns, Snake bool
	// Start is the corner of the tile that comes first: at which {index} begins, or at which {row} and {col}, or
	// positions, are smallest.
	Start Corner
	// Voxel is the voxel size (z, y, x) in µm; 0: as the files state it.
	Voxel [3]float64
	// Axes names the axes of a file's pages: "zyx", "cyx", or "yx" for files of one page. "": as OME-XML or ImageJ's
	// description says, else zyx.
	Axes string
}

// Corner is a corner of a grid.
type Corner int

// The corners of a grid, seen as images are: row 0 is at the top, column 0 on the left.
const (
	TopLeft Corner = iota
	TopRight
	BottomLeft
	BottomRight
)

// bottom and right report where a corner lies.
func (c Corner) bottom() bool { return c == BottomLeft || c == BottomRight }
func (c Corner) right() bool  { return c == TopRight || c == BottomRight }

// CornerAt returns the corner at the bottom or top, and at the right or left.
func CornerAt(bottom, right bool) Corner {
	c := TopLeft
	if bottom {
		c = BottomLeft
	}
	if right {
		c++
	}
	return c
}

// Corners are the names of corners, in the order of the constants.
var Corners = []string{"top-left", "top-right", "bottom-left", "bottom-right"}

// ParseCorner returns the corner of a name in [Corners].
func ParseCorner(name string) (Corner, error) {
	k := slices.Index(Corners, name)
	if k < 0 {
		return 0, fmt.Errorf("%q is not a corner: want %s", name, strings.Join(Corners, ", "))
	}
	return Corner(k), nil
}

// Set is the tiles that a pattern matches in a folder.
type Set struct {
	Root    string
	Pattern *Pattern
	Options Options
	Files   int // that the pattern matches
	Others  int // files in the same folders that it does not match

	// Times, Channels and Planes are the numbers of {t}, {c} and {z} in increasing order; nil: the pattern has no such
	// token. Numbers of times and planes are equally spaced: those that no file has are there, too.
	Times, Channels, Planes []int64
	// Names are those of {channel} in order, whose Channels count from 0; nil: the pattern has no {channel}.
	Names []string

	Slices []Slice // by ID; without {slice} there is one of ID 0
	Header *Header // of the first file
}

// Slice is the tiles of a slice.
type Slice struct {
	ID    int64  // the number of {slice}
	Grid  [2]int // rows and columns
	Tiles []Tile // by place, row by row, without places that have no tile

	Warnings []string // about tiles and files that are missing
}

// Tile is a tile of a slice.
type Tile struct {
	Place [2]int // row and column, from 0
	// Files are paths below the set's folder, by time, channel and plane, planes fastest. "": there is no file.
	Files []string
	// Position is that of the first pixel (y, x) in µm, as {y_um} and {x_um} state it, or the stage by
	// [Set.ReadPositions]; nil: not known.
	Position *[2]float64
}

// Path returns the path of a file of a tile.
func (s *Set) Path(file string) string { return filepath.Join(s.Root, filepath.FromSlash(file)) }

// First returns the first file of a slice.
func (s *Slice) First() string {
	for _, t := range s.Tiles {
		for _, f := range t.Files {
			if f != "" {
				return f
			}
		}
	}
	return ""
}

// OptionError is an error that another option, not another file, prevents.
type OptionError struct {
	Option string // "pattern", "grid", "voxel_size", "axes": the name of the flag
	Err    error
}

func (e *OptionError) Error() string { return "--" + e.Option + ": " + e.Err.Error() }
func (e *OptionError) Unwrap() error { return e.Err }

func badOption(option, format string, args ...any) error {
	return &OptionError{option, fmt.Errorf(format, args...)}
}
