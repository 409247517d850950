package iobench

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/nvml"
	"strata/pkg/settings"
)

// ChooseDevice returns the device with an index or UUID. For "" it is the one with the UUID best, if the driver
// has it, otherwise the first.
func ChooseDevice(id, best string) (gpu.Info, error) {
	list, err := gpu.Devices()
	if err != nil {
		return gpu.Info{}, err
	}
	if id != "" {
		if list, err = gpu.Choose(list, id); err != nil {
			return gpu.Info{}, err
		}
		return list[0], nil
	}
	if best != "" {
		for _, info := range list {
			if nvml.SameUUID(info.UUID, best) {
				return info, nil
			}
		}
	}
	return list[0], nil
}

// OpenDevice opens a device with memory for the given number of threads that move blocks.
func OpenDevice(info gpu.Info, block int64, threads int) (*gpu.Device, error) {
	n := block * int64(threads)
	return gpu.Open(info, gpu.Limits{Memory: 2 * n, Pinned: 8*n + int64(threads)*16*Page + 1<<20})
}

// onDevice moves files to and from a device.
type onDevice struct {
	*poolFiles
	way   string
	spans []*gpu.Buffer

	mu   sync.Mutex
	warn string
}

func openBounce(b *Bench, write bool) (Mover, error) {
	return openOnDevice(b, "bounce", write, settings.On)
}

func openStraight(b *Bench, write bool) (Mover, error) {
	if b.Device != nil && b.Settings.Compat == settings.On {
		return nil, errors.New("STRATA_COMPAT_MODE or KVIKIO_COMPAT_MODE is on")
	}
	return openOnDevice(b, "gds", write, settings.Auto)
}

func openOnDevice(b *Bench, name string, write bool, mode settings.Mode) (m Mover, err error) {
	if b.Device == nil {
		return nil, errors.New(b.NoDevice)
	}
	d := &onDevice{way: name}
	s := b.Settings
	s.Compat, s.Threads = mode, b.Threads
	if d.poolFiles, err = openPooled(b, write, b.Device, s, d.note, func(p *filelayer.Pool) error {
		if straight, why := p.Mode(); name == "gds" && !straight {
			return errors.New(why)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_, _ = d.Close()
		}
	}()
	for thread := range b.Threads {
		buffer, err := b.Device.Memory().Get(b.Block)
		if err != nil {
			return nil, err
		}
		d.spans = append(d.spans, buffer)
		if write {
			if err := b.upload(buffer.Span, b.buffers[thread]); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// upload copies data to device memory.
func (b *Bench) upload(to gpu.Span, from []byte) error {
	s, err := b.Device.Stream()
	if err != nil {
		return err
	}
	h, err := b.Device.Host(int(min(int64(len(from)), 1<<20)))
	if err != nil {
		return errors.Join(err, s.Close())
	}
	for at := 0; at < len(from); at += len(h.B) {
		n := copy(h.B, from[at:])
		s.Upload(to.From(int64(at), int64(n)), h.B[:n])
		if err = s.Wait(); err != nil {
			break
		}
	}
	h.Release()
	return errors.Join(err, s.Close())
}

func (d *onDevice) note(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.warn = text
}

func (d *onDevice) Move(ctx context.Context, thread int, p Part) error {
	span := d.spans[thread].From(0, p.N)
	if d.write {
		return d.files[p.File].Write(ctx, span, p.Off)
	}
	return d.files[p.File].Read(ctx, span, p.Off)
}

// Took returns "gds", "bounce" or both.
func (d *onDevice) Took() string {
	s := d.pool.Stats()
	straight, bounced := s.ReadStraight+s.WrittenStraight, s.ReadBounced+s.WrittenBounced
	switch {
	case bounced == 0 && straight > 0:
		return "gds"
	case straight > 0:
		return "gds, bounce"
	}
	return "bounce"
}

func (d *onDevice) Close() (remark string, err error) {
	err = d.closeFiles()
	for _, s := range d.spans {
		s.Release()
	}
	stats := d.pool.Stats()
	err = errors.Join(err, d.pool.Close())
	straight, bounced := stats.ReadStraight+stats.WrittenStraight, stats.ReadBounced+stats.WrittenBounced
	if d.way == "gds" && bounced > 0 {
		why := d.warn
		if why == "" {
			why = "pieces are smaller than the threshold"
		}
		remark = fmt.Sprintf("%d%% went through host memory: %s", percent(bounced, straight+bounced), why)
	}
	return remark, err
}

func percent(part, all int64) int64 {
	return int64(float64(part)/float64(max(all, 1))*100 + 0.5)
}
