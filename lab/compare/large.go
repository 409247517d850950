package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// growthOf runs every stage once on the small input and once on the large one,
// both folders as lab/run.sh makes them for the stages, and prints the record.
func growthOf(ctx context.Context, p *plan, large, input string, w, log io.Writer) error {
	rec := largeRun{Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), Commit: output(ctx, "git", "rev-parse", "--short", "HEAD"), Input: input}
	for _, c := range stageCases() {
		if c.input != "blosc" && c.input != "slices" || c.name == "estimate" {
			continue
		}
		for _, data := range []string{p.data, large} {
			dir := filepath.Join(p.out, "out")
			argv := p.stageCommand(&c, data, filepath.Join(dir, c.name+".ome.zarr"))
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			in := argv[1]
			gb, err := voxelBytes(in)
			if err != nil {
				return err
			}
			s, err := measure(ctx, &contestant{argv: argv, wall: true})
			if err != nil {
				return err
			}
			rec.Runs = append(rec.Runs, largeOne{Stage: c.name, GB: gb / 1e9, Wall: s.Seconds, CPU: s.CPU, HWM: s.HWM})
			fmt.Fprintf(log, "%-9s %5.1f GB %7.1f s %5d MiB\n", c.name, gb/1e9, s.Seconds, s.HWM>>10)
			if err := emptyFolder(p.out); err != nil {
				return err
			}
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(&rec)
}

// stageCommand returns a stage's command line for the data of a folder.
func (p *plan) stageCommand(c *stageCase, data, out string) []string {
	argv := []string{filepath.Join(p.bin, c.name)}
	mosaic := filepath.Join(data, "mosaic_"+c.input+".ome.zarr")
	switch c.name {
	case "stack":
		argv = append(argv, filepath.Join(data, "slices"), filepath.Join(data, "shifts_xy.csv"), out)
	case "estimate":
		argv = []string{filepath.Join(p.bin, "stitch"), mosaic, "--estimate_only", out}
	default:
		argv = append(argv, mosaic, out)
	}
	return append(append(argv, c.args...), "-q", "--threads", "2")
}

// voxelBytes returns the number of bytes in level 0 of all images below a folder, as float32.
func voxelBytes(path string) (total float64, err error) {
	err = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeSymlink { // not followed by itself
			target, err := filepath.EvalSymlinks(name)
			if err != nil {
				return err
			}
			more, err := voxelBytes(target)
			total += more
			return err
		}
		if err != nil || d.Name() != "zarr.json" || !strings.HasSuffix(filepath.Dir(name), string(filepath.Separator)+"0") {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var m struct {
			Shape []int `json:"shape"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		total += 4 * float64(volumeOf(m.Shape))
		return fs.SkipDir
	})
	if err == nil && total == 0 {
		err = fmt.Errorf("%s: no image in it", path)
	}
	return total, err
}

func volumeOf(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}
