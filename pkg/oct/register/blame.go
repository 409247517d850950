package register

import (
	"context"
	"strings"

	"strata/pkg/metrics"
	"strata/pkg/oct/surface"
)

// blame refuses a pair of little confidence of which a slice shows nothing, and names that slice: what such planes have
// in common is chance.
func (p *pairPlan) blame(ctx context.Context) error {
	if p.result().Confidence >= metrics.Limits["registration_confidence"].Error {
		return nil
	}
	var blank []string
	for _, s := range []Slice{p.fixed, p.moving} {
		is, err := surface.Blank(ctx, s.Image, p.res)
		if err != nil {
			return err
		}
		if is {
			blank = append(blank, s.Path)
		}
	}
	if blank == nil {
		return nil
	}
	why := strings.Join(blank, " and ") + ": " + surface.BlankText
	if p.found.Refused != "" {
		why = p.found.Refused + "; " + why
	}
	p.found.Refused = why
	return nil
}
