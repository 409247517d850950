// Package view implements the command view, which shows images of any size in a browser.
package view

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/ngff"
	"strata/pkg/registration"
	"strata/pkg/smallfile"
	"strata/pkg/view"
	"strata/pkg/work"
)

// Maximum depth of the search in a folder, and maximum number of images listed.
const (
	folderDepth = 3
	mostEntries = 5000
)

// Command returns the command view.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "view",
		Usage: "look at images of any size in a browser",
		Description: "Serves a page with three linked cuts through an image to browsers on this machine, prints its address, and ends\n" +
			"with Ctrl-C. Reads only what the page shows. Given a folder, lists the images and reports in it.\n\n" +
			"The address contains a random token, without which nobody sees anything. Over SSH and in a SLURM job, view also\n" +
			"prints the line that makes the page reachable from your own machine.",
		Args: []cli.Arg{{Name: "IN", Usage: "OME-Zarr image, TIFF or CZI file: folder, .zip file, file, or http(s):// or s3:// URL; or a folder of images"}},
		Flags: []cli.Flag{
			{Name: "overlay", Value: "OTHER", Usage: "image to lay over IN at the place that its metadata give: as checkerboard, difference, flicker, curtain, blend or side by side"},
			{Name: "place", Value: "PATH", Usage: "where --overlay lies at first: a folder that register wrote for the pair, or a file saved by the page; keys move the overlay, and \"Save place\" saves where it lies for manual apply"},
			{Name: "port", Kind: cli.Int, Value: "N", Note: "any free one", Check: cli.Between(0, 65535), Usage: "port of 127.0.0.1 to listen on, 0 to 65535; 0 picks a free one"},
			{Name: "open", Kind: cli.Bool, Usage: "open the page in the default browser"},
			{Name: "allow_origin", Kind: cli.Strings, Value: "ORIGIN", Check: checkOrigin, Usage: "let web pages of this origin, such as https://hms-dbmi.github.io, read the stored images"},
			{Name: "neuroglancer", Kind: cli.Bool, Usage: "also print an address that shows the image in Neuroglancer, a page of " + neuroglancer + ", which may then read the stored images"},
			{Name: "slurm", Kind: cli.Bool, Usage: "start the viewer in a SLURM job by srun, with the partition of SLURM_PARTITION and the time of SLURM_TIMELIMIT"},
		},
		Shared:   cli.Resources,
		Defaults: cli.Defaults{"mem": "128MiB"},
		Examples: []cli.Example{
			{Command: "view volume.ome.zarr --open", Usage: "three cuts through a volume"},
			{Command: "view results", Usage: "all images and reports of a run"},
			{Command: "view slices/slice_z01.ome.zarr --overlay slices/slice_z02.ome.zarr", Usage: "how well two slices fit"},
			{Command: "view slices/slice_z01.ome.zarr --overlay slices/slice_z02.ome.zarr --place registered/slice_z02", Usage: "how well they are registered, to correct it by hand"},
			{Command: "view s3://bucket/scan.ome.zarr --port 8080", Usage: "an image in a bucket"},
			{Command: "view volume.ome.zarr --allow_origin https://neuroglancer-demo.appspot.com", Usage: "also in pages of that origin"},
			{Command: "view volume.ome.zarr --neuroglancer", Usage: "also in Neuroglancer"},
		},
		Run: cli.Do(run),
	}
}

// checkOrigin returns an error unless a value has the form in which browsers send an Origin.
func checkOrigin(v any) error {
	u, err := url.Parse(v.(string))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.String() != u.Scheme+"://"+u.Host || u.User != nil {
		return errors.New("is not an origin: want http:// or https:// and a host, such as https://hms-dbmi.github.io")
	}
	return nil
}

func run(ctx context.Context, r *cli.Run) error {
	if r.Bool("slurm") && os.Getenv("SLURM_JOB_ID") == "" {
		return submit(ctx, r)
	}
	entries, note, err := list(ctx, r)
	if err != nil {
		if note != "" {
			r.Warn("%s", note)
		}
		return err
	}
	o := view.Options{Entries: entries, First: view.Volume(entries), Overlay: -1, Workers: max(r.Options.Threads, 2), Origins: r.Strings("allow_origin"), Token: view.NewToken(),
		Title: shown(r.Arg("IN")), Version: cli.Version(), Warn: r.Warn,
		Open: func(ctx context.Context, path string) (*ngff.Image, error) { return stage.Browse(ctx, r, path) }}
	if other := r.String("overlay"); other != "" {
		o.Overlay = len(entries)
		o.Entries = append(entries, view.Entry{Path: other, Name: shown(other)})
	}
	if path := r.String("place"); path != "" {
		if o.Overlay < 0 {
			return cli.Usage("--place needs --overlay: it says where the overlay lies")
		}
		if o.Place, err = place(ctx, path); err != nil {
			return cli.BadInput(err)
		}
	}
	o.Mem = r.Options.Mem - r.Options.Reserved
	p := page{port: r.Int("port"), browser: r.Bool("open"), note: note, neuroglancer: r.Bool("neuroglancer")}
	if p.neuroglancer && !slices.Contains(o.Origins, neuroglancer) {
		o.Origins = append(o.Origins, neuroglancer)
	}
	return serveOn(ctx, r, o, p)
}

