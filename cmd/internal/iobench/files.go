// Package iobench measures how fast files are read and written, for the programs bench-io and doctor: it chooses
// or makes the files, and moves them in the ways that the stages use. Existing files are only read.
//
//	data, err := iobench.Target(ctx, path, iobench.Options{Write: true})
//	defer data.Remove()
//	b := &iobench.Bench{Data: data, Settings: s, Threads: 2, Block: 1 << 20}
//	err = b.Allocate()
//	defer b.Free()
//	m, err := way.Open(b, false)
//	sample, err := b.Round(ctx, m, iobench.Pass{Count: data.Count(b.Block)})
//	remark, err := m.Close()
package iobench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"strata/pkg/cli"
	"strata/pkg/gpu"
	"strata/pkg/units"
	"strata/pkg/zarr/store"
)

// IsFolder reports whether a path is an existing folder.
func IsFolder(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.IsDir()
}

// Page is the alignment of direct I/O in bytes.
const Page = 4096

// Data is the set of files to measure with: one made for the purpose, or existing ones.
type Data struct {
	Files []File
	Made  bool   // to be written, and removed at the end
	Why   string // no file was made, though one was to be

	unlock func()
}

// File is a file and the number of its bytes to measure.
type File struct {
	Path  string
	Bytes int64
}

// Part is a piece of a file that is moved at a time.
type Part struct {
	File   int // its number
	Off, N int64
}

// Count returns the number of parts of at most block bytes.
func (d *Data) Count(block int64) int64 {
	n := int64(0)
	for _, f := range d.Files {
		n += (f.Bytes + block - 1) / block
	}
	return n
}

// At returns the i-th part, counted from 0.
func (d *Data) At(i, block int64) Part {
	for k, f := range d.Files {
		n := (f.Bytes + block - 1) / block
		if i < n {
			return Part{k, i * block, min(block, f.Bytes-i*block)}
		}
		i -= n
	}
	panic("no such part")
}

// Bytes returns the size of all files together.
func (d *Data) Bytes() int64 {
	n := int64(0)
	for _, f := range d.Files {
		n += f.Bytes
	}
	return n
}

// Remove removes the file if it was made. It may be called more than once, and while the file is in use.
func (d *Data) Remove() {
	if d.unlock != nil {
		d.unlock()
	}
}

// Trim truncates the file that was made to the part with content: slow storage may not take all of it in time.
func (d *Data) Trim() error {
	if !d.Made {
		return nil
	}
	f := &d.Files[0]
	info, err := os.Stat(f.Path)
	if err != nil {
		return err
	}
	if f.Bytes = min(f.Bytes, info.Size()/Page*Page); f.Bytes == 0 {
		return errors.New("nothing could be written")
	}
	return nil
}

const (
	Least = 1 << 20 // bytes to measure with

	hiddenName  = ".bench.strata-" // of files that are made, with a number behind
	leastFile   = 64 << 10         // of a file of a folder that is read
	mostFiles   = 256              // of a folder that are read
	mostLooked  = 20000            // names of a folder that are looked at
	defaultSize = 1 << 30
)

// Options configures [Target].
type Options struct {
	Write bool  // make a file, if that can be
	Asked bool  // also in a Zarr hierarchy
	Size  int64 // of the file; 0: 1 GiB, at most a quarter of what is free
}

// Target returns the data to measure with: a file is read; in a folder, a file is made if writing is wanted and
// possible, otherwise the largest files are read. It writes into a Zarr hierarchy only if asked to.
func Target(ctx context.Context, path string, o Options) (*Data, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	switch {
	case info.Mode().IsRegular():
		if info.Size() < Least {
			return nil, cli.BadInputf("%s: has %s, too little to measure: want %s or more", path, units.FormatSize(info.Size()), units.FormatSize(Least))
		}
		if err := unix.Access(path, unix.R_OK); err != nil {
			return nil, cli.BadInputf("%s: cannot be read: %w", path, err)
		}
		return &Data{Files: []File{{path, info.Size() / Page * Page}}}, nil
	case !info.IsDir():
		return nil, cli.BadInputf("%s: is neither a file nor a folder", path)
	}
	why := ""
	switch {
	case o.Write && !o.Asked && store.IsNode(path):
		why = "it is a Zarr array or group, where no other files belong (--write makes one)"
	case o.Write:
		d, err := makeFile(path, o.Size)
		if err == nil || cli.ExitCode(err) == cli.ExitUsage {
			return d, err
		}
		why = oneReason(err)
	}
	files, err := largest(ctx, path)
	if err != nil {
		return nil, err
	}
	d := &Data{Files: files, Why: why}
	if d.Bytes() < Least {
		if why != "" {
			return nil, fmt.Errorf("%s: no file is made (%s), and those that are there have less than %s to read", path, why, units.FormatSize(Least))
		}
		return nil, cli.BadInputf("%s: its files have less than %s to read (with --write one is made)", path, units.FormatSize(Least))
	}
	return d, nil
}

// makeFile makes the file that is written and read, still without content. It removes files that killed processes
// left.
func makeFile(dir string, size int64) (*Data, error) {
	sweep(dir)
	free, err := FreeSpace(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case size > free:
		return nil, cli.Usage("flag --size: %s are requested, %s has %s free", units.FormatSize(size), dir, units.FormatSize(free))
	case size == 0:
		size = min(defaultSize, free/4)
	}
	if size = size / Page * Page; size < Least {
		return nil, fmt.Errorf("only %s are free", units.FormatSize(free))
	}
	path := filepath.Join(dir, hiddenName+strconv.FormatUint(rand.Uint64(), 36))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: err}
	}
	_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // without it another run may take it for one that was left
	var once sync.Once
	d := &Data{Files: []File{{path, size}}, Made: true}
	d.unlock = func() {
		once.Do(func() {
			_ = os.Remove(path)
			_ = unix.Close(fd)
		})
	}
	return d, nil
}

// sweep removes files of killed runs: nobody holds their locks.
func sweep(dir string) {
	names, _ := filepath.Glob(filepath.Join(escapeGlob(dir), hiddenName+"*"))
	for _, name := range names {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = os.Remove(name)
		}
		_ = unix.Close(fd)
	}
}

// escapeGlob returns a pattern that matches only the path.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// FreeSpace returns the bytes that the file system of a folder has free for this user.
func FreeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(min(uint64(s.Bavail), 1<<60/uint64(max(s.Bsize, 1)))) * int64(s.Bsize), nil
}

// largest returns the largest readable files of a folder, for example those of a Zarr array.
func largest(ctx context.Context, dir string) ([]File, error) {
	var files []File
	looked := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && path == dir:
			return cli.BadInput(err)
		case err != nil:
			return nil // a folder below that cannot be read has nothing to measure
		}
		if looked++; looked > mostLooked {
			return fs.SkipAll
		}
		if !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil && info.Size() >= leastFile && unix.Access(path, unix.R_OK) == nil {
			files = append(files, File{path, info.Size() / Page * Page})
		}
		return nil
	})
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Path, b.Path))
	})
	return files[:min(len(files), mostFiles)], err
}

// oneReason returns an error's text without the path, which the reader knows.
func oneReason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return gpu.Reason(err)
}
