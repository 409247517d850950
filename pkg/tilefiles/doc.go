// Package tilefiles finds the tiles of a mosaic in a folder with one or more files per tile, as most microscopes write
// them.
//
// A [Pattern] describes the files' names: 'sl{slice}_tile{row}-{col}.tif'. [Find] lists the files that it matches and
// arranges them: slices, and for each slice the tiles of a grid, with the files of their times, channels and planes.
// It reads names, and the header of one file; only a grid by recorded positions takes the headers of all.
//
//	p, err := tilefiles.ParsePattern("sl{slice}_tile{row}-{col}.tif")
//	set, err := tilefiles.Find(ctx, "scan", p, tilefiles.Options{})
//	st, err := tilestore.Open(ctx, set, &set.Slices[0], tilestore.Options{})
//	im, err := ngff.OpenPresent(ctx, st, "")
//
// Package tilestore shows the tiles of a slice as an OME-Zarr mosaic grid.
//
// Errors are one line and name the file or the option. Those that another option prevents are an [OptionError].
package tilefiles
