package codec

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec/unxz"
)

// lzmaCodec is numcodecs' LZMA, which is Python's: a container, and the filters
// in it.
type lzmaCodec struct {
	described
	format, check int
	preset        *int
	filters       []lzmaFilter
}

// Python's numbers of containers.
const (
	lzmaAuto = iota
	lzmaXZ
	lzmaAlone
	lzmaRaw
)

// filterLZMA1 is the number of the filter that does not exist in .xz files.
const filterLZMA1 = 1<<62 | 1

// lzmaFilter is one of Python's dictionaries that describe a filter, without the settings of the encoder's
// effort.
type lzmaFilter struct {
	ID       uint64          `json:"id"`
	Preset   *int64          `json:"preset,omitempty"`
	Dist     *int            `json:"dist,omitempty"`
	DictSize *int64          `json:"dict_size,omitempty"`
	LC       *int            `json:"lc,omitempty"`
	LP       *int            `json:"lp,omitempty"`
	PB       *int            `json:"pb,omitempty"`
	Mode     json.RawMessage `json:"mode,omitempty"`
	NiceLen  json.RawMessage `json:"nice_len,omitempty"`
	MF       json.RawMessage `json:"mf,omitempty"`
	Depth    json.RawMessage `json:"depth,omitempty"`
}

// LZMA returns a codec that compresses to an .xz file with a CRC-64.
func LZMA() Codec { return (&lzmaCodec{format: lzmaXZ, check: -1}).withSettings() }

func parseLZMA(c *config, _ dtype.Type) Codec {
	l := &lzmaCodec{format: c.integer("format", lzmaAuto, lzmaRaw, lzmaXZ), check: c.integer("check", -1, 16, -1)}
	if p := c.integer("preset", 0, math.MaxUint32, -1); p >= 0 {
		l.preset = &p
	}
	if v, ok := c.takeValue("filters"); ok {
		d := json.NewDecoder(bytes.NewReader(v))
		d.DisallowUnknownFields()
		if err := d.Decode(&l.filters); err != nil {
			c.fail("\"filters\" is %s (must be a list of Python's LZMA filters)", abbreviate(v))
		}
	}
	if l.format == lzmaRaw {
		if err := l.checkRaw(); err != nil {
			c.fail("%w", err)
		}
	}
	return l.withSettings()
}

// withSettings lists the settings, which are all there.
func (l *lzmaCodec) withSettings() *lzmaCodec {
	l.described = described{"lzma", map[string]any{"format": l.format, "check": l.check, "preset": l.preset, "filters": l.filters}}
	return l
}

func (l *lzmaCodec) EncodedSize(n int) (lo, hi int) { return 1, mem.Sum(n, n/64, 4096) }

// Decode reads one or several .xz streams, one .lzma stream, or raw LZMA. The dictionary is as large as the
// output needs, not as large as the file claims.
func (l *lzmaCodec) Decode(s *Scratch, dst, src []byte) (int, error) {
	n, err := l.decode(s.context(), dst, src)
	if errors.Is(err, unxz.ErrTooLong) {
		return 0, errTooLong(len(dst))
	}
	return n, err
}

func (l *lzmaCodec) decode(ctx context.Context, dst, src []byte) (int, error) {
	switch {
	case l.format == lzmaRaw:
		return l.decodeRaw(ctx, dst, src)
	case l.format == lzmaXZ, l.format == lzmaAuto && bytes.HasPrefix(src, []byte(unxz.Magic)):
		return unxz.XZ(ctx, dst, src)
	}
	const header = 13 // properties, dictionary size, decoded size
	if len(src) < header {
		return 0, errShort(len(src))
	}
	return unxz.LZMA1(ctx, dst, src[header:], src[0], int64(binary.LittleEndian.Uint32(src[1:])), binary.LittleEndian.Uint64(src[5:]))
}

// readOnly: only the two containers can be written, with their standard filter.
func (l *lzmaCodec) readOnly() error {
	if l.format == lzmaRaw || len(l.filters) > 0 {
		return fmt.Errorf("lzma with filters %w", ErrReadOnly)
	}
	switch l.check {
	case -1, 0, unxz.CRC32, unxz.CRC64, unxz.SHA256:
		return nil
	}
	return fmt.Errorf("lzma with check %d %w", l.check, ErrReadOnly)
}

func (l *lzmaCodec) Encode(_ *Scratch, dst, src []byte) ([]byte, error) {
	if err := l.readOnly(); err != nil {
		return nil, err
	}
	out := appender{dst[:0]}
	window := min(max(len(src), lzma.MinDictCap), 8<<20)
	var w io.WriteCloser
	var err error
	if l.format == lzmaAlone {
		w, err = lzma.WriterConfig{DictCap: window}.NewWriter(&out)
	} else {
		w, err = xz.WriterConfig{DictCap: window, CheckSum: byte(max(0, l.check)), NoCheckSum: l.check == 0}.NewWriter(&out)
	}
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	return out.b, w.Close()
}

// checkRaw reports whether the filters of a raw stream can be read.
func (l *lzmaCodec) checkRaw() error {
	if len(l.filters) == 0 {
		return errors.New("\"filters\" is missing (a raw stream does not say what is in it)")
	}
	for i, f := range l.filters {
		last := i == len(l.filters)-1
		switch {
		case f.ID == unxz.FilterDelta && !last:
			if d := f.distance(); d < 1 || d > 256 {
				return fmt.Errorf("filters[%d]: distance %d (must be 1 to 256)", i, d)
			}
		case last && (f.ID == unxz.FilterLZMA2 || f.ID == filterLZMA1):
			for _, p := range []*int{f.LC, f.LP, f.PB} {
				if p != nil && (*p < 0 || *p > 4) {
					return fmt.Errorf("filters[%d]: properties lc, lp, pb must be 0 to 4", i)
				}
			}
		default:
			return fmt.Errorf("filters[%d]: id %d is not supported (must be delta, %d, and at the end LZMA2, %d, or LZMA1, %d)",
				i, f.ID, unxz.FilterDelta, unxz.FilterLZMA2, uint64(filterLZMA1))
		}
	}
	return nil
}

func (f *lzmaFilter) distance() int {
	if f.Dist == nil {
		return 1
	}
	return *f.Dist
}

func (l *lzmaCodec) decodeRaw(ctx context.Context, dst, src []byte) (n int, err error) {
	last := l.filters[len(l.filters)-1]
	if last.ID == unxz.FilterLZMA2 {
		n, _, err = unxz.LZMA2(ctx, dst, src, math.MaxInt64)
	} else {
		property := func(p *int, standard int) int {
			if p != nil {
				return *p
			}
			return standard
		}
		props := lzma.Properties{LC: property(last.LC, 3), LP: property(last.LP, 0), PB: property(last.PB, 2)}
		n, err = unxz.LZMA1(ctx, dst, src, props.Code(), math.MaxUint32, math.MaxUint64)
	}
	if err != nil {
		return 0, err
	}
	for i := len(l.filters) - 2; i >= 0; i-- {
		unxz.Undelta(dst[:n], l.filters[i].distance())
	}
	return n, nil
}
