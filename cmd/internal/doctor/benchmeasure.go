package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"strata/pkg/gds"
	"strata/pkg/gds/settings"
	"strata/pkg/gpu"
	"strata/pkg/mem"
)

// bench measures files in several ways.
type bench struct {
	data     *benchData
	settings settings.Settings
	threads  int
	device   *gpu.Device // nil: there is none, and
	noDevice string      // why
	buffers  [][]byte    // of the threads
}

// benchWay is one way to move data.
type benchWay struct {
	name   string // as --backend has it
	write  bool
	device bool // needs one
	// open takes files into use; its error is why they cannot be moved so.
	open func(b *bench, write bool) (mover, error)
}

// benchWays in the order in which they are measured: what is written first is there to be read.
var benchWays = []benchWay{
	{"host", true, false, openHost}, {"direct", true, false, openDirectly}, {"bounce", true, true, openBounce}, {"gds", true, true, openStraight},
	{"host", false, false, openHost}, {"direct", false, false, openDirectly}, {"mmap", false, false, openMapped},
	{"bounce", false, true, openBounce}, {"gds", false, true, openStraight},
}

// mover moves parts of files. Threads, each by its number, call move at the same time.
type mover interface {
	move(ctx context.Context, thread int, p part) error
	// close ends it and says how it went: what was not moved as its name says, and why.
	close() (remark string, err error)
}

// warm movers read by way of the page cache, which is to hold nothing.
type warm interface{ cached() }

// sample is one round of a measurement.
type sample struct {
	bytes int64
	took  time.Duration
}

const rounds = 5 // that a way is measured in, unless the files end before

// measured is what a measurement gave.
type measured struct {
	samples []sample
	cached  *int64 // per cent of what is read that the page cache holds all the same
}

// measure moves data one way for a time. A pass over the files ends a round, and so does its
// share of the time.
func (b *bench) measure(ctx context.Context, w benchWay, m mover, share time.Duration) (got measured, err error) {
	next := int64(0) // part, of those of all passes
	all := b.data.count()
	for end := time.Now().Add(share); time.Now().Before(end) || len(got.samples) == 0; {
		if _, ok := m.(warm); ok && !w.write {
			got.cached = b.drop(got.cached)
		}
		s, n, err := b.round(ctx, w, m, next, all, share/rounds)
		if err != nil {
			return got, err
		}
		next += n
		got.samples = append(got.samples, s)
	}
	return got, nil
}

// drop lets the page cache forget the files, and says what it then holds, as far as that is
// known, unless that was said before.
func (b *bench) drop(before *int64) *int64 {
	for _, f := range b.data.files {
		dropCached(f.path)
	}
	if before != nil {
		return before
	}
	share, known := cachedShare(b.data.files[0].path, b.data.files[0].bytes)
	if !known {
		return nil
	}
	n := int64(share*100 + 0.5)
	return &n
}

// trim leaves of the file that was made what has a content: slow storage does not take all of it
// in its time.
func (b *bench) trim() error {
	if !b.data.made {
		return nil
	}
	f := &b.data.files[0]
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if f.bytes = min(f.bytes, info.Size()/page*page); f.bytes == 0 {
		return errors.New("nothing could be written")
	}
	return nil
}

// round moves parts from one on, at most all and at least one for each thread, and returns how many.
func (b *bench) round(ctx context.Context, w benchWay, m mover, first, all int64, limit time.Duration) (sample, int64, error) {
	var next, bytes atomic.Int64
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for thread := range b.threads {
		g.Go(func() error {
			for {
				i := next.Add(1) - 1
				if i >= all {
					return nil
				}
				p := b.data.at((first + i) % all)
				if w.write {
					stamp(b.buffers[thread], uint64(first+i))
				}
				if err := m.move(ctx, thread, p); err != nil {
					return err
				}
				bytes.Add(p.n)
				switch {
				case ctx.Err() != nil:
					return context.Cause(ctx)
				case time.Since(began) >= limit:
					return nil
				}
			}
		})
	}
	err := g.Wait()
	if err == nil && w.write {
		err = syncFile(b.data.files[0].path)
	}
	return sample{bytes.Load(), time.Since(began)}, min(next.Load(), all), err
}

// stamp makes the content of a buffer another one, in each page: some storage keeps what is
// the same only once.
func stamp(b []byte, n uint64) {
	for i := 0; i+8 <= len(b); i += page {
		binary.LittleEndian.PutUint64(b[i:], n<<20|uint64(i/page))
	}
}

// syncFile waits until a file lies on its device.
func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// allocate gives each thread a buffer with content that cannot be compressed.
func (b *bench) allocate() error {
	random := rand.New(rand.NewPCG(1, 2))
	for range b.threads {
		m, err := mem.Alloc(int(b.data.block))
		if err != nil {
			return err
		}
		for i := 0; i+8 <= len(m); i += 8 {
			binary.LittleEndian.PutUint64(m[i:], random.Uint64())
		}
		b.buffers = append(b.buffers, m)
	}
	return nil
}

func (b *bench) free() {
	for _, m := range b.buffers {
		mem.Free(m)
	}
	b.buffers = nil
}

// files are the open files of movers of the host.
type files struct {
	bench *bench
	open  []*os.File
	write bool
}

func openFiles(b *bench, write bool, flags int) (*files, error) {
	f := &files{bench: b, write: write}
	if write {
		flags |= os.O_RDWR
	}
	for _, file := range b.data.files {
		o, err := os.OpenFile(file.path, flags, 0)
		if err != nil {
			_, _ = f.close()
			return nil, err
		}
		f.open = append(f.open, o)
	}
	return f, nil
}

func (f *files) move(ctx context.Context, thread int, p part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := f.bench.buffers[thread][:p.n]
	var err error
	if f.write {
		_, err = f.open[p.file].WriteAt(b, p.off)
	} else {
		_, err = f.open[p.file].ReadAt(b, p.off)
	}
	if errors.Is(err, io.EOF) {
		return errShorter(f.open[p.file].Name())
	}
	return err
}

func errShorter(path string) error {
	return fmt.Errorf("%s: became shorter while it was read", path)
}

func (f *files) close() (string, error) {
	var err error
	for _, o := range f.open {
		err = errors.Join(err, o.Close())
	}
	return "", err
}

// throughCache is the host's plain reading and writing.
type throughCache struct{ *files }

func (throughCache) cached() {}

func openHost(b *bench, write bool) (mover, error) {
	f, err := openFiles(b, write, os.O_RDONLY)
	return throughCache{f}, err
}

// openDirectly is past the page cache. Some file systems take the flag and refuse the first read.
func openDirectly(b *bench, write bool) (mover, error) {
	if openDirect == 0 {
		return nil, errors.New("this system has no O_DIRECT")
	}
	f, err := openFiles(b, write, openDirect)
	if err == nil && !write {
		if err = f.move(context.Background(), 0, part{0, 0, page}); err != nil {
			_, _ = f.close()
		}
	}
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil, errors.New("the file system has no direct I/O")
	}
	return f, err
}

// mapped is reading by mapping files into memory.
type mapped struct{ *files }

func (mapped) cached() {}

func openMapped(b *bench, write bool) (mover, error) {
	f, err := openFiles(b, write, os.O_RDONLY)
	return mapped{f}, err
}

func (m mapped) move(ctx context.Context, thread int, p part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f := m.open[p.file]
	size := int64(os.Getpagesize())
	skip := p.off % size
	data, err := unix.Mmap(int(f.Fd()), p.off-skip, int(p.n+skip), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %s: %w", f.Name(), err)
	}
	defer func() { _ = unix.Munmap(data) }()
	if _, ok := mem.CopyMapped(m.bench.buffers[thread], data[skip:]); !ok {
		return errShorter(f.Name())
	}
	return nil
}

// onDevice moves files to and from a device.
type onDevice struct {
	bench *bench
	way   string
	write bool
	pool  *gds.Pool
	files []*gds.File
	spans []*gpu.Buffer

	mu   sync.Mutex
	warn string
}

func openBounce(b *bench, write bool) (mover, error) {
	return openOnDevice(b, "bounce", write, settings.On)
}

func openStraight(b *bench, write bool) (mover, error) {
	if b.device != nil && b.settings.Compat == settings.On {
		return nil, errors.New("STRATA_COMPAT_MODE or KVIKIO_COMPAT_MODE is on")
	}
	return openOnDevice(b, "gds", write, settings.Auto)
}

func openOnDevice(b *bench, name string, write bool, mode settings.Mode) (m mover, err error) {
	if b.device == nil {
		return nil, errors.New(b.noDevice)
	}
	d := &onDevice{bench: b, way: name, write: write}
	s := b.settings
	s.Compat, s.Threads = mode, b.threads
	if d.pool, err = gds.NewPool(b.device, s, d.note); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_, _ = d.close()
		}
	}()
	if straight, why := d.pool.Mode(); name == "gds" && !straight {
		return nil, errors.New(why)
	}
	flags := os.O_RDONLY
	if write {
		flags = os.O_RDWR
	}
	for _, file := range b.data.files {
		f, err := d.pool.Open(file.path, flags, 0)
		if err != nil {
			return nil, err
		}
		d.files = append(d.files, f)
	}
	for thread := range b.threads {
		buffer, err := b.device.Memory().Get(b.data.block)
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

// upload gives device memory a content.
func (b *bench) upload(to gpu.Span, from []byte) error {
	s, err := b.device.Stream()
	if err != nil {
		return err
	}
	h, err := b.device.Host(int(min(int64(len(from)), 1<<20)))
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

func (d *onDevice) move(ctx context.Context, thread int, p part) error {
	span := d.spans[thread].From(0, p.n)
	if d.write {
		return d.files[p.file].Write(ctx, span, p.off)
	}
	return d.files[p.file].Read(ctx, span, p.off)
}

func (d *onDevice) close() (remark string, err error) {
	for _, f := range d.files {
		err = errors.Join(err, f.Close())
	}
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
		remark = fmt.Sprintf("%d%% went by way of the host: %s", percent(bounced, straight+bounced), why)
	}
	return remark, err
}

func percent(part, all int64) int64 {
	return int64(float64(part)/float64(max(all, 1))*100 + 0.5)
}

// rates are the samples' median, least and most, in bytes per second.
func rates(list []sample) (middle, least, most float64) {
	var all []float64
	for _, s := range list {
		all = append(all, float64(s.bytes)/max(s.took.Seconds(), 1e-9))
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	middle = all[len(all)/2]
	if n := len(all); n%2 == 0 {
		middle = (all[n/2-1] + all[n/2]) / 2
	}
	return middle, all[0], all[len(all)-1]
}
