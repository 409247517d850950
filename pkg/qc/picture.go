package qc

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"image"
	"image/jpeg"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/image/draw"
)

// PictureBytes is how much the pictures of a page take together by default, as
// embedded.
const PictureBytes = 12 << 20

// longestSide is how large an embedded picture is at most, px.
const longestSide = 1800

// Picture is a picture of the page.
type Picture struct {
	Name   string
	Alt    string // what it shows, for those who do not see it
	Width  int    // as embedded
	Height int
	URL    template.URL // data: URL, made by Fit

	encoded    []byte // PNG or JPEG
	mime       string
	projection bool
}

// loadPreviews reads PNG files.
func (r *Report) loadPreviews(list []found, mem int64) error {
	for _, f := range list {
		p, err := readPNG(f.path, mem)
		if err != nil {
			if err := r.unusable(f, err); err != nil {
				return err
			}
			continue
		}
		p.Name = strings.TrimSuffix(filepath.Base(f.path), filepath.Ext(f.path))
		p.Alt = "Preview of " + p.Name
		if folder := filepath.Dir(f.path); filepath.Base(folder) == "aip" || filepath.Base(filepath.Dir(folder)) == "aip" {
			p.projection = true
			p.Alt = "Average intensity projection of " + p.Name
		}
		r.Previews = append(r.Previews, p)
	}
	return nil
}

// readPNG reads a picture and makes it no larger than a page needs.
func readPNG(path string, mem int64) (*Picture, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := png.DecodeConfig(f)
	if err != nil {
		return nil, fmt.Errorf("%s: no PNG: %w", path, err)
	}
	if need := int64(c.Width) * int64(c.Height) * 8; need > mem {
		return nil, fmt.Errorf("%s: %d × %d pixels are too many to embed (they take %d MiB, --mem grants %d MiB)", path, c.Width, c.Height, need>>20, mem>>20)
	}
	if _, err := f.Seek(0, 0); err != nil {
		return nil, err
	}
	img, err := png.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: broken PNG: %w", path, err)
	}
	if size := img.Bounds().Size(); max(size.X, size.Y) <= longestSide {
		if b, err := read(path, 4<<20); err == nil { // as it is
			return &Picture{Width: size.X, Height: size.Y, encoded: b, mime: "image/png"}, nil
		}
	}
	return newPicture(img)
}

// newPicture encodes an image, smaller if it is larger than a page needs.
func newPicture(img image.Image) (*Picture, error) {
	p := &Picture{}
	return p, p.encode(shrink(img, longestSide))
}

// shrink makes an image whose longest side has at most so many pixels.
func shrink(img image.Image, most int) image.Image {
	size := img.Bounds().Size()
	longest := max(size.X, size.Y)
	if longest <= most {
		return img
	}
	k := float64(most) / float64(longest)
	side := func(n int) int { return max(1, int(math.Round(float64(n)*k))) }
	dst := image.NewRGBA(image.Rect(0, 0, side(size.X), side(size.Y)))
	draw.CatmullRom.Scale(dst, dst.Rect, img, img.Bounds(), draw.Src, nil)
	return dst
}

// encode stores an image as PNG.
func (p *Picture) encode(img image.Image) error {
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		return err
	}
	size := img.Bounds().Size()
	p.encoded, p.mime, p.Width, p.Height = b.Bytes(), "image/png", size.X, size.Y
	return nil
}

// embedded is what n bytes take in the page.
func embedded(n int) int { return base64.StdEncoding.EncodedLen(n) }

// fit makes the picture take at most so many bytes in the page: as it is, as a
// JPEG, or as a smaller one.
func (p *Picture) fit(most int) error {
	if embedded(len(p.encoded)) > most {
		img, _, err := image.Decode(bytes.NewReader(p.encoded))
		if err != nil {
			return err
		}
		for side := max(p.Width, p.Height); ; {
			small := shrink(img, side)
			var b bytes.Buffer
			if err := jpeg.Encode(&b, small, &jpeg.Options{Quality: 87}); err != nil {
				return err
			}
			size := embedded(b.Len())
			if size <= most || side <= 32 {
				at := small.Bounds().Size()
				p.encoded, p.mime, p.Width, p.Height = b.Bytes(), "image/jpeg", at.X, at.Y
				break
			}
			// bytes go with the pixels, about
			side = max(32, int(float64(side)*min(0.95, 0.97*math.Sqrt(float64(most)/float64(size)))))
		}
	}
	// Made of base64 characters and a type chosen above.
	p.URL = template.URL("data:" + p.mime + ";base64," + base64.StdEncoding.EncodeToString(p.encoded))
	p.encoded = nil
	return nil
}

// Fit makes all pictures of the page ready, so that together they take at most so
// many bytes. Small ones stay as they are, and leave their share to the others.
func (r *Report) Fit(budget int) error {
	all := slices.Clone(r.Previews)
	for _, s := range r.Maps {
		for _, m := range s.Maps {
			all = append(all, m.Picture)
		}
	}
	slices.SortStableFunc(all, func(a, b *Picture) int { return cmp.Compare(len(a.encoded), len(b.encoded)) })
	for i, p := range all {
		if err := p.fit(budget / (len(all) - i)); err != nil {
			return fmt.Errorf("picture %s: %w", p.Name, err)
		}
		budget -= len(p.URL)
	}
	return nil
}
