package run

import (
	"context"
	"fmt"
	"slices"

	"strata/pkg/runrecord"
)

// Together registers what completes an output before anything is put in place: say gets the files and folders that the
// run writes beside its images, with their digests; none where there are no such files. Files come before images there,
// so that a kill between the two leaves an image that does not know the files. The digests depend on nothing but the
// files' content: the same run makes the same bytes again.
func (r *Run) Together(say func(ctx context.Context, files []runrecord.File) error) {
	r.together = append(r.together, say)
}

// tieTogether completes the images of the run, and notes its files in the record.
func (r *Run) tieTogether(ctx context.Context) error {
	if len(r.together) == 0 {
		return nil
	}
	var files []runrecord.File
	for _, o := range r.outputs.Outputs() {
		if slices.Contains(r.images, o) {
			continue
		}
		d, err := runrecord.Digest(ctx, o.Work())
		if err != nil {
			return fmt.Errorf("output %s: %w", o.Path(), err)
		}
		files = append(files, runrecord.File{Path: o.Path(), Digest: d})
	}
	r.record.Files = append(r.record.Files, files...)
	for _, say := range r.together {
		if err := say(ctx, files); err != nil {
			return err
		}
	}
	return nil
}
