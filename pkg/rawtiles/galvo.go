package rawtiles

import (
	"context"
	"errors"
	"fmt"
	"math"

	"strata/pkg/filter"
	"strata/pkg/meter"
	"strata/pkg/work"
)

// Galvo says where the A-lines of the mirror's way back lie in the frames of a slice.
type Galvo struct {
	Shift      int     // A-lines by which frames are to be rolled towards their end
	Confidence float64 // 0 to 1
	Tiles      int     // tiles that were bright enough to say so
}

// Applied returns the shift if its confidence reaches a threshold, or else 0.
func (g Galvo) Applied(threshold float64) int {
	if g.Confidence < threshold {
		return 0
	}
	return g.Shift
}

// GalvoOptions configures [DetectGalvo].
type GalvoOptions struct {
	Workers int   // goroutines, at least 1
	Mem     int64 // ceiling for buffers, bytes
	// Camera undoes a shift of the camera first, as [CameraShift] finds it.
	Camera bool
	Meter  *meter.Meter // may be nil
}

const (
	galvoTiles = 5  // tiles of a slice that are read
	galvoMean  = 20 // mean of a tile below which it says nothing
)

// DetectGalvo looks for the mirror's way back in up to five tiles from the middle of a slice. info returns the settings
// of tile i, such as [Tile.Info] of it. A slice whose tiles have no extra A-lines, or are too dark, has the zero value.
// It is the most confident answer of a tile, less confident if few of the others agree.
func DetectGalvo(ctx context.Context, s Slice, info func(i int) (Info, error), o GalvoOptions) (Galvo, error) {
	pick := galvoPick(len(s.Tiles))
	found := make([]Galvo, len(pick))
	extra := make([]int, len(pick))
	workers := max(1, min(o.Workers, len(pick)))
	err := work.Each(ctx, workers, len(pick), func(_, k int) error {
		i, err := info(pick[k])
		if err != nil || i.Extra == 0 {
			return err
		}
		extra[k] = i.Extra
		f, err := s.Tiles[pick[k]].Open(ctx, i, o.Meter)
		if err != nil {
			return err
		}
		defer f.Close()
		aip, err := f.Project(o.Mem / int64(workers))
		if err != nil {
			return err
		}
		if o.Camera {
			rollCamera(aip, i.Lines(), CameraShift(aip, i.Lines()))
		}
		if mean(aip) >= galvoMean {
			found[k].Tiles = 1
			found[k].Shift, found[k].Confidence = filter.GalvoShift(aip, i.Lines(), i.Extra)
		}
		return nil
	})
	if err != nil {
		return Galvo{}, err
	}
	return agreed(found, extra), nil
}

// agreed returns the most confident of the tiles' answers.
func agreed(found []Galvo, extra []int) (best Galvo) {
	best.Confidence = -1
	near, tiles := 0.0, 0
	width := 0
	for k, g := range found {
		if tiles += g.Tiles; g.Tiles > 0 && g.Confidence > best.Confidence {
			best, width = g, extra[k]
		}
	}
	if tiles == 0 {
		return Galvo{}
	}
	for _, g := range found {
		if g.Tiles > 0 && math.Abs(float64(g.Shift-best.Shift)) <= max(float64(width)/4, 5) {
			near++
		}
	}
	best.Confidence *= math.Sqrt(near / float64(tiles))
	best.Tiles = tiles
	return best
}

// galvoPick returns the indices of up to five of n tiles, spread over the middle 60 %.
func galvoPick(n int) (pick []int) {
	if n < 1 {
		return nil
	}
	first := int(0.2 * float64(n))
	last := max(int(0.8*float64(n))-1, first)
	count := min(galvoTiles, n)
	for k := range count {
		at := first
		if count > 1 {
			at += k * (last - first) / (count - 1)
		}
		if len(pick) == 0 || pick[len(pick)-1] != at {
			pick = append(pick, at)
		}
	}
	return pick
}

// CameraShift returns the brightest A-line of a tile's average intensity of shape (frame, A-line): in data whose camera
// ran apart from the mirror it is the first one of a frame.
func CameraShift(aip []float32, lines int) int {
	at := 0
	for i, v := range aip {
		if v > aip[at] {
			at = i
		}
	}
	return at % lines
}

// rollCamera rolls the average intensity of a tile so that the given A-line comes first, and replaces the first one of
// the first frame, where the camera began, by its neighbour.
func rollCamera(aip []float32, lines, shift int) {
	rolled := make([]float32, lines)
	for at := 0; at < len(aip); at += lines {
		row := aip[at:][:lines]
		copy(rolled, row[shift:])
		copy(rolled[lines-shift:], row[:shift])
		copy(row, rolled)
	}
	if len(aip) > 1 && lines > 1 {
		aip[0] = aip[1]
	}
}

// projectBytes is about how much Project reads at a time.
const projectBytes = 1 << 20

// ErrMemory is wrapped by errors of too little memory, which are not the tiles' fault.
var ErrMemory = errors.New("too little memory")

// Project returns the mean over z of all frames, those that repeat a place averaged: shape (frame, A-line). Voxels that
// are NaN or infinite are left out. Buffers of more than mem bytes are an error.
func (f *Frames) Project(mem int64) ([]float32, error) {
	i, lines := &f.Info, f.Info.Lines()
	frames := f.n / i.Repeat
	block := max(1, min(f.n, projectBytes/(4*f.FrameLen())))
	if need := 4 * (int64(frames)*int64(lines) + int64(block)*int64(f.FrameLen())); need > mem {
		return nil, fmt.Errorf("%s: projecting %d frames of %d A-lines needs %d MiB of buffers, there are %d MiB: %w", f.files[0].path, frames, lines, need>>20+1, mem>>20, ErrMemory)
	}
	aip := make([]float32, frames*lines)
	sums, counts := make([]float64, lines), make([]int, lines)
	buf := make([]float32, block*f.FrameLen())
	for at := 0; at < frames*i.Repeat; at += block {
		n := min(block, frames*i.Repeat-at)
		if err := f.Read(buf[:n*f.FrameLen()], at); err != nil {
			return nil, err
		}
		for k := range n {
			addFinite(sums, counts, buf[k*f.FrameLen():][:f.FrameLen()])
			if (at+k)%i.Repeat == i.Repeat-1 {
				row := aip[(at+k)/i.Repeat*lines:][:lines]
				for l := range row {
					row[l] = float32(sums[l] / float64(max(counts[l], 1)))
				}
				clear(sums)
				clear(counts)
			}
		}
	}
	return aip, nil
}

// addFinite adds the finite samples of each A-line of a frame, and counts them.
func addFinite(sums []float64, counts []int, frame []float32) {
	depth := len(frame) / len(sums)
	if filter.CountNonFinite(frame) == 0 {
		for l := range sums {
			sums[l] += filter.Sum(frame[l*depth:][:depth])
			counts[l] += depth
		}
		return
	}
	for l := range sums {
		var sum [4]float64 // which the processor adds up at the same time
		n := 0
		for i, v := range frame[l*depth:][:depth] {
			if v-v == 0 {
				sum[i&3] += float64(v)
				n++
			}
		}
		sums[l] += sum[0] + sum[1] + sum[2] + sum[3]
		counts[l] += n
	}
}

func mean(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x)
	}
	return sum / float64(max(len(v), 1))
}
