// Package tilescan cuts pictures that others made into the tiles of a scan whose truth is known: where each tile lies,
// and what stage, light and detector did to it.
package tilescan

import (
	"archive/zip"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // pictures
	_ "image/png"
	"io/fs"
	"math"
	"sync"
)

// Pictures are the pictures and volumes in wheels of scikit-image and nilearn.
type Pictures struct {
	wheels  []*zip.ReadCloser
	mu      sync.Mutex
	known   map[string]*Picture
	volumes map[string]*Volume
}

// Open opens wheels.
func Open(wheels ...string) (*Pictures, error) {
	p := &Pictures{known: map[string]*Picture{}, volumes: map[string]*Volume{}}
	for _, w := range wheels {
		z, err := zip.OpenReader(w)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", w, err), p.Close())
		}
		p.wheels = append(p.wheels, z)
	}
	return p, nil
}

// Close closes the wheels.
func (p *Pictures) Close() (err error) {
	for _, w := range p.wheels {
		err = errors.Join(err, w.Close())
	}
	return err
}

// open opens a file of any of the wheels.
func (p *Pictures) open(name string) (fs.File, error) {
	for _, w := range p.wheels {
		f, err := w.Open(name)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Picture is a picture in shades of grey, from 0 to 1.
type Picture struct {
	V    []float32
	H, W int
}

// photographs is the folder of scikit-image's wheel with its pictures.
const photographs = "skimage/data/"

// Get returns a picture whose sides are at least so many pixels: smaller ones are enlarged by a whole factor.
func (p *Pictures) Get(name string, least int) (*Picture, error) { return p.get(name, least, false) }

// Continued returns a picture whose sides are at least so many pixels: smaller ones are reflected at their borders, so
// that their detail is as fine as that of the picture.
func (p *Pictures) Continued(name string, least int) (*Picture, error) {
	return p.get(name, least, true)
}

func (p *Pictures) get(name string, least int, reflect bool) (*Picture, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := fmt.Sprint(name, " ", least, " ", reflect)
	if known := p.known[key]; known != nil {
		return known, nil
	}
	f, err := p.open(photographs + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	im, _, err := image.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out := grey(im)
	if k := (least + min(out.H, out.W) - 1) / min(out.H, out.W); k > 1 && reflect {
		out = out.continued(k)
	} else if k > 1 {
		out = out.enlarged(k)
	}
	p.known[key] = out
	return out, nil
}

// grey returns the luma of an image (ITU-R BT.601).
func grey(im image.Image) *Picture {
	b := im.Bounds()
	p := &Picture{make([]float32, b.Dx()*b.Dy()), b.Dy(), b.Dx()}
	for y := range p.H {
		for x := range p.W {
			r, g, b, _ := im.At(b.Min.X+x, b.Min.Y+y).RGBA()
			p.V[y*p.W+x] = float32((0.299*float64(r) + 0.587*float64(g) + 0.114*float64(b)) / 65535)
		}
	}
	return p
}

func (p *Picture) enlarged(k int) *Picture {
	q := &Picture{make([]float32, p.H*k*p.W*k), p.H * k, p.W * k}
	for y := range q.H {
		for x := range q.W {
			q.V[y*q.W+x] = p.At(float64(y)/float64(k), float64(x)/float64(k))
		}
	}
	return q
}

func (p *Picture) continued(k int) *Picture {
	q := &Picture{make([]float32, p.H*k*p.W*k), p.H * k, p.W * k}
	for y := range q.H {
		row := p.V[reflected(y, p.H)*p.W:][:p.W]
		for x := range q.W {
			q.V[y*q.W+x] = row[reflected(x, p.W)]
		}
	}
	return q
}

// At returns the picture between its pixels, by Catmull and Rom's cubic. Beyond its border it is reflected.
func (p *Picture) At(y, x float64) float32 {
	iy, ix := math.Floor(y), math.Floor(x)
	wy, wx := cubic(y-iy), cubic(x-ix)
	s := 0.0
	for a, v := range wy {
		row := p.V[reflected(int(iy)+a-1, p.H)*p.W:][:p.W]
		for b, u := range wx {
			s += v * u * float64(row[reflected(int(ix)+b-1, p.W)])
		}
	}
	return float32(s)
}

func cubic(t float64) [4]float64 {
	return [4]float64{((-t+2)*t - 1) * t / 2, ((3*t-5)*t*t + 2) / 2, ((-3*t+4)*t + 1) * t / 2, (t - 1) * t * t / 2}
}

func reflected(i, n int) int {
	for i < 0 || i >= n {
		if i < 0 {
			i = -i
		} else {
			i = 2*n - 2 - i
		}
	}
	return i
}

func (p *Picture) size() (h, w int) { return p.H, p.W }

func (p *Picture) at(_, y, x float64) (value float64, tissue bool) { return float64(p.At(y, x)), true }

func (p *Picture) depth(float64) float64 { return 0 }

// spread returns the mean and the standard deviation.
func (p *Picture) spread() (mean, deviation float64) {
	n := float64(len(p.V))
	for _, v := range p.V {
		mean += float64(v) / n
	}
	for _, v := range p.V {
		deviation += (float64(v) - mean) * (float64(v) - mean) / n
	}
	return mean, math.Sqrt(deviation)
}
