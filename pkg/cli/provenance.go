package cli

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"strata/pkg/address"
	"strata/pkg/record"
)

// Provenance returns what an output says of the run that writes it. It names neither outputs nor the folders of inputs,
// and leaves out flags that do not change what is written: the same work makes the same bytes on any machine.
func (r *Run) Provenance(out string) record.Provenance {
	p := record.Provenance{Program: r.program, Version: Version(), Command: []string{r.program}}
	if r.sub != "" {
		p.Command = append(p.Command, r.sub)
	}
	written := map[string]bool{out: true}
	for _, o := range r.outputs.Outputs() {
		written[o.Path()] = true
	}
	for _, a := range r.args {
		if !written[a] {
			p.Command = append(p.Command, lastPart(a))
		}
	}
	for _, f := range r.command.flags() {
		v := r.values[f.Name]
		if v == nil || !v.set || f.Ignored != "" || slices.ContainsFunc(withoutEffect, func(o Flag) bool { return o.Name == f.Name }) {
			continue
		}
		if len(v.items) != 1 || !written[fmt.Sprint(v.items[0])] {
			p.Command = append(p.Command, v.typed()...)
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

// withoutEffect are the common flags that do not change what is written.
var withoutEffect = commonFlags(GPU | Resources | Outputs | Inputs)

// lastPart returns the last part of a path or an address, without what may be secret.
func lastPart(place string) string { return path.Base(plainPlace(place)) }

// plainPlace returns a path, or an address without what may be secret and without a query.
func plainPlace(place string) string {
	place = address.Address(place).String()
	if strings.Contains(place, "://") {
		place, _, _ = strings.Cut(place, "?")
	}
	return strings.TrimRight(place, "/")
}

// typed returns a flag as it could be typed, with paths by their last part.
func (v *value) typed() []string {
	name := dashed(v.flag.Name)
	if v.flag.Kind == Bool {
		if v.items[0] == false {
			name = "--no-" + v.flag.Name
		}
		return []string{name}
	}
	var items []string
	for _, item := range v.items {
		text := fmt.Sprint(item)
		if strings.HasPrefix(v.flag.Value, "FILE") || strings.HasPrefix(v.flag.Value, "DIR") {
			text = lastPart(text)
		}
		items = append(items, address.Redact(text))
	}
	return []string{name, strings.Join(items, ",")}
}
