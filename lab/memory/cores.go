package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
	"strata/tests/regions"
)

// tiling is a mosaic of as many tiles as the largest number of cores, each one chunk of uint16.
type tiling struct {
	tile [3]int
	at   string // in the page
}

// tilings are those of the page's table.
var tilings = []tiling{{[3]int{8, 256, 256}, "1 MB"}, {[3]int{32, 512, 512}, "17 MB"}, {[3]int{200, 512, 512}, "105 MB"}}

var coreCounts = []int{1, 2, 4, 8, 16}

// tileStages are the programs that work on tiles of a mosaic, with the options that they need.
var tileStages = map[string][]string{"aip": nil, "resample": {"-r", "10"}, "focal": nil, "stitch": nil, "crop": {"--depth", "100"}}

// needs matches what a program says that has too little memory for anything.
var needs = regexp.MustCompile(`needs ([0-9]+) MiB of buffers`)

// coresTable returns the page's table: for chunks of each size, the --mem with which the given numbers of cores all
// work, in the stage that needs most. Programs in the folder bin say it.
func coresTable(ctx context.Context, bin string, tilings []tiling, cores []int) (string, error) {
	var rows strings.Builder
	rows.WriteString("| a chunk |")
	for _, n := range cores {
		fmt.Fprintf(&rows, " %d |", n)
	}
	rows.WriteString("\n|---|" + strings.Repeat("---:|", len(cores)) + "\n")
	for _, t := range tilings {
		fmt.Fprintf(&rows, "| %s, %s |", times(t.tile), t.at)
		all, err := t.memory(ctx, bin, cores)
		if err != nil {
			return "", err
		}
		for _, bytes := range all {
			rows.WriteString(" " + rounded(bytes) + " |")
		}
		rows.WriteString("\n")
	}
	return rows.String(), nil
}

// memory returns the --mem in bytes for each number of cores, in the stage that needs most.
func (t tiling) memory(ctx context.Context, bin string, cores []int) ([]int64, error) {
	dir, err := os.MkdirTemp("", "strata-memory-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := writeTiles(ctx, filepath.Join(dir, "in.ome.zarr"), t.tile); err != nil {
		return nil, err
	}
	most := make([]int64, len(cores))
	for i, n := range cores {
		for stage, options := range tileStages {
			bytes, err := memoryFor(ctx, bin, dir, stage, options, n)
			if err != nil {
				return nil, err
			}
			most[i] = max(most[i], bytes)
		}
	}
	return most, nil
}

// writeCores writes the page with the table.
func writeCores(ctx context.Context, bin, page string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	table, err := coresTable(ctx, bin, tilings, coreCounts)
	if err != nil {
		return err
	}
	return regions.Write(form, page, map[string]string{"cores": table})
}

// rounded writes a size, at least 512 MiB, as which any default grants.
func rounded(bytes int64) string {
	if bytes = max(bytes, 512<<20); bytes < 1<<30 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/(1<<30)), ".0") + " GiB"
}

// memoryFor returns the --mem in bytes with which a stage lets all cores work on the mosaic in a folder.
func memoryFor(ctx context.Context, bin, dir, stage string, options []string, cores int) (int64, error) {
	mib := int64(1)
	for {
		args := append([]string{"in.ome.zarr", "out.ome.zarr"}, options...)
		args = append(args, "-q", "--no-use_gpu", "--overwrite", "--missing_chunks", "fill", "--codec", "raw", "--report", "r.json", "-j", strconv.Itoa(cores), "--mem", fmt.Sprintf("%dMiB", mib))
		c := exec.CommandContext(ctx, filepath.Join(bin, stage), args...)
		c.Dir = dir
		text, err := c.CombinedOutput()
		if m := needs.FindSubmatch(text); err != nil && m != nil {
			least, err := strconv.ParseInt(string(m[1]), 10, 64)
			if err != nil {
				return 0, err
			}
			mib = max(mib+1, least)
			continue
		}
		r, readErr := runrecord.Read(ctx, filepath.Join(dir, "r.json"))
		if readErr != nil {
			return 0, errors.Join(fmt.Errorf("%s: %s", stage, text), err, readErr)
		}
		if r.Workers == 0 { // it had too little for a part that says so otherwise
			mib += 1 + mib/4
			continue
		}
		return max(r.MemForAll, mib<<20), nil
	}
}

// writeTiles writes a mosaic of 4 × 4 tiles of zeros.
func writeTiles(ctx context.Context, path string, tile [3]int) error {
	codecs, err := codec.FromFlag("zstd:3", dtype.Uint16, 3)
	if err != nil {
		return err
	}
	w, err := ngff.Create(ctx, store.Folder(path), "", ngff.ImageSpec{Format: 3, Shape: []int{tile[0], 4 * tile[1], 4 * tile[2]}, Chunks: tile[:], DType: dtype.Uint16,
		Codecs: codecs, Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{3, 3, 3}, Workers: 1})
	if err != nil {
		return err
	}
	zeros := make([]byte, 2*tile[0]*tile[1]*tile[2])
	for i := range 16 {
		if err := w.WriteTile(ctx, []int{0, i / 4 * tile[1], i % 4 * tile[2]}, tile[:], zeros); err != nil {
			return err
		}
	}
	return w.Close(ctx)
}
