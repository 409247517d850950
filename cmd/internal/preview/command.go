// Package preview implements the command preview, which draws an OME-Zarr image as a PNG or JPEG.
package preview

import (
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/stage"
	"strata/pkg/colormap"
	"strata/pkg/meter"
	"strata/pkg/oct"
	"strata/pkg/preview"
	"strata/pkg/runrecord"
)

// Command returns the command preview.
func Command() *cli.Command {
	o := preview.Defaults()
	return &cli.Command{
		Name:  "preview",
		Usage: "draw a picture of an OME-Zarr image, a TIFF or a CZI file",
		Description: "Draws a 3-D image as three orthogonal cuts (or projections) side by side in true proportions, and a 2-D image as\n" +
			"it is, with a scale bar and the range of values. The values between two percentiles are spread over the colours;\n" +
			"NaN is ignored. Channels to which the image gives colours are drawn together; a slide scan keeps its colours.\n\n" +
			"Cuts read only the chunks that they cross.",
		Args: []cli.Arg{
			{Name: "IN", Usage: "OME-Zarr image (2-D or 3-D), TIFF or CZI file: folder, .zip file, file, or http(s):// or s3:// URL"},
			{Name: "OUT", Usage: "picture to write: .png, or .jpg (quality 90)"},
		},
		Shared: cli.Resources | cli.Outputs | cli.Inputs,
		Flags: []cli.Flag{
			{Name: "level", Default: "auto", Value: "auto|N", Check: checkLevel, Usage: "pyramid level to draw, from 0; auto takes the finest that fits --max_size"},
			{Name: "at", Kind: cli.Ints, Value: "Z,Y,X", Note: "the centre", Check: cli.AtLeast(0), Usage: "voxel of level 0 in which the three cuts cross"},
			cli.Bind(&o.Projection, cli.Flag{Name: "projection", Choices: []string{preview.None, preview.AIP, preview.MIP}, Usage: "draw projections of the whole image, its average (aip) or its maximum (mip), instead of cuts (none)"}),
			{Name: "cuts", Kind: cli.Bool, Hidden: true, Usage: "the same as --projection none"},
			{Name: "percentiles", Kind: cli.Floats, Default: "0.1,99.9", Value: "LO,HI", Check: cli.Between(0, 100), Usage: "percentiles of the values that get the first and the last colour, 0 to 100"},
			{Name: "window", Kind: cli.Floats, Value: "LO,HI", Note: "from --percentiles", Usage: "values that get the first and the last colour"},
			cli.Bind(&o.Colormap, cli.Flag{Name: "colormap", Choices: colormap.Names(), Usage: "colours for an image, or a channel, that has none of its own"}),
			{Name: "channel", Kind: cli.Int, Value: "N", Note: "all channels with a colour, else the first", Check: cli.AtLeast(0), Usage: "draw only this channel, from 0, in the colours of --colormap"},
			cli.Bind(&o.MaxSize, cli.Flag{Name: "max_size", Value: "PX", Check: cli.Between(64, 1<<15), Usage: "longest side of the picture in pixels, 64 to 32768"}),
			cli.Bind(&o.ScaleBar, cli.Flag{Name: "scale_bar", Usage: "draw a scale bar in µm below the picture"}),
			cli.Bind(&o.Labels, cli.Flag{Name: "labels", Usage: "write the title, captions, positions of the cuts and a colour bar"}),
			{Name: "thumbnail", Kind: cli.Bool, Usage: "write the picture of the slide that a CZI file contains, instead of drawing its image"},
			{Name: "title", Value: "TEXT", Note: "the image's file name", Usage: "title above the picture"},
		},
		Examples: []cli.Example{
			{Command: "preview volume.ome.zarr volume.png", Usage: "three cuts through the centre"},
			{Command: "preview volume.ome.zarr top.png --projection mip --colormap magma", Usage: "maximum intensity projections"},
			{Command: "preview volume.ome.zarr a.png --at 120,2048,1024 --level 1 --window 0,4000", Usage: "through a given voxel, at a given level and range of values"},
			{Command: "preview scan.svs scan.png", Usage: "a slide scan"},
			{Command: "preview scan.czi slide.jpg --thumbnail", Usage: "the scanner's own picture of the slide"},
			{Command: "preview aip_z03.ome.zarr aip.png --no-labels --no-scale_bar --max_size 4096", Usage: "the image alone, without text or scale bar"},
		},
		Run: cli.Do(func(ctx context.Context, r *cli.Run) error { return run(ctx, r, o) }),
	}
}

