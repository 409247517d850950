package qc

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"html/template"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/image/draw"
	"golang.org/x/sync/semaphore"

	"strata/pkg/oct"
	"strata/pkg/smallfile"
	"strata/pkg/work"
)

// PictureBytes is the default limit on the total size of a page's pictures, as embedded.
const PictureBytes = 12 << 20

// longestSide is the maximum size of an embedded picture in px.
const longestSide = 1800

// Picture is a picture of the page.
type Picture struct {
	Name   string
	Alt    string // text for readers who cannot see it
	Width  int    // as embedded
	Height int
	URL    template.URL // data: URL, made by Fit

	encoded    []byte // PNG or JPEG
	file       string // or where a PNG is, which is not held until it is needed
	bytes      int64  // of either
	mime       string
	projection bool
}

// loadPreviews reads PNG files.
func (r *Report) loadPreviews(ctx context.Context, list []found, mem int64) error {
	for _, f := range list {
		p, err := readPNG(ctx, f.path, mem)
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

// maxFile is the maximum size of a picture's file that is embedded unchanged.
const maxFile = 4 << 20

// readPNG checks that a file is a complete picture.
func readPNG(ctx context.Context, path string, mem int64) (*Picture, error) {
	opened, err := smallfile.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	f := opened.Regular()
	if f == nil {
		return nil, fmt.Errorf("%s: is a pipe or a device (must be a PNG file)", path)
	}
	c, err := png.DecodeConfig(f)
	if err != nil {
		return nil, fmt.Errorf("%s: no PNG: %w", path, err)
	}
	p := &Picture{Width: c.Width, Height: c.Height, file: path, mime: "image/png"}
	if need := p.decoded(); need > mem {
		return nil, fmt.Errorf("%s: %d × %d pixels are too many to embed (they take %d MiB, --mem grants %d MiB)", path, c.Width, c.Height, need>>20, mem>>20)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	if p.bytes, err = wholePNG(f); err != nil {
		return nil, fmt.Errorf("%s: broken PNG: %w", path, err)
	}
	return p, nil
}

// decoded returns the maximum memory of the pixels.
func (p *Picture) decoded() int64 { return 8 * int64(p.Width) * int64(p.Height) }

// wholePNG walks the chunks of a PNG to its end and verifies their checksums, which costs a small part of
// decoding it. It returns the total length.
func wholePNG(f io.Reader) (int64, error) {
	r := bufio.NewReader(f)
	if _, err := r.Discard(8); err != nil { // the signature
		return 0, err
	}
	n := int64(8)
	for {
		var head [8]byte // length, type
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		length := int64(binary.BigEndian.Uint32(head[:]))
		sum := crc32.NewIEEE()
		sum.Write(head[4:])
		if m, err := io.CopyN(sum, r, length); err != nil || m != length {
			return 0, io.ErrUnexpectedEOF
		}
		var stored [4]byte
		if _, err := io.ReadFull(r, stored[:]); err != nil {
			return 0, io.ErrUnexpectedEOF
		}
		if binary.BigEndian.Uint32(stored[:]) != sum.Sum32() {
			return 0, fmt.Errorf("wrong checksum of the chunk at byte %d", n)
		}
		n += 12 + length
		if string(head[4:]) == "IEND" {
			return n, nil
		}
	}
}

// newPicture encodes an image, smaller if it is larger than a page needs.
func newPicture(img image.Image) (*Picture, error) {
	p := &Picture{}
	return p, p.encode(shrink(img, longestSide))
}

// shrink returns an image whose longest side has at most the given number of pixels.
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

// quick compresses pictures that are made for the page. Of a long run nearly all become JPEGs, since there is no room
// for more.
var quick = png.Encoder{CompressionLevel: png.BestSpeed}

// encode stores an image as PNG.
func (p *Picture) encode(img image.Image) error {
	var b bytes.Buffer
	if err := quick.Encode(&b, img); err != nil {
		return err
	}
	size := img.Bounds().Size()
	p.encoded, p.bytes, p.mime, p.Width, p.Height = b.Bytes(), int64(b.Len()), "image/png", size.X, size.Y
	return nil
}

// embedded returns the size that n bytes take in the page.
func embedded(n int64) int64 { return (n + 2) / 3 * 4 }

// Src returns the src attribute with the embedded picture; a template would write each plus sign of it in
// five characters.
func (p *Picture) Src() template.HTMLAttr { return template.HTMLAttr(`src="` + string(p.URL) + `"`) }

// fits reports whether the picture can be embedded unchanged in the given number of bytes.
func (p *Picture) fits(most int64) bool {
	return embedded(p.bytes) <= most && p.bytes <= maxFile && max(p.Width, p.Height) <= longestSide
}

// jpegQuality is the quality of pictures for which there is no room as PNG, and leastPixel the minimum number
// of bytes per pixel of most of these.
const (
	jpegQuality = 87
	leastPixel  = 0.12
)

// fit makes the picture take at most the given number of bytes in the page: unchanged, as a JPEG, or as a
// smaller one.
func (p *Picture) fit(most int64) error {
	if p.encoded == nil {
		f, err := os.Open(p.file)
		if err != nil {
			return err
		}
		defer f.Close()
		b := make([]byte, p.bytes)
		if _, err := io.ReadFull(f, b); err != nil {
			return fmt.Errorf("%s: changed while it was read: %w", p.file, err)
		}
		p.encoded = b
	}
	if !p.fits(most) && p.mime == svgType {
		return errLarge
	}
	if !p.fits(most) {
		img, _, err := image.Decode(bytes.NewReader(p.encoded))
		if err != nil {
			return err
		}
		p.encoded = nil
		pixels := float64(p.Width) * float64(p.Height)
		room := 0.75 * float64(most) / leastPixel
		side := min(max(p.Width, p.Height), longestSide)
		side = max(32, min(side, int(float64(max(p.Width, p.Height))*math.Sqrt(room/pixels))))
		for {
			small := shrink(img, side)
			var b bytes.Buffer
			if err := jpeg.Encode(&b, small, &jpeg.Options{Quality: jpegQuality}); err != nil {
				return err
			}
			size := embedded(int64(b.Len()))
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

// Fit prepares all pictures of the page so that together they take at most budget bytes. Small ones stay
// unchanged and leave their share to the others, which share evenly; the picture of the result may take a
// quarter of all.
func (r *Report) Fit(ctx context.Context, budget int, res oct.Resources) error {
	all := slices.Clone(r.Previews)
	all = append(append(all, r.Drift...), r.Diagnosed...)
	for _, s := range r.Maps {
		for _, m := range s.Maps {
			all = append(all, m.Picture)
		}
	}
	slices.SortStableFunc(all, func(a, b *Picture) int { return cmp.Compare(a.bytes, b.bytes) })
	left := int64(budget)
	for _, list := range []*[]*Picture{&r.Drift, &r.Diagnosed} {
		*list = slices.DeleteFunc(*list, func(p *Picture) bool { // a drawing cannot be made smaller
			if p.mime != svgType || p.fits(left/int64(len(all))) {
				return false
			}
			r.Problems = append(r.Problems, fmt.Sprintf("%s: has no room among %d pictures in %d KiB: not shown", p.file, len(all), budget>>10))
			all = slices.DeleteFunc(all, func(q *Picture) bool { return q == p })
			return true
		})
	}
	rest := slices.Clone(all)
	leads := slices.DeleteFunc(slices.Clone(all), func(p *Picture) bool { return !p.Lead() })
	rest = slices.DeleteFunc(rest, (*Picture).Lead)
	for _, p := range leads {
		if err := p.fit(max(int64(budget)/4/int64(len(leads)), left/int64(len(all)))); err != nil {
			return fmt.Errorf("picture %s: %w", p.Name, err)
		}
		left -= int64(len(p.URL))
	}
	for len(rest) > 0 {
		p, share := rest[0], left/int64(len(rest))
		if embedded(p.bytes) > share { // and so are those that follow
			break
		}
		if err := p.fit(share); err != nil {
			return fmt.Errorf("picture %s: %w", p.Name, err)
		}
		rest, left = rest[1:], left-int64(len(p.URL))
	}
	// Pixels of as many at a time as memory holds: as decoded, and as made smaller.
	mem := semaphore.NewWeighted(max(1, res.Mem))
	return work.Share(ctx, res.Workers, len(rest), func(ctx context.Context, _ int, pictures iter.Seq[int]) error {
		for i := range pictures {
			p := rest[i]
			need := min(2*p.decoded(), max(1, res.Mem))
			if err := mem.Acquire(ctx, need); err != nil {
				return err
			}
			err := p.fit(left / int64(len(rest)))
			mem.Release(need)
			if err != nil {
				return fmt.Errorf("picture %s: %w", p.Name, err)
			}
		}
		return nil
	})
}
