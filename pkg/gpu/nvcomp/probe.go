package nvcomp

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"strings"

	"strata/pkg/gpu"
)

// probes are the sample, encoded, in a file for each format; TestProbes makes them.
//
//go:embed probe
var probes embed.FS

// sample returns what the probes decode to: numbers that repeat themselves, and others.
func sample() []byte {
	b, x := make([]byte, 0, 9000), uint32(7)
	for i := 0; len(b) < 8000; i++ {
		x = x*1664525 + 1013904223
		b = append(b, byte(i>>3), byte(i>>11), byte(x>>24)>>5, byte(x>>16)>>(i>>9&7))
		if at := int(x>>8) % len(b); i%61 == 60 {
			b = append(b, b[at:min(at+int(x>>4&127), len(b))]...)
		}
	}
	return b[:8000]
}

func (f Format) probe() ([]byte, error) {
	return probes.ReadFile("probe/" + strings.ToLower(f.String()))
}

// try decodes a probe of each format on the device and compares the results.
func (l *Library) try(d *gpu.Device) (err error) {
	s, err := d.Stream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	s.Uncounted(true)
	want := sample()
	for f := range formats {
		frame, err := f.probe()
		if err != nil {
			return err
		}
		got, err := l.decodeOne(s, f, frame, len(want))
		if err == nil && !bytes.Equal(got, want) {
			err = errors.New("it decodes to other bytes")
		}
		if err != nil {
			return fmt.Errorf("a frame of %v that was tried: %w", f, err)
		}
	}
	return nil
}

// Warm loads the kernels that encode a format, by encoding a sample, once per device: a first call takes many
// times as long as later ones. The error says that they fail, or encode to something else.
func (l *Library) Warm(d *gpu.Device, f Format) error {
	type key struct {
		l *Library
		f Format
	}
	return d.Try(key{l, f}, func() (err error) {
		s, err := d.Stream()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		s.Uncounted(true)
		want := sample()
		var got []byte
		frame, err := l.encodeOne(s, f, want)
		if err == nil {
			got, err = l.decodeOne(s, f, frame, len(want))
		}
		if err == nil && !bytes.Equal(got, want) {
			err = errors.New("it decodes to other bytes")
		}
		if err != nil {
			return fmt.Errorf("%v, encoded by nvCOMP %s: %w", f, l.version, err)
		}
		return nil
	})
}

// encodeOne encodes data in the host's memory.
func (l *Library) encodeOne(s *gpu.Stream, f Format, data []byte) ([]byte, error) {
	bound, err := l.Bound(f, int64(len(data)))
	if err != nil {
		return nil, err
	}
	host, err := s.Device().Host(max(len(data), int(bound)))
	if err != nil {
		return nil, err
	}
	defer host.Release()
	room := (int64(len(data)) + 255) / 256 * 256
	m, err := s.Device().Memory().Get(room + bound)
	if err != nil {
		return nil, err
	}
	defer m.Release()
	src, dst := m.From(0, int64(len(data))), m.From(room, bound)
	s.Upload(src, host.B[:copy(host.B, data)])
	lengths := make([]int64, 1)
	err = l.Encode(s, f, []Piece{{src, dst, "sample"}}, lengths)
	if e := s.Wait(); err != nil || e != nil { // what is queued uses the memory
		return nil, errors.Join(err, e)
	}
	s.Download(host.B[:lengths[0]], dst)
	if err := s.Wait(); err != nil {
		return nil, err
	}
	return bytes.Clone(host.B[:lengths[0]]), nil
}

// decodeOne decodes one frame to n bytes, in the host's memory.
func (l *Library) decodeOne(s *gpu.Stream, f Format, frame []byte, n int) ([]byte, error) {
	host, err := s.Device().Host(max(n, len(frame)))
	if err != nil {
		return nil, err
	}
	defer host.Release()
	room := (int64(len(frame)) + 255) / 256 * 256
	m, err := s.Device().Memory().Get(room + int64(n))
	if err != nil {
		return nil, err
	}
	defer m.Release()
	src, dst := m.From(0, int64(len(frame))), m.From(room, int64(n))
	s.Zero(dst)
	s.Upload(src, host.B[:copy(host.B, frame)])
	err = l.Decode(s, f, []Piece{{src, dst, "probe"}})
	if e := s.Wait(); err != nil || e != nil { // what is queued uses the memory
		return nil, errors.Join(err, e)
	}
	s.Download(host.B[:n], dst)
	if err := s.Wait(); err != nil {
		return nil, err
	}
	return bytes.Clone(host.B[:n]), nil
}
