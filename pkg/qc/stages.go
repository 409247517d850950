package qc

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/runrecord"
)

// chain is the order in which the stages run; others follow by their name.
var chain = []string{"mosaic", "aip", "resample", "focal", "flatfield", "stitch", "beam-profile", "crop", "attenuation", "normalize", "slices", "shifts",
	"common-space", "interpolate", "register", "stack", "bias-field", "align", "preview"}

// Stage summarises all runs of one program.
type Stage struct {
	Tool          string
	Runs, Failed  int
	Wall          float64 // seconds, of all runs
	Median        float64
	Longest       float64
	LongestName   string
	Voxels        int64 // bytes of the inputs' elements
	Read, Written int64 // bytes as stored
	Peak          int64 // resident bytes, the largest
	Phases        [5]float64
	HasThroughput bool
	Throughput    float64 // bytes of elements per second of wall time
}

// phaseNames are those of [runrecord.Phases], in the order of [Stage.Phases].
var phaseNames = [5]string{"read", "decode", "compute", "encode", "write"}

// stages sums up the runs by program.
func stages(runs []Run) []*Stage {
	by := map[string]*Stage{}
	walls := map[string][]float64{}
	var out []*Stage
	for _, r := range runs {
		s := by[r.Tool]
		if s == nil {
			s = &Stage{Tool: r.Tool}
			by[r.Tool] = s
			out = append(out, s)
		}
		s.Runs++
		if r.ExitCode != 0 {
			s.Failed++
		}
		s.Wall += r.WallSeconds
		walls[r.Tool] = append(walls[r.Tool], r.WallSeconds)
		if s.LongestName == "" || r.WallSeconds > s.Longest {
			s.Longest, s.LongestName = r.WallSeconds, r.Name
		}
		for _, in := range r.Inputs {
			s.Voxels += elementBytes(in)
		}
		s.Read += r.BytesRead
		s.Written += r.BytesWritten
		s.Peak = max(s.Peak, r.PeakResidentBytes)
		for i, v := range []float64{r.Phases.Read, r.Phases.Decode, r.Phases.Compute, r.Phases.Encode, r.Phases.Write} {
			s.Phases[i] += max(0, v)
		}
	}
	for _, s := range out {
		w := walls[s.Tool]
		slices.Sort(w)
		s.Median = (w[(len(w)-1)/2] + w[len(w)/2]) / 2
		if s.Voxels > 0 && s.Wall > 0 {
			s.HasThroughput, s.Throughput = true, float64(s.Voxels)/s.Wall
		}
	}
	slices.SortStableFunc(out, func(a, b *Stage) int {
		return cmp.Or(cmp.Compare(rank(a.Tool), rank(b.Tool)), cmp.Compare(a.Tool, b.Tool))
	})
	return out
}

func rank(tool string) int {
	if i := slices.Index(chain, tool); i >= 0 {
		return i
	}
	return len(chain)
}

// elementBytes returns the size of an array's elements; 0 where it is not known.
func elementBytes(d runrecord.Dataset) int64 {
	t, err := dtype.Parse(d.DType)
	if err != nil || len(d.Shape) == 0 {
		return 0
	}
	n := float64(t.Size())
	for _, s := range d.Shape {
		if s < 0 {
			return 0
		}
		n *= float64(s)
	}
	if n > math.MaxInt64/4 {
		return 0
	}
	return int64(n)
}

// slice returns the part of a run's name that says which slice it was: records are called <slice>.<program>.
func (r *Run) slice() string { return strings.TrimSuffix(filepath.Base(r.Name), "."+r.Tool) }

// extent returns the time from the start of the first run to the end of the last.
func extent(runs []Run) (first time.Time, length float64) {
	for _, r := range runs {
		if r.Started.IsZero() {
			continue
		}
		if first.IsZero() || r.Started.Before(first) {
			first = r.Started
		}
	}
	for _, r := range runs {
		if !r.Started.IsZero() {
			length = max(length, r.Started.Sub(first).Seconds()+max(0, r.WallSeconds))
		}
	}
	return first, length
}
