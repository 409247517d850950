package benchczi

import (
	"context"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/mem"
	"strata/pkg/units"
)

// opener opens the file and reads the positions of its tiles.
type opener struct{ scan *scan }

// boxes returns a sum over the positions, which peers return, too.
func (o opener) boxes(ctx context.Context) (uint32, error) {
	f, closing, err := o.scan.open(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = closing() }() // it was only read
	sum := 0
	for i := range f.Len() {
		if sb := f.SubBlock(i); sb.Level0() {
			sum += sb.Rect.Min.X + 3*sb.Rect.Min.Y + 5*sb.Rect.Dx() + 7*sb.Rect.Dy()
		}
	}
	return uint32(sum), nil
}

func (o opener) check(ctx context.Context, _ []int) (uint32, error) { return o.boxes(ctx) }

func (o opener) round(ctx context.Context) (benchkit.Sample, error) {
	defer benchkit.Processors(1)()
	return measured(func() (benchkit.Sample, error) {
		_, err := o.boxes(ctx)
		return benchkit.Sample{}, err
	})
}

// composer composes the tiles of a plane.
type composer struct {
	scan    *scan
	threads int
	mem     int64 // most bytes of the plane
}

// bytes returns the size of the plane.
func (c composer) bytes() int64 {
	r := c.scan.mosaic()
	return int64(r.Rect.Dx()) * int64(r.Rect.Dy()) * int64(c.scan.file.SubBlock(c.scan.tiles[0]).Pixels.Bytes())
}

func (c composer) read(ctx context.Context, take func([]byte)) error {
	n := c.bytes()
	if n > c.mem {
		return benchkit.Unablef("the plane has %s, --mem is %s", units.FormatSize(n), units.FormatSize(c.mem))
	}
	f, closing, err := c.scan.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = closing() }() // it was only read
	out, err := mem.Alloc(int(n))
	if err != nil {
		return err
	}
	defer mem.Free(out)
	region := c.scan.mosaic()
	region.Workers = c.threads
	if err := f.ReadRegion(ctx, region, out); err != nil {
		return cli.BadInput(err)
	}
	if take != nil {
		take(out)
	}
	return nil
}

func (c composer) check(ctx context.Context, _ []int) (sum uint32, err error) {
	err = c.read(ctx, func(pixels []byte) { sum = checksum(0, pixels) })
	return sum, err
}

func (c composer) round(ctx context.Context) (benchkit.Sample, error) {
	defer benchkit.Processors(c.threads)()
	return measured(func() (benchkit.Sample, error) { return benchkit.Sample{}, c.read(ctx, nil) })
}