// page says how images are shown.
type page struct {
	port    int
	browser bool   // open one
	note    string // a warning behind the address; "": none

	neuroglancer bool // print its address, too
}

// Serve shows images until ctx ends: it opens the first, prints the address of the page, and opens a browser if asked
// to.
func Serve(ctx context.Context, r *cli.Run, o view.Options, browser bool) error {
	return serveOn(ctx, r, o, page{browser: browser})
}

func serveOn(ctx context.Context, r *cli.Run, o view.Options, p page) error {
	v := view.New(o)
	first := v.First()
	if err := openFirst(ctx, v, o.Overlay); err != nil {
		v.Close()
		return err
	}
	if p.neuroglancer && !v.Stored(ctx, first) {
		v.Close()
		return cli.Usage("--neuroglancer: %s is not stored as Zarr: zarr-tool import makes a copy that is", o.Title)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(p.port))
	if err != nil {
		v.Close()
		return fmt.Errorf("port %d: %w: give another --port, or none", p.port, err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if _, err := fmt.Fprintf(r.Stdout, "http://127.0.0.1:%d/%s/\n", port, o.Token); err != nil {
		return errors.Join(err, l.Close())
	}
	if p.neuroglancer {
		if _, err := fmt.Fprintln(r.Stdout, inNeuroglancer(fmt.Sprintf("http://127.0.0.1:%d/%s/%s", port, o.Token, view.StoredAt(first)), o.Entries[first].Name)); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	if p.note != "" {
		r.Warn("%s", p.note)
	}
	if line := tunnel(port, os.Getenv); line != "" {
		r.Log.Info().Msg("on your own machine, run this, then open the address there: " + line)
	}
	r.Log.Info().Msgf("%s: Ctrl-C ends the viewer", count(o.Entries))
	return present(ctx, r, v, l, p.browser)
}

// present serves the page until ctx ends. If browser is true, it opens a browser, which may load the page at once.
func present(ctx context.Context, r *cli.Run, v *view.Viewer, l net.Listener, browser bool) error {
	g, ctx := work.WithContext(ctx)
	if browser {
		target, close, err := entrance(v, l.Addr(), view.TellsUsers(l.Addr()))
		if err == nil {
			defer close()
			g.Go(func() error {
				if err := browse(ctx, target); err != nil {
					r.Warn("no browser could be opened: %v", err)
				}
				return nil
			})
		} else {
			r.Warn("no browser could be opened: %v", err)
		}
	}
	g.Go(func() error { return v.Serve(ctx, l) })
	return g.Wait()
}

// place reads where an overlay lies: from a registration's folder or a saved file.
func place(ctx context.Context, path string) (registration.Placed, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		p, err := registration.OpenPair(ctx, path)
		if err != nil {
			return registration.Placed{}, err
		}
		return registration.PlacedBy(*p.Transform, p.Offsets), nil
	}
	text, err := smallfile.Read(ctx, path)
	if err != nil {
		return registration.Placed{}, err
	}
	p, err := registration.ReadPlacement(bytes.NewReader(text), path)
	if err != nil {
		return registration.Placed{}, err
	}
	return p.Placed, nil
}

// openFirst opens the image shown first, and the one laid over it, if any.
func openFirst(ctx context.Context, v *view.Viewer, overlay int) error {
	if err := v.Source(ctx, v.First()); err != nil {
		return cli.BadInput(err)
	}
	if overlay >= 0 {
		return cli.BadInput(v.Source(ctx, overlay))
	}
	return nil
}

// count describes the list in words.
func count(entries []view.Entry) string {
	images, pages := 0, 0
	for _, e := range entries {
		if e.Page {
			pages++
		} else {
			images++
		}
	}
	text := strconv.Itoa(images) + " image"
	if images != 1 {
		text += "s"
	}
	if pages > 0 {
		text += ", " + strconv.Itoa(pages) + " report"
	}
	if pages > 1 {
		text += "s"
	}
	return text
}

// shown returns a path or address as it may be displayed: its last part, without a query.
func shown(in string) string {
	name, _, _ := strings.Cut(in, "?")
	if abs, err := filepath.Abs(name); err == nil && !strings.Contains(name, "://") {
		name = abs
	}
	return filepath.Base(address.Address(strings.TrimRight(name, "/")).String())
}
