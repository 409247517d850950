package deb

import (
	"fmt"
	"slices"
	"strings"
)

// Resolve lists the named packages and all their dependencies, sorted by name. It leaves out the packages in
// skip and those that only they need: an image can do without them because nothing is installed in it.
func (x *Index) Resolve(names []string, skip []string) ([]*Package, error) {
	chosen := map[string]*Package{}
	var queue []*Package
	add := func(p *Package) {
		if chosen[p.Name] == nil {
			chosen[p.Name] = p
			queue = append(queue, p)
		}
	}
	for _, name := range names {
		p := x.packages[name]
		if p == nil {
			return nil, fmt.Errorf("no package %s in the index", name)
		}
		add(p)
	}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, group := range p.depends {
			q, err := x.choose(group, chosen, skip)
			if err != nil {
				return nil, fmt.Errorf("%s needs %w", p, err)
			}
			if q != nil {
				add(q)
			}
		}
	}
	list := make([]*Package, 0, len(chosen))
	for _, p := range chosen {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Package) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// choose finds a package for a group of alternatives; nil if nothing has to be
// added: one is there already, or is skipped.
func (x *Index) choose(group []Relation, chosen map[string]*Package, skip []string) (*Package, error) {
	for _, r := range group {
		if slices.Contains(skip, r.Name) {
			return nil, nil
		}
		if p := chosen[r.Name]; p != nil && r.metBy(p) {
			return nil, nil
		}
		for _, p := range x.provided[r.Name] {
			if chosen[p.Name] == p && r.metBy(p) {
				return nil, nil
			}
		}
	}
	for _, r := range group {
		if p := x.packages[r.Name]; p != nil && r.metBy(p) {
			return p, nil
		}
		for _, p := range x.provided[r.Name] {
			if x.packages[p.Name] == p && r.metBy(p) && !slices.Contains(skip, p.Name) {
				return p, nil
			}
		}
	}
	var text []string
	for _, r := range group {
		text = append(text, r.String())
	}
	return nil, fmt.Errorf("%s, which is not in the index", strings.Join(text, " or "))
}
