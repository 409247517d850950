package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"strata/tests/regions"
)

// sheetFile is the file of all rows beside the page.
const sheetFile = "dependencies-codecs.csv"

// image is the data of which the page shows each job.
const image = "image 64³ float32"

var sheetHead = []string{"job", "data", "library", "strata_mb_per_s", "library_mb_per_s", "ratio", "ratio_least", "ratio_largest", "encoded_size_per_library"}

// write writes the rows of the sheet, the head first, to a file beside the page and those that the page shows to its
// region; without a page, the sheet to standard output.
func write(page string, rows [][]string, said string) error {
	if page == "" {
		return csv.NewWriter(os.Stdout).WriteAll(rows)
	}
	table, err := onPage(rows)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(filepath.Dir(page), sheetFile))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		return err
	}
	return regions.Write(page, page, map[string]string{"codecs": "\n" + table + "\n" + said + "\n"})
}

// onPage returns the table of the page: the rows of the image, and those in which the library is faster.
func onPage(rows [][]string) (string, error) {
	var b strings.Builder
	b.WriteString("| | data | strata MB/s | library MB/s | ratio (range) | encoded size, strata / library |\n|---|---|---:|---:|---:|---:|\n")
	for _, r := range rows[1:] {
		ratio, err := strconv.ParseFloat(r[5], 64)
		if err != nil {
			return "", fmt.Errorf("%s, %s: %w", r[0], r[1], err)
		}
		if r[1] == image || ratio < 1 {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s (%s–%s) | %s |\n", r[0], r[1], r[3], r[4], r[5], r[6], r[7], r[8])
		}
	}
	return b.String(), nil
}
