package benchzarr

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/bench"
)

// settingNames lists the axes that a user chooses; the others say what was read.
var settingNames = []string{"backend", "threads", "in flight", "task size"}

// clear is the speed-up from which a setting is worth a flag.
const clear = 1.05

// Advise returns a line for each kind of array, operation and cache that names the best setting. threads is the
// number of threads without a flag.
func Advise(list []bench.Result, threads int) []string {
	type kind struct{ name, what string }
	var order []kind
	by := map[kind][]bench.Result{}
	for _, r := range list {
		if !r.Measured() {
			continue
		}
		k := kind{r.Name, whatOf(r)}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], r)
	}
	var out []string
	for _, k := range order {
		if text := best(by[k], threads); text != "" {
			out = append(out, strings.TrimSuffix(k.name+", "+k.what, ", ")+": "+text)
		}
	}
	return out
}

// whatOf returns what was read, and under which conditions.
func whatOf(r bench.Result) string {
	var parts []string
	for _, a := range r.Axes {
		if !slices.Contains(settingNames, a.Name) {
			parts = append(parts, a.Value)
			if a.Name == "cache" {
				parts[len(parts)-1] += " cache"
			}
		}
	}
	return strings.Join(parts, " ")
}

// best returns the advice for results that differ in their settings and programs.
func best(list []bench.Result, threads int) string {
	var parts []string
	var top *bench.Result
	for _, device := range []bool{false, true} {
		var ours []bench.Result
		for _, r := range list {
			b := r.Axes.Get("backend")
			if r.Who == bench.Strata && (endsOnDevice(b) || strings.HasSuffix(b, "-device")) == device {
				ours = append(ours, r)
			}
		}
		if len(ours) == 0 {
			continue
		}
		b := slices.MaxFunc(ours, func(a, b bench.Result) int { return cmp.Compare(a.Rate(), b.Rate()) })
		if top == nil || b.Rate() > top.Rate() {
			top = &b
		}
		if len(ours) > 1 {
			parts = append(parts, choose(ours, b, threads, device))
		}
	}
	if top == nil {
		return ""
	}
	var peer *bench.Result
	for i, r := range list {
		if r.Who != bench.Strata && (peer == nil || r.Rate() > peer.Rate()) {
			peer = &list[i]
		}
	}
	if peer != nil {
		parts = append(parts, fmt.Sprintf("strata is %s times as fast as %s, the fastest of the others", bench.Ratio(top.Rate()/peer.Rate()), peer.Who))
	}
	return strings.Join(parts, "; ")
}

// choose names the best of strata's settings, unless the plain one is as good.
func choose(ours []bench.Result, b bench.Result, threads int, device bool) string {
	where := ""
	if device {
		where = " to the GPU"
	}
	plain := plainest(ours, threads)
	if flagsOf(plain) == flagsOf(b) || b.Rate() < clear*plain.Rate() || bench.Overlap(plain, b) {
		return fmt.Sprintf("no setting is clearly faster%s than %s (%s GiB/s)", where, flagsOf(plain), bench.GiBs(plain.Rate()))
	}
	return fmt.Sprintf("fastest%s is %s (%s GiB/s), %s times as fast as %s", where, flagsOf(b), bench.GiBs(b.Rate()), bench.Ratio(b.Rate()/plain.Rate()), flagsOf(plain))
}

// plainest returns the result that needs fewest flags.
func plainest(list []bench.Result, threads int) bench.Result {
	rank := func(r bench.Result) (flags float64) {
		backends := []string{"host", "auto", "gds", "nvcomp", "bounce", "host-device"}
		if i := slices.Index(backends, r.Axes.Get("backend")); i >= 0 {
			flags += float64(i) / 10 // the first of them that there is comes without a flag
		} else {
			flags += 1
		}
		usual := strconv.Itoa(threads)
		for _, name := range settingNames[1:] {
			v := r.Axes.Get(name)
			if v != "" && v != usual { // as many chunks as threads is what comes without the flag
				flags++
			}
		}
		return flags
	}
	return slices.MinFunc(list, func(a, b bench.Result) int { return cmp.Compare(rank(a), rank(b)) })
}

// flagsOf returns a result's settings as flags.
func flagsOf(r bench.Result) string {
	var parts []string
	for _, name := range settingNames {
		v := r.Axes.Get(name)
		switch {
		case v == "":
		case name == "backend" && strings.HasSuffix(v, "-device"):
			parts = append(parts, "--to device --backend "+strings.TrimSuffix(v, "-device"))
		default:
			parts = append(parts, "--"+strings.ReplaceAll(name, " ", "_")+" "+strings.ReplaceAll(v, " ", ""))
		}
	}
	return strings.Join(parts, " ")
}
