package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/smallfile"
)

// Format names the version of a document's JSON. Additional fields make a new version.
const Format = "strata bench 2"

// older lists earlier formats. They lack only fields that may be missing in the current one.
var older = []string{"strata bench 1"}

// Document holds the results of a run and the conditions that they depend on.
type Document struct {
	Format  string    `json:"format"`
	Tool    string    `json:"tool"`
	Version string    `json:"version"`
	Command string    `json:"command"` // as it was typed
	Time    time.Time `json:"time"`
	System  System    `json:"system"`
	Image   *Image    `json:"image,omitempty"`      // the measured file, for programs that measure a single one
	Setting Axes      `json:"parameters,omitempty"` // settings of the run that are not axes
	Results []Result  `json:"results"`
	Advice  []string  `json:"advice"` // a line each
}

// Image describes a file whose tiles a program reads.
type Image struct {
	Width       int      `json:"width"` // of the common pixel plane at level 0
	Height      int      `json:"height"`
	TileWidth   int      `json:"tile_width"` // of the largest tile
	TileHeight  int      `json:"tile_height"`
	PixelTypes  []string `json:"pixel_types"`
	Compression []string `json:"compression"`
	Channels    int      `json:"channels"`
	Depths      int      `json:"depths"`
	Times       int      `json:"times"`
	Scenes      int      `json:"scenes"`
	Tiles       int      `json:"tiles"`      // of level 0, in the file
	TilesRead   int      `json:"tiles_read"` // of them in each repeat
	Pixels      int64    `json:"pixels_read"`
	Bytes       int64    `json:"bytes_read"` // of the pixels
	FileBytes   int64    `json:"file_bytes"` // of the file
}

// New begins the document of a program started with the given arguments, the first being its name.
func New(tool, version string, arguments []string) *Document {
	var words []string
	for i, a := range arguments {
		if i == 0 {
			a = tool
		}
		a = address.Address(a).String()
		words = append(words, Quote(a))
	}
	return &Document{Format: Format, Tool: tool, Version: version, Command: strings.Join(words, " "), Time: time.Now().UTC().Truncate(time.Second)}
}

// WriteJSON writes the document as indented JSON.
func (d *Document) WriteJSON(w io.Writer) error {
	out := *d
	if out.Results == nil {
		out.Results = []Result{}
	}
	if out.Advice == nil {
		out.Advice = []string{}
	}
	if out.System.Places == nil {
		out.System.Places = []Place{}
	}
	if out.System.Software == nil {
		out.System.Software = []Software{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(out); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// ReadJSON reads a document. Text that is not such a document, has another format or impossible values gives
// an error that names the place.
func ReadJSON(r io.Reader) (*Document, error) {
	text, err := smallfile.All(r, "results")
	if err != nil {
		return nil, err
	}
	var head struct {
		Format *string `json:"format"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("no document of a benchmark: %s", jsonError(text, err))
	}
	switch {
	case head.Format == nil || !strings.HasPrefix(*head.Format, "strata bench "):
		return nil, errors.New("no document of a benchmark: field format is not " + Format)
	case *head.Format != Format && !slices.Contains(older, *head.Format):
		return nil, fmt.Errorf("field format is %q, this version reads %q", *head.Format, Format)
	}
	d := new(Document)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(d); err != nil {
		return nil, errors.New(jsonError(text, err))
	}
	return d, d.check()
}

// jsonError returns a JSON error in one line, with the line number in the text.
func jsonError(text []byte, err error) string {
	offset := smallfile.JSONOffset(err)
	what := strings.TrimPrefix(err.Error(), "json: ")
	if offset < 0 || offset > int64(len(text)) {
		return what
	}
	return fmt.Sprintf("line %d: %s", 1+bytes.Count(text[:offset], []byte{'\n'}), what)
}

// check returns an error if a value cannot be the result of a measurement.
func (d *Document) check() error {
	for i, r := range d.Results {
		bad := func(what string) error { return fmt.Errorf("results[%d]: %s", i, what) }
		if r.Name == "" {
			return bad("name is missing")
		}
		for _, s := range r.Seconds {
			if !(s >= 0) || math.IsInf(s, 0) {
				return bad(fmt.Sprintf("seconds: %v is not a time", s))
			}
		}
		if r.Bytes < 0 || r.Ops < 0 || r.RSS < 0 || r.Device < 0 || r.Pixels < 0 || !(r.CPU >= 0) {
			return bad("has a number below 0")
		}
		if l := r.Latency; l != nil && (l.Count < 0 || !(l.Least >= 0) || !(l.Most >= l.Least)) {
			return bad("latency: least and most are not a range of times")
		}
	}
	return nil
}

// Quote returns a word quoted for a shell.
func Quote(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+,:@=%") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
