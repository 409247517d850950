package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	runrecord "strata/pkg/runrecord"
)

// timed is one run of a stage on tiles of real size.
type timed struct {
	Stage   string            `json:"stage"`
	Codec   string            `json:"codec"` // of the input
	Tag     string            `json:"tag"`   // where: "cpu16", "gpu4", "gpu16 mem16G"
	RC      int               `json:"rc"`    // exit code; 124: no time was left
	Seconds float64           `json:"s"`     // of the whole program
	Phases  runrecord.Phases  `json:"phases"`
	RSS     int64             `json:"rss"` // most bytes of the process
	Device  int64             `json:"dev"` // and of the device
	By      map[string]int64  `json:"by"`  // bytes by backend
	Trials  []runrecord.Trial `json:"trials"`
	Up      int64             `json:"up"`
	Down    int64             `json:"down"`
	Choice  *runrecord.Choice `json:"choice"`
	Err     string            `json:"err"`
}

// variant is a way to run a stage.
type variant struct {
	tag   string
	flags []string
}

// variants returns the ways in which a stage is timed: beside 16 processors and beside 4, with the usual memory and
// with much, on the CPU and on the GPU by turns.
func variants(stage, codec string) (list []variant) {
	add := func(tag string, flags ...string) {
		list = append(list, variant{"cpu" + tag, append([]string{"--no-use_gpu"}, flags...)}, variant{"gpu" + tag, append([]string{"--require_gpu"}, flags...)})
	}
	add("16", "-j", "16")
	if slices.Contains([]string{"resample", "focal", "stitch"}, stage) {
		add("16 mem16G", "-j", "16", "--mem", "16GiB")
	}
	add("4", "-j", "4")
	if codec == "raw" && (stage == "aip" || stage == "resample") {
		list = append(list, variant{"gpu16 bounce", []string{"--require_gpu", "-j", "16", "--backend", "bounce"}})
	}
	return list
}

// sized are the stages that are timed, with their flags.
var sized = []job{
	{"aip", nil}, {"resample", []string{"--resolution", "10"}}, {"focal", nil}, {"crop", nil}, {"stitch", []string{"--blending", "average"}},
}

// timeStages times stages on mosaics of each codec until the time is over. Each codec gets its share of what is left
// when its data are there; the result is what was measured by then.
func timeStages(ctx context.Context, s *settings, r *record) error {
	r.Runs = nil
	end, _ := ctx.Deadline()
	codecs := []string{"zstd:3", "raw", "blosc-zstd:1"}
	for i, codec := range codecs {
		if err := s.sizes(ctx, r, codec, func() time.Duration { return time.Until(end) / time.Duration(len(codecs)-i) }); err != nil && ctx.Err() == nil {
			return err
		}
	}
	if len(r.Runs) == 0 {
		return fmt.Errorf("no stage ended within %v", s.limit)
	}
	return nil
}

// sizes times the stages on a mosaic of one codec. share returns how long they may take together.
func (s *settings) sizes(ctx context.Context, r *record, codec string, share func() time.Duration) error {
	work, err := os.MkdirTemp(s.placed, "gpuverify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	small, large := filepath.Join(work, "phantom"), filepath.Join(work, "mosaic.ome.zarr")
	err = program(ctx, s.bin, "phantom", small, "-q", "-f", "--anatomy", "0", "--slices", "1", "--tiles", "2,2", "--tile", s.large, "--codec", codec, "--dtype", "uint16")
	if err != nil {
		return err
	}
	if err := grow(filepath.Join(small, "mosaic_grid_3d_z00.ome.zarr"), large, s.across); err != nil {
		return err
	}
	part, stop := context.WithTimeout(ctx, share())
	defer stop()
	for _, j := range sized {
		for _, v := range variants(j.name, codec) {
			if part.Err() != nil {
				return nil
			}
			r.Runs = append(r.Runs, s.timeOne(part, j, v, codec, large, work))
			if err := r.save(s.out); err != nil {
				return err
			}
		}
	}
	return nil
}

// longest is the most that one run may take.
const longest = time.Minute

// timeOne runs a stage. What it wrote goes before the next one begins.
func (s *settings) timeOne(ctx context.Context, j job, v variant, codec, input, work string) timed {
	out, report := filepath.Join(work, "out.ome.zarr"), filepath.Join(work, "run.json")
	_ = os.Remove(report) // the next run would write behind it
	defer os.RemoveAll(out)
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	t := timed{Stage: j.name, Codec: codec, Tag: v.tag}
	args := slices.Concat([]string{input, out, "-q", "-f", "--report", report}, j.args, v.flags)
	begun := time.Now()
	said, err := exec.CommandContext(ctx, filepath.Join(s.bin, j.name), args...).CombinedOutput()
	t.Seconds = time.Since(begun).Seconds()
	if err != nil {
		var exit *exec.ExitError
		t.RC, t.Err = 124, "no time was left"
		if ctx.Err() == nil {
			t.RC, t.Err = 1, err.Error()
			if errors.As(err, &exit) {
				t.RC, t.Err = exit.ExitCode(), tail(string(said))
			}
		}
	}
	if did, err := runrecord.Read(context.WithoutCancel(ctx), report); err == nil {
		t.Phases, t.RSS, t.Device, t.Choice = did.Phases, did.PeakResidentBytes, did.PeakDeviceBytes, did.Choice
		if g := did.GPU; g != nil {
			t.By, t.Trials, t.Up, t.Down = g.BytesByBackend, g.Trials, g.BytesToDevice, g.BytesFromDevice
		}
	}
	return t
}

// tail returns the end of what a program said.
func tail(text string) string {
	text = strings.TrimSpace(text)
	return text[max(0, len(text)-200):]
}
