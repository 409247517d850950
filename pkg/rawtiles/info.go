package rawtiles

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"strata/pkg/smallfile"
)

// Info is the settings of a tile.
type Info struct {
	NX     int // A-lines of a frame that belong to the image
	NY     int // frames, after those that repeat a place are averaged
	Extra  int // A-lines of a frame that follow, while the mirror flies back
	Repeat int // frames for each place
	Depth  int // samples of an A-line
	// Width and Height are the lengths in µm of the image along x and y.
	Width, Height float64
	// Axial is the distance of the samples of an A-line in µm; 0: the text does not state it.
	Axial float64
	// Stage is the position of the stage in mm along (x, y, z), where Staged says that the text states it.
	Stage  [3]float64
	Staged [3]bool
}

// Lines returns the number of A-lines of a frame on disk.
func (i *Info) Lines() int { return i.NX + i.Extra }

// Voxel returns the distance of voxels in µm along the frames' A-lines (x) and from frame to frame (y).
func (i *Info) Voxel() (x, y float64) { return i.Width / float64(i.NX), i.Height / float64(i.NY) }

// Limits of what a text may state. Real values are far smaller.
const (
	mostCount = 1 << 20
	mostPlane = 1 << 30
	leastUM   = 1e-6
	mostUM    = 1e9
	mostMM    = 1e6
	// least and largest distance of samples that is plausible in µm: a value in mm or m is a mistake.
	leastAxial, mostAxial = 0.01, 1000
)

// axialKeys are the names under which programs have stated the distance of samples in µm.
var axialKeys = []string{"axial_resolution", "z_resolution", "axial_res", "dz"}

// Info reads info.txt of the tile.
func (t Tile) Info(ctx context.Context) (Info, error) {
	path := filepath.Join(t.Path, "info.txt")
	f, err := smallfile.Open(ctx, path)
	if err != nil {
		return Info{}, err
	}
	defer f.Close()
	return readInfo(f, path)
}

// readInfo parses an info.txt: lines of the form "key: value", in any order. nx, ny, n_extra, top_z, bottom_z, width
// and height are needed, and unknown keys are not looked at. name is used in errors.
func readInfo(r io.Reader, name string) (Info, error) {
	text, err := smallfile.Lines(r, name)
	if err != nil {
		return Info{}, err
	}
	p := infoText{name: name, at: map[string]entry{}}
	if err := p.split(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))); err != nil {
		return Info{}, err
	}
	return p.info()
}

// entry is the value of a key, and its line.
type entry struct {
	value string
	line  int
}

// infoText is the lines of an info.txt.
type infoText struct {
	name string
	at   map[string]entry
	err  error // of the first value that is wrong
}

func (p *infoText) split(text []byte) error {
	line := 0
	for raw := range bytes.Lines(text) {
		line++
		l := strings.TrimSpace(string(raw))
		if l == "" {
			continue
		}
		key, value, ok := strings.Cut(l, ": ")
		if !ok {
			if key, ok = strings.CutSuffix(l, ":"); !ok { // a key without a value
				return fmt.Errorf("%s:%d: %.100q: want \"key: value\"", p.name, line, l)
			}
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if before, ok := p.at[key]; ok && before.value != value {
			return fmt.Errorf("%s:%d: %s is %.100s, but %.100s on line %d", p.name, line, key, value, before.value, before.line)
		}
		p.at[key] = entry{value, line}
	}
	return nil
}

func (p *infoText) info() (Info, error) {
	i := Info{Repeat: 1, NX: p.whole("nx", 1, mostCount), NY: p.whole("ny", 1, mostCount), Extra: p.whole("n_extra", 0, mostCount)}
	top, bottom := p.whole("top_z", -mostPlane, mostPlane), p.whole("bottom_z", -mostPlane, mostPlane)
	i.Depth = bottom - top + 1
	if p.err == nil && (i.Depth < 1 || i.Depth > mostCount) {
		p.fail("bottom_z", "%d is %d planes from top_z %d (want 1 to %d)", bottom, i.Depth, top, mostCount)
	}
	i.Width, i.Height = p.number("width", leastUM, mostUM), p.number("height", leastUM, mostUM)
	if _, ok := p.at["n_repeat"]; ok {
		i.Repeat = p.whole("n_repeat", 1, mostCount)
	}
	for _, key := range axialKeys {
		if _, ok := p.at[key]; ok {
			i.Axial = p.number(key, leastAxial, mostAxial)
			break
		}
	}
	for d := range i.Stage {
		key := fmt.Sprintf("stage_%c_pos_mm", "xyz"[d])
		if _, ok := p.at[key]; ok {
			i.Stage[d], i.Staged[d] = p.number(key, -mostMM, mostMM), true
		}
	}
	if p.err != nil {
		return Info{}, p.err
	}
	return i, nil
}

// fail notes the first error, about the value of a key.
func (p *infoText) fail(key, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%s:%d: %s %s", p.name, p.at[key].line, key, fmt.Sprintf(format, args...))
	}
}

// text returns the value of a key that is needed.
func (p *infoText) text(key string) (string, bool) {
	e, ok := p.at[key]
	if !ok && p.err == nil {
		p.err = fmt.Errorf("%s: there is no %s", p.name, key)
	}
	return e.value, ok
}

func (p *infoText) whole(key string, least, most int) int {
	text, ok := p.text(key)
	if !ok {
		return least
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		p.fail(key, "is %.100q (want a whole number from %d to %d)", text, least, most)
		return least
	}
	return n
}

func (p *infoText) number(key string, least, most float64) float64 {
	text, ok := p.text(key)
	if !ok {
		return least
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= least && v <= most) {
		p.fail(key, "is %.100q (want a number from %g to %g)", text, least, most)
		return least
	}
	return v
}
