package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// flipsPerCodec is the number of bits of a chunk that are flipped, one at a time.
const flipsPerCodec = 25

// flippedName names the campaign.
const flippedName = "a bit flipped in a chunk with a checksum"

// flippedCodecs are those of --codec.
var flippedCodecs = []string{"raw", "lz4", "zstd:1", "gzip:1", "blosc-lz4:1", "blosc-zstd:1"}

// flipped counts the flipped bits of a chunk that two readers notice.
type flipped struct {
	Codec    string `json:"codec"`
	Checksum bool   `json:"checksum"`
	Format   string `json:"format"`   // of Zarr
	Validate int    `json:"validate"` // of flipsPerCodec
	Part     int    `json:"part"`     // by who reads a part of the chunk
}

// flipBits flips single bits of a chunk, with each codec, with and without checksum, and counts how many are noticed. A
// bit that goes unnoticed although there is a checksum is a promise broken.
func (f *fixtures) flipBits(ctx context.Context) (result, error) {
	started := time.Now()
	res := result{Name: flippedName, Promise: "Every read of the chunk, whole or in part, ends with exit code 3 and names the file.", Outcomes: map[string]int{}}
	for _, name := range flippedCodecs {
		for _, format := range []string{"3", "2"} {
			for _, sum := range []bool{false, true} {
				if format == "2" && name != "zstd:1" {
					continue
				}
				row := flipped{Codec: name, Checksum: sum, Format: format}
				if err := f.flipChunk(ctx, &row); err != nil {
					return res, fmt.Errorf("%s: %w", name, err)
				}
				res.Flipped = append(res.Flipped, row)
				if sum {
					res.Tries += flipsPerCodec
					lost := flipsPerCodec - min(row.Validate, row.Part)
					res.Lost += lost
					res.Outcomes["exit code 3"] += flipsPerCodec - lost
				}
			}
		}
	}
	fmt.Printf("%s: %d tries, %d lost\n", res.Name, res.Tries, res.Lost)
	res.Seconds = time.Since(started).Seconds()
	return res, nil
}

// flipChunk counts for one way to store a chunk.
func (f *fixtures) flipChunk(ctx context.Context, row *flipped) error {
	dir, err := os.MkdirTemp(f.dir, "flips-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	in := filepath.Join(dir, "in.ome.zarr")
	line := []string{"zarr-tool", "reencode", filepath.Join(f.dir, "ph/mosaic_grid_3d_z00.ome.zarr"), in, "--codec", row.Codec, "--zarr_format", row.Format, "--chunks", "48,48,48", "--separator", "/", "-q"}
	if row.Checksum {
		line = append(line, "--checksum")
	}
	if err := mustRun(ctx, f.bin, dir, line...); err != nil {
		return err
	}
	file := filepath.Join(in, "0", map[string]string{"2": "0/0/0", "3": "c/0/0/0"}[row.Format])
	whole, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i := range flipsPerCodec {
		bit := i * (8*len(whole) - 1) / (flipsPerCodec - 1)
		damaged := append([]byte(nil), whole...)
		damaged[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(file, damaged, 0o666); err != nil {
			return err
		}
		for noticed, args := range map[*int][]string{
			&row.Validate: {"zarr-tool", "validate", in},
			&row.Part:     {"zarr-tool", "cat", in + "/0", "-o", "part.npy", "-f", "--region", "0:1,0:48,0:48"},
		} {
			e, err := program{bin: f.bin, dir: dir, args: append(args, "-q")}.run(ctx)
			switch {
			case err != nil:
				return err
			case e.code == 3:
				*noticed++
			case e.code != 0:
				return fmt.Errorf("bit %d: %v", bit, e)
			}
		}
	}
	return nil
}

// flippedTable returns the table of the page.
func flippedTable(rows []flipped) string {
	var b strings.Builder
	b.WriteString("| codec | whole chunk | first plane of it | whole chunk, `--checksum` | first plane, `--checksum` |\n|---|---:|---:|---:|---:|\n")
	for i := 0; i+1 < len(rows); i += 2 {
		plain, sum := rows[i], rows[i+1]
		name := plain.Codec
		if plain.Format == "2" {
			name += ", Zarr format 2"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", name, plain.Validate, plain.Part, sum.Validate, sum.Part)
	}
	return b.String()
}