// encoders maps file name extensions to functions that write pictures.
var encoders = map[string]func(io.Writer, image.Image) error{".png": png.Encode, ".jpg": encodeJPEG, ".jpeg": encodeJPEG}

func encodeJPEG(w io.Writer, m image.Image) error {
	return jpeg.Encode(w, m, &jpeg.Options{Quality: 90})
}

func checkLevel(v any) error {
	if n, err := strconv.Atoi(v.(string)); v != "auto" && (err != nil || n < 0) {
		return errors.New("is neither auto nor a whole number from 0 on")
	}
	return nil
}

func run(ctx context.Context, r *cli.Run, o preview.Options) error {
	if err := others(r, &o); err != nil {
		return err
	}
	encode := encoders[strings.ToLower(filepath.Ext(r.Arg("OUT")))]
	if encode == nil {
		return cli.Usage("output %s: want a name that ends in .png, .jpg or .jpeg", r.Arg("OUT"))
	}
	if r.Bool("thumbnail") {
		return thumbnail(ctx, r, encode)
	}
	in, err := stage.Open(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	out, err := r.OutputFile(r.Arg("OUT"))
	if err != nil {
		return err
	}
	res := oct.Resources{Workers: r.Options.Threads, Mem: r.Options.Mem - r.Options.Reserved, Meter: r.Meter, Warn: func(m string) { r.Warn("%s", m) }}
	if o.Projection != preview.None { // the whole image is read, which may take a while
		task := r.Progress("project", 0)
		defer task.Done()
		res.Progress = task.Add
	}
	p, err := preview.Render(ctx, in, o, res)
	if err != nil {
		if errors.Is(err, preview.ErrOptions) {
			return cli.Usage("%w", err)
		}
		return stage.Failed(err)
	}
	began := time.Now()
	if err := out.Write(func(w io.Writer) error { return encode(w, p.Image) }); err != nil {
		return err
	}
	r.Meter.Since(meter.Encode, began)
	if info, err := os.Stat(out.Work()); err == nil {
		r.Meter.AddWritten(info.Size())
	}
	r.Read(datasets.Describe(in.Levels[p.Level].Array, r.Arg("IN")))
	size := p.Image.Rect.Size()
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path()), Shape: []int{size.Y, size.X, 3}, DType: "uint8"})
	r.Conclude("level %d, %.4g µm a pixel, values %.6g to %.6g", p.Level, p.Pixel, p.Window[0], p.Window[1])
	return nil
}

// others sets the options that no flag is bound to, and returns an error for contradictory flags.
func others(r *cli.Run, o *preview.Options) error {
	o.At, o.Title = r.Ints("at"), title(r)
	if r.IsSet("channel") {
		o.Channel = r.Int("channel")
	}
	if level := r.String("level"); level != "auto" {
		o.Level, _ = strconv.Atoi(level) // checked
	}
	if r.Bool("cuts") && o.Projection != preview.None {
		return cli.Usage("--cuts contradicts --projection %s: give one of them", o.Projection)
	}
	if o.At != nil && o.Projection != preview.None {
		return cli.Usage("--at contradicts --projection %s: a projection is not cut", o.Projection)
	}
	p, err := pair(r, "percentiles")
	if err != nil {
		return err
	}
	o.Percentiles = *p
	if o.Window, err = pair(r, "window"); err != nil {
		return err
	}
	if o.Window != nil && r.IsSet("percentiles") {
		return cli.Usage("--window contradicts --percentiles: give one of them")
	}
	return nil
}

// pair returns the two numbers of a flag, the smaller of which must come first, or nil if it is not set.
func pair(r *cli.Run, flag string) (*[2]float64, error) {
	v := r.Floats(flag)
	switch {
	case v == nil:
		return nil, nil
	case len(v) != 2:
		return nil, cli.Usage("--%s has %d numbers: want two, the smaller first", flag, len(v))
	case v[0] >= v[1]:
		return nil, cli.Usage("--%s %v,%v: want the smaller number first", flag, v[0], v[1])
	}
	return &[2]float64{v[0], v[1]}, nil
}

// title returns the text above the picture.
func title(r *cli.Run) string {
	if r.IsSet("title") {
		return r.String("title")
	}
	in, _, _ := strings.Cut(r.Arg("IN"), "?") // of an address, nothing that may be secret
	name := filepath.Base(filepath.Clean(address.Address(in).String()))
	for _, end := range []string{".zip", ".zarr", ".tif", ".tiff", ".svs", ".ome"} {
		if short := strings.TrimSuffix(name, end); short != "" {
			name = short
		}
	}
	return name
}
