package stage

import (
	"slices"
	"testing"
	"testing/synctest"

	"strata/pkg/gpu"
	"strata/pkg/gpu/cost"
	"strata/pkg/oct"
	"strata/tests/octtest"
)

// bound is the longest that a run may take where there is a GPU: 3 % or 20 ms more than without.
func bound(without float64) float64 { return 1.03*without + 0.02 }

// A case of work for a stage: a mosaic of tiles of one chunk each, on a machine with so many cores.
type atWork struct {
	stage string
	codec cost.Codec
	tiles int
	cores int
}

// question asks where the work should be done, as the program does.
func (w atWork) question() question {
	const region = 200 * 256 * 256 * 4
	in := cost.Array{Codec: w.codec, Bytes: int64(w.tiles) * region, Streams: 1, Region: region, Device: true}
	if w.codec == cost.Blosc {
		in.Streams = 400
	}
	return question{
		job:  cost.Job{Stage: w.stage, In: in, Out: cost.Array{Codec: cost.Blosc, Streams: 400, Region: region, Device: true}},
		host: cost.Host{Cores: w.cores, Figures: cost.HostFigures()}, auto: true, runs: 1,
	}
}

// eachWork calls f for small and middle sizes of the stages' work, with the choice as it is made before any driver is
// started, and as it is made when the driver has said that there is this GPU.
func eachWork(t *testing.T, stages []string, f func(w atWork, info gpu.Info, before, then cost.Choice)) {
	m := model{host: cost.HostFigures(), pinned: mostPinned}
	for _, stage := range stages {
		for _, codec := range []cost.Codec{cost.Raw, cost.Blosc, cost.Zstd} {
			for _, tiles := range []int{1, 5, 10, 20, 40, 100, 400} {
				for _, cores := range []int{1, 2, 4, 8, 16} {
					for _, info := range known() {
						w := atWork{stage, codec, tiles, cores}
						q := w.question()
						before, err := m.fastest(q.job, q.host, known(), q.runs)
						if err != nil {
							t.Fatal(err)
						}
						then, err := m.fastest(q.job, q.host, []gpu.Info{info}, q.runs)
						if err != nil {
							t.Fatal(err)
						}
						f(w, info, before, then)
					}
				}
			}
		}
	}
}

// TestNeverSlower: no run that a GPU may join takes longer than without it by more than the bound, however wrong the
// model is about host and device. What it is wrong about what a device leaves to the host costs no more than the pieces
// do that the device takes until it is seen. The seconds are virtual.
func TestNeverSlower(t *testing.T) {
	in, _ := octtest.Made(t, []int{2, 8, 8}, []int{2, 8, 8}, nil, nil, octtest.Uneven[uint16])
	image, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	m := model{host: cost.HostFigures(), pinned: mostPinned}
	runs, joined, faster := 0, 0, 0
	eachWork(t, []string{"aip", "resample", "focal", "crop"}, func(w atWork, info gpu.Info, before, then cost.Choice) {
		if !before.GPU {
			return // it runs on the host, and nothing else happens
		}
		q := w.question()
		for _, by := range []wrong{{1, 1, 1}, {1, 2, 1}, {1, 4, 1}, {0.5, 1, 1}, {0.5, 2, 1}, {0.5, 4, 1}, {2, 1, 1}, {2, 2, 1}, {2, 4, 1}, {1, 1, 4}, {2, 4, 4}} {
			var s *simulated
			var without, with float64
			synctest.Test(t, func(t *testing.T) {
				s = on(image, q, then, m.device(info, q.job, w.cores), w.tiles, by)
				without, with = s.without(t), s.with(t, expected(before))
			})
			runs++
			if s.joined > 0 {
				joined++
			}
			if with < 0.9*without {
				faster++
			}
			longest := bound(without)
			if by.beside > 1 {
				longest += s.seen()
			}
			if with > longest {
				t.Errorf("%+v with %s, by %+v other than the model: %.3f s, and without a GPU %.3f", w, info.Name, by, with, without)
			}
		}
	})
	if joined < runs/2 || faster < runs/4 {
		t.Errorf("a GPU joins in %d of %d runs, and makes %d faster by a tenth: little is tested", joined, runs, faster)
	}
}

// TestChoiceNeverSlower: no run takes longer for a choice that the model is right about than on the host by more than
// the bound. The stages that have nothing to do until they know where they compute wait for the driver to say which
// GPUs there are.
func TestChoiceNeverSlower(t *testing.T) {
	_, f := cost.ForGPU("H100", 90)
	waits := []string{"beam-profile", "normalize", "flatfield"}
	asked, chosen := 0, 0
	eachWork(t, cost.Stages(), func(w atWork, info gpu.Info, before, then cost.Choice) {
		seconds := before.Host.Seconds
		if before.GPU {
			asked++
			if slices.Contains(waits, w.stage) {
				seconds += f["init"]
			}
		}
		if before.GPU && then.GPU {
			chosen++
			seconds = then.Best.Seconds
		}
		if seconds > bound(before.Host.Seconds) {
			t.Errorf("%+v with %s: %.3f s, and without a GPU %.3f", w, info.Name, seconds, before.Host.Seconds)
		}
	})
	if chosen == 0 || chosen == asked {
		t.Errorf("the GPU is chosen in %d of %d cases: nothing is decided", chosen, asked)
	}
}
