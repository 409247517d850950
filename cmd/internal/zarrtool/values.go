package zarrtool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"strata/pkg/cli"
	"strata/pkg/dtype"
	"strata/pkg/zarr"
)

// valueInfo summarises the values of an array.
type valueInfo struct {
	Min       float64   `json:"min"`
	Max       float64   `json:"max"`
	Mean      float64   `json:"mean"`
	Finite    int64     `json:"finite"`
	NaN       int64     `json:"nan"`
	Infinite  int64     `json:"infinite"`
	Edges     []float64 `json:"bin_edges,omitempty"`
	Histogram []int64   `json:"histogram,omitempty"`
}

// MarshalJSON omits the range if there is no finite value, because JSON has no NaN.
func (v *valueInfo) MarshalJSON() ([]byte, error) {
	type plain valueInfo
	if v.Finite == 0 {
		return json.Marshal(map[string]int64{"finite": 0, "nan": v.NaN, "infinite": v.Infinite})
	}
	return json.Marshal((*plain)(v))
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// findValues reads an array once for the range and again for the histogram.
func findValues(ctx context.Context, r *cli.Run, a *zarr.Array) (*valueInfo, error) {
	if t := a.DType(); !t.IsNumber() && t != dtype.Bool {
		return nil, cli.BadInputf("%s: elements of type %v have no range", a.Location(), t)
	}
	v := &valueInfo{Min: math.Inf(1), Max: math.Inf(-1)}
	var mu sync.Mutex
	var sum float64
	err := eachBlock(ctx, a, nil, a.Chunks(), r.Options.Threads, r.Options.Mem, func(_ context.Context, _ zarr.Region, data []byte) error {
		part := valueInfo{Min: math.Inf(1), Max: math.Inf(-1)}
		s := 0.0
		dtype.Each(data, a.DType(), func(x float64) {
			switch {
			case x != x:
				part.NaN++
			case math.IsInf(x, 0):
				part.Infinite++
			default:
				part.Min, part.Max = min(part.Min, x), max(part.Max, x)
				part.Finite++
				s += x
			}
		})
		mu.Lock()
		defer mu.Unlock()
		v.Min, v.Max = min(v.Min, part.Min), max(v.Max, part.Max)
		v.Finite, v.NaN, v.Infinite = v.Finite+part.Finite, v.NaN+part.NaN, v.Infinite+part.Infinite
		sum += s
		return nil
	})
	if err != nil || v.Finite == 0 {
		return v, err
	}
	v.Mean = sum / float64(v.Finite)
	if !r.Bool("histogram") {
		return v, nil
	}
	bins := r.Int("bins")
	v.Histogram = make([]int64, bins)
	width := (v.Max - v.Min) / float64(bins)
	for i := range bins + 1 {
		v.Edges = append(v.Edges, v.Min+width*float64(i))
	}
	return v, eachBlock(ctx, a, nil, a.Chunks(), r.Options.Threads, r.Options.Mem, func(_ context.Context, _ zarr.Region, data []byte) error {
		part := make([]int64, bins)
		dtype.Each(data, a.DType(), func(x float64) {
			if x-x == 0 {
				i := 0
				if width > 0 {
					i = min(int((x-v.Min)/width), bins-1)
				}
				part[i]++
			}
		})
		mu.Lock()
		defer mu.Unlock()
		for i, n := range part {
			v.Histogram[i] += n
		}
		return nil
	})
}

func (v *valueInfo) print(w io.Writer, indent string) {
	if v.Finite == 0 {
		fmt.Fprintf(w, "%sno finite values, %d NaN, %d infinite\n", indent, v.NaN, v.Infinite)
		return
	}
	fmt.Fprintf(w, "%sfrom %.6g to %.6g, mean %.6g", indent, v.Min, v.Max, v.Mean)
	if v.NaN+v.Infinite > 0 {
		fmt.Fprintf(w, ", %d NaN, %d infinite", v.NaN, v.Infinite)
	}
	fmt.Fprintln(w)
	top := slices.Max(append([]int64{1}, v.Histogram...))
	for i, n := range v.Histogram {
		bar := strings.Repeat("█", int((n*40+top-1)/top))
		fmt.Fprintf(w, "%s%12.6g … %-12.6g %12d %s\n", indent, v.Edges[i], v.Edges[i+1], n, bar)
	}
}
