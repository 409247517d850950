package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// stage is one run of a program on the GPU and one on the CPU.
type stage struct {
	Name       string  `json:"name"`
	GPUSeconds float64 `json:"gpu_seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	Same       bool    `json:"same_bytes"`
}

// runStages runs the stages that know a GPU on mosaics of some types and codecs.
func runStages(bin, work string, r *record) error {
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"zstd", []string{"--codec", "zstd:3"}},
		{"raw", []string{"--codec", "raw"}},
		{"uint16", []string{"--dtype", "uint16"}},
	} {
		folder := filepath.Join(work, c.name)
		if err := program(bin, "phantom", append([]string{folder, "-q", "-f", "--tiles", "4,4", "--tile", "100,256,256"}, c.flags...)...); err != nil {
			return err
		}
		in := filepath.Join(folder, "mosaic_grid_3d_z00.ome.zarr")
		for _, name := range []string{"aip", "resample"} {
			s := stage{Name: name + ", " + c.name}
			var outputs [2]string
			for i, flag := range []string{"--require_gpu", "--no-use_gpu"} {
				outputs[i] = filepath.Join(work, fmt.Sprintf("out%d.ome.zarr", i))
				started := time.Now()
				if err := program(bin, name, in, outputs[i], flag, "-q", "-f"); err != nil {
					return err
				}
				seconds := time.Since(started).Seconds()
				if i == 0 {
					s.GPUSeconds = seconds
				} else {
					s.CPUSeconds = seconds
				}
			}
			var err error
			if s.Same, err = same(outputs[0], outputs[1]); err != nil {
				return err
			}
			r.Stages = append(r.Stages, s)
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}

func program(bin, name string, args ...string) error {
	out, err := exec.Command(filepath.Join(bin, name), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

// same compares two folders byte by byte.
func same(a, b string) (bool, error) {
	equal := true
	count := [2]int{}
	for i, root := range []string{a, b} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			count[i]++
			if i == 1 {
				return nil
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			x, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			y, err := os.ReadFile(filepath.Join(b, rel))
			equal = equal && err == nil && bytes.Equal(x, y)
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return equal && count[0] == count[1] && count[0] > 0, nil
}
