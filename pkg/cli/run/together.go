package run

import (
	"context"
	"fmt"
	"os"
	"slices"

	"strata/pkg/runrecord"
)

// Together registers a function that completes an output before any output is put in place. say gets the digests of the
// files and folders that the run writes in addition to its images; the list may be empty. These files are put in place
// before the images, so that a run killed in between leaves an image that does not list them. The digests depend only
// on the files' content, so that a repeated run makes the same bytes.
func (r *Run) Together(say func(ctx context.Context, files []runrecord.File) error) {
	r.together = append(r.together, say)
}

// tieTogether completes the images of the run, and notes its files in the record: all that belong to an image that
// knows them, and otherwise those that are not among the record's outputs.
func (r *Run) tieTogether(ctx context.Context) error {
	if len(r.together) == 0 && r.Options.Report == "" {
		return nil // nothing would keep the digests
	}
	var files []runrecord.File
	for _, o := range r.outputs.Outputs() {
		if slices.Contains(r.images, o) || len(r.together) == 0 && (isDir(o.Work()) || len(r.datasets(o.Path())) > 0) {
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

// isDir reports whether a path leads to a folder.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
