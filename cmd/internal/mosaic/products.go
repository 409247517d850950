package mosaic

import (
	"context"
	"os"
	"strings"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/cli/zarrout"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/aip"
	"strata/pkg/oct/compute"
	"strata/pkg/oct/mosaic"
	"strata/pkg/oct/resample"
	"strata/pkg/zarr/store"
)

// Prefixes of the flags for images that are made of the mosaic in the same pass; up to the underscore they name the
// outputs.
const (
	projected = "aip_"
	resampled = "resampled_"
)

// productFlags returns the flags for what is made of the mosaic in the same pass.
func productFlags() []cli.Flag {
	all := []cli.Flag{
		{Name: "keep_mosaic", Kind: cli.Bool, Default: "true", Usage: "write the mosaic; with --no-keep_mosaic there is no OUT, only what --aip and --resampled ask for"},
		{Name: "aip", Value: "OUT", Usage: "also write the average intensity projection, as the program aip makes it of the mosaic; with --all, a folder for images of the mosaics' names"},
		{Name: "aip_png", Value: "FILE", Usage: "also write the projection as a 16-bit grey PNG with a scale bar, like --png of aip; with --all, a folder for pictures of the mosaics' names"},
	}
	all = append(all, cli.LayoutOf(projected, "the projection", "Y,X", "the tile, or the chunks of the mosaic if they are smaller")...)
	all = append(all,
		cli.Flag{Name: "resampled", Value: "OUT", Usage: "also write the mosaic resampled to another voxel size, as the program resample makes it; with --all, a folder for images of the mosaics' names"},
		cli.Flag{Name: "resampled_resolution", Kind: cli.Floats, Default: "10", Value: "UM", Check: cli.VoxelSize, Usage: "voxel size of the resampled mosaic in µm: one number for all axes, or three for z, y and x"},
		cli.Flag{Name: "resampled_sampling", Default: "centre", Choices: []string{"centre", "corner"}, Usage: "where to sample a tile for the resampled mosaic, as for --sampling"},
	)
	return append(all, cli.LayoutOf(resampled, "the resampled mosaic", "Z,Y,X", "the resampled tile")...)
}

// checkProducts refuses flags for products that are not asked for, and runs that would write nothing.
func checkProducts(r *cli.Run) error {
	for _, f := range productFlags() {
		product, _, _ := strings.Cut(f.Name, "_")
		if f.Name != "keep_mosaic" && f.Name != product && r.IsSet(f.Name) && r.String(product) == "" {
			return cli.Usage("--%s is for --%s: give that as well", f.Name, product)
		}
		if r.Bool("list") && r.IsSet(f.Name) {
			return cli.Usage("--%s contradicts --list, which writes no image", f.Name)
		}
	}
	if !r.Bool("keep_mosaic") && r.String("aip") == "" && r.String("resampled") == "" {
		return cli.Usage("--no-keep_mosaic leaves nothing to write: give --aip or --resampled")
	}
	return nil
}

// outputs are the images of a slice.
type outputs struct {
	mosaic *zarrout.Output // nil: it is not kept
	others []*zarrout.Output
	png    *picture // nil: there is none
	made   []mosaic.Product
}

// store returns where the mosaic goes; nil: it is not kept.
func (o *outputs) store() store.Writer {
	if o.mosaic == nil {
		return nil
	}
	return o.mosaic.Store
}

// begin begins the outputs of a slice.
func begin(ctx context.Context, r *cli.Run, in *input, name string) (o *outputs, err error) {
	o = &outputs{}
	place := func(path, ending string) string {
		if r.Bool("all") {
			return within(path, name+ending)
		}
		return path
	}
	const image = ".ome.zarr"
	if in.out != "" {
		if o.mosaic, err = zarrout.Create(ctx, r, place(in.out, image)); err != nil {
			return nil, err
		}
		o.mosaic.With()
	}
	if path := r.String("aip_png"); path != "" {
		file, err := r.OutputFile(place(path, ".png"))
		if err != nil {
			return nil, err
		}
		o.png = &picture{out: file}
	}
	if path := r.String("aip"); path != "" {
		out, err := o.add(ctx, r, place(path, image), o.project(r))
		if err != nil {
			return nil, err
		}
		if o.png != nil {
			out.With(o.png.out.Path())
		}
	}
	if path := r.String("resampled"); path != "" {
		feed, err := resampling(r)
		if err != nil {
			return nil, err
		}
		if _, err := o.add(ctx, r, place(path, image), feed); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// feed begins a product.
type feed = func(ctx context.Context, in *ngff.Image, out store.Writer, res oct.Resources) (*compute.Feed, error)

// add adds a product that is written at path, without files.
func (o *outputs) add(ctx context.Context, r *cli.Run, path string, f feed) (*zarrout.Output, error) {
	out, err := zarrout.Create(ctx, r, path)
	if err != nil {
		return nil, err
	}
	out.With()
	o.others = append(o.others, out)
	o.made = append(o.made, mosaic.Product{Out: out.Store, Feed: f})
	return out, nil
}

// project makes the projection.
func (o *outputs) project(r *cli.Run) feed {
	layout := stage.LayoutOf(r, projected)
	return func(ctx context.Context, in *ngff.Image, out store.Writer, res oct.Resources) (*compute.Feed, error) {
		var png *aip.Picture
		if o.png != nil {
			png = &aip.Picture{To: o.png, ScaleBar: true}
		}
		return aip.Feed(ctx, in, out, layout, png, res)
	}
}

// resampling makes the resampled mosaic.
func resampling(r *cli.Run) (feed, error) {
	to := resample.Options{Corner: r.String("resampled_sampling") == "corner"}
	var err error
	if to.Resolution, err = resample.Voxel(r.Floats("resampled_resolution")); err != nil {
		return nil, cli.Usage("--resampled_resolution %w", err)
	}
	layout := stage.LayoutOf(r, resampled)
	return func(ctx context.Context, in *ngff.Image, out store.Writer, res oct.Resources) (*compute.Feed, error) {
		return resample.Feed(ctx, in, out, to, layout, res)
	}, nil
}

// wrote notes what was written in the record.
func (o *outputs) wrote(r *cli.Run, result *mosaic.Result) error {
	if o.mosaic != nil {
		r.Wrote(datasets.DescribeImage(result.Image, o.mosaic.Path()))
	}
	for i, im := range result.Products {
		r.Wrote(datasets.DescribeImage(im, o.others[i].Path()))
	}
	return o.png.close()
}

// close closes the picture of a run that failed.
func (o *outputs) close() { _ = o.png.close() }

// picture is a file that is created when it is written: of many slices one is open at a time.
type picture struct {
	out  *atomic.Output
	file *os.File
}

func (p *picture) Write(b []byte) (n int, err error) {
	if p.file == nil {
		if p.file, err = p.out.Create(); err != nil {
			return 0, err
		}
	}
	return p.file.Write(b)
}

func (p *picture) close() error {
	if p == nil || p.file == nil {
		return nil
	}
	f := p.file
	p.file = nil
	return f.Close()
}
