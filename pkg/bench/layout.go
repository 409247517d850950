package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/units"
)

// group is the results of one name, in the order in which they came.
type group struct {
	name    string
	results []Result
	axes    []string // names of axes that differ between them
	same    Axes     // those that all have, with one value
	who     []string // Strata first
}

func groups(list []Result) []*group {
	var out []*group
	by := map[string]*group{}
	for _, r := range list {
		g := by[r.Name]
		if g == nil {
			g = &group{name: r.Name}
			by[r.Name] = g
			out = append(out, g)
		}
		g.results = append(g.results, r)
	}
	for _, g := range out {
		g.describe()
	}
	return out
}

func (g *group) describe() {
	var names []string
	for _, r := range g.results {
		for _, a := range r.Axes {
			if !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
		if !slices.Contains(g.who, r.Who) {
			g.who = append(g.who, r.Who)
		}
	}
	slices.SortStableFunc(g.who, func(a, b string) int { return btoi(b == Strata) - btoi(a == Strata) })
	for _, name := range names {
		first := g.results[0].Axes.Get(name)
		if slices.ContainsFunc(g.results, func(r Result) bool { return r.Axes.Get(name) != first }) {
			g.axes = append(g.axes, name)
		} else {
			g.same = append(g.same, Axis{name, first})
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// label describes the case of a result by the axes that vary in its group, except those in without.
func (g *group) label(r Result, without ...string) string {
	var parts []string
	for _, name := range g.axes {
		v := r.Axes.Get(name)
		switch {
		case slices.Contains(without, name) || v == "":
		case g.speaks(name):
			parts = append(parts, v)
		default:
			parts = append(parts, name+" "+v)
		}
	}
	return strings.Join(parts, ", ")
}

// speaks reports whether the values of an axis can be understood without its name: words and sizes can, plain numbers
// cannot.
func (g *group) speaks(name string) bool {
	for _, r := range g.results {
		if _, err := strconv.ParseFloat(r.Axes.Get(name), 64); err == nil {
			return false
		}
	}
	return true
}

// peers returns the measured results of other programs, by case.
func peers(list []Result) map[string][]Result {
	by := map[string][]Result{}
	for _, r := range list {
		if r.Who != Strata && r.Measured() {
			by[r.key()] = append(by[r.key()], r)
		}
	}
	return by
}

// ratios returns strata's speed relative to each other program, such as "1.26× fio".
func ratios(r Result, by map[string][]Result) string {
	if r.Who != Strata || !r.Measured() {
		return ""
	}
	var parts []string
	for _, p := range by[r.key()] {
		if rate := p.Rate(); rate > 0 {
			parts = append(parts, fmt.Sprintf("%s× %s", Ratio(r.Rate()/rate), p.Who))
		}
	}
	return strings.Join(parts, ", ")
}

// Ratio formats a ratio with three digits: "0.951", "1.26", "14.2".
func Ratio(v float64) string {
	switch {
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.9995:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// GiBs formats a rate in GiB/s with three digits.
func GiBs(bytesPerSecond float64) string { return Ratio(bytesPerSecond / (1 << 30)) }

// Time formats a duration with three digits and its unit: "85.2 µs", "1.24 s".
func Time(seconds float64) string {
	for _, u := range []struct {
		from float64
		unit string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}} {
		if seconds >= u.from*0.9995 {
			return Ratio(seconds/u.from) + " " + u.unit
		}
	}
	return fmt.Sprintf("%.0f ns", seconds*1e9)
}

// number parses an axis's value as a number: "8", "1 MiB", "2.5".
func number(value string) (float64, bool) {
	if v, err := strconv.ParseFloat(value, 64); err == nil {
		return v, true
	}
	n, err := units.ParseSize(value)
	return float64(n), err == nil
}

// count formats a number of operations per second.
func count(perSecond float64) string {
	if perSecond >= 9995 {
		return Ratio(perSecond/1000) + "k"
	}
	return fmt.Sprintf("%.0f", perSecond)
}
