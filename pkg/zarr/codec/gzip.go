package codec

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"

	"strata/pkg/dtype"
	"strata/pkg/mem"
	"strata/pkg/zarr/codec/inflate"
)

// deflateCodec writes and reads DEFLATE (RFC 1951) in one of two wrappers.
type deflateCodec struct {
	wrapper string // "gzip" (RFC 1952) or "zlib" (RFC 1950)
	level   int
}

// Gzip returns a codec that compresses to a gzip member with level 0 (stored) to 9.
func Gzip(level int) Codec { return &deflateCodec{"gzip", level} }

// Zlib returns a codec that compresses to a zlib stream with level 0 (stored) to 9; -1 means 6.
func Zlib(level int) Codec { return &deflateCodec{"zlib", level} }

func parseGzip(c *config, _ dtype.Type) Codec {
	standard := 1 // numcodecs'
	if c.v3 && c.name == "gzip" {
		standard = 5 // zarr-python's
	}
	d := &deflateCodec{"gzip", c.setting("level", -1, 9, standard)}
	if d.level < 0 { // the default of Java's and zlib's encoders, which the format does not have
		d.level = 6
	}
	return d
}

func parseZlib(c *config, _ dtype.Type) Codec {
	return &deflateCodec{"zlib", c.setting("level", -1, 9, 1)}
}

func (d *deflateCodec) Name() string { return d.wrapper }

func (d *deflateCodec) MetadataV2() (json.RawMessage, error) {
	return metadataV2(d.wrapper, map[string]any{"level": d.level})
}

func (d *deflateCodec) MetadataV3() (json.RawMessage, error) {
	name := d.wrapper
	if name == "zlib" {
		name = prefixV3 + name
	}
	return metadataV3(name, map[string]any{"level": d.level})
}

// EncodedSize: stored blocks add 5 bytes per 65535; writers that flush more
// often than that, and header fields such as a file name, are allowed for.
func (d *deflateCodec) EncodedSize(n int) (lo, hi int) { return 8, mem.Sum(n, n>>6, 4096) }

// Decode reads a zlib stream or one or several gzip members and verifies their
// checksums.
func (d *deflateCodec) Decode(s *Scratch, dst, src []byte) (int, error) {
	read := inflate.Gzip
	if d.wrapper == "zlib" {
		read = inflate.Zlib
	}
	n, err := read(s.context(), dst, src)
	if errors.Is(err, inflate.ErrTooLong) {
		return 0, errTooLong(len(dst))
	}
	return n, err
}

func (d *deflateCodec) Encode(s *Scratch, dst, src []byte) ([]byte, error) {
	_, hi := d.EncodedSize(len(src))
	if cap(dst) < hi {
		dst = make([]byte, 0, hi)
	}
	if segments(len(src)) > 1 {
		return d.encodeSegments(s, dst, src)
	}
	return s.gzip.encode(*d, dst, src)
}

// gzipScratch keeps one encoder per setting, and per level one without a wrapper.
type gzipScratch struct {
	out     appender
	writers map[deflateCodec]deflateWriter
	bare    map[int]*flate.Writer // by level
}

type deflateWriter interface {
	io.WriteCloser
	Reset(io.Writer)
}

func (g *gzipScratch) encode(set deflateCodec, dst, src []byte) ([]byte, error) {
	g.out.b = dst[:0]
	w := g.writers[set]
	if w == nil {
		var err error
		if set.wrapper == "gzip" {
			w, err = gzip.NewWriterLevel(&g.out, set.level)
		} else {
			w, err = zlib.NewWriterLevel(&g.out, set.level)
		}
		if err != nil {
			return nil, err
		}
		if g.writers == nil {
			g.writers = map[deflateCodec]deflateWriter{}
		}
		g.writers[set] = w
	} else {
		w.Reset(&g.out)
	}
	_, err := w.Write(src)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	out := g.out.b
	g.out.b = nil
	return out, nil
}

// appender is a byte slice that can be written to.
type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}
