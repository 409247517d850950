// Package provenance tells how an image was made: which runs of which programs, recursively through their inputs to
// the raw data, and what has changed or gone since.
//
//	h, err := provenance.Trace(ctx, "results/volume/volume.ome.zarr", provenance.Options{})
//	fmt.Println(h.Methods)
//
// It knows this from run records, which it looks for near each image, and from what images name themselves. Both may
// come from anywhere: nothing in a record makes it read more than a bounded number of files, or go to a server that the
// image is not on.
package provenance

import (
	"time"

	"strata/pkg/provenance/methods"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/store"
)

// Options select where records are searched, and what may be read.
type Options struct {
	Records  []string           // files of records, and folders of them, besides those near images
	Remote   bool               // look at inputs on servers that the image is not on
	Requests []store.HTTPOption // how requests to servers are tried again
}

// History is all that is known about how an image was made. The first of the images is that image.
type History struct {
	Image    string       `json:"image"`
	Stale    bool         `json:"stale"`    // an input of one of the runs has changed since
	Complete bool         `json:"complete"` // nothing is missing, and every image but sources has a record
	Images   []*Image     `json:"images"`
	Methods  methods.Text `json:"methods"`
	Notes    []string     `json:"notes"` // records that could not be read
}

// Kinds of images.
const (
	Made    = "made"    // by a run that is known
	Source  = "source"  // no run is known that made it: raw data, or of another program
	Folder  = "folder"  // of files that runs made, which are its inputs
	Missing = "missing" // it is not there any more
	Unseen  = "unseen"  // it could not be looked at
)

// Image is an image, table or other file of a history.
type Image struct {
	ID       int       `json:"id"` // its place in the list
	Path     string    `json:"path"`
	Kind     string    `json:"kind"`
	Shape    []int     `json:"shape,omitempty"`
	DType    string    `json:"dtype,omitempty"`
	Run      *Run      `json:"run"`    // null: none is known
	Inputs   []int     `json:"inputs"` // of the run: their IDs
	Stale    bool      `json:"stale"`  // an input has changed since, or one of the inputs is stale
	Problems []Problem `json:"problems"`
}

// Kinds of problems.
const (
	InputChanged = "input_changed" // an input has changed since the run
	ImageChanged = "image_changed" // the image has changed since the run that made it
	InputMissing = "input_missing"
	NoRecord     = "no_record" // the image names its program, but there is no run record
	NotLooked    = "unseen"    // it could not be looked at
	Cycle        = "cycle"     // by the records an image is made from itself
	Limit        = "limit"     // the history goes on
)

// Problem is something that a reader of a history should know.
type Problem struct {
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Input *int   `json:"input,omitempty"` // the image that it is about, if it is about an input
}

// Run is a run that made an image.
type Run struct {
	Program   string              `json:"program"`
	Command   string              `json:"command,omitempty"`
	Version   string              `json:"version"`
	Commit    string              `json:"commit,omitempty"`
	Arguments []string            `json:"arguments"`
	Settings  []runrecord.Setting `json:"settings"`          // null: not recorded
	Started   *time.Time          `json:"started,omitempty"` // this and the following are known from a record only
	Seconds   float64             `json:"wall_seconds,omitempty"`
	GPU       string              `json:"gpu,omitempty"` // name of the device; "": the CPU, or not known
	Host      string              `json:"host,omitempty"`
	Warnings  []string            `json:"warnings"`
	Record    string              `json:"record,omitempty"` // the file; "": only the image names the run

	said methods.Run
}

// problem notes a problem of an image.
func (im *Image) problem(kind, text string, input *Image) {
	p := Problem{Kind: kind, Text: text}
	if input != nil {
		p.Input = &input.ID
	}
	im.Problems = append(im.Problems, p)
}

// has reports whether an image has a problem of one of the given kinds.
func (im *Image) has(kinds ...string) bool {
	for _, p := range im.Problems {
		for _, k := range kinds {
			if p.Kind == k {
				return true
			}
		}
	}
	return false
}

// conclude completes a history from its images.
func (h *History) conclude() {
	h.Complete = true
	for _, im := range h.Images {
		if im.Kind == Missing || im.Kind == Unseen || im.has(NoRecord, InputMissing, Limit) {
			h.Complete = false
		}
	}
	order := h.order()
	for _, im := range order { // inputs come first
		im.Stale = im.has(InputChanged)
		for _, id := range im.Inputs {
			im.Stale = im.Stale || h.Images[id].Stale
		}
	}
	h.Stale = len(h.Images) > 0 && h.Images[0].Stale
	var runs []methods.Run
	said := map[string]bool{}
	for _, im := range order {
		if r := im.Run; r != nil && (r.Record == "" || !said[r.Record]) { // a run may have made several images
			runs = append(runs, r.said)
			said[r.Record] = true
		}
	}
	h.Methods = methods.Of(runs)
}

// order returns the images sorted so that every input precedes the images made from it.
func (h *History) order() (all []*Image) {
	seen := make([]bool, len(h.Images))
	var visit func(im *Image)
	visit = func(im *Image) {
		if seen[im.ID] {
			return
		}
		seen[im.ID] = true
		for _, id := range im.Inputs {
			visit(h.Images[id])
		}
		all = append(all, im)
	}
	for _, im := range h.Images {
		visit(im)
	}
	return all
}
