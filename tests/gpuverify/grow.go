package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// grow makes a mosaic of across by across tiles from one of two by two, without a pyramid, by links to its chunks: data
// of any size are there in no time, and take no more room. The phantom writes Zarr 3 with the separator "/".
func grow(src, dst string, across int) error {
	root, err := readJSON(filepath.Join(src, "zarr.json"))
	if err != nil {
		return err
	}
	array, err := readJSON(filepath.Join(src, "0", "zarr.json"))
	if err != nil {
		return err
	}
	var shape, chunk [3]int
	if err := ints(array["shape"], &shape); err != nil {
		return err
	}
	grid, _ := array["chunk_grid"].(map[string]any)
	configuration, _ := grid["configuration"].(map[string]any)
	if err := ints(configuration["chunk_shape"], &chunk); err != nil {
		return err
	}
	var from, to [3]int // numbers of chunks
	for d := range shape {
		if shape[d]%chunk[d] != 0 {
			return fmt.Errorf("%s: chunks of %v do not divide %v", src, chunk, shape)
		}
		from[d], to[d] = shape[d]/chunk[d], shape[d]/chunk[d]
		if d > 0 {
			shape[d] = shape[d] / 2 * across
			to[d] = shape[d] / chunk[d]
		}
	}
	array["shape"], array["attributes"] = shape, map[string]any{}
	if err := firstLevel(root); err != nil {
		return fmt.Errorf("%s: %w", src, err)
	}
	for z := range to[0] {
		for y := range to[1] {
			row := filepath.Join(dst, "0", "c", fmt.Sprint(z), fmt.Sprint(y))
			if err := os.MkdirAll(row, 0o777); err != nil {
				return err
			}
			for x := range to[2] {
				chunk := filepath.Join(src, "0", "c", fmt.Sprint(z), fmt.Sprint(y%from[1]), fmt.Sprint(x%from[2]))
				if err := os.Link(chunk, filepath.Join(row, fmt.Sprint(x))); err != nil && !os.IsNotExist(err) { // all fill
					return err
				}
			}
		}
	}
	if err := writeJSON(filepath.Join(dst, "0", "zarr.json"), array); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dst, "zarr.json"), root)
}

// firstLevel leaves only level 0 in an image's metadata.
func firstLevel(root map[string]any) error {
	attributes, _ := root["attributes"].(map[string]any)
	ome, _ := attributes["ome"].(map[string]any)
	scales, _ := ome["multiscales"].([]any)
	if len(scales) == 0 {
		return fmt.Errorf("it is no image")
	}
	scale, _ := scales[0].(map[string]any)
	levels, _ := scale["datasets"].([]any)
	if len(levels) == 0 {
		return fmt.Errorf("it has no level 0")
	}
	scale["datasets"] = levels[:1]
	return nil
}

// ints takes three numbers from JSON.
func ints(v any, to *[3]int) error {
	list, _ := v.([]any)
	for d, n := range list {
		if f, ok := n.(float64); ok && d < len(to) {
			to[d] = int(f)
		}
	}
	if len(list) != len(to) || to[0] < 1 || to[1] < 1 || to[2] < 1 {
		return fmt.Errorf("%v is no shape of three axes", v)
	}
	return nil
}

func readJSON(file string) (map[string]any, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return v, nil
}

func writeJSON(file string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o666)
}
