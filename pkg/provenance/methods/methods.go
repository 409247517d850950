// Package methods writes the paragraph that a paper has about how its images were made: programs, versions and the
// parameters that are not the defaults, with references.
//
//	text := methods.Of(runs)
//	fmt.Println(text)
package methods

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"strata/pkg/address"
	"strata/pkg/pattern"
	"strata/pkg/runrecord"
)

// Run is what a paper says of a run of a program.
type Run struct {
	Program, Sub string // "slices", "assess"
	Version      string
	Settings     []runrecord.Setting
	Noted        bool // the settings are known
	Workflow     bool // it was a task of the Nextflow workflow
}

// Text is a paragraph and the references that it cites by number.
type Text struct {
	Paragraph  string   `json:"paragraph"`
	References []string `json:"references"`
}

// String returns the paragraph, then a numbered line for each reference.
func (t Text) String() string {
	if t.Paragraph == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString(t.Paragraph + "\n\n")
	for i, r := range t.References {
		fmt.Fprintf(&b, "%d. %s\n", i+1, r)
	}
	return b.String()
}

// workFolder matches the folder in which Nextflow runs a task.
var workFolder = pattern.Lazy(`/[0-9a-f]{2}/[0-9a-f]{30}$`)

// name returns the program and its sub-command.
func (r *Run) name() string { return strings.TrimSpace(r.Program + " " + r.Sub) }

// FromRecord returns what a paper says of a recorded run.
func FromRecord(r *runrecord.Record) Run {
	return Run{Program: r.Tool, Sub: r.Command, Version: r.Version, Settings: r.Settings, Noted: r.Settings != nil, Workflow: workFolder().MatchString(r.Folder)}
}

// storage are flags that say how an image is stored, which no paper needs.
var storage = []string{"codec", "checksum", "chunks", "shard", "zarr_format", "n_levels"}

// FromImage returns what a paper says of the run that an image names: its command has the flags that were given.
func FromImage(p *runrecord.Provenance) Run {
	r := Run{Program: p.Program, Version: p.Version, Noted: true}
	words := p.Command[min(1, len(p.Command)):]
	if len(words) > 0 && (sentences[p.Program] == "" || sentences[p.Program+" "+words[0]] != "") {
		r.Sub, words = words[0], words[1:]
	}
	for i := 0; i < len(words); i++ {
		name, is := strings.CutPrefix(words[i], "--")
		if !is {
			continue
		}
		s := runrecord.Setting{Name: strings.ReplaceAll(name, "-", "_"), Value: "true"}
		if off, is := strings.CutPrefix(s.Name, "no_"); is {
			s.Name, s.Value = off, "false"
		} else if i+1 < len(words) && !strings.HasPrefix(words[i+1], "--") {
			i++
			s.Value = words[i]
		}
		if !slices.Contains(storage, s.Name) {
			r.Settings = append(r.Settings, s)
		}
	}
	return r
}

// Of returns the paragraph about runs in the order in which they were made. It is empty if none of them changes images.
func Of(runs []Run) Text {
	var groups []*group
	for _, r := range runs {
		if sentences[r.name()] == "" {
			continue
		}
		i := slices.IndexFunc(groups, func(g *group) bool { return g.runs[0].name() == r.name() })
		if i < 0 {
			groups = append(groups, &group{})
			i = len(groups) - 1
		}
		groups[i].runs = append(groups[i].runs, r)
	}
	if len(groups) == 0 {
		return Text{}
	}
	return paragraph(groups)
}

// paragraph puts groups of runs in words.
func paragraph(groups []*group) Text {
	var t Text
	versions, unknown, workflow := map[string]bool{}, map[string]bool{}, false
	for _, g := range groups {
		for _, r := range g.runs {
			versions[clean(r.Version)] = true
			workflow = workflow || r.Workflow
			if !r.Noted {
				unknown[r.Program] = true
			}
		}
	}
	list := slices.Sorted(maps.Keys(versions))
	parts := []string{fmt.Sprintf("Images were processed with strata%s %s and stored as OME-Zarr %s.", before(and(list)), t.cite(fmt.Sprintf(strataReference, strings.Join(list, ", "))), t.cite(omeZarr))}
	if workflow {
		parts = append(parts, fmt.Sprintf("Nextflow ran the programs %s.", t.cite(nextflow)))
	}
	named := false
	for _, g := range groups {
		text, settings := g.sentence(&t, len(list) > 1)
		parts = append(parts, text)
		named = named || settings
	}
	switch {
	case named:
		parts = append(parts, "Parameters that are not named had their default values.")
	case len(unknown) == 0:
		parts = append(parts, "All parameters had their default values.")
	}
	if len(unknown) > 0 {
		parts = append(parts, "The parameters of "+and(slices.Sorted(maps.Keys(unknown)))+" were not recorded.")
	}
	t.Paragraph = strings.Join(parts, " ")
	return t
}

