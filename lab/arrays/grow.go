package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// grow makes a mosaic grid of tiles (tiles along y and x) in the folder out. Its chunks are hard links to those of a
// smaller one, whose tiles, one chunk each, it repeats along y and x. Memory caches them once.
func grow(mosaic, tiles, out string) error {
	grid, err := parseInts(tiles)
	if err != nil || len(grid) != 2 {
		return fmt.Errorf("grow %s %s: want the number of tiles, Y,X", mosaic, tiles)
	}
	level := filepath.Join(mosaic, "0")
	array, err := readDocument(filepath.Join(level, "zarr.json"))
	if err != nil {
		return err
	}
	var m struct {
		Shape []int `json:"shape"`
		Grid  struct {
			Configuration struct {
				Chunk []int `json:"chunk_shape"`
			} `json:"configuration"`
		} `json:"chunk_grid"`
	}
	if err := array.decode(&m); err != nil {
		return err
	}
	shape, chunk := m.Shape, m.Grid.Configuration.Chunk
	if len(shape) != 3 || len(chunk) != 3 || shape[0] != chunk[0] {
		return fmt.Errorf("%s: shape %v, chunks %v: want tiles of one chunk", level, shape, chunk)
	}
	larger := []int{shape[0], grid[0] * chunk[1], grid[1] * chunk[2]}
	if array["shape"], err = json.Marshal(larger); err != nil {
		return err
	}
	for y := range grid[0] {
		row := filepath.Join(out, "0", "c", "0", strconv.Itoa(y))
		if err := os.MkdirAll(row, 0o777); err != nil {
			return err
		}
		from := filepath.Join(level, "c", "0", strconv.Itoa(y%(shape[1]/chunk[1])))
		for x := range grid[1] {
			if err := os.Link(filepath.Join(from, strconv.Itoa(x%(shape[2]/chunk[2]))), filepath.Join(row, strconv.Itoa(x))); err != nil {
				return err
			}
		}
	}
	image, err := readDocument(filepath.Join(mosaic, "zarr.json"))
	if err != nil {
		return err
	}
	if err := image.write(filepath.Join(out, "zarr.json")); err != nil {
		return err
	}
	return array.write(filepath.Join(out, "0", "zarr.json"))
}

// document is a JSON object whose members are kept as they are.
type document map[string]json.RawMessage

func readDocument(path string) (document, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var d document
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

func (d document) decode(v any) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

func (d document) write(path string) error {
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o666)
}
