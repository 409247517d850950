package rawtiles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/meter"
)

// Frames reads the frames of a tile. It serves one goroutine at a time.
type Frames struct {
	Info  Info
	ctx   context.Context
	meter *meter.Meter
	files []frameFile
	n     int
	open  *os.File // files[at]; nil: none
	at    int
}

// frameFile is an image_*.bin with the number of its first frame.
type frameFile struct {
	path  string
	first int
}

// Open lists the files of the tile's frames and checks their lengths against its settings, which [Tile.Info] has read:
// every file has whole frames, and there are at least NY·Repeat. Reading is counted in the meter, which may be nil.
func (t Tile) Open(ctx context.Context, info Info, m *meter.Meter) (*Frames, error) {
	entries, err := os.ReadDir(t.Path)
	if err != nil {
		return nil, err
	}
	f := &Frames{Info: info, ctx: ctx, meter: m}
	frame := 4 * int64(info.Depth) * int64(info.Lines())
	for _, e := range entries { // ordered by name
		if !strings.HasPrefix(e.Name(), "image_") || !strings.HasSuffix(e.Name(), ".bin") {
			continue
		}
		path := filepath.Join(t.Path, e.Name())
		s, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !s.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: is not a regular file", path)
		}
		if s.Size()%frame != 0 {
			return nil, fmt.Errorf("%s: %d bytes are not whole frames of %d bytes (%d samples of %d A-lines, as info.txt says): the file is cut off, or info.txt is wrong",
				path, s.Size(), frame, info.Depth, info.Lines())
		}
		if s.Size()/frame > mostFrames-int64(f.n) {
			return nil, fmt.Errorf("%s: more than %d frames", path, mostFrames)
		}
		f.files = append(f.files, frameFile{path, f.n})
		f.n += int(s.Size() / frame)
	}
	if len(f.files) == 0 {
		return nil, fmt.Errorf("%s: there are no frames in this folder: want image_*.bin", t.Path)
	}
	if want := info.NY * info.Repeat; f.n < want {
		of := fmt.Sprintf("ny = %d", info.NY)
		if info.Repeat > 1 {
			of += fmt.Sprintf(" · n_repeat = %d", info.Repeat)
		}
		return nil, fmt.Errorf("%s: %d frames in %d files, fewer than the %d that info.txt says (%s)", t.Path, f.n, len(f.files), want, of)
	}
	return f, nil
}

// mostFrames limits the frames of a tile.
const mostFrames = 1 << 30

// Len returns the number of frames on disk.
func (f *Frames) Len() int { return f.n }

// FrameLen returns the number of float32 of a frame on disk.
func (f *Frames) FrameLen() int { return f.Info.Depth * f.Info.Lines() }

// Read reads the frames first … first+n−1 of shape (frame, A-line, z), where n is the length of dst in frames.
func (f *Frames) Read(dst []float32, first int) error {
	defer f.meter.Since(meter.Read, time.Now())
	size := f.FrameLen()
	if len(dst)%size != 0 || first < 0 || first > f.n-len(dst)/size {
		return fmt.Errorf("frames %d…%d of %d in buffers of %d values", first, first+len(dst)/size-1, f.n, len(dst))
	}
	for len(dst) > 0 {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		k := sort.Search(len(f.files), func(k int) bool { return f.files[k].first > first }) - 1
		end := f.n
		if k+1 < len(f.files) {
			end = f.files[k+1].first
		}
		n := min(len(dst)/size, end-first)
		if err := f.readFile(k, dst[:n*size], first-f.files[k].first); err != nil {
			return err
		}
		dst, first = dst[n*size:], first+n
	}
	return nil
}

// readFile reads frames of one file.
func (f *Frames) readFile(k int, dst []float32, first int) error {
	if f.open == nil || f.at != k {
		f.Close()
		file, err := os.Open(f.files[k].path)
		if err != nil {
			return err
		}
		f.open, f.at = file, k
	}
	b := dtype.Bytes(dst)
	n, err := f.open.ReadAt(b, 4*int64(first)*int64(f.FrameLen()))
	f.meter.AddRead(int64(n))
	if errors.Is(err, io.EOF) {
		if n < len(b) {
			return fmt.Errorf("%s: the file became shorter while it was read", f.files[k].path)
		}
		err = nil
	}
	return err
}

// Close closes the file that is open. Frames can be read again after it.
func (f *Frames) Close() {
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}
