package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// notes are what people wrote about cases that miss a target, by the name of the case. They stand in the page, beside
// the case, or in a comment while the case reaches its targets, and are carried over when the page is written anew.
type notes map[string]string

var (
	shownNote  = regexp.MustCompile(`(?m)^- .*<!-- note: (\S+) -->(.*)$`)
	hiddenNote = regexp.MustCompile(`(?m)^note: (\S+): (.*)$`)
)

// readNotes finds the notes of a page.
func readNotes(page string) notes {
	n := notes{}
	for _, form := range []*regexp.Regexp{shownNote, hiddenNote} {
		for _, m := range form.FindAllStringSubmatch(page, -1) {
			if text := strings.TrimSpace(m[2]); text != "" {
				n[m[1]] = text
			}
		}
	}
	return n
}

// take returns the note of a case as it stands in the list of missed targets, and removes it.
func (n notes) take(name string) string {
	text := n[name]
	delete(n, name)
	return fmt.Sprintf("<!-- note: %s -->%s", name, text)
}

// rest returns the comment with the notes that were not taken.
func (n notes) rest() string {
	if len(n) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<!-- Notes of cases that reach their targets:\n")
	for _, name := range slices.Sorted(maps.Keys(n)) {
		fmt.Fprintf(&b, "note: %s: %s\n", name, n[name])
	}
	b.WriteString("-->\n\n")
	return b.String()
}
