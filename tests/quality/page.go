package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"strata/tests/regions"
)

// Limits for a volume made with strata's own defaults.
const (
	mostPairZ  = 1.0 // planes, for every pair
	mostXY     = 0.5 // voxels, root mean square along an axis
	mostDepth  = 0.5 // percent
	mostLength = 0.2 // percent
	mostEqual  = 3.0 // percent
)

// limits collects the measures that exceed their limits.
type limits []string

func (l *limits) check(phantom, what string, v, most float64, unit string) {
	if !(math.Abs(v) <= most) {
		*l = append(*l, strings.TrimSpace(fmt.Sprintf("%s: %s is %.2f %s", phantom, what, v, unit))+fmt.Sprintf(", must be at most %.2f", most))
	}
}

func (l limits) err() error {
	if l == nil {
		return nil
	}
	return fmt.Errorf("over their limits: %s", strings.Join(l, "; "))
}

// check returns an error that names the measures over their limits.
func check(results []result) error {
	var bad limits
	for _, r := range results {
		if !strings.HasPrefix(r.Way, "strata") {
			continue
		}
		for i, z := range r.PairsZ {
			bad.check(r.Phantom, fmt.Sprintf("z of slice %d", i+1), z/r.Voxel, mostPairZ, "planes")
		}
		bad.check(r.Phantom, "xy of slices", r.XYRMS/r.Voxel, mostXY, "voxels")
		bad.check(r.Phantom, "depth", r.Depth, mostDepth, "%")
		bad.check(r.Phantom, "length along z", r.LengthZ, max(mostLength, r.Quarter), "%")
		bad.check(r.Phantom, "length along y", r.LengthY, mostLength, "%")
		bad.check(r.Phantom, "length along x", r.LengthX, mostLength, "%")
		bad.check(r.Phantom, "brightness at the same depth", r.Equal, mostEqual, "%")
	}
	return bad.err()
}

// table returns the results as Markdown.
func table(results []result) string {
	var b strings.Builder
	b.WriteString("| phantom | stacked | tiles, µm | seams | z of slices, planes | xy of slices, voxels | focal plane, µm | depth | lengths z, y, x | equal depth | bands |\n")
	b.WriteString("|---|---|---:|---:|---|---:|---:|---:|---|---:|---:|\n")
	for _, r := range results {
		var z []string
		for _, v := range r.PairsZ {
			z = append(z, orLost("%+.1f", v/r.Voxel))
		}
		fmt.Fprintf(&b, "| %s | %s | %.2f | %.1f %% | %s | %s | %.1f | %+.2f %% | %+.2f, %+.2f, %+.2f %% | ±%.1f %% | ±%.0f %% |\n", r.Phantom, r.Way, r.TilesRMS, r.Seams, strings.Join(z, ", "),
			orLost("%.2f", r.XYRMS/r.Voxel), r.Left, r.Depth, r.LengthZ, r.LengthY, r.LengthX, r.Equal, r.Bands)
	}
	return b.String()
}

// zero is a number that is rounded to none, with its sign.
var zero = regexp.MustCompile(`^[+-](0\.0+)$`)

// orLost formats a number, or returns "lost" for NaN: the slice was not found anywhere near its place.
func orLost(format string, v float64) string {
	if math.IsNaN(v) {
		return "lost"
	}
	return zero.ReplaceAllString(fmt.Sprintf(format, v), "$1")
}

// writePage writes tables into their regions of a page, and those of which it shows a part into files beside it.
func writePage(name string, tables map[string]string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	texts := map[string]string{}
	for _, s := range sheets {
		text, made := tables[s.table]
		if !made {
			continue
		}
		file := filepath.Join(filepath.Dir(name), s.file)
		if err := s.write(file, text); err != nil {
			return err
		}
		if text, err = s.read(file); err != nil {
			return err
		}
		tables[s.table] = s.onPage(text)
	}
	for table, text := range tables {
		old, err := regions.Text(string(page), table)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		texts[table] = text + kept(old, text)
	}
	return regions.Write(name, name, texts)
}

// kept returns the rows of linumpy in an old table that a new one lacks: it takes long and is not everywhere.
func kept(old, table string) (rows string) {
	for row := range strings.Lines(old) {
		if strings.Contains(row, "| "+linumpyRow) && !strings.Contains(table, "| "+linumpyRow) {
			rows += row
		}
	}
	return rows
}
