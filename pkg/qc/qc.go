// Package qc makes the quality report of a run: one self-contained HTML page from the files that the stages
// left. Every input is optional; the page has the sections for which there is data.
//
//	report, err := qc.Load(ctx, qc.Sources{Run: "results"}, resources)
//	err = report.Fit(ctx, qc.PictureBytes, resources)
//	err = report.WriteHTML(f)
//
// Text from files never becomes markup, pictures are embedded within a byte budget, and the page's own policy
// forbids it to load anything.
package qc

import (
	"errors"
	"fmt"

	"strata/pkg/registration"
	"strata/pkg/runrecord"
	"strata/pkg/webpage"
)

// Sources names the input files of a report; all are optional. A named file that is not what it should be is
// an error; one found in a folder becomes a warning in the report.
type Sources struct {
	Run       string   // folder of a run's results, in which the rest is looked for
	Reports   []string // run records, or folders of them
	Previews  []string // PNG files, or folders of them
	Shifts    string   // shifts CSV, as recorded
	Cleaned   string   // the same after repair, by shifts clean or analyze
	Drift     []string // plots of shifts clean and analyze (SVG or PNG), or folders of them
	Found     string   // stack's table of shifts as pictures show them
	Matches   string   // stack's table of Z matches
	Decisions string   // stack's table of decisions
	Focal     []string // what focal --save_map wrote: a folder, or one of such folders
	Stitch    []string // JSON files of stitch --save_positions, or folders of them
	Crop      []string // JSON files of crop, or folders of them
	Slices    string   // slice table
	Missing   string   // table of slices that the workflow gave up
	Trace     string   // the engine's table of tasks
	Overviews []string // PNG files to show first
	Metrics   []string // metrics of steps (*_metrics.json), or folders of them
	Diagnosed []string // what stitch compare, register analyze, shifts rotation and stack --preview wrote, or folders of it at any depth
}

// Report holds all that is known about a run.
type Report struct {
	Title     string
	Version   string // of the program that makes the report
	Runs      []Run
	Previews  []*Picture
	Shifts    *registration.Shifts
	Cleaned   *registration.ShiftTable // Shifts after repair; nil: they were not repaired
	Drift     []*Picture               // plots of both
	Found     []registration.FoundShift
	Matches   []registration.Match
	Decisions []registration.Decision
	Maps      []*MapSet
	Stitch    []*Facts
	Crop      []*Facts
	Bad       []BadSlice
	Missing   []MissingSlice
	Trace     []Task
	Steps     []StepFile
	Diagnosed []*Picture   // of diagnostics
	Compared  []Comparison // of stitchings
	Analyses  []Diagnosis
	Problems  []string // of files that were found and could not be used

	unrecorded bool                     // Shifts are those after repair
	spots      map[[2]int]*webpage.Spot // of joins, while the page is made
	moved      map[string][2]float64    // of stitched slices in the slices made of them, while the page is made
}

// Run is a run record and the name of its file.
type Run struct {
	Name string
	*runrecord.Record
}

// ErrInput is wrapped by errors about named files that are not what they should be.
var ErrInput = errors.New("unsuitable input")

type inputError struct{ error }

func (e inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error        { return e.error }

func badInput(format string, args ...any) error { return inputError{fmt.Errorf(format, args...)} }
