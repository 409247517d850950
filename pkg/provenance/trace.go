package provenance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/provenance/methods"
	"strata/pkg/runrecord"
	"strata/pkg/units"
)

// Limits of a history.
const (
	mostImages   = 10_000
	mostDepth    = 200
	mostWarnings = 100
	mostWords    = 1000 // arguments of a command
	mostText     = 600  // characters of a text
)

// tracer follows an image back to the raw data.
type tracer struct {
	o       Options
	server  string // that the image is on; "": on none
	records *library
	history *History
	known   map[string]*Image
	open    map[*Image]bool // those whose inputs are being followed
	states  map[string]state
}

// Trace follows the image at a path or address back to the raw data. The history of an image without a record consists
// of that image as a source; if the image does not exist, it is marked as missing.
func Trace(ctx context.Context, image string, o Options) (*History, error) {
	t := &tracer{o: o, records: newLibrary(), history: &History{Image: address.Address(image).String()}, known: map[string]*Image{}, open: map[*Image]bool{}, states: map[string]state{}}
	if isRemote(image) {
		t.server = serverOf(image)
	}
	if err := t.records.named(ctx, o.Records); err != nil {
		return nil, err
	}
	if _, err := t.follow(ctx, image, nil, 0); err != nil {
		return nil, err
	}
	t.history.Notes = append([]string{}, t.records.notes...)
	t.history.conclude()
	return t.history, nil
}

// stateOf looks at a place, once.
func (t *tracer) stateOf(ctx context.Context, place string) state {
	id := identity(place)
	s, ok := t.states[id]
	if !ok {
		s = t.look(ctx, place)
		t.states[id] = s
	}
	return s
}

// follow adds an image, and everything that it was made from, to the history. If a run changed the image in place, or
// the image no longer exists, before is the run that read it; follow then describes the image as the latest run before
// that one had made it.
func (t *tracer) follow(ctx context.Context, place string, before *entry, depth int) (*Image, error) {
	key := identity(place)
	if im := t.known[key]; im != nil && before == nil {
		return im, nil
	}
	near := place
	if !isRemote(place) {
		near = key
	}
	if err := t.records.near(ctx, near); err != nil {
		return nil, err
	}
	s := t.stateOf(ctx, place)
	made := t.producer(place, s, before)
	if before != nil && made != nil {
		key += "\x00" + made.file
	}
	if im := t.known[key]; im != nil {
		return im, nil
	}
	im := t.image(place)
	t.known[key] = im
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	im.Shape, im.DType = s.shape, s.dtype
	switch {
	case s.reason != "":
		im.Kind = Unseen
		im.problem(NotLooked, s.reason, nil)
	case !s.there:
		im.Kind = Missing
	}
	t.open[im] = true
	defer delete(t.open, im)
	switch {
	case made != nil:
		return im, t.recorded(ctx, im, place, s, made, before != nil, depth)
	case s.made != nil && before == nil:
		return im, t.named(ctx, im, s.made, place, depth)
	case s.there && s.metadata == "" && !isRemote(place):
		return im, t.folder(ctx, im, place, depth)
	}
	return im, nil
}

// mostEntries is the maximum number of files in a folder of inputs that are followed.
const mostEntries = 4096

// folder follows the outputs that runs have written into a folder that is an input, such as the folder of all
// transforms.
func (t *tracer) folder(ctx context.Context, im *Image, place string, depth int) error {
	f, err := os.Open(place)
	if err != nil {
		return ctx.Err() // look said so
	}
	defer f.Close()
	names, _ := f.Readdirnames(mostEntries) // a file has none
	slices.Sort(names)
	for _, name := range names {
		p := filepath.Join(place, name)
		if err := t.records.near(ctx, identity(p)); err != nil {
			return err
		}
		if t.producer(p, t.stateOf(ctx, p), nil) == nil {
			continue
		}
		if t.full(im, depth) {
			return nil
		}
		in, err := t.follow(ctx, p, nil, depth+1)
		if err != nil {
			return err
		}
		im.Kind = Folder
		im.Inputs = append(im.Inputs, in.ID)
	}
	return nil
}

// full reports whether a history may have no more images, and notes this.
func (t *tracer) full(im *Image, depth int) bool {
	if len(t.history.Images) < mostImages && depth < mostDepth {
		return false
	}
	im.problem(Limit, fmt.Sprintf("the history goes on: at most %d images in %d steps are followed", mostImages, mostDepth), nil)
	return true
}

// image adds an image to the history.
func (t *tracer) image(place string) *Image {
	im := &Image{ID: len(t.history.Images), Path: shown(place), Kind: Source, Inputs: []int{}, Problems: []Problem{}}
	t.history.Images = append(t.history.Images, im)
	return im
}

// shown returns a place as people read it.
func shown(place string) string {
	if isRemote(place) {
		return address.Address(place).String()
	}
	abs, err := filepath.Abs(place)
	if here, wdErr := filepath.Abs("."); err == nil && wdErr == nil {
		if rel, err := filepath.Rel(here, abs); err == nil && filepath.IsLocal(rel) {
			return rel
		}
		return abs
	}
	return place
}

// recorded adds the run of a record that made an image, and its inputs.
func (t *tracer) recorded(ctx context.Context, im *Image, place string, s state, made *output, replaced bool, depth int) error {
	if im.Kind == Source {
		im.Kind = Made
	}
	im.Run = runOf(made.entry)
	if made.rec.Settings == nil && s.made != nil && !replaced { // the record is of a version that did not note them
		workflow := im.Run.said.Workflow
		im.Run.said = methods.FromImage(s.made)
		im.Run.said.Workflow = workflow
	}
	if s.there && !replaced && s.differs(made.Dataset) {
		im.problem(ImageChanged, fmt.Sprintf("it has changed since it was written: %s then, %s now", units.FormatSize(made.Bytes), units.FormatSize(s.bytes)), nil)
	}
	seen := map[string]bool{}
	for _, d := range made.rec.Inputs {
		name := plain(d.Path.Reveal())
		if seen[name] {
			continue
		}
		seen[name] = true
		if t.full(im, depth) {
			return nil
		}
		if err := t.input(ctx, im, place, made, d, depth); err != nil {
			return err
		}
	}
	return nil
}

// input follows one input of the recorded run that made the image im.
func (t *tracer) input(ctx context.Context, im *Image, of string, made *output, d runrecord.Dataset, depth int) error {
	place, moved := t.locate(ctx, made.entry, d)
	var before *entry
	if s := t.stateOf(ctx, place); identity(place) == identity(of) || !s.there && s.reason == "" {
		before = made.entry // it changed its input in place, or others may have been written there since
	}
	in, err := t.follow(ctx, place, before, depth+1)
	if err != nil {
		return err
	}
	im.Inputs = append(im.Inputs, in.ID)
	switch {
	case t.open[in]:
		im.problem(Cycle, "input "+in.Path+" was made from this image, by the records: one of them was made again", in)
	case in.Kind == Missing:
		in.Shape, in.DType = d.Shape, d.DType
		im.problem(InputMissing, "input "+in.Path+" was deleted or moved", in)
	case before == nil:
		if why := changed(made.entry, d, t.stateOf(ctx, place), in.Run, moved); why != "" {
			im.problem(InputChanged, "input "+in.Path+" "+why, in)
		}
	}
	return nil
}

// changed describes how an input has changed since a run read it, or returns "" if no change can be found. The
// modification time of a moved or copied input proves nothing.
func changed(e *entry, d runrecord.Dataset, s state, by *Run, moved bool) string {
	switch {
	case d.Metadata != "" && s.metadata != "" && d.Metadata != s.metadata:
		return "has changed since: its metadata differ"
	case s.differs(d):
		return fmt.Sprintf("has changed since: %s then, %s now", units.FormatSize(d.Bytes), units.FormatSize(s.bytes))
	case by != nil && by.Started != nil && by.Started.After(e.ended()):
		return "was made again since, at " + when(*by.Started)
	case moved || s.modified.IsZero():
	case d.Modified != nil && s.modified.After(*d.Modified):
		return "was written again since, at " + when(s.modified)
	case d.Modified == nil && s.modified.After(e.ended()):
		return "was written again since, at " + when(s.modified)
	}
	return ""
}

