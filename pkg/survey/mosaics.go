package survey

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/tilegrid"
	"strata/pkg/zarr"
)

// lookMosaics looks at OME-Zarr hierarchies: mosaic grids by their names, and others.
func lookMosaics(ctx context.Context, l *Listing) (out []*Finding, err error) {
	var grids, others []string
	for _, p := range l.Arrays {
		if _, ok := slicefiles.Number(path.Base(p)); ok && strings.HasPrefix(path.Base(p), "mosaic_grid") {
			grids = append(grids, p)
		} else {
			others = append(others, p)
		}
	}
	if len(grids) > 0 {
		f, err := mosaicGrids(ctx, l, grids)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	if len(others) > 0 {
		out = append(out, volumes(ctx, l, others))
	}
	return out, nil
}

// mosaicGrids describes mosaic grids by the one in the middle.
func mosaicGrids(ctx context.Context, l *Listing, grids []string) (*Finding, error) {
	f := &Finding{Kind: Mosaics, Confidence: High}
	f.evidence("%s called mosaic_grid*_z<NN>*.zarr, such as %s", count(len(grids), "folder"), grids[0])
	for _, p := range grids {
		id, _ := slicefiles.Number(path.Base(p))
		f.Slices = append(f.Slices, int64(id))
	}
	slices.Sort(f.Slices)
	missingSlices(f)
	dir := filepath.Join(l.Root, filepath.FromSlash(path.Dir(grids[0])))
	first := filepath.Join(l.Root, filepath.FromSlash(grids[len(grids)/2]))
	f.What = count(len(grids), "mosaic grid")
	im, err := openImage(ctx, first)
	if err != nil {
		f.Confidence = Low
		f.warn("%v", err)
	} else {
		defer im.Levels[0].Array.Store().Close()
		f.describe(im, path.Base(first))
		if err := f.gridOf(ctx, im); err != nil {
			return nil, err
		}
		f.What = fmt.Sprintf("%s: %s has %d rows and %d columns of tiles", f.What, path.Base(first), f.Grid[0], f.Grid[1])
	}
	f.image = first
	if shifts := path.Join(path.Dir(grids[0]), "shifts_xy.csv"); slices.Contains(l.Files, shifts) {
		f.evidence("%s has the shifts between slices", shifts)
	} else if len(grids) > 1 {
		f.warn("no shifts_xy.csv beside the mosaics: stack needs it, or --no_xy_shift")
	}
	f.Params = []Param{{"input", dir}, {"outdir", "results"}}
	if f.Overlap != nil {
		f.Params = append(f.Params, Param{"stitch_overlap", f.Overlap.Median})
	}
	f.Commands = []string{"strata stitch " + quote(first) + " slice.ome.zarr --estimate" + f.overlapFlag(), "strata view slice.ome.zarr --open", "nextflow run nextflow/main.nf -params-file params.yml"}
	return f, nil
}

// overlapFlag returns the flag for the overlap that was found.
func (f *Finding) overlapFlag() string {
	if f.Overlap == nil {
		return ""
	}
	return fmt.Sprintf(" --overlap %g", f.Overlap.Median)
}

// openImage opens an image; its store is closed by the caller.
func openImage(ctx context.Context, name string) (*ngff.Image, error) {
	st, key, err := images.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	im, err := ngff.OpenPresent(ctx, st, key, zarr.Workers(1))
	if err != nil {
		st.Close()
		return nil, err
	}
	return im, nil
}

// describe copies an image's own description into the finding.
func (f *Finding) describe(im *ngff.Image, name string) {
	a := im.Levels[0].Array
	f.Shape, f.DType = a.Shape(), a.DType().String()
	voxel := [3]float64{}
	for d, axis := range im.Axes {
		f.Axes = append(f.Axes, axis.Name)
		switch k := strings.Index("zyx", axis.Name); {
		case k >= 0 && len(axis.Name) == 1 && im.Unit[d] != "":
			voxel[k] = im.VoxelSize[d]
		case axis.Name == "c":
			f.Channels = f.Shape[d]
		case axis.Name == "t":
			f.Times = f.Shape[d]
		}
		if axis.Name == "z" {
			f.Planes = f.Shape[d]
		}
	}
	if voxel[2] > 0 {
		f.Voxel, f.VoxelFrom = &voxel, "the metadata of "+name
	}
	for _, w := range im.Warnings {
		f.warn("%s: %s", name, w)
	}
}

// gridOf takes the grid of a mosaic from its chunks, and measures the overlap unless the mosaic states it.
func (f *Finding) gridOf(ctx context.Context, im *ngff.Image) error {
	a := im.Levels[0].Array
	shape, chunk := a.Shape(), a.Chunks()
	n := len(shape)
	for d := range chunk {
		chunk[d] = min(chunk[d], shape[d]) // one that is longer holds a single tile
	}
	ny, nx := shape[n-2]/chunk[n-2], shape[n-1]/chunk[n-1]
	f.Grid, f.Tiles = &[2]int{ny, nx}, ny*nx
	f.evidence("chunks of %v in an image of %v", chunk, shape)
	m := newPictures(func(ctx context.Context, k int) (*picture, error) {
		r := middle(im, a)
		r.Start[n-2], r.Start[n-1] = k/nx*chunk[n-2], k%nx*chunk[n-1]
		r.Shape[n-2], r.Shape[n-1] = chunk[n-2], chunk[n-1]
		return readRegion(ctx, a, r)
	})
	m.grid, m.at = *f.Grid, map[[2]int]int{}
	m.limit = 4 * mostPairs
	for k := range ny * nx {
		m.at[[2]int{k / nx, k % nx}] = k
	}
	overlap, ok := tilegrid.Overlap(im.Group.Attributes())
	if !ok {
		err := f.asMade(ctx, m)
		f.mosaic = nil // the store is closed
		return err
	}
	f.Overlap = &Overlap{Median: overlap, Low: overlap, High: overlap, From: "the mosaic's attributes"}
	return nil
}

// volumes describes OME-Zarr images that are no mosaic grids.
func volumes(ctx context.Context, l *Listing, names []string) *Finding {
	f := &Finding{Kind: Volume, Confidence: High, What: count(len(names), "OME-Zarr image")}
	first := filepath.Join(l.Root, filepath.FromSlash(names[0]))
	f.evidence("folders of Zarr hierarchies, such as %s", names[0])
	im, err := openImage(ctx, first)
	if err != nil {
		f.Confidence = Low
		f.warn("%v", err)
	} else {
		f.describe(im, filepath.Base(first))
		f.evidence("%s has %d levels", filepath.Base(first), len(im.Levels))
		_ = im.Levels[0].Array.Store().Close() // nothing was written
		f.image = first
	}
	f.Commands = []string{"strata view " + quote(first) + " --open", "strata zarr-tool info " + quote(first)}
	return f
}
