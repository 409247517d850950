package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"strata/pkg/units"
	"strata/pkg/webpage"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

// pageTemplate parses the page when it is first needed: other programs of the same binary start without it.
var pageTemplate = sync.OnceValue(func() *template.Template { return webpage.Template(pageHTML, nil) })

// view holds the content of the page.
type view struct {
	Title, Sub, Tool, Version, Command string
	CSS                                template.CSS
	Key                                []figure
	Advice                             []string
	Sections                           []*section
	Facts                              []fact
}

type figure struct{ Name, Value, Note string }

type fact struct{ Name, Value string }

// section is one group of results.
type section struct {
	ID, Name, Same string
	Plots          []*webpage.Plot
	Heads          []head
	Rows           [][]cell
}

type head struct {
	Name  string
	Class string
}

type cell struct{ Text, Class string }

// HTML writes a self-contained page: the best of each kind, advice, plots, tables and the facts of the
// machine.
func (d *Document) HTML(w io.Writer) error {
	v := d.view()
	by := peers(d.Results)
	for i, g := range groups(d.Results) {
		heads, rows := cells(g, by)
		s := &section{ID: fmt.Sprintf("r%d", i+1), Name: g.name, Same: g.same.String(), Plots: g.plots()}
		s.table(heads, rows)
		v.Sections = append(v.Sections, s)
		parts := g.scales()
		for _, part := range parts {
			best := bestOf(ours(part.results))
			if best == nil {
				continue
			}
			name := "Best " + g.name
			for _, a := range part.same {
				if !slices.Contains(g.same, a) {
					name += ", " + a.Value
				}
			}
			v.Key = append(v.Key, figure{name, GiBs(best.Rate()) + " GiB/s", strings.Join(dropEmpty(part.label(*best), byWhom(g, best)), ", ")})
		}
	}
	return pageTemplate().Execute(w, v)
}

// ours returns the measured results of strata, or all results if it has none.
func ours(list []Result) []Result {
	var out []Result
	for _, r := range list {
		if r.Who == Strata && r.Measured() {
			out = append(out, r)
		}
	}
	if out == nil {
		return list
	}
	return out
}

func byWhom(g *group, r *Result) string {
	if r.Who != Strata && len(g.who) > 1 {
		return "by " + r.Who
	}
	return ""
}

func bestOf(list []Result) *Result {
	var best *Result
	for i := range list {
		if r := &list[i]; r.Measured() && (best == nil || r.Rate() > best.Rate()) {
			best = r
		}
	}
	return best
}

func (s *section) table(heads []Head, rows [][]string) {
	class := func(right bool) string {
		if right {
			return "n"
		}
		return ""
	}
	for _, h := range heads {
		s.Heads = append(s.Heads, head{h.Name, class(h.Right)})
	}
	for _, r := range rows {
		var line []cell
		for i, text := range r {
			line = append(line, cell{text, class(heads[i].Right)})
		}
		s.Rows = append(s.Rows, line)
	}
}

func (d *Document) view() *view {
	s := d.System
	place := ""
	if len(s.Places) > 0 {
		place = s.Places[0].Path
	}
	v := &view{Title: d.Tool, Tool: d.Tool, Version: d.Version, Command: d.Command, CSS: webpage.CSS + template.CSS(pageCSS), Advice: d.Advice, Facts: s.facts()}
	if place != "" {
		v.Title += ": " + place
	}
	v.Sub = strings.Join(dropEmpty(d.Time.UTC().Format("2 January 2006, 15:04 UTC"), s.Host, "strata "+d.Version), " · ")
	return v
}

// facts returns the known facts, formatted for people.
func (s System) facts() []fact {
	var out []fact
	add := func(name, value string) {
		if value != "" {
			out = append(out, fact{name, value})
		}
	}
	add("Processor", s.CPU)
	if s.Cores > 0 {
		add("Cores", fmt.Sprint(s.Cores))
	}
	if s.Memory > 0 {
		add("Memory", units.FormatSize(s.Memory))
	}
	add("Control group", limits(s))
	add("System", strings.Join(dropEmpty(s.OS, s.Kernel, s.Platform), ", "))
	add("Container", s.Container)
	add("SLURM job", s.Job)
	add("Load before", s.Load)
	for _, p := range s.Places {
		direct := ""
		if p.Direct != nil && !*p.Direct {
			direct = "no direct I/O"
		}
		add("Files", strings.Join(dropEmpty(p.Path, p.Type, p.Source, strings.Join(p.Drives, ", "), direct, p.Reason), "; "))
	}
	if s.GPU != nil {
		add("GPU", fmt.Sprintf("%s, %s, CUDA %s", s.GPU.Name, units.FormatSize(s.GPU.Memory), s.GPU.Driver))
	}
	add("NVIDIA driver", s.Driver)
	add("nvidia-fs", s.NvidiaFS)
	add("cuFile", s.CuFile)
	for _, p := range s.Software {
		add(p.Name, p.Version)
	}
	return out
}

func limits(s System) string {
	var parts []string
	if s.Limits.CPUs != nil {
		parts = append(parts, fmt.Sprintf("%.4g processors", *s.Limits.CPUs))
	}
	if s.Limits.Memory != nil {
		parts = append(parts, units.FormatSize(*s.Limits.Memory))
	}
	return strings.Join(parts, ", ")
}

func places(s System) string {
	var parts []string
	for _, p := range s.Places {
		parts = append(parts, strings.Join(dropEmpty(p.Type, p.Source), " "))
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), ", ")
}

func gpuName(s System) string {
	if s.GPU == nil {
		return ""
	}
	return s.GPU.Name
}
