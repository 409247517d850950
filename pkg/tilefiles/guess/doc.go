// Package guess proposes patterns of package tilefiles for the names of files, as microscopes and their programs choose
// them.
//
//	for _, s := range guess.Names(paths) {
//		p := s.Proposals[0]                 // p.Pattern is "scan_w{c}_s{index}_t{t}.tif"
//	}
//
// Names are grouped by their skeleton, which is the name without its numbers. In a group, a number that is the same in
// all names is text; the others are named by the words beside them, and by how many values they have. No file is
// opened.
package guess
