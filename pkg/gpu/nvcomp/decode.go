package nvcomp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// Piece is data to decode or to encode from Src to Dst.
type Piece struct {
	Src, Dst gpu.Span
	Name     string // in errors, as "mosaic.ome.zarr/0/c/1/2"
}

// Decode queues the decoding of a batch. Each piece must fill its Dst exactly; otherwise the stream's Wait
// returns a [*PieceError]. Src must be aligned ([Library.DecodeAlignment]). It takes memory for the batch
// from the device's pools and returns it after Wait; if there is not enough for the whole batch, parts run
// one after the other.
func (l *Library) Decode(s *gpu.Stream, f Format, batch []Piece) error {
	most, _ := f.most()
	var largest, total int64
	for _, p := range batch {
		if err := fits(p, f, l.DecodeAlignment(f), max(p.Src.Bytes(), p.Dst.Bytes()), most); err != nil {
			return err
		}
		largest = max(largest, p.Dst.Bytes())
		total += p.Dst.Bytes()
	}
	run := func(t *table, from, n int, temp gpu.Span) {
		s.Queue(func(handle uintptr) error {
			return check("nvcompBatched"+f.String()+"DecompressAsync", l.decode[f].Decode(
				t.column(srcAddress, from), t.column(srcBytes, from), t.column(dstBytes, from), t.column(gotBytes, from),
				uint64(n), temp.Address(), uint64(temp.Bytes()), t.column(dstAddress, from), decodeOptions, t.column(statuses, from), handle))
		})
	}
	temp := func(n int) (int64, error) { return l.DecodeTemp(s.Device(), f, n, largest, total) }
	return queue(s, batch, temp, run, func(i int, got int64) error {
		if p := batch[i]; got != p.Dst.Bytes() {
			return fmt.Errorf("decodes to %d bytes, want %d", got, p.Dst.Bytes())
		}
		return nil
	}, f)
}

// DecodeTemp returns the device memory, in bytes and besides [Overhead], that Decode needs for n pieces that
// decode to at most largest bytes each and total bytes together.
func (l *Library) DecodeTemp(d *gpu.Device, f Format, n int, largest, total int64) (int64, error) {
	return temp(d, "nvcompBatched"+f.String()+"DecompressGetTempSize", n, largest, total, func(n, largest, total uint64, b *uint64) status {
		return l.decode[f].TempSize(n, largest, decodeOptions, b, total, 0)
	})
}

func temp(d *gpu.Device, call string, n int, largest, total int64, f func(n, largest, total uint64, b *uint64) status) (int64, error) {
	var b uint64
	err := d.Call(func() error {
		return check(call, f(uint64(n), uint64(largest), uint64(min(total, int64(n)*largest)), &b))
	})
	return int64(b), err
}

// Overhead returns how many bytes of page-locked and of device memory a batch of n pieces needs, besides
// temporary memory.
func Overhead(n int) int64 { return mem.Pooled(newTable(n).bytes()) }

func fits(p Piece, f Format, align, n, most int64) error {
	switch {
	case n > most:
		return &PieceError{p.Name, f, fmt.Errorf("%d bytes, nvCOMP takes at most %d", n, most)}
	case int64(p.Src.Address())%align != 0:
		return &PieceError{p.Name, f, fmt.Errorf("address %#x is not a multiple of %d", p.Src.Address(), align)}
	}
	return nil
}

// mostPieces is the maximum number of pieces per call.
const mostPieces = 1 << 16

// table holds nvCOMP's arguments and results for a batch, in columns.
type table struct {
	n      int
	device gpu.Span
}

// The columns are of words of 8 bytes; statuses are of 4. The first ones are uploaded with
// all, the last two downloaded.
const (
	srcAddress = iota
	srcBytes
	dstAddress
	dstBytes
	gotBytes
	statuses
)

func newTable(n int) *table { return &table{n: n} }

func (t *table) offset(column int) int64 { return int64(column) * 8 * int64(t.n) }
func (t *table) bytes() int64            { return t.offset(statuses) + 4*int64(t.n) }

// column returns the address of a column from a piece on.
func (t *table) column(c, from int) uint64 {
	width := int64(8)
	if c == statuses {
		width = 4
	}
	return t.device.Address() + uint64(t.offset(c)+width*int64(from))
}

// untouched is a status that nvCOMP does not give.
const untouched = 0xffffffff

// queue runs a batch: the table goes up in one copy, run is called for parts of the batch
// whose temporary memory there is, lengths and statuses come down in one copy and are
// looked at once the stream has been waited for.
func queue(s *gpu.Stream, batch []Piece, temp func(n int) (int64, error), run func(t *table, from, n int, temp gpu.Span),
	got func(i int, bytes int64) error, f Format) error {
	if len(batch) == 0 {
		return nil
	}
	t := newTable(len(batch))
	host, err := s.Device().Host(int(t.bytes()))
	if err != nil {
		return err
	}
	s.After(host.Release)
	device, err := s.Device().Memory().Get(t.bytes())
	if err != nil {
		return err
	}
	s.Release(device)
	t.device = device.Span
	put := func(column, i int, v uint64) {
		binary.LittleEndian.PutUint64(host.B[t.offset(column)+8*int64(i):], v)
	}
	for i, p := range batch {
		put(srcAddress, i, p.Src.Address())
		put(srcBytes, i, uint64(p.Src.Bytes()))
		put(dstAddress, i, p.Dst.Address())
		put(dstBytes, i, uint64(p.Dst.Bytes()))
		put(gotBytes, i, 0)
		binary.LittleEndian.PutUint32(host.B[t.offset(statuses)+4*int64(i):], untouched)
	}
	step, work, err := room(s, min(len(batch), mostPieces), temp)
	if err != nil {
		return err
	}
	s.Release(work)
	var span gpu.Span
	if work != nil {
		span = work.Span
	}
	s.Upload(t.device, host.B)
	for from := 0; from < t.n; from += step {
		run(t, from, min(step, t.n-from), span)
	}
	answers := t.offset(gotBytes)
	s.Download(host.B[answers:], t.device.From(answers, t.bytes()-answers))
	s.Check(func() error {
		for i, p := range batch {
			switch code := binary.LittleEndian.Uint32(host.B[t.offset(statuses)+4*int64(i):]); code {
			case 0:
			case untouched:
				return &PieceError{p.Name, f, errors.New("nvCOMP said nothing about it")}
			default:
				return &PieceError{p.Name, f, &Error{Code: int(code)}}
			}
			if err := got(i, int64(binary.LittleEndian.Uint64(host.B[t.offset(gotBytes)+8*int64(i):]))); err != nil {
				return &PieceError{p.Name, f, err}
			}
		}
		return nil
	})
	return nil
}

// room takes temporary memory for n pieces, or for as many as memory allows: the parts of a batch use it one
// after the other.
func room(s *gpu.Stream, n int, temp func(n int) (int64, error)) (int, *gpu.Buffer, error) {
	for {
		bytes, err := temp(n)
		if err != nil || bytes == 0 {
			return n, nil, err
		}
		b, err := s.Device().Memory().Get(bytes)
		if err == nil || n == 1 || !errors.Is(err, gpu.ErrMemory) {
			return n, b, err
		}
		n = (n + 1) / 2
	}
}
