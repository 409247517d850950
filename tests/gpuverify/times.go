package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	runrecord "strata/pkg/record"
)

// timed is one run of a stage.
type timed struct {
	Stage   string  `json:"stage"`
	Codec   string  `json:"codec"` // of the input
	Place   string  `json:"place"`
	Threads int     `json:"threads"`
	GPU     bool    `json:"gpu"`
	Bytes   int64   `json:"bytes"`   // of the inputs, as they are stored
	Seconds float64 `json:"seconds"` // of the whole program: StartSeconds and what start says are in them

	Trials []runrecord.Trial `json:"trials,omitempty"` // what decided who decoded and encoded
}

// timeStages runs the stages on phantoms of each codec in each place, with and without the GPU, until the time is
// over; each gets its share. The result is what was measured by then.
func timeStages(ctx context.Context, s *settings, r *record) error {
	r.Runs = nil
	end, _ := ctx.Deadline()
	var rounds []round
	for _, codec := range []string{"raw", "blosc-zstd:1", "zstd:3"} {
		for _, place := range s.places() {
			rounds = append(rounds, round{codec, place})
		}
	}
	for i, v := range rounds {
		share := time.Until(end) / time.Duration(len(rounds)-i)
		part, stop := context.WithTimeout(ctx, share)
		err := v.run(part, s, r)
		ended := part.Err() != nil
		stop()
		if err != nil && !ended {
			return err
		}
	}
	if len(r.Runs) == 0 {
		return fmt.Errorf("no stage ended within %v", s.limit)
	}
	return nil
}

// places returns the folders for the data: the given one, or memory and the working folder's disk.
func (s *settings) places() []string {
	if s.placed != "" {
		return strings.Split(s.placed, ",")
	}
	return []string{"/dev/shm", "."}
}

// round runs the stages on data of one codec in one place.
type round struct{ codec, place string }

func (v round) run(ctx context.Context, s *settings, r *record) error {
	work, err := os.MkdirTemp(v.place, "gpuverify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	folder, report := filepath.Join(work, "phantom"), filepath.Join(work, "run.json")
	err = program(ctx, s.bin, "phantom", folder, "-q", "-f", "--anatomy", "0", "--slices", "2", "--tiles", s.tiles, "--tile", s.tile, "--codec", v.codec, "--dtype", "uint16")
	if err != nil {
		return err
	}
	prepare, list := jobs(folder)
	for _, j := range prepare {
		if err := program(ctx, s.bin, j.name, append(j.args, "--no-use_gpu", "-q")...); err != nil {
			return err
		}
	}
	for range min(3, s.repeat) {
		for _, threads := range []int{4, 16} {
			for _, j := range list {
				for _, flag := range []string{"--require_gpu", "--no-use_gpu"} {
					args := slices.Clone(j.args)
					at := slices.Index(args, output)
					args[at] = filepath.Join(work, "out.ome.zarr")
					begun := time.Now()
					if err := program(ctx, s.bin, j.name, append(args, flag, "-q", "-f", "-j", fmt.Sprint(threads), "--report", report)...); err != nil {
						return err
					}
					t := timed{Stage: j.name, Codec: v.codec, Place: v.place, Threads: threads, GPU: flag == "--require_gpu", Seconds: time.Since(begun).Seconds()}
					did, err := runrecord.Read(ctx, report)
					if err != nil {
						return err
					}
					if did.GPU != nil {
						t.Trials = did.GPU.Trials
					}
					if slices.Contains(j.args, "average") {
						t.Stage += ", average"
					}
					for _, input := range j.args[:at] {
						n, err := size(input)
						if err != nil {
							return err
						}
						t.Bytes += n
					}
					r.Runs = append(r.Runs, t)
					if err := r.save(s.out); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// size returns the size of all files in a folder.
func size(folder string) (n int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}
