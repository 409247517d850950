package explain

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"strata/pkg/cli"
	"strata/pkg/pattern"
	"strata/pkg/provenance"
	"strata/pkg/runrecord"
	"strata/pkg/units"
)

// few is the maximum number of inputs made in the same way that are printed, and first how many are of more.
const few, first = 4, 2

// deepest is the maximum number of levels of the tree that are indented.
const deepest = 24

// tree prints a history for people.
type tree struct {
	*provenance.History
	out     strings.Builder
	all     bool
	printed map[int]bool
	ways    ways
}

// printText prints a history for people: a tree from the image to its sources, what it comes to, and the paragraph.
func printText(w io.Writer, h *provenance.History, all bool) error {
	t := &tree{History: h, all: all, printed: map[int]bool{}, ways: ways{of: map[int]*way{}, all: map[string]*way{}, printed: map[*way]bool{}}}
	t.image(h.Images[0], 0)
	t.conclusion()
	if h.Methods.Paragraph != "" {
		t.out.WriteString("\nMethods\n\n" + h.Methods.String())
	}
	_, err := io.WriteString(w, t.out.String())
	return err
}

// line prints a line at a level of the tree. Its text may come from a record.
func (t *tree) line(level int, format string, args ...any) {
	t.out.WriteString(strings.Repeat("  ", min(level, deepest)) + cli.Message(fmt.Sprintf(format, args...)) + "\n")
}

// image prints an image and, below it, its inputs.
func (t *tree) image(im *provenance.Image, level int) {
	if t.printed[im.ID] {
		t.line(level, "%s, as above", im.Path)
		return
	}
	t.printed[im.ID] = true
	if w := t.way(im); w != nil {
		t.ways.printed[w] = true
	}
	t.line(level, "%s: %s", im.Path, what(im))
	if r := im.Run; r != nil {
		if set := settings(r); set != "" {
			t.line(level+2, "with %s", set)
		}
		if im.Kind == provenance.Missing {
			t.line(level+2, "missing: it was deleted or moved")
		}
		for _, p := range im.Problems {
			if p.Kind == provenance.InputMissing {
				continue // the input's own line says so
			}
			t.line(level+2, "%s: %s", headings[p.Kind], p.Text)
		}
		for _, w := range r.Warnings {
			t.line(level+2, "warning: %s", w)
		}
	}
	t.inputs(im, level+1)
}

// what returns what is known of an image in a line.
func what(im *provenance.Image) string {
	switch {
	case im.Run != nil:
		return step(im)
	case im.Kind == provenance.Folder:
		return "folder"
	case im.Kind == provenance.Missing:
		return "missing: it was deleted or moved, and no run record says what made it"
	case im.Kind == provenance.Unseen:
		return "not seen: " + im.Problems[0].Text
	}
	return "no run record: raw data, or made by another program"
}

// headings begin the lines of problems.
var headings = map[string]string{
	provenance.InputChanged: "stale", provenance.ImageChanged: "changed", provenance.InputMissing: "missing", provenance.NoRecord: "no record",
	provenance.NotLooked: "not seen", provenance.Cycle: "cycle", provenance.Limit: "limit",
}

// inputs prints the inputs of an image; of many that were made in the same way, with the same warnings, the first ones.
func (t *tree) inputs(im *provenance.Image, level int) {
	of := map[*way]int{}
	for _, id := range im.Inputs {
		of[t.way(t.Images[id])]++
	}
	if !t.all && len(im.Inputs) > few && t.said(im.Inputs) {
		t.line(level, "%d inputs, as above", len(im.Inputs))
		return
	}
	shown, folded := map[*way]int{}, map[*way][]string{}
	for _, id := range im.Inputs {
		in := t.Images[id]
		w := t.way(in)
		if !t.all && w != nil && of[w] > few && shown[w] >= first {
			folded[w] = append(folded[w], in.Path)
			if rest := folded[w]; len(rest) == of[w]-first {
				t.line(level, "%d more made %s, %s to %s (--all lists them)", len(rest), w, rest[0], rest[len(rest)-1])
			}
			continue
		}
		shown[w]++
		t.image(in, level)
	}
}

// said reports whether all images of a list have been printed, or were made in the same way as one that was.
func (t *tree) said(ids []int) bool {
	return !slices.ContainsFunc(ids, func(id int) bool {
		w := t.way(t.Images[id])
		return !t.printed[id] && (w == nil || !t.ways.printed[w])
	})
}

// way identifies one way in which several images were made, of which the first few are printed.
type way struct {
	number int  // of the ways of a tree, from 1
	warned bool // by one of the runs
}

func (w *way) String() string {
	if w.warned {
		return "in the same way, with the same warnings"
	}
	return "in the same way"
}

