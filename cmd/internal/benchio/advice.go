package benchio

import (
	"fmt"
	"strings"

	"strata/cmd/internal/iobench"
	"strata/pkg/bench"
)

// advise explains the numbers in a few lines.
func (x *runner) advise() []string {
	var out []string
	if x.held > 50 {
		out = append(out, "the files stay in memory, so that reading them does not measure storage: measure the folder that holds your data")
	}
	for _, o := range x.want.ops {
		for _, cache := range []string{"cold", "warm"} {
			list := pick(x.doc.Results, o.name, cache, bench.Strata, o.write)
			if o.write && cache == "warm" || len(list) == 0 {
				continue
			}
			what := o.name
			if !o.write {
				what = cache + " " + o.name
			}
			out = append(out, fastest(what, list))
		}
	}
	if line := toDevice(x.doc.Results); line != "" {
		out = append(out, line)
	}
	if line := besideFIO(x.doc.Results); line != "" {
		out = append(out, line)
	} else if x.noFIO != "" {
		out = append(out, "not compared with fio: "+x.noFIO)
	}
	return out
}

// pick returns the measured results of an op and program; for reads, those with one state of the page cache.
func pick(all []bench.Result, name, cache, who string, write bool) []bench.Result {
	var out []bench.Result
	for _, r := range all {
		if r.Name == name && r.Who == who && r.Measured() && (write || r.Axes.Get("cache") == cache) {
			out = append(out, r)
		}
	}
	return out
}

func best(list []bench.Result, take func(way string) bool) *bench.Result {
	var b *bench.Result
	for i := range list {
		if r := &list[i]; take(r.Axes.Get("way")) && (b == nil || r.Rate() > b.Rate()) {
			b = r
		}
	}
	return b
}

func onGPU(way string) bool { return way == "bounce" || way == "gds" }

// fastest returns the setting with which an op was fastest in memory, and the corresponding flags of the stages.
func fastest(what string, list []bench.Result) string {
	top := best(list, func(way string) bool { return !onGPU(way) })
	if top == nil {
		top = best(list, func(string) bool { return true })
		return fmt.Sprintf("%s: fastest is %s", what, setting(*top))
	}
	way := top.Axes.Get("way")
	plain := best(list, func(w string) bool { return w == "host" })
	switch {
	case plain == nil || way == "host":
		return fmt.Sprintf("%s: fastest is %s", what, setting(*top))
	case bench.Overlap(*top, *plain):
		return fmt.Sprintf("%s: no way is clearly faster than host: %s", what, setting(*plain))
	}
	line := fmt.Sprintf("%s: fastest is %s, %s× host", what, setting(*top), bench.Ratio(top.Rate()/plain.Rate()))
	if way != iobench.Pool.Name && !strings.Contains(what, "write") {
		line += "; for the stages, give --backend " + way
	}
	return line
}

// setting returns a result's axes and rate.
func setting(r bench.Result) string {
	threads := r.Axes.Get("threads") + " threads"
	if r.Axes.Get("threads") == "1" {
		threads = "1 thread"
	}
	return fmt.Sprintf("%s with %s and %s at a time, %s GiB/s", r.Axes.Get("way"), threads, r.Axes.Get("block"), bench.GiBs(r.Rate()))
}

// toDevice compares the ways to a GPU.
func toDevice(all []bench.Result) string {
	list := pick(all, "read", "cold", bench.Strata, false)
	gds, bounce := best(list, func(w string) bool { return w == "gds" }), best(list, func(w string) bool { return w == "bounce" })
	switch {
	case gds != nil && gds.Note != "":
		return "files do not reach the GPU directly here: " + gds.Note
	case gds != nil && bounce != nil && gds.Rate() >= bounce.Rate():
		return fmt.Sprintf("files reach the GPU directly, %s times as fast as through host memory: leave --backend at auto", bench.Ratio(gds.Rate()/bounce.Rate()))
	case gds != nil && bounce != nil:
		return fmt.Sprintf("through host memory, files reach the GPU %s times as fast as directly: give --backend bounce", bench.Ratio(bounce.Rate()/gds.Rate()))
	}
	return ""
}

// besideFIO summarises the ratios to fio.
func besideFIO(all []bench.Result) string {
	theirs := map[string]float64{}
	for _, r := range all {
		if r.Who == "fio" && r.Rate() > 0 {
			theirs[r.Name+": "+r.Axes.String()] = r.Rate()
		}
	}
	var list []float64
	for _, r := range all {
		if rate := theirs[r.Name+": "+r.Axes.String()]; r.Who == bench.Strata && rate > 0 {
			list = append(list, r.Rate()/rate)
		}
	}
	if len(list) == 0 {
		return ""
	}
	low, high := list[0], list[0]
	for _, v := range list {
		low, high = min(low, v), max(high, v)
	}
	if len(list) == 1 {
		return fmt.Sprintf("beside fio: %s times its rate", bench.Ratio(low))
	}
	return fmt.Sprintf("beside fio: %s times its rate, the median of %d cases (%s to %s)", bench.Ratio(bench.Median(list)), len(list), bench.Ratio(low), bench.Ratio(high))
}
