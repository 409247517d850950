package bench

import (
	"fmt"
	"io"
	"strings"
)

// Comparison is two documents side by side.
type Comparison struct {
	A, B   string // names of the two: their files
	Pairs  []Pair
	OnlyA  []Result // that B has not, or has not measured
	OnlyB  []Result
	Differ []string // facts of the machines that differ, a line each

	a, b *Document
}

// Pair is a result that both documents have, with the same name, axes and program.
type Pair struct {
	A, B Result
	// Ratio is B's rate divided by A's: above 1, B is faster. Low and High are the ratios of B's slowest
	// repeat to A's fastest, and of B's fastest to A's slowest.
	Ratio, Low, High float64
	// Noise means that the repeats of the two overlap, so that the ratio may be chance. Single means that one
	// of the two was measured only once, so that this is unknown.
	Noise, Single bool
}

// verdict returns the meaning of the ratio in a word or two.
func (p Pair) verdict() string {
	switch {
	case p.Single:
		return "one repeat"
	case p.Noise:
		return "within noise"
	case p.Ratio > 1:
		return "faster"
	}
	return "slower"
}

// Compare puts two documents side by side.
func Compare(a, b *Document, nameA, nameB string) *Comparison {
	c := &Comparison{A: nameA, B: nameB, a: a, b: b, Differ: differences(a.System, b.System)}
	key := func(r Result) string { return r.Who + " " + r.key() }
	there := map[string][]Result{}
	for _, r := range b.Results {
		if r.Measured() {
			there[key(r)] = append(there[key(r)], r)
		}
	}
	for _, r := range a.Results {
		if !r.Measured() {
			continue
		}
		list := there[key(r)]
		if len(list) == 0 {
			c.OnlyA = append(c.OnlyA, r)
			continue
		}
		there[key(r)] = list[1:]
		c.Pairs = append(c.Pairs, pair(r, list[0]))
	}
	for _, r := range b.Results {
		if list := there[key(r)]; r.Measured() && len(list) > 0 {
			there[key(r)] = list[1:]
			c.OnlyB = append(c.OnlyB, list[0])
		}
	}
	return c
}

// Overlap reports whether the repeats of two results overlap, so that either may be the faster one.
func Overlap(a, b Result) bool { return pair(a, b).Noise }

func pair(a, b Result) Pair {
	p := Pair{A: a, B: b, Single: len(a.Seconds) < 2 || len(b.Seconds) < 2}
	if a.Bytes == 0 || b.Bytes == 0 { // nothing was moved: how often in a second
		a.Bytes, b.Bytes = 1, 1
	}
	slowA, fastA := a.rates()
	slowB, fastB := b.rates()
	if rate := a.Rate(); rate > 0 {
		p.Ratio = b.Rate() / rate
	}
	if fastA > 0 {
		p.Low = slowB / fastA
	}
	if slowA > 0 {
		p.High = fastB / slowA
	}
	p.Noise = p.Low <= 1 && p.High >= 1
	return p
}

// differences are facts that differ between two machines.
func differences(a, b System) []string {
	var out []string
	for _, f := range []struct{ name, a, b string }{
		{"CPU", a.CPU, b.CPU}, {"cores", fmt.Sprint(a.Cores), fmt.Sprint(b.Cores)}, {"kernel", a.Kernel, b.Kernel}, {"system", a.OS, b.OS},
		{"memory", fmt.Sprint(a.Memory), fmt.Sprint(b.Memory)}, {"control group", limits(a), limits(b)}, {"file system", places(a), places(b)},
		{"GPU", gpuName(a), gpuName(b)}, {"NVIDIA driver", a.Driver, b.Driver}, {"host", a.Host, b.Host},
	} {
		if f.a != f.b {
			out = append(out, fmt.Sprintf("%s: %s, %s", f.name, orNone(f.a), orNone(f.b)))
		}
	}
	return out
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// rows returns the comparison as a table.
func (c *Comparison) rows() (heads []Head, rows [][]string) {
	heads = []Head{{"what", false}, {"who", false}, {"A GiB/s", true}, {"from to", true}, {"B GiB/s", true}, {"from to", true}, {"B/A", true}, {"", false}}
	span := func(r Result) string {
		if len(r.Seconds) < 2 {
			return ""
		}
		a, b := r.rates()
		return GiBs(a) + "–" + GiBs(b)
	}
	for _, p := range c.Pairs {
		what := strings.Join(dropEmpty(p.A.Name, p.A.Axes.String()), ", ")
		rows = append(rows, []string{Plain(what), Plain(p.A.Who), GiBs(p.A.Rate()), span(p.A), GiBs(p.B.Rate()), span(p.B), Ratio(p.Ratio), p.verdict()})
	}
	return heads, rows
}

// Table writes the comparison for people.
func (c *Comparison) Table(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "A: %s (%s)\nB: %s (%s)\n", Plain(c.A), Plain(c.a.Command), Plain(c.B), Plain(c.b.Command))
	for _, d := range c.Differ {
		fmt.Fprintf(&b, "the machines differ in %s\n", Plain(d))
	}
	heads, rows := c.rows()
	if len(rows) > 0 {
		b.WriteByte('\n')
		WriteTable(&b, heads, rows)
	} else {
		b.WriteString("they have no measurement in common\n")
	}
	for _, only := range []struct {
		name string
		list []Result
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		for _, r := range only.list {
			fmt.Fprintf(&b, "only %s has %s\n", only.name, Plain(strings.Join(dropEmpty(r.Name, r.Axes.String(), "by "+r.Who), ", ")))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
