package preview

import (
	"bytes"
	"context"
	"image"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/address"
	"strata/pkg/cli"
	"strata/pkg/czi"
	"strata/pkg/czi/czistore"
	"strata/pkg/images"
	"strata/pkg/jpeg"
	"strata/pkg/runrecord"
	"strata/pkg/zarr/store"
)

// mostThumbnail is the maximum number of pixels of a thumbnail, which is decoded in memory.
const mostThumbnail = 1 << 26

// thumbnail writes the picture of the slide that a CZI file contains, without re-encoding if OUT is a JPEG file.
func thumbnail(ctx context.Context, r *cli.Run, encode func(io.Writer, image.Image) error) error {
	stream, err := readThumbnail(ctx, r, r.Arg("IN"))
	if err != nil {
		return err
	}
	picture, err := decodeThumbnail(ctx, stream)
	if err != nil {
		return cli.BadInputf("%s: attachment \"Thumbnail\": %w", r.Arg("IN"), err)
	}
	out, err := r.OutputFile(r.Arg("OUT"))
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return encode(w, picture) }
	if filepath.Ext(strings.ToLower(r.Arg("OUT"))) != ".png" {
		write = func(w io.Writer) error {
			_, err := io.Copy(w, bytes.NewReader(stream))
			return err
		}
	}
	if err := out.Write(write); err != nil {
		return err
	}
	size := picture.Bounds().Size()
	r.Wrote(runrecord.Dataset{Path: address.Address(out.Path()), Shape: []int{size.Y, size.X, 3}, DType: "uint8"})
	return nil
}

// readThumbnail reads the attachment with the picture.
func readThumbnail(ctx context.Context, r *cli.Run, name string) ([]byte, error) {
	path, err := r.Image(name)
	if err != nil {
		return nil, err
	}
	st, _, err := images.Open(ctx, path, store.Settings(r.Options.HTTP))
	if err != nil {
		return nil, cli.BadInput(err)
	}
	defer st.Close()
	slide, ok := st.(*czistore.Store)
	if !ok {
		return nil, cli.Usage("--thumbnail is for CZI files, and %s is not one", name)
	}
	all, err := slide.File().Attachments(ctx)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	i := slices.IndexFunc(all, func(a czi.Attachment) bool { return a.Name == "Thumbnail" })
	switch {
	case i < 0:
		return nil, cli.BadInputf("%s: has no thumbnail", name)
	case !strings.EqualFold(all[i].Type, "JPG"):
		return nil, cli.BadInputf("%s: attachment \"Thumbnail\": content of type %q is not supported (must be \"JPG\")", name, all[i].Type)
	}
	b, err := slide.File().ReadAttachment(ctx, all[i])
	if err != nil {
		return nil, cli.BadInput(err)
	}
	return b, nil
}

// decodeThumbnail decodes a JPEG stream, grey or in colours.
func decodeThumbnail(ctx context.Context, stream []byte) (image.Image, error) {
	h, err := jpeg.ReadHeader(stream)
	if err != nil {
		return nil, err
	}
	c := jpeg.Config{Width: h.Width, Height: h.Height, Components: h.Components, Color: jpeg.ToRGB}
	frame := image.Rect(0, 0, h.Width, h.Height)
	var d jpeg.Decoder
	if h.Width*h.Height > mostThumbnail || h.Components != 1 && h.Components != 3 {
		return nil, cli.BadInputf("%d × %d pixels of %d components (at most %d pixels of 1 or 3)", h.Width, h.Height, h.Components, mostThumbnail)
	}
	b := make([]byte, h.Width*h.Height*h.Components)
	if _, err := d.Decode(ctx, b, nil, stream, c); err != nil {
		return nil, err
	}
	if h.Components == 1 {
		return &image.Gray{Pix: b, Stride: h.Width, Rect: frame}, nil
	}
	m := image.NewNRGBA(frame)
	for i := range h.Width * h.Height {
		copy(m.Pix[4*i:], b[3*i:3*i+3])
		m.Pix[4*i+3] = 255
	}
	return m, nil
}
