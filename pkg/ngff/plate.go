package ngff

import (
	"context"
	"errors"
	"fmt"

	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// PlateNode is a plate in a store.
type PlateNode struct {
	Plate
	Group    *zarr.Group
	Warnings []string
}

// WellNode is a well of a plate in a store.
type WellNode struct {
	Well
	Group    *zarr.Group
	Warnings []string
}

// OpenPlate opens the plate whose group is at path.
func OpenPlate(ctx context.Context, st store.Store, path string) (*PlateNode, error) {
	g, m, w, err := openPart(ctx, st, path)
	if err != nil {
		return nil, err
	}
	if m.Plate == nil {
		return nil, &zarr.FormatError{Path: g.Location(), Field: "plate", Err: errors.New("missing: not an OME-Zarr plate")}
	}
	return &PlateNode{*m.Plate, g, w}, nil
}

// Well opens the well at a path of the plate, such as "A/1".
func (p *PlateNode) Well(ctx context.Context, path string) (*WellNode, error) {
	if err := p.well(path); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Group.Location(), err)
	}
	return OpenWell(ctx, p.Group.Store(), store.Join(p.Group.Path(), path))
}

// OpenWell opens the well whose group is at path.
func OpenWell(ctx context.Context, st store.Store, path string) (*WellNode, error) {
	g, m, w, err := openPart(ctx, st, path)
	if err != nil {
		return nil, err
	}
	if m.Well == nil {
		return nil, &zarr.FormatError{Path: g.Location(), Field: "well", Err: errors.New("missing: not a well of an OME-Zarr plate")}
	}
	return &WellNode{*m.Well, g, w}, nil
}

// Image opens a field of view of the well.
func (w *WellNode) Image(ctx context.Context, i int, opts ...zarr.Option) (*Image, error) {
	if i < 0 || i >= len(w.Images) {
		return nil, fmt.Errorf("%s: no image %d in the well (%d images)", w.Group.Location(), i, len(w.Images))
	}
	return Open(ctx, w.Group.Store(), store.Join(w.Group.Path(), w.Images[i].Path), opts...)
}

// openPart reads the metadata of a group that is no image.
func openPart(ctx context.Context, st store.Store, path string) (*zarr.Group, *Metadata, []string, error) {
	g, err := zarr.OpenGroup(ctx, st, path)
	if err != nil {
		return nil, nil, nil, err
	}
	m, problems := ReadMetadata(g)
	var warnings []string
	for _, p := range problems {
		if p.fatal {
			return nil, nil, nil, &zarr.FormatError{Path: p.Path, Field: p.Field, Err: errors.New(p.Message)}
		}
		warnings = append(warnings, fmt.Sprintf("%s: %s: %s", p.Path, p.Field, p.Message))
	}
	return g, m, warnings, nil
}
