package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strata/tests/regions"
)

// page is the document whose regions are made of the sheets.
const page = "zstd-levels.md"

// sheet is a file of measured values beside the page.
type sheet struct {
	file    string
	columns []string
}

var (
	levelsSheet   = &sheet{"zstd-levels.csv", []string{"data", "level", "libzstd_stored_per_raw", "size_per_libzstd", "speed_per_libzstd", "mb_per_s"}}
	decodingSheet = &sheet{"zstd-decoding.csv", []string{"data", "frames_of", "stored_per_raw", "libzstd_mb_per_s", "strata_mb_per_s", "speed_per_libzstd"}}
)

// Rows and columns of the page; the sheets have all.
var (
	shownLevels = []string{"1", "3", "9"}
	shownData   = []string{"image 128³ float32", "image 128³ uint16", "phantom float32", "image uint16, shuffled", "phantom uint16, shuffled", "text"}
	shownFrames = []string{"image 64³ float32", "image 64³ uint16", "image uint16, shuffled", "text"}
)

func (s *sheet) path(dir string) string { return filepath.Join(dir, s.file) }

func (s *sheet) write(w io.Writer, rows [][]string) error {
	return csv.NewWriter(w).WriteAll(append([][]string{s.columns}, rows...))
}

// read returns the rows of the sheet in a folder.
func (s *sheet) read(dir string) ([][]string, error) {
	f, err := os.Open(s.path(dir))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	if len(rows) == 0 || !slices.Equal(rows[0], s.columns) {
		return nil, fmt.Errorf("%s: the columns are not %s", f.Name(), strings.Join(s.columns, ","))
	}
	return rows[1:], nil
}

// render writes the page to a folder from the sheets and what people wrote in another, or the same.
func render(from, to string) error {
	levels, err := levelsSheet.read(from)
	if err != nil {
		return err
	}
	decoding, err := decodingSheet.read(from)
	if err != nil {
		return err
	}
	table, err := levelsTable(levels)
	if err != nil {
		return err
	}
	return regions.Write(filepath.Join(from, page), filepath.Join(to, page), map[string]string{"levels": table, "decoding": decodingTable(decoding)})
}

// levelsTable returns a row for each set of data, with a cell for each level: stored bytes over raw ones and MB/s,
// and beside libzstd's the size and the speed.
func levelsTable(rows [][]string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "| | level %s |\n|---|%s\n", strings.Join(shownLevels, " | "), strings.Repeat("---:|", len(shownLevels)))
	for _, data := range shownData {
		cells := []string{data}
		for _, level := range shownLevels {
			at := slices.IndexFunc(rows, func(r []string) bool { return r[0] == data && r[1] == level })
			if at < 0 {
				return "", fmt.Errorf("%s has no level %s of %s", levelsSheet.file, level, data)
			}
			var v [3]float64
			for i := range v {
				var err error
				if v[i], err = strconv.ParseFloat(rows[at][2+i], 64); err != nil {
					return "", fmt.Errorf("%s: %s, level %s: %w", levelsSheet.file, data, level, err)
				}
			}
			cells = append(cells, fmt.Sprintf("%.2f, %s (%.2f, %.2f×)", v[0]*v[1], rows[at][5], v[1], v[2]))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String(), nil
}

// decodingTable returns a row for each set of data and encoder.
func decodingTable(rows [][]string) string {
	var b strings.Builder
	b.WriteString("| | frames of | stored / raw | libzstd MB/s | strata MB/s | strata / libzstd |\n|---|---|---:|---:|---:|---:|\n")
	for _, r := range rows {
		if slices.Contains(shownFrames, r[0]) {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
		}
	}
	return b.String()
}
