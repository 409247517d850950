// Package motions describes how the registrations of a folder move slices: rotations, translations, what they add up
// to, and which of them stand out.
package motions

import (
	"context"
	"fmt"
	"math"

	"strata/pkg/registration"
	"strata/pkg/work"
)

// Motion describes how a registration moves a slice, by its transform file or else by its metrics.
type Motion struct {
	Slice    int
	Folder   string
	TX, TY   float64 // px, with the sign of the transform: positive ones move the content left and up
	Rotation float64 // degrees, from x to y in the transform

	Status      string   // "ok", "warning" or "error"; "" without metrics
	Confidence  *float64 // nil without metrics
	Correlation *float64 // of the planes under the transform; nil: not measured
	Planes      *[2]int  // of the fixed and the moving slice that lie on each other
}

// length returns the length of the translation, px.
func (m *Motion) length() float64 { return math.Hypot(m.TX, m.TY) }

// Read reads the motions of a folder of pairwise registrations, by slice, several at a time. Folders without transform
// and metrics are left out, with a warning.
func Read(ctx context.Context, folder *registration.Folder, workers int) (all []Motion, warnings []string, err error) {
	ids := folder.IDs()
	pairs, notes := make([]*registration.Pair, len(ids)), make([][]string, len(ids))
	if err := work.Each(ctx, max(1, workers), len(ids), func(_, i int) (err error) {
		pairs[i], notes[i], err = folder.Pair(ctx, ids[i])
		return err
	}); err != nil {
		return nil, nil, err
	}
	for i, p := range pairs {
		m, said := Motion{Slice: ids[i], Folder: p.Folder}, notes[i]
		switch {
		case p.Transform != nil:
			warnings = append(warnings, said...)
			m.TX, m.TY, m.Rotation = p.Transform.TX, p.Transform.TY, p.Transform.Angle*180/math.Pi
		case p.Metrics != nil:
			m.TX, m.TY, m.Rotation = p.Metrics.TX, p.Metrics.TY, p.Metrics.Rotation
		default:
			warnings = append(warnings, fmt.Sprintf("%s: holds neither a transform nor %s: left out", p.Folder, registration.MetricsName))
			continue
		}
		if s := p.Metrics; s != nil {
			m.Status, m.Confidence = s.Status, &s.Confidence
			if s.Correlation != 0 {
				m.Correlation = &s.Correlation
			}
		}
		if o := p.Offsets; o != nil {
			m.Planes = &[2]int{o.FixedZ, o.MovingZ}
		}
		all = append(all, m)
	}
	return all, warnings, nil
}