// ways holds the ways in which the images of a tree were made.
type ways struct {
	of      map[int]*way // by the ID of an image; nil: it is to be printed
	all     map[string]*way
	printed map[*way]bool
}

// itsOwn matches what names one slice among others in settings and warnings: the numbers in names of files.
var itsOwn = pattern.Lazy(`\S*(?:/|\.[a-z]{2}|_z[0-9])\S*|--slice [0-9]+`)

// digits matches a number in a name.
var digits = pattern.Lazy(`[0-9]+`)

// alike returns a text without the numbers that name one slice.
func alike(text string) string {
	return itsOwn().ReplaceAllStringFunc(text, func(name string) string { return digits().ReplaceAllString(name, "#") })
}

// way returns how an image was made; nil if it, or one that it was made from, has problems.
func (t *tree) way(im *provenance.Image) *way {
	if w, known := t.ways.of[im.ID]; known {
		return w
	}
	t.ways.of[im.ID] = nil // of one that was made from itself
	other := slices.ContainsFunc(im.Problems, func(p provenance.Problem) bool {
		return p.Kind != provenance.InputMissing && p.Kind != provenance.NoRecord
	})
	if other || im.Kind == provenance.Missing && im.Run == nil || im.Kind == provenance.Unseen {
		return nil
	}
	var key strings.Builder
	var here way
	key.WriteString(im.Kind)
	if r := im.Run; r != nil {
		fmt.Fprintf(&key, " %s %s %s %s", r.Program, r.Command, r.Version, alike(settings(r)))
		for _, text := range r.Warnings {
			key.WriteString(" warning: " + alike(text))
		}
		here.warned = len(r.Warnings) > 0
	}
	for _, id := range im.Inputs {
		w := t.way(t.Images[id])
		if w == nil {
			return nil
		}
		fmt.Fprintf(&key, " %d", w.number)
		here.warned = here.warned || w.warned
	}
	w := t.ways.all[key.String()]
	if w == nil {
		here.number = len(t.ways.all) + 1
		w = &here
		t.ways.all[key.String()] = w
	}
	t.ways.of[im.ID] = w
	return w
}

// step returns the line of a run.
func step(im *provenance.Image) string {
	r := im.Run
	parts := []string{strings.TrimSpace(r.Program+" "+r.Command) + " " + r.Version}
	if r.Started != nil {
		parts = append(parts, r.Started.UTC().Format("2006-01-02 15:04 UTC"))
	}
	if r.Record != "" {
		parts = append(parts, units.FormatDuration(time.Duration(min(max(r.Seconds, 0), 1e9)*float64(time.Second))))
		on := "CPU"
		if r.GPU != "" {
			on = "GPU " + r.GPU
		}
		parts = append(parts, on)
	}
	if d := (&runrecord.Dataset{Shape: im.Shape, DType: im.DType}).String(); d != "" {
		parts = append(parts, d)
	}
	return strings.Join(parts, ", ")
}

// settings returns the flags of a run that are not the defaults, or all arguments where these are not known.
func settings(r *provenance.Run) string {
	if r.Settings == nil {
		return strings.Join(r.Arguments, " ")
	}
	var words []string
	for _, s := range r.Settings {
		switch s.Value {
		case "true":
			words = append(words, "--"+s.Name)
		case "false":
			words = append(words, "--no-"+s.Name)
		default:
			words = append(words, "--"+s.Name+" "+s.Value)
		}
	}
	return strings.Join(words, " ")
}

// conclusion prints what the history comes to.
func (t *tree) conclusion() {
	stale, missing, unseen := 0, 0, 0
	for _, im := range t.Images {
		if im.Kind == provenance.Unseen {
			unseen++
		}
		if im.Stale {
			stale++
		}
		if im.Kind == provenance.Missing {
			missing++
		}
	}
	t.out.WriteByte('\n')
	switch {
	case t.Images[0].Run == nil && t.Images[0].Kind != provenance.Folder:
		t.line(0, "There is no record: strata did not make this image, or its run records lie elsewhere (--records).")
		return
	case t.Stale:
		t.line(0, "Stale (made before an input changed): %s. Run the lowest step that says stale again, then those above it.", units.Count(stale, "image"))
	case missing == 0 && unseen == 0:
		t.line(0, "Current: no input has changed since.")
	default:
		t.line(0, "No input that is known and still there has changed since.")
	}
	if missing > 0 {
		t.line(0, "Missing (deleted or moved): %s.", units.Count(missing, "input"))
	}
	if unseen > 0 {
		have := "it has"
		if unseen > 1 {
			have = "they have"
		}
		t.line(0, "Not seen: %s. Whether %s changed is not known; runs with --report note where inputs lie.", units.Count(unseen, "input"), have)
	}
}
