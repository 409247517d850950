package iobench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/settings"
)

// Way is a way to move data.
type Way struct {
	Name   string // as --backend has it
	Write  bool   // it can
	Device bool   // needs one
	// Open opens files for writing or reading. Its error says why they cannot be moved in this way.
	Open func(b *Bench, write bool) (Mover, error)
}

// Ways lists the ways of the stages: through the page cache, bypassing it, by mapping, to and from a GPU through
// the host, and directly.
var Ways = []Way{
	{"host", true, false, openHost}, {"direct", true, false, openDirectly}, {"mmap", false, false, openMapped},
	{"bounce", true, true, openBounce}, {"gds", true, true, openStraight},
}

// files holds the open files of movers on the host.
type files struct {
	bench *Bench
	open  []*os.File
	write bool
}

func openFiles(b *Bench, write bool, flags int) (*files, error) {
	f := &files{bench: b, write: write}
	if write {
		flags |= os.O_RDWR
	}
	for _, file := range b.Data.Files {
		o, err := os.OpenFile(file.Path, flags, 0)
		if err != nil {
			_, _ = f.Close()
			return nil, err
		}
		f.open = append(f.open, o)
		if b.Random {
			adviseRandom(o)
		}
	}
	return f, nil
}

func (f *files) Move(ctx context.Context, thread int, p Part) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b := f.bench.buffers[thread][:p.N]
	var err error
	if f.write {
		_, err = f.open[p.File].WriteAt(b, p.Off)
	} else {
		_, err = f.open[p.File].ReadAt(b, p.Off)
	}
	if errors.Is(err, io.EOF) {
		return errShorter(f.open[p.File].Name())
	}
	return err
}

func errShorter(path string) error {
	return fmt.Errorf("%s: became shorter while it was read", path)
}

func (f *files) Close() (string, error) {
	var err error
	for _, o := range f.open {
		err = errors.Join(err, o.Close())
	}
	return "", err
}

// throughCache reads and writes on the host in the plain way.
type throughCache struct{ *files }

func (throughCache) Cached() {}

func openHost(b *Bench, write bool) (Mover, error) {
	f, err := openFiles(b, write, os.O_RDONLY)
	return throughCache{f}, err
}

// openDirectly opens files that bypass the page cache. Some file systems accept the flag and refuse the first
// read.
func openDirectly(b *Bench, write bool) (Mover, error) {
	if openDirect == 0 {
		return nil, errors.New("this system has no O_DIRECT")
	}
	f, err := openFiles(b, write, openDirect)
	if err == nil && !write {
		if err = f.Move(context.Background(), 0, Part{0, 0, Page}); err != nil {
			_, _ = f.Close()
		}
	}
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		return nil, errors.New("the file system has no direct I/O")
	}
	return f, err
}

// mapped reads by mapping files into memory.
type mapped struct {
	bench *Bench
	maps  []*filelayer.Map
}

func (*mapped) Cached() {}

func openMapped(b *Bench, write bool) (Mover, error) {
	m := &mapped{bench: b}
	return m, m.Fresh()
}

// Rest removes the mappings.
func (m *mapped) Rest() error {
	_, err := m.Close()
	return err
}

// Fresh maps the files again.
func (m *mapped) Fresh() error {
	if err := m.Rest(); err != nil {
		return err
	}
	for _, f := range m.bench.Data.Files {
		o, err := filelayer.OpenMap(f.Path, 0, f.Bytes)
		if err != nil {
			_, _ = m.Close()
			return err
		}
		m.maps = append(m.maps, o)
		if m.bench.Random {
			_ = o.Random() // advice
		}
	}
	return nil
}

func (m *mapped) Move(ctx context.Context, thread int, p Part) error {
	_, err := m.maps[p.File].ReadAt(ctx, m.bench.buffers[thread][:p.N], p.Off)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errShorter(m.bench.Data.Files[p.File].Path)
	}
	return err
}

func (m *mapped) Close() (string, error) {
	var err error
	for _, o := range m.maps {
		err = errors.Join(err, o.Close())
	}
	m.maps = nil
	return "", err
}

// Pool uses the file layer's pool of threads, which one caller gives much work at a time: Settings.Threads threads
// take tasks of Settings.TaskSize bytes each.
var Pool = Way{"pool", true, false, openPool}

// poolFiles holds the pool and the open files of movers that use it.
type poolFiles struct {
	bench *Bench
	pool  *filelayer.Pool
	files []*filelayer.File
	write bool
}

// openPooled makes a pool for a device, nil for host memory, and opens the files with it unless check refuses the pool.
func openPooled(b *Bench, write bool, device *gpu.Device, s settings.Settings, warn func(string), check func(*filelayer.Pool) error) (_ *poolFiles, err error) {
	p := &poolFiles{bench: b, write: write}
	if p.pool, err = filelayer.NewPool(device, s, warn); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_, _ = p.closeFiles(), p.pool.Close()
		}
	}()
	if err := check(p.pool); err != nil {
		return nil, err
	}
	flags := os.O_RDONLY
	if write {
		flags = os.O_RDWR
	}
	for _, file := range b.Data.Files {
		f, err := p.pool.Open(file.Path, flags, 0)
		if err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
	}
	return p, nil
}

func (p *poolFiles) closeFiles() (err error) {
	for _, f := range p.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

type pooled struct{ *poolFiles }

func (*pooled) Cached() {}

func openPool(b *Bench, write bool) (Mover, error) {
	s := b.Settings
	s.Compat = settings.On
	p, err := openPooled(b, write, nil, s, nil, func(*filelayer.Pool) error { return nil })
	if err != nil {
		return nil, err
	}
	return &pooled{p}, nil
}

func (p *pooled) Move(ctx context.Context, thread int, part Part) error {
	b := p.bench.buffers[thread][:part.N]
	if p.write {
		return p.files[part.File].WriteAt(ctx, b, part.Off)
	}
	err := p.files[part.File].ReadAt(ctx, b, part.Off)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errShorter(p.bench.Data.Files[part.File].Path)
	}
	return err
}

// Took returns "host", "direct" or, if only some data bypassed the page cache, both.
func (p *pooled) Took() string {
	switch s := p.pool.Stats(); {
	case s.Direct == 0:
		return "host"
	case s.Direct >= s.Host:
		return "direct"
	}
	return "host, direct"
}

func (p *pooled) Close() (remark string, err error) {
	for _, f := range p.files {
		settings := p.bench.Settings
		if wanted := p.write && settings.DirectWrite || !p.write && settings.DirectRead; wanted && remark == "" {
			if possible, why := f.DirectIO(); !possible {
				remark = "not past the page cache: " + why
			}
		}
	}
	return remark, errors.Join(p.closeFiles(), p.pool.Close())
}
