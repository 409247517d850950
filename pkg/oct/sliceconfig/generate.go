// Package sliceconfig decides which slices are used, in the slice configuration (slice_config.csv): [Generate] begins
// it, [Assess] compares slices with their neighbours and [Decide] excludes those that do not resemble them, [Exclude]
// marks runs of slices whose registration failed, and [Finalise] notes which missing slices were interpolated.
package sliceconfig

import (
	"context"
	"fmt"

	"strata/pkg/oct"
	"strata/pkg/rawtiles"
	"strata/pkg/registration"
)

// GenerateOptions are the options of [Generate].
type GenerateOptions struct {
	Exclude      []int // slices that are not used
	ExcludeFirst int   // number of slices at the beginning that are not used: they calibrate the blade
}

// calibration is the note of slices at the beginning.
const calibration = "calibration_slice"

// Generate makes a configuration of slices, given in increasing order. It returns the slices of o.Exclude that are not
// among them.
func Generate(ids []int, o GenerateOptions) (t *registration.SliceTable, unknown []int) {
	t = &registration.SliceTable{}
	for i, id := range ids {
		row := t.Add(id)
		row.SetBool(registration.Use, i >= o.ExcludeFirst)
		if i < o.ExcludeFirst {
			row.Set(registration.Notes, calibration)
		}
	}
	for _, id := range o.Exclude {
		if row := t.Row(id); row != nil {
			row.SetBool(registration.Use, false)
		} else {
			unknown = append(unknown, id)
		}
	}
	return t, unknown
}

// StampGalvo writes to every slice of a table the confidence that the A-lines of its raw tiles are shifted by the galvo
// mirror. Slices with at least the threshold are marked for repair. A slice without tiles, or whose tiles have no
// A-lines of the mirror's return, gets a note that says so.
func StampGalvo(ctx context.Context, t *registration.SliceTable, slices []rawtiles.Slice, threshold float64, o rawtiles.GalvoOptions) error {
	tiles := map[int]rawtiles.Slice{}
	for _, s := range slices {
		tiles[s.ID] = s
	}
	for _, id := range t.IDs() {
		row := t.Row(id)
		s, ok := tiles[id]
		if !ok {
			note(row, "no_tiles")
			continue
		}
		first, err := s.Tiles[0].Info(ctx)
		if err != nil {
			return oct.InputFault(err)
		}
		g, err := rawtiles.DetectGalvo(ctx, s, func(i int) (rawtiles.Info, error) {
			info, err := s.Tiles[i].Info(ctx)
			if err != nil {
				err = oct.InputFault(err)
			}
			return info, err
		}, o)
		if err != nil {
			return err
		}
		row.Set(registration.GalvoConfidence, fmt.Sprintf("%.3f", g.Confidence))
		row.SetBool(registration.GalvoFix, first.Extra > 0 && g.Confidence >= threshold)
		if first.Extra == 0 {
			note(row, "no_extra_alines")
		}
	}
	return nil
}

// note appends a text to the notes of a slice.
func note(row *registration.SliceRow, text string) {
	if before := row.Text(registration.Notes); before != "" {
		text = before + "; " + text
	}
	row.Set(registration.Notes, text)
}
