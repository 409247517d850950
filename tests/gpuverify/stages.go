package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"strata/pkg/gpu/cost"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// stage is a run of a program on the GPU, and one on the CPU.
type stage struct {
	Name       string  `json:"name"`
	GPUSeconds float64 `json:"gpu_seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	Same       bool    `json:"same_voxels"`
}

// data is a phantom for the stages to process.
type data struct {
	name  string
	flags []string // of phantom
}

var phantoms = []data{
	{"blosc", nil},
	{"raw", []string{"--codec", "raw"}},
	{"zstd, uint16", []string{"--codec", "zstd:3", "--dtype", "uint16"}},
}

// job is a stage with its arguments: inputs, flags, and the place of the output among them.
type job struct {
	name string
	args []string // output, the word, stands for the output
}

const output = "OUT"

// jobs returns the stages of a workflow on the first of two slices, and on both: each has inputs made by the CPU.
func jobs(folder string) (prepare, compared []job) {
	mosaic := func(k int) string { return filepath.Join(folder, fmt.Sprintf("mosaic_grid_3d_z%02d.ome.zarr", k)) }
	slices := filepath.Join(folder, "slices")
	for k := range 2 {
		prepare = append(prepare, job{"stitch", []string{mosaic(k), filepath.Join(slices, fmt.Sprintf("slice_z%02d.ome.zarr", k))}})
	}
	for _, name := range []string{"aip", "resample", "focal", "crop"} {
		compared = append(compared, job{name, []string{mosaic(0), output}})
	}
	for _, blending := range []string{"diffusion", "average"} {
		compared = append(compared, job{"stitch", []string{mosaic(0), output, "--blending", blending}})
	}
	compared = append(compared, job{"stack", []string{slices, filepath.Join(folder, "shifts_xy.csv"), output, "--blend"}})
	return prepare, compared
}

// runStages runs the stages on phantoms of several types and codecs. tile is the flag for the size of a phantom's
// tiles.
func runStages(ctx context.Context, bin, work, tile string, r *record) error {
	if err := os.Setenv(cost.Variable, "host.tries=0"); err != nil { // all that the device can decode and encode is compared
		return err
	}
	defer os.Unsetenv(cost.Variable)
	for _, c := range phantoms {
		folder := filepath.Join(work, "phantom")
		if err := program(ctx, bin, "phantom", append([]string{folder, "-q", "-f", "--slices", "2", "--tiles", "4,4", "--tile", tile}, c.flags...)...); err != nil {
			return err
		}
		prepare, compared := jobs(folder)
		for _, j := range prepare {
			if err := program(ctx, bin, j.name, append(j.args, "--no-use_gpu", "-q")...); err != nil {
				return err
			}
		}
		for _, j := range compared {
			s := stage{Name: j.name + ", " + c.name}
			if j.name == "stitch" {
				s.Name += ", " + j.args[len(j.args)-1]
			}
			var outputs [2]string
			for i, flag := range []string{"--require_gpu", "--no-use_gpu"} {
				outputs[i] = filepath.Join(work, fmt.Sprintf("out%d.ome.zarr", i))
				args := slices.Clone(j.args)
				args[slices.Index(args, output)] = outputs[i]
				started := time.Now()
				if err := program(ctx, bin, j.name, append(args, flag, "-q", "-f")...); err != nil {
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
			if s.Same, err = same(ctx, outputs[0], outputs[1]); err != nil {
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

// measureStart measures how much longer a stage takes on the GPU than on the CPU if there is nothing to do: for
// the driver, the context and the kernels.
func measureStart(ctx context.Context, bin, work string, repeat int, r *record) error {
	folder := filepath.Join(work, "small")
	if err := program(ctx, bin, "phantom", folder, "-q", "-f", "--tiles", "1,1", "--tile", "4,8,8"); err != nil {
		return err
	}
	var median [2]float64
	for i, flag := range []string{"--require_gpu", "--no-use_gpu"} {
		var all []float64
		for range repeat {
			started := time.Now()
			if err := program(ctx, bin, "aip", filepath.Join(folder, "mosaic_grid_3d_z00.ome.zarr"), filepath.Join(work, "small.ome.zarr"), flag, "-q", "-f"); err != nil {
				return err
			}
			all = append(all, time.Since(started).Seconds())
		}
		slices.Sort(all)
		median[i] = all[len(all)/2]
	}
	r.StartSeconds = median[0] - median[1]
	return os.RemoveAll(folder)
}

// peer is the result of a Python program for the same work, or the reason why there is none.
type peer struct {
	Skipped  string             `json:"skipped,omitempty"`
	Versions map[string]string  `json:"versions,omitempty"`
	Bytes    int64              `json:"bytes,omitempty"`
	Seconds  map[string]float64 `json:"seconds,omitempty"` // by stage, start-up left out
	Ours     map[string]float64 `json:"ours,omitempty"`    // whole programs
}

// runPeers runs aip and resample with CuPy, if Python has it, on a mosaic of raw chunks.
func runPeers(ctx context.Context, bin, work, script, module, tile string, r *record) error {
	folder := filepath.Join(work, "peers")
	if err := program(ctx, bin, "phantom", folder, "-q", "-f", "--tiles", "4,4", "--tile", tile, "--codec", "raw"); err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	mosaic := filepath.Join(folder, "mosaic_grid_3d_z00.ome.zarr")
	out, err := exec.CommandContext(ctx, "python3", script, mosaic, filepath.Join(folder, "out"), "--module", module).Output()
	if err != nil {
		r.Peer.Skipped = fmt.Sprintf("python3 %s: %v", filepath.Base(script), err)
		return nil
	}
	if err := json.Unmarshal(out, &r.Peer); err != nil {
		return fmt.Errorf("%s: %w", script, err)
	}
	if r.Peer.Skipped != "" {
		return nil
	}
	r.Peer.Ours = map[string]float64{}
	for name := range r.Peer.Seconds {
		var all []float64
		for range 3 {
			started := time.Now()
			if err := program(ctx, bin, name, mosaic, filepath.Join(folder, "ours.ome.zarr"), "--require_gpu", "--codec", "raw", "--n_levels", "0", "-q", "-f"); err != nil {
				return err
			}
			all = append(all, time.Since(started).Seconds())
		}
		slices.Sort(all)
		r.Peer.Ours[name] = all[1]
	}
	return nil
}

func program(ctx context.Context, bin, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, name), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, out)
	}
	return nil
}

// same compares two images, voxel by voxel on all levels: the encoding of chunks may differ.
func same(ctx context.Context, a, b string) (bool, error) {
	var images [2]*ngff.Image
	for i, path := range []string{a, b} {
		st, key, err := store.OpenURL(ctx, path)
		if err != nil {
			return false, err
		}
		if images[i], err = ngff.Open(ctx, st, key); err != nil {
			return false, err
		}
	}
	if len(images[0].Levels) != len(images[1].Levels) {
		return false, nil
	}
	for k := range images[0].Levels {
		x, y := images[0].Levels[k].Array, images[1].Levels[k].Array
		if x.DType() != y.DType() || !slices.Equal(x.Shape(), y.Shape()) {
			return false, nil
		}
		equal, err := sameVoxels(ctx, x, y)
		if err != nil || !equal {
			return false, err
		}
	}
	return true, nil
}

// sameVoxels compares arrays of one shape and type, some rows of the first axis at a time.
func sameVoxels(ctx context.Context, x, y *zarr.Array) (bool, error) {
	r := x.Bounds()
	step := max(1, x.Chunks()[0])
	for at := 0; at < x.Shape()[0]; at += step {
		r.Start[0], r.Shape[0] = at, min(step, x.Shape()[0]-at)
		n := x.DType().Size()
		for _, d := range r.Shape {
			n *= d
		}
		var b [2][]byte
		for i, a := range []*zarr.Array{x, y} {
			b[i] = make([]byte, n)
			if err := a.Read(ctx, r, b[i]); err != nil {
				return false, err
			}
		}
		if !bytes.Equal(b[0], b[1]) {
			return false, nil
		}
	}
	return true, nil
}
