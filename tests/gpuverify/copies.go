package main

import (
	"errors"
	"slices"
	"time"

	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// copied is the speed of copies between page-locked memory and the device.
type copied struct {
	Up             bool    `json:"up"`
	Bytes          int64   `json:"bytes"`   // of each copy
	Streams        int     `json:"streams"` // that copy beside each other
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// measureCopies measures locking memory, copies by size and number of streams, and the cost of a call and of a
// wait.
func measureCopies(s *settings, d *gpu.Device, r *record) (err error) {
	r.Copies = nil
	most := min(s.bytes, 256<<20)
	begun := time.Now()
	host, err := d.Host(int(most))
	if err != nil {
		return err
	}
	defer host.Release()
	r.figure("pin", float64(most)/time.Since(begun).Seconds())
	begun = time.Now()
	m, err := d.Memory().Get(most)
	if err != nil {
		return err
	}
	defer m.Release()
	r.figure("allocate", time.Since(begun).Seconds())
	var streams []*gpu.Stream
	defer func() {
		for _, s := range streams {
			err = errors.Join(err, s.Close())
		}
	}()
	for range 4 {
		s, err := d.Stream()
		if err != nil {
			return err
		}
		streams = append(streams, s)
	}
	for _, n := range []int64{64 << 10, 1 << 20, 16 << 20, 256 << 20} {
		for _, beside := range []int{1, 4} {
			for _, up := range []bool{true, false} {
				if n*int64(beside) > most {
					continue
				}
				c := copied{Up: up, Bytes: n, Streams: beside}
				if c.BytesPerSecond, err = speed(streams[:beside], host, m, n, up, s.repeat); err != nil {
					return err
				}
				r.Copies = append(r.Copies, c)
				name := map[bool]string{true: "up", false: "down"}[up]
				if beside == 1 && c.BytesPerSecond > r.Figures[name] {
					r.figure(name, c.BytesPerSecond)
				}
			}
		}
	}
	one := streams[0]
	each := func(n int, f func() error) (float64, error) {
		begun := time.Now()
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		return time.Since(begun).Seconds() / float64(n), one.Wait()
	}
	call, err := each(1000, func() error { one.Zero(m.From(0, 256)); return nil })
	if err != nil {
		return err
	}
	both, err := each(200, func() error { one.Zero(m.From(0, 256)); return one.Wait() })
	r.figure("launch", call)
	r.figure("wait", max(both-call, 0))
	return err
}

// speed returns the speed of copying n bytes on each of several streams, at least repeat times.
func speed(streams []*gpu.Stream, host *mem.Buffer, m *gpu.Buffer, n int64, up bool, repeat int) (float64, error) {
	var all []float64
	for range repeat + 1 {
		begun := time.Now()
		for i, s := range streams {
			at := int64(i) * n
			if up {
				s.Upload(m.From(at, n), host.B[at:at+n])
			} else {
				s.Download(host.B[at:at+n], m.From(at, n))
			}
		}
		for _, s := range streams {
			if err := s.Wait(); err != nil {
				return 0, err
			}
		}
		all = append(all, time.Since(begun).Seconds())
	}
	slices.Sort(all)
	return float64(n) * float64(len(streams)) / all[len(all)/2], nil
}
