package run

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli/flags"
	"strata/pkg/cli/release"
	"strata/pkg/runrecord"
)

// Provenance returns what an output says of the run that writes it. It names neither outputs nor the folders of inputs,
// and leaves out flags that do not change what is written: the same work makes the same bytes on any machine.
func (r *Run) Provenance(out string) runrecord.Provenance {
	p := runrecord.Provenance{Program: r.Program(), Version: release.Version(), Command: []string{r.Program()}}
	if r.Sub() != "" {
		p.Command = append(p.Command, r.Sub())
	}
	written := map[string]bool{out: true}
	for _, o := range r.outputs.Outputs() {
		written[o.Path()] = true
	}
	for _, a := range r.Positional() {
		if !written[a] {
			p.Command = append(p.Command, lastPart(a))
		}
	}
	for _, g := range r.Given() {
		if g.Flag.Ignored != "" || g.Flag.Value == "OUT" || slices.ContainsFunc(withoutEffect, func(o flags.Flag) bool { return o.Name == g.Flag.Name }) {
			continue
		}
		if len(g.Values) != 1 || !written[fmt.Sprint(g.Values[0])] {
			p.Command = append(p.Command, typed(g)...)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.record.Inputs {
		if name := imageName(in.Path.Reveal()); !slices.Contains(p.Inputs, name) {
			p.Inputs = append(p.Inputs, name)
		}
	}
	return p
}

// imageName returns the last part of a path or an address that is not the number of a level.
func imageName(place string) string {
	place = plainPlace(place)
	for up := place; up != "." && up != "/"; up = path.Dir(up) {
		if name := path.Base(up); strings.Trim(name, "0123456789/") != "" {
			return name
		}
	}
	return path.Base(place)
}

// withoutEffect lists the common flags that do not affect the content of outputs.
var withoutEffect = flags.Common(flags.GPU | flags.Resources | flags.Outputs | flags.Inputs)

// lastPart returns the last part of a path or an address, without secrets.
func lastPart(place string) string { return path.Base(plainPlace(place)) }

// plainPlace returns a path, or an address without secrets and without a query.
func plainPlace(place string) string {
	place = address.Address(place).String()
	if strings.Contains(place, "://") {
		place, _, _ = strings.Cut(place, "?")
	}
	return strings.TrimRight(place, "/")
}

// typed returns a flag as it could be typed, with paths by their last part.
func typed(g flags.Given) []string {
	if g.Flag.Kind == flags.Bool {
		if g.Values[0] == false {
			return []string{"--no-" + g.Flag.Name}
		}
		return []string{g.Flag.Typed()}
	}
	return []string{g.Flag.Typed(), valueOf(g, strings.HasPrefix(g.Flag.Value, "FILE") || strings.HasPrefix(g.Flag.Value, "DIR"))}
}

// valueOf returns the values of a flag as they could be typed, without what may be secret; of files their last part.
func valueOf(g flags.Given, file bool) string {
	var items []string
	for _, item := range g.Values {
		text := fmt.Sprint(item)
		if file {
			text = lastPart(text)
		}
		items = append(items, address.Redact(text))
	}
	return strings.Join(items, ",")
}

// fileValues begin the names that the help gives to values that name files.
var fileValues = []string{"FILE", "DIR", "CSV", "TSV", "PNG", "PATH", "JSON", "IMAGE", "OTHER", "URL"}

// unitsOf maps the names of values in the help to their units.
var unitsOf = map[string]string{"UM": "µm", "MM": "mm", "DEG": "°", "PX": "px", "PERCENT": "%"}

// settings returns the flags that the record notes.
func (r *Run) settings() []runrecord.Setting {
	all := []runrecord.Setting{}
	common := flags.Common(flags.Stage | flags.Pairs) // these change at most how results are stored
	for _, g := range r.Unusual() {
		f := g.Flag
		if f.Ignored != "" || f.Written || f.Value == "OUT" || slices.ContainsFunc(common, func(o flags.Flag) bool { return o.Name == f.Name }) {
			continue
		}
		file := slices.ContainsFunc(fileValues, func(name string) bool { return strings.HasPrefix(f.Value, name) })
		all = append(all, runrecord.Setting{Name: f.Name, Value: valueOf(g, file), Unit: unitsOf[f.Value], File: file})
	}
	return all
}