// cite returns the number of a reference, in brackets.
func (t *Text) cite(reference string) string {
	i := slices.Index(t.References, reference)
	if i < 0 {
		i = len(t.References)
		t.References = append(t.References, reference)
	}
	return "[" + strconv.Itoa(i+1) + "]"
}

// group is the runs of one program.
type group struct{ runs []Run }

// sentence returns what a group did, and whether it names parameters.
func (g *group) sentence(t *Text, versions bool) (text string, named bool) {
	name := g.runs[0].name()
	text = sentences[name]
	for _, reference := range referencesOf[g.runs[0].Program] {
		text += " " + t.cite(reference)
	}
	parts := []string{name}
	if versions {
		all := map[string]bool{}
		for _, r := range g.runs {
			all[clean(r.Version)] = true
		}
		parts[0] += " " + and(slices.Sorted(maps.Keys(all)))
	}
	if n := len(g.runs); n > 1 {
		parts = append(parts, fmt.Sprintf("%d runs", n))
	}
	text += " (" + strings.Join(parts, ", ")
	settings := g.settings()
	if len(settings) > 0 {
		text += "; " + strings.Join(settings, ", ")
	}
	return text + ").", len(settings) > 0
}

// mostValues is the maximum number of values of a parameter that are listed where runs differ.
const mostValues = 3

// mostSettings is the maximum number of parameters of a program that are named. No program has as many.
const mostSettings = 200

// settings returns the parameters of all runs in words. Files are inputs, not parameters.
func (g *group) settings() (out []string) {
	var names []string
	counts := map[string]map[string]int{}
	for _, r := range g.runs {
		for _, s := range r.Settings {
			name := clean(s.Name)
			if s.File || counts[name] == nil && len(names) == mostSettings {
				continue
			}
			if counts[name] == nil {
				names, counts[name] = append(names, name), map[string]int{}
			}
			counts[name][words(s)]++
		}
	}
	for _, name := range names {
		values := slices.SortedFunc(maps.Keys(counts[name]), func(a, b string) int {
			if d := counts[name][b] - counts[name][a]; d != 0 {
				return d
			}
			return strings.Compare(a, b)
		})
		switch {
		case len(values) == 1 && counts[name][values[0]] >= len(g.runs):
			out = append(out, name+" "+values[0])
		case len(values) > mostValues:
			out = append(out, fmt.Sprintf("%s of %d values", name, len(values)))
		default:
			for i, v := range values {
				values[i] = fmt.Sprintf("%s in %d of the runs", v, counts[name][v])
			}
			out = append(out, name+" "+strings.Join(values, " and "))
		}
	}
	return out
}

// plainNumbers match a number or a list of them, behind which a unit may stand.
var plainNumbers = pattern.Lazy(`^[-+0-9.e,]+$`)

// words returns the value of a setting as a paper has it.
func words(s runrecord.Setting) string {
	switch {
	case s.Value == "true":
		return "on"
	case s.Value == "false":
		return "off"
	case s.Unit != "" && plainNumbers().MatchString(s.Value):
		return clean(s.Value + " " + s.Unit)
	}
	return clean(s.Value)
}

// mostText is the maximum length of a value.
const mostText = 100

// clean returns a text of a record on one line, without secrets, of limited length.
func clean(text string) string {
	plain := strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return utf8.RuneError
		}
		return r
	}, text)
	return address.Cut(address.Redact(plain), mostText)
}

// before puts a space before a word, if there is one.
func before(word string) string {
	if word == "" {
		return ""
	}
	return " " + word
}

// and joins words to a list.
func and(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
