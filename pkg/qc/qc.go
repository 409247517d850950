// Package qc makes the quality report of a run: one HTML page that needs nothing
// but itself, from what the stages left behind. Every input is optional; a page
// has the sections for which there is something.
//
//	report, err := qc.Load(ctx, qc.Sources{Run: "results"}, resources)
//	err = report.Fit(ctx, qc.PictureBytes, resources)
//	err = report.WriteHTML(f)
//
// Text from files never becomes markup, pictures are embedded within a byte
// budget, and the page's own policy forbids it to load anything.
package qc

import (
	"errors"
	"fmt"

	"strata/pkg/record"
	"strata/pkg/registration"
)

// Sources are the files that a report is made of; all are optional. Files that
// are named must be what they should be; what is found in a folder and is not
// becomes a warning in the report.
type Sources struct {
	Run       string   // folder of a run's results, in which the rest is looked for
	Reports   []string // run records, or folders of them
	Previews  []string // PNG files, or folders of them
	Shifts    string   // shifts CSV
	Found     string   // stack's table of shifts as pictures show them
	Matches   string   // stack's table of Z matches
	Decisions string   // stack's table of decisions
	Focal     []string // what focal --save_map wrote: a folder, or one of such folders
	Stitch    []string // JSON files of stitch --save_positions, or folders of them
	Crop      []string // JSON files of crop, or folders of them
	Missing   string   // table of slices that the workflow gave up
	Trace     string   // the engine's table of tasks
}

// Report is all that is known about a run.
type Report struct {
	Title     string
	Version   string // of the program that makes the report
	Runs      []Run
	Previews  []*Picture
	Shifts    *registration.Shifts
	Found     []registration.FoundShift
	Matches   []registration.Match
	Decisions []registration.Decision
	Maps      []*MapSet
	Stitch    []*Facts
	Crop      []*Facts
	Missing   []MissingSlice
	Trace     []Task
	Problems  []string // of files that were found and could not be used
}

// Run is a run record and what its file is called.
type Run struct {
	Name string
	*record.Record
}

// ErrInput is wrapped by errors of files that were named and are not what they
// should be.
var ErrInput = errors.New("unsuitable input")

type inputError struct{ error }

func (e inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error        { return e.error }

func badInput(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }
