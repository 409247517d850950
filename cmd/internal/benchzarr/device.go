package benchzarr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"strata/cmd/internal/benchkit"
	cut "strata/pkg/bench/boxes"
	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/mem"
	"strata/pkg/settings"
	"strata/pkg/work"
	"strata/pkg/zarr"
	"strata/pkg/zarr/zarrgpu"
)

// deviceReader reads into a device's memory.
type deviceReader struct {
	setting Setting
	device  *gpu.Device
	files   settings.Settings
	mem     int64 // page-locked memory for what is on its way
}

// fewest is the default number of regions in flight: one on the device, one that the host fetches.
const fewest = 2

// whole is the size of a region of the whole array, unless a chunk is larger: many small chunks are decoded
// together.
const whole = 64 << 20

func (d *deviceReader) inFlight() int {
	if d.setting.InFlight > 0 {
		return d.setting.InFlight
	}
	return fewest
}

// session holds a device reader's resources during a repetition.
type session struct {
	reader *zarrgpu.Reader
	pool   *filelayer.Pool
	counts zarrgpu.Counts

	mu     sync.Mutex
	warned string
	close  []func() error
}

func (s *session) end() (err error) {
	for i := len(s.close) - 1; i >= 0; i-- {
		err = errors.Join(err, s.close[i]())
	}
	return err
}

func (s *session) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warned = text
}

// begin starts the pool of threads; open, which is measured, opens the array.
func (d *deviceReader) begin() (s *session, err error) {
	s = &session{}
	how := d.files
	if how.Threads == 0 {
		how.Threads = d.setting.Threads
	}
	if d.setting.Task > 0 {
		how.TaskSize = d.setting.Task
	}
	if s.pool, err = filelayer.NewPool(d.device, how, s.warn); err != nil {
		return nil, &benchkit.Unable{Reason: err}
	}
	s.close = append(s.close, s.pool.Close)
	if d.setting.Backend == "gds" || d.setting.Backend == "auto" {
		s.pool.Mode() // takes cuFile into use
	}
	return s, nil
}

func (d *deviceReader) open(ctx context.Context, s *session, t *Target) error {
	a, st, err := t.Open(ctx, d.setting)
	if err != nil {
		return err
	}
	s.close = append(s.close, st.Close, func() error { a.Close(); return nil })
	s.reader, err = zarrgpu.NewReader(a, d.device, zarrgpu.Options{Backend: d.setting.Backend, Files: s.pool,
		Workers: max(1, d.setting.Threads/d.inFlight()), Counts: &s.counts, Warn: s.warn})
	var refused *zarrgpu.BackendError
	if errors.As(err, &refused) {
		return &benchkit.Unable{Reason: err}
	}
	return err
}

func (d *deviceReader) Check(ctx context.Context, j *Job) (uint32, error) {
	var c Checksum
	_, err := d.run(ctx, j, func(box zarr.Region, data []byte) { j.Boxes.Check(&c, j.Target.Layout, box, data) })
	return c.Value(), err
}

func (d *deviceReader) Round(ctx context.Context, j *Job) (benchkit.Sample, error) {
	return d.run(ctx, j, nil)
}

// run does the job once. take gets the data on the device, box by box.
func (d *deviceReader) run(ctx context.Context, j *Job, take func(zarr.Region, []byte)) (out benchkit.Sample, err error) {
	s, err := d.begin()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	defer benchkit.Processors(d.setting.Threads)()
	up, down, _ := d.device.Traffic()
	w := benchkit.Start()
	if err := d.open(ctx, s, j.Target); err != nil {
		return out, err
	}
	if j.Boxes.Whole {
		err = d.regions(ctx, s, j, take)
	} else {
		err = d.sequence(ctx, s, j, take)
	}
	out = w.Stop()
	nowUp, nowDown, _ := d.device.Traffic()
	out.Device = nowUp - up + nowDown - down
	out.Backend, out.Note = s.took(j.Bytes())
	return out, err
}

// took returns the ways by which elements arrived, with their shares if there are several, and why.
func (s *session) took(all int64) (backend, note string) {
	var ways []string
	for _, w := range []zarrgpu.Way{zarrgpu.GDS, zarrgpu.NVComp, zarrgpu.Bounce, zarrgpu.Host} {
		switch n := s.counts.Bytes(w); {
		case n >= all:
			ways = append(ways, w.String())
		case n > 0:
			ways = append(ways, fmt.Sprintf("%s %.0f%%", w, 100*float64(n)/float64(all)))
		}
	}
	backend = strings.Join(ways, ", ")
	stats := s.pool.Stats()
	if straight, by := stats.ReadStraight, stats.ReadBounced; by > 0 {
		note = fmt.Sprintf("%.0f%% of the bytes that gds read went through host memory", 100*float64(by)/float64(straight+by))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.warned != "" {
		if note != "" {
			note += ": "
		}
		note += s.warned
	}
	return backend, note
}

// sequence reads boxes one after another.
func (d *deviceReader) sequence(ctx context.Context, s *session, j *Job, take func(zarr.Region, []byte)) (err error) {
	stream, err := d.device.Stream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	var dst *gpu.Buffer
	defer func() {
		if dst != nil {
			dst.Release()
		}
	}()
	for _, box := range j.Boxes.List {
		n := s.reader.Bytes(box.Shape)
		if dst == nil || dst.Bytes() < n {
			if dst != nil {
				dst.Release()
			}
			if dst, err = d.device.Memory().Get(n); err != nil {
				return err
			}
		}
		if err := s.reader.Read(ctx, stream, box, dst.From(0, n)); err != nil {
			return err
		}
		if err := stream.Wait(); err != nil {
			return err
		}
		if err := show(d.device, stream, dst.From(0, n), box, take); err != nil {
			return err
		}
	}
	return nil
}

// lane holds the resources for one region in flight.
type lane struct {
	stream *gpu.Stream
	slot   *zarrgpu.Slot
	dst    *gpu.Buffer
}

func (l *lane) end() error {
	var err error
	if l.stream != nil {
		err = l.stream.Close()
	}
	if l.slot != nil {
		l.slot.Release()
	}
	if l.dst != nil {
		l.dst.Release()
	}
	return err
}

func (s *session) lane(d *gpu.Device, shape []int) (l *lane, err error) {
	l = &lane{}
	if l.stream, err = d.Stream(); err == nil {
		if l.slot, err = s.reader.Slot(shape); err == nil {
			l.dst, err = d.Memory().Get(s.reader.Bytes(shape))
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.end())
	}
	return l, nil
}

// regions reads the whole array, several regions at a time, each into reused memory.
func (d *deviceReader) regions(ctx context.Context, s *session, j *Job, take func(zarr.Region, []byte)) (err error) {
	l := j.Target.Layout
	shape := l.partOf(max(min(whole, d.mem/int64(4*d.inFlight())), l.Bytes(clip(l.Chunks, l.Shape))))
	var lanes []*lane
	defer func() {
		for _, x := range lanes {
			err = errors.Join(err, x.end())
		}
	}()
	pinned, device := s.reader.Memory(shape)
	device += s.reader.Bytes(shape)
	// half of what there is: the rest is for the threads that read files
	most := int(max(1, min(int64(d.inFlight()), d.device.Pinned().Limit()/2/max(pinned, 1), d.device.Memory().Limit()/2/max(device, 1))))
	for len(lanes) < most {
		x, err := s.lane(d.device, shape)
		if errors.Is(err, gpu.ErrMemory) && len(lanes) > 0 {
			break
		}
		if err != nil {
			return err
		}
		lanes = append(lanes, x)
	}
	if len(lanes) < d.inFlight() {
		s.warn(fmt.Sprintf("memory was there for %d regions of %d at a time", len(lanes), d.inFlight()))
	}
	var mu sync.Mutex
	list := cut.Split(l.Shape, shape)
	return work.Each(ctx, len(lanes), len(list), func(worker, i int) error {
		x, box := lanes[worker], list[i]
		if err := x.slot.Fetch(ctx, box); err != nil {
			return err
		}
		x.slot.Into(x.stream, x.dst.Span)
		if err := x.stream.Wait(); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return show(d.device, x.stream, x.dst.From(0, s.reader.Bytes(box.Shape)), box, take)
	})
}

// show passes data on the device to take.
func show(d *gpu.Device, s *gpu.Stream, from gpu.Span, box zarr.Region, take func(zarr.Region, []byte)) error {
	if take == nil {
		return nil
	}
	data, err := mem.Alloc(int(from.Bytes()))
	if err != nil {
		return err
	}
	defer mem.Free(data)
	h, err := d.Host(int(min(from.Bytes(), 1<<20)))
	if err != nil {
		return err
	}
	defer h.Release()
	for at := int64(0); at < from.Bytes(); {
		n := min(from.Bytes()-at, int64(len(h.B)))
		s.Download(h.B[:n], from.From(at, n))
		if err := s.Wait(); err != nil {
			return err
		}
		copy(data[at:], h.B[:n])
		at += n
	}
	take(box, data)
	return nil
}
