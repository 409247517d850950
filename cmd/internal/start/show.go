package start

import (
	"context"
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"strata/cmd/internal/view"
	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/preview"
	"strata/pkg/runrecord"
	"strata/pkg/survey"
	server "strata/pkg/view"
)

// pictureFile begins the file of --preview; nil: there is none.
func pictureFile(r *cli.Run) (*atomic.Output, error) {
	if file := r.String("preview"); file != "" && strings.ToLower(filepath.Ext(file)) != ".png" {
		return nil, cli.Usage("--preview %s: want a name that ends in .png", file)
	}
	return r.OptionalFile("preview")
}

// show shows what was found: in the browser if somebody sees it, or as a file, which may be nil.
func show(ctx context.Context, r *cli.Run, f *survey.Finding, file *atomic.Output) error {
	if file == nil && (r.Bool("json") || !r.ToTerminal() && !r.IsSet("browser")) {
		return nil
	}
	if f.Image() == "" && !f.Previewed() {
		if file != nil {
			return cli.BadInputf("--preview %s: there is nothing to draw until the flags that are missing are given", file.Path())
		}
		return nil
	}
	name, open := filepath.Base(f.Image()), func(ctx context.Context, _ string) (*ngff.Image, error) { return stage.Browse(ctx, r, f.Image()) }
	if f.Previewed() {
		im, n, err := f.Preview(ctx)
		if err != nil {
			return cli.BadInput(err)
		}
		r.Log.Info().Msgf("preview of %d tiles, where the grid and the overlap place them", n)
		name, open = "preview", func(context.Context, string) (*ngff.Image, error) { return im, nil }
	}
	if file != nil {
		return draw(ctx, r, file, name, open)
	}
	return view.Serve(ctx, r, server.Options{Entries: []server.Entry{{Path: name, Name: name}}, Overlay: -1, Workers: max(r.Options.Threads, 2), Token: server.NewToken(),
		Title: name, Version: cli.Version(), Warn: r.Warn, Mem: r.Options.Mem - r.Options.Reserved, Open: open}, r.Bool("browser"))
}

// draw writes the preview to a PNG file.
func draw(ctx context.Context, r *cli.Run, out *atomic.Output, name string, open func(context.Context, string) (*ngff.Image, error)) error {
	im, err := open(ctx, name)
	if err != nil {
		return err
	}
	o := preview.Defaults()
	o.Title, o.MaxSize = name, 2048
	p, err := preview.Render(ctx, im, o, oct.Resources{Workers: r.Options.Threads, Mem: r.Options.Mem - r.Options.Reserved, Meter: r.Meter, Warn: func(m string) { r.Warn("%s", m) }})
	if err != nil {
		return stage.Failed(err)
	}
	if err := out.Write(func(w io.Writer) error { return png.Encode(w, p.Image) }); err != nil {
		return err
	}
	size := p.Image.Rect.Size()
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path()), Shape: []int{size.Y, size.X, 3}, DType: "uint8"})
	return nil
}
