package focal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"strata/pkg/cli"
	"strata/pkg/oct/focal"
	"strata/pkg/replace"
	"strata/pkg/zarr/store"
)

// maps holds the pictures of maps while they are being written.
type maps struct{ files []*os.File }

// start starts the maps in a folder, in which other files stay as they are. Maps that an earlier run estimated are
// removed if this one does not estimate.
func (m *maps) start(ctx context.Context, r *cli.Run, dir string, estimated bool) (*focal.Maps, error) {
	targets := new(focal.Maps)
	for _, t := range []struct {
		name    string
		written bool
		to      *focal.MapTarget
	}{{"z0", estimated, &targets.Depth}, {"flatfield", estimated, &targets.FlatField}, {"correction", true, &targets.Correction}} {
		image, err := r.OutputFolder(filepath.Join(dir, t.name+".ome.zarr"), replace.ByHierarchy(ctx))
		if err != nil {
			return nil, err
		}
		picture, err := r.OutputFile(filepath.Join(dir, t.name+".png"))
		if err != nil {
			return nil, err
		}
		if !t.written {
			image.Absent()
			picture.Absent()
			continue
		}
		f, err := picture.Create()
		if err != nil {
			return nil, err
		}
		m.files = append(m.files, f)
		*t.to = focal.MapTarget{Image: store.Folder(image.Work(), store.Sync(r.Options.Sync)), PNG: f}
	}
	return targets, nil
}

// close closes the files, and returns errors of writing them.
func (m *maps) close() (err error) {
	for _, f := range m.files {
		if e := f.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("write map: %w", e))
		}
	}
	m.files = nil
	return err
}
