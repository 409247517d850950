// Package attenuation undoes the decay of the signal with depth in a slice whose surface is cropped. It is the
// pipeline's attenuation stage; [Run] does all of it.
//
// The corrected value of a voxel depends on the whole slice: on Otsu's threshold, on the noise outside the tissue, on
// holes in the tissue mask and on minima that are filled up to their rims. Columns of A-lines are therefore visited
// several times. Intermediate results of each column are kept between the passes, in memory or in a temporary file.
package attenuation

import (
	"context"
	"math"

	"strata/pkg/dtype"
	"strata/pkg/filter"
	"strata/pkg/metrics"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr/store"
)

// The methods. They differ in the light that they expect below the last plane, and in whether noise is subtracted.
const (
	Li      = "li"      // noise is subtracted; the light below follows from the slope of the deepest planes
	Liu     = "liu"     // the same without noise
	Vermeer = "vermeer" // no light below
)

// The slopes. The slope of a single A-line is uncertain: if its structure brightens with depth, it seems to leave no
// light below, and is corrected much more than its neighbours.
const (
	TailLine  = "line"  // that of each A-line, as in linumpy
	TailSlice = "slice" // that of the mean of all A-lines that end in tissue
)

// Options are the parameters of [Run].
type Options struct {
	Method    string
	Tail      string  // which slope tells of the light below the last plane, for Li and Liu; "": TailLine
	Radius    int     // of the median's window in pixels; 0: no median
	Strength  float64 // share of the attenuation that is undone
	MinBias   float64 // smallest divisor: gains are at most 1/MinBias
	SNR       float64 // dB above the noise at which the signal of an A-line ends
	MaskSigma float64 // standard deviation in pixels of the Gaussian before the tissue mask
	Scratch   string  // folder for a temporary file, where memory does not hold what is in it; "": the system's
}

// Passes is how often [Run] visits each voxel of the input.
const Passes = 3

// Result holds the parameters that [Run] has measured.
type Result struct {
	Threshold  float64 // of the smoothed volume: above it lies tissue; NaN: there is none, and all of it is tissue, or nothing
	Floor      float64 // of the noise; 0 but for Li
	Coverage   float64 // share of voxels in the mask
	Decay      float64 // slope of the logarithm of the signal per plane that stands for all A-lines; 0: each has its own
	MedianGain float64 // in the mask, to four digits; 1 without a mask
	MaxGain    float64
}

// Run corrects the image in. The output is of float32. NaN and infinite voxels stay, and are left out of everything
// else.
func Run(ctx context.Context, in *ngff.Image, out store.Writer, o Options, layout oct.Layout, res oct.Resources) (*ngff.Image, *Result, error) {
	j, done, err := newJob(ctx, in, o, layout, res)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	if err := j.measure(ctx); err != nil {
		return nil, nil, err
	}
	image, err := j.correct(ctx, out)
	return image, j.result, err
}

// newJob prepares a run. It returns every error that can be found before a voxel is read.
func newJob(ctx context.Context, in *ngff.Image, o Options, layout oct.Layout, res oct.Resources) (j *job, done func(), err error) {
	v, err := blocks.Open(in)
	if err != nil {
		return nil, nil, err
	}
	j = &job{Options: o, layout: layout, size: columnSize(v, layout), result: &Result{Threshold: math.NaN(), MedianGain: 1, MaxGain: 1}}
	j.grid = [2]int{(v.Shape[1] + j.size[1] - 1) / j.size[1], (v.Shape[2] + j.size[2] - 1) / j.size[2]}
	if o.Method == Li {
		res = res.Less(filter.QuantileBytes)
	}
	// what needs least memory comes last
	for _, way := range []struct{ inFile, unheld bool }{{false, false}, {false, true}, {true, true}} {
		var held *blocks.Holding
		if held, err = j.prepare(v, way.inFile, way.unheld, res); err != nil {
			continue
		}
		done = func() { held.Release(); j.scratch.close() }
		if err = held.Load(ctx); err != nil {
			done()
			break
		}
		return j, done, nil
	}
	return nil, nil, err
}

// prepare allocates the storage for intermediate results, and plans all passes. inFile puts that storage into a file;
// unheld does not keep the input's voxels in memory.
func (j *job) prepare(v *blocks.Volume, inFile, unheld bool, res oct.Resources) (h *blocks.Holding, err error) {
	var left oct.Resources
	if j.scratch, left, err = newScratch(j.columns(), j.size, j.Scratch, inFile, res); err != nil {
		return nil, err
	}
	if h = v.Unheld(left); !unheld {
		h, err = v.Reserve(left)
	}
	if err == nil {
		j.v, j.res = h.Volume, h.Left
		if err = j.plan(); err == nil {
			return h, nil
		}
		h.Release()
	}
	j.scratch.close()
	return nil, err
}

// mostColumn is the maximum number of voxels of a column of A-lines, unless the layout sets the chunks of the output. A
// worker needs some 30 bytes per voxel.
const mostColumn = 4 << 20

// columnSize returns the size of the columns. Along y and x they are the output's chunks, and those of a deep slice are
// cut into halves.
func columnSize(v *blocks.Volume, layout oct.Layout) [3]int {
	size := v.Columns(layout)
	for d := 1; layout.Chunks == nil && layout.Shard == nil && size[1]*size[2] > max(mostColumn/size[0], 1); d = 3 - d {
		size[d] = (size[d] + 1) / 2
	}
	return size
}

// measure finds the optical depth of each voxel.
func (j *job) measure(ctx context.Context) error {
	for _, step := range []func(context.Context) error{j.smooth, j.mask, j.median, j.noise, j.decay, j.depths, j.rims} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Step returns the metrics of a run with input and output of the given names.
func (r *Result) Step(in, out string, o Options) *metrics.Step {
	s := metrics.New("attenuation_compensation")
	s.Note("input_volume", in, "path of the input")
	s.Note("output_volume", out, "path of the output")
	s.Note("method", o.Method, "estimate of the light below the last plane")
	s.Note("decay", r.Decay, "slope of the logarithm of the signal per plane at the end of all A-lines; 0: each has its own")
	s.Note("k", o.Radius, "radius in pixels of the median's window")
	s.Note("strength", o.Strength, "share of the attenuation that is undone")
	s.Note("min_bias", o.MinBias, "smallest divisor")
	s.Note("otsu_threshold", r.Threshold, "intensity above which the smoothed volume is tissue")
	s.Note("noise_floor", r.Floor, "median intensity outside the tissue, which is subtracted for the estimate")
	s.Note("mask_coverage", r.Coverage, "share of voxels in the tissue mask")
	s.Note("median_gain", r.MedianGain, "median factor in the tissue mask")
	s.Note("max_gain", r.MaxGain, "largest factor")
	return s
}

// spec returns the output's specification.
func (j *job) spec() ngff.ImageSpec {
	spec := j.v.Spec(dtype.Float32)
	spec.Chunks = []int{j.v.Chunk[0], j.size[1], j.size[2]}
	return spec
}
