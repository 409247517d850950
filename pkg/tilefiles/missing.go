package tilefiles

import (
	"fmt"
	"strings"
)

// mostNamed limits the places and files that a warning names.
const mostNamed = 8

// Missing returns places of a slice that have no tile, at most n, row by row, and how many there are.
func (s *Slice) Missing(n int) (places [][2]int, all int) {
	k := 0
	for i := range s.Grid[0] {
		for j := range s.Grid[1] {
			if k < len(s.Tiles) && s.Tiles[k].Place == [2]int{i, j} {
				k++
				continue
			}
			if all++; all <= n {
				places = append(places, [2]int{i, j})
			}
		}
	}
	return places, all
}

// warnMissing warns of places without a tile, and of tiles without some of their files.
func (s *Set) warnMissing() {
	for i := range s.Slices {
		sl := &s.Slices[i]
		of := ""
		if s.Pattern.Has(SliceToken) {
			of = fmt.Sprintf("slice %d: ", sl.ID)
		}
		if places, n := sl.Missing(mostNamed); n > 0 {
			var names []string
			for _, p := range places {
				names = append(names, fmt.Sprintf("row %d column %d", p[0], p[1]))
			}
			sl.warnf("%s%d of %d places have no tile and become 0 (counted from 0): %s%s", of, n, sl.Grid[0]*sl.Grid[1], strings.Join(names, ", "), more(n, len(names)))
		}
		var names []string
		n, files := 0, 0
		for k := range sl.Tiles {
			t := &sl.Tiles[k]
			files += len(t.Files)
			for f, name := range t.Files {
				if name == "" {
					if n++; len(names) < mostNamed {
						names = append(names, fmt.Sprintf("%s of the tile of %s", s.frameName(f), Name(t.first())))
					}
				}
			}
		}
		if n > 0 {
			sl.warnf("%s%d of %d files are missing and become 0: %s%s", of, n, files, strings.Join(names, ", "), more(n, len(names)))
		}
	}
}

// more returns the end of a list in words: how many of its elements are not named.
func more(n, named int) string {
	if n > named {
		return fmt.Sprintf(" and %d more", n-named)
	}
	return ""
}

// frameName names a place among the files of a tile.
func (s *Set) frameName(f int) string {
	var parts []string
	planes, channels := max(1, len(s.Planes)), max(1, len(s.Channels))
	if s.Times != nil {
		parts = append(parts, fmt.Sprintf("t %d", s.Times[f/planes/channels]))
	}
	if s.Channels != nil {
		parts = append(parts, s.ChannelName(f/planes%channels))
	}
	if s.Planes != nil {
		parts = append(parts, fmt.Sprintf("z %d", s.Planes[f%planes]))
	}
	return strings.Join(parts, " ")
}

// ChannelName returns the name of the k-th channel: that in file names, or "c" and its number.
func (s *Set) ChannelName(k int) string {
	if s.Names != nil {
		return s.Names[k]
	}
	return fmt.Sprintf("c %d", s.Channels[k])
}

func (s *Slice) warnf(format string, args ...any) {
	s.Warnings = append(s.Warnings, fmt.Sprintf(format, args...))
}
