package store

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
)

const (
	// markName names the object that marks a node being written. A run writes it first and removes it last.
	markName = hidden + "incomplete"
	// besideName is the prefix of folders for new nodes that will replace an old one.
	besideName = hidden + "new-"
	// maxMark is the most bytes of a mark.
	maxMark = 4 << 10
)

// nodeNames are the documents that make a prefix a node of a Zarr hierarchy, in the order in
// which they are written: the one that a reader looks for first comes last.
var nodeNames = []string{".zattrs", ".zarray", ".zgroup", "zarr.json"}

// lastName is the document that a reader looks for last: without it there is no node.
const lastName = ".zgroup"

// mark records who writes a node, and how to handle what a dead run left.
type mark struct {
	Writer string `json:"writer"` // for messages
	Run    string `json:"run"`    // tells runs apart
	// Beside is the folder in which the new node is made, "" where it is made in its place.
	Beside string `json:"beside,omitempty"`
	// Replacing means that the new node is complete and being moved to its place. The old one is destroyed:
	// whoever comes next has to finish.
	Replacing bool `json:"replacing,omitempty"`
}

func newMark(writer string) mark { return mark{Writer: writer, Run: rand.Text()} }

// encode returns the mark in its stored form.
func (m *mark) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil { // strings and a bool
		panic(err)
	}
	return b
}

// parseMark reads the mark of a run. Versions before 0.6 stored only the writer's name.
func parseMark(b []byte) *mark {
	m := new(mark)
	if json.Unmarshal(b, m) != nil || m.Run == "" {
		return &mark{Writer: string(b)}
	}
	if m.Beside == "" && !m.Replacing || strings.HasPrefix(m.Beside, besideName) && ValidKey(m.Beside) && !strings.Contains(m.Beside, "/") {
		return m
	}
	return &mark{Writer: m.Writer}
}

// occupied returns the error for a place that another run has claimed.
func (s *S3Store) occupied(m *mark) error {
	what := "is writing there, or was killed"
	if m.Replacing {
		what = "is replacing the image there with a complete one, or was killed meanwhile (--overwrite goes on first)"
	}
	return fmt.Errorf("%s: %w: %s %s", s.web.shown, ErrOccupied, foreign(m.Writer), what)
}

// readMark reads the mark; nil means that there is none.
func (s *S3Store) readMark(ctx context.Context) (*mark, error) {
	b, err := s.web.Get(ctx, markName, nil, maxMark)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, ErrTooLarge):
		return &mark{Writer: "another program"}, nil
	case err != nil:
		return nil, err
	}
	return parseMark(b), nil
}

// putMark overwrites the existing mark.
func (s *S3Store) putMark(ctx context.Context, m mark) error { return s.put(ctx, markName, m.encode()) }

// claim writes the mark where there is none: of two runs that begin at once, one finds the other's.
func (s *S3Store) claim(ctx context.Context, m mark) error {
	onlyNew, text := true, m.encode()
	err := s.change(ctx, markName, func(ctx context.Context) error {
		err := s.client.put(ctx, s.prefix+markName, text, onlyNew)
		switch statusOf(err) {
		case http.StatusNotImplemented: // a server without conditions
			onlyNew = false
			err = s.client.put(ctx, s.prefix+markName, text, onlyNew)
		case http.StatusPreconditionFailed, http.StatusConflict:
			return ErrOccupied
		}
		return err
	})
	if !errors.Is(err, ErrOccupied) {
		return err
	}
	// It may be ours: of a request whose answer was lost.
	if there, e := s.readMark(ctx); e == nil && there != nil && there.Run == m.Run {
		return nil
	}
	return fmt.Errorf("%s: %w: another run began to write there just now", s.web.shown, ErrOccupied)
}

// found describes what a place holds.
type found struct {
	empty bool
	mark  *mark // nil: none
	zarr  bool  // at least one of nodeNames
	node  bool  // one that makes a reader find a node
}

// look finds out what the place holds.
func (s *S3Store) look(ctx context.Context) (f found, err error) {
	f.empty = true
	for entries, err := range s.pages(ctx, s.prefix, "", 2) {
		if err != nil {
			return f, err
		}
		// some programs make an object for an empty folder, with its name
		if f.empty = !slices.ContainsFunc(entries, func(o listed) bool { return o.key != s.prefix }); !f.empty {
			break
		}
	}
	if f.empty {
		return f, nil
	}
	if f.mark, err = s.readMark(ctx); err != nil {
		return f, err
	}
	for _, name := range nodeNames {
		err := s.web.retry(ctx, name, func(ctx context.Context) (bool, error) {
			_, err := s.web.head(ctx, name)
			return false, err
		})
		switch {
		case err == nil:
			f.zarr = true
			f.node = f.node || name != ".zattrs"
		case !errors.Is(err, fs.ErrNotExist):
			return f, err
		}
	}
	return f, nil
}