// when returns a time as people read it.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// named adds the run that the image's own metadata name, and those of its inputs that can be found by their name.
func (t *tracer) named(ctx context.Context, im *Image, p *runrecord.Provenance, place string, depth int) error {
	im.Kind = Made
	said := methods.FromImage(p)
	im.Run = &Run{Program: text(p.Program), Command: text(said.Sub), Version: text(p.Version), Arguments: texts(p.Command[min(1, len(p.Command)):], mostWords), Warnings: []string{}, said: said}
	im.problem(NoRecord, "only the image itself names the run; when, how long and its warnings are not known", nil)
	for _, name := range p.Inputs {
		if t.full(im, depth) {
			return nil
		}
		at := t.byName(ctx, filepath.Base(name), place)
		if at == "" {
			in := t.image(name)
			in.Path, in.Kind = text(name), Unseen
			in.problem(NotLooked, "only its name is known", nil)
			im.Inputs = append(im.Inputs, in.ID)
			continue
		}
		in, err := t.follow(ctx, at, nil, depth+1)
		if err != nil {
			return err
		}
		im.Inputs = append(im.Inputs, in.ID)
	}
	return nil
}

// byName returns the place of an input of which the image at a place records only the name: a file or folder beside the
// image, or the place in the only record of an output with that name. Otherwise it returns "".
func (t *tracer) byName(ctx context.Context, name, place string) string {
	if isRemote(place) {
		return ""
	}
	if beside := filepath.Join(filepath.Dir(place), name); identity(beside) != identity(place) && t.stateOf(ctx, beside).there {
		return beside
	}
	found := t.records.byName[name]
	if len(found) != 1 {
		return ""
	}
	places := found[0].places(found[0].Path.Reveal())
	if slices.ContainsFunc(places, func(p string) bool { return identity(p) == identity(place) }) {
		return ""
	}
	return places[max(0, slices.IndexFunc(places, func(p string) bool { return t.stateOf(ctx, p).there }))]
}

// runOf returns the description of a recorded run for a history.
func runOf(e *entry) *Run {
	r, words := e.rec, []string{}
	for _, a := range r.Arguments[:min(len(r.Arguments), mostWords)] {
		words = append(words, text(a.String()))
	}
	run := &Run{Program: text(r.Tool), Command: text(r.Command), Version: text(r.Version), Commit: text(r.Commit), Arguments: words,
		Seconds: r.WallSeconds, Host: text(r.Host), Warnings: texts(r.Warnings, mostWarnings), Record: shown(e.file), said: methods.FromRecord(r)}
	if !r.Started.IsZero() {
		run.Started = &r.Started
	}
	if r.GPU != nil {
		run.GPU = text(r.GPU.Name)
	}
	if r.Settings != nil {
		run.Settings = []runrecord.Setting{}
		for _, s := range r.Settings[:min(len(r.Settings), mostWords)] {
			run.Settings = append(run.Settings, runrecord.Setting{Name: text(s.Name), Value: text(s.Value), Unit: text(s.Unit), File: s.File})
		}
		run.said.Settings = run.Settings
	}
	return run
}

// text returns a text of a record without secrets and of limited length.
func text(s string) string {
	return address.Cut(address.Redact(strings.ToValidUTF8(s, "\uFFFD")), mostText)
}

func texts(list []string, most int) []string {
	out := []string{}
	for _, s := range list[:min(len(list), most)] {
		out = append(out, text(s))
	}
	if more := len(list) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	return slices.Clip(out)
}
