package mosaic

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/rawtiles"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Result holds the mosaic grid of a slice, what was made of it, and the galvo shift that was corrected.
type Result struct {
	Image    *ngff.Image    // nil: it is not kept
	Products []*ngff.Image  // in the order of the products
	Galvo    rawtiles.Galvo // as it was found
	Shift    int            // A-lines by which tiles were rolled
}

// Write writes the mosaic grid as a float32 OME-Zarr image whose chunks are the tiles, voxel (·, i, j) of tile (x, y)
// being A-line i of frame j (workflow specification, create_mosaic_grid_3d). Tiles of more than 64 MiB are
// cut along z, unless they are to stay whole or voxels change.
//
// Frames that repeat a place are averaged in float32. A tile is rolled and cropped first, then resampled like by
// package resample: each axis of n voxels becomes one of m = n·voxel size/resolution, rounded down, blurred by a
// Gaussian of (n/m−1)/2 voxels where it shrinks, and sampled linearly at (i+½)·n/m − ½ or, with Corner, at
// i·(n−1)/(m−1). Voxels that are NaN or infinite are counted, and stay so.
//
// Products are made of the tiles as they are in memory, in the same pass. out may be nil if there are any: the mosaic
// is not kept then.
//
// Tiles are read a few frames at a time. A worker holds the result, or a part of its planes, for which frames are read
// again. The voxels do not depend on workers or memory.
func (m *Mosaic) Write(ctx context.Context, out store.Writer, layout oct.Layout, res oct.Resources, products ...Product) (*Result, error) {
	result := &Result{}
	w := &writing{Mosaic: m, res: res, contents: make([]oct.Content, len(m.Infos))}
	defer w.abort()
	spec, layout, err := w.plan(ctx, layout, out != nil, products, false)
	if err != nil {
		return nil, err
	}
	if m.how.Galvo && m.Infos[0].Extra > 0 {
		result.Galvo, err = rawtiles.DetectGalvo(ctx, m.Slice, func(i int) (rawtiles.Info, error) { return m.Infos[i], nil },
			rawtiles.GalvoOptions{Workers: res.Workers, Mem: res.Mem, Camera: m.how.Camera, Meter: res.Meter})
		if err != nil {
			return nil, inputFault(err)
		}
		result.Shift = result.Galvo.Applied(m.how.GalvoThreshold)
		m.tell(result, res)
	}
	w.shift = result.Shift
	if out != nil {
		if w.out, err = oct.Create(ctx, out, layout, spec, m.Tile[:], res); err != nil {
			return nil, err
		}
		defer w.out.Abort()
	}
	if err := w.run(ctx); err != nil {
		return nil, err
	}
	if result.Products, err = w.end(ctx); err != nil {
		return nil, err
	}
	if out != nil {
		if err := w.out.Close(ctx); err != nil {
			return nil, err
		}
		if result.Image, err = ngff.Open(ctx, out, "", zarr.Workers(res.Workers), zarr.Meter(res.Meter)); err != nil {
			return nil, err
		}
	}
	w.warnEmpty()
	return result, nil
}

// Enough returns an error if [Mosaic.Write] would have too little memory, or if a product cannot be made.
func (m *Mosaic) Enough(ctx context.Context, keep bool, layout oct.Layout, res oct.Resources, products ...Product) error {
	w := &writing{Mosaic: m, res: res}
	defer w.abort()
	_, _, err := w.plan(ctx, layout, keep, products, true)
	return err
}

// spec returns the image, and its layout with the shards that the options ask for.
func (w *writing) spec(layout oct.Layout) (ngff.ImageSpec, oct.Layout) {
	m := w.Mosaic
	spec := ngff.ImageSpec{
		Format: 3, Name: Name(m.Slice.ID), Shape: m.Shape[:], DType: dtype.Float32, Chunks: w.chunks, OmitFill: true, Budget: w.pyramid,
		Axes: ngff.SpaceAxes("zyx", "millimeter"),
	}
	for d := range m.Voxel {
		spec.Scale = append(spec.Scale, m.Voxel[d]/1000)
		if m.how.Resolution > 0 && !m.how.Corner {
			spec.Translation = append(spec.Translation, m.translation[d]/1000)
		}
	}
	if layout.Shard == nil && m.how.Sharding > 1 {
		depth := w.chunks[0]
		if len(layout.Chunks) == len(w.chunks) {
			depth = layout.Chunks[0]
		}
		layout.Shard = []int{depth, m.how.Sharding * m.Tile[1], m.how.Sharding * m.Tile[2]}
	}
	return spec, layout
}

// warnEmpty names tiles that show nothing, as those of a detector that did not record.
func (w *writing) warnEmpty() {
	var names []string
	n, what := 0, ""
	for k := range w.contents {
		if s := w.contents[k].Nothing(); s != "" {
			if what, n = s, n+1; len(names) < mostNamed {
				names = append(names, w.Slice.Tiles[k].Name()+" ("+s+")")
			}
		}
	}
	switch {
	case n == 0:
	case n == len(w.contents):
		w.res.Warnf("slice %02d shows nothing: %s", w.Slice.ID, what)
	default:
		if n > len(names) {
			names = append(names, fmt.Sprintf("and %d more", n-len(names)))
		}
		w.res.Warnf("slice %02d: %d of %d tiles show nothing: %s", w.Slice.ID, n, len(w.contents), strings.Join(names, ", "))
	}
}

// tell passes on what was found of the mirror's way back.
func (m *Mosaic) tell(r *Result, res oct.Resources) {
	switch {
	case r.Galvo.Tiles == 0:
		res.Decided("slice %02d: tiles are too dark to find the mirror's way back", m.Slice.ID)
	case r.Shift == 0:
		res.Decided("slice %02d: no galvo shift (confidence %.3f, threshold %g)", m.Slice.ID, r.Galvo.Confidence, m.how.GalvoThreshold)
	default:
		res.Decided("slice %02d: galvo shift of %d A-lines (confidence %.3f)", m.Slice.ID, r.Shift, r.Galvo.Confidence)
	}
}

// inputFault marks errors of reading tiles, which name files, as those of the input.
func inputFault(err error) error {
	if err == nil || errors.Is(err, rawtiles.ErrMemory) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return oct.InputFault(err)
}
