package main

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// noteMark stands before the text in which people explain missed targets: it names a part and, as patterns, its cases.
var noteMark = regexp.MustCompile(`<!-- note: (\w+): ([^>]*) -->`)

// unexplained lists the missed targets of a part that no note of its page explains, and notes of which no target is
// missed.
func (g *part) unexplained(page string, all []*outcome) (faults []string) {
	var patterns []string
	for _, m := range noteMark.FindAllStringSubmatch(page, -1) {
		if m[1] == g.name {
			patterns = append(patterns, strings.Fields(m[2])...)
		}
	}
	used := map[string]bool{}
	for _, o := range all {
		if !slices.ContainsFunc(o.verdicts(), func(v verdict) bool { return !v.reached }) {
			continue
		}
		explained := false
		for _, p := range patterns {
			if ok, _ := path.Match(p, o.Name); ok {
				explained, used[p] = true, true
			}
		}
		if !explained {
			faults = append(faults, fmt.Sprintf("no note explains why %s misses a target: write <!-- note: %s: %s --> before the reason", o.Name, g.name, o.Name))
		}
	}
	for _, p := range patterns {
		if !used[p] {
			faults = append(faults, fmt.Sprintf("the note of %s: %s explains nothing: all of its targets are reached", g.name, p))
		}
	}
	return faults
}
