package doctor

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
	"strata/pkg/cli/units"
)

// isFolder tells whether a path is one; what is not there may become any.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.IsDir()
}

// page is what direct I/O is aligned to.
const page = 4096

// benchData are the files that are measured: one that was made, or those that are there.
type benchData struct {
	files []benchFile
	block int64
	made  bool   // to be written, and removed at the end
	why   string // no file was made, though one was to be

	unlock func()
}

type benchFile struct {
	path  string
	bytes int64
}

// part is what is moved at a time.
type part struct {
	file   int
	off, n int64
}

// count is how many parts there are.
func (d *benchData) count() int64 {
	n := int64(0)
	for _, f := range d.files {
		n += (f.bytes + d.block - 1) / d.block
	}
	return n
}

// at is the part of a number, from 0 on.
func (d *benchData) at(i int64) part {
	for k, f := range d.files {
		n := (f.bytes + d.block - 1) / d.block
		if i < n {
			return part{k, i * d.block, min(d.block, f.bytes-i*d.block)}
		}
		i -= n
	}
	panic("no such part")
}

func (d *benchData) bytes() int64 {
	n := int64(0)
	for _, f := range d.files {
		n += f.bytes
	}
	return n
}

// remove takes the file that was made away. It may be called more than once.
func (d *benchData) remove() {
	if d.unlock != nil {
		d.unlock()
	}
}

const (
	benchName   = ".bench.strata-" // of files that are made, with a number behind
	leastBench  = 1 << 20          // bytes to measure with
	leastFile   = 64 << 10         // of a file of a folder that is read
	mostFiles   = 256              // of a folder that are read
	mostLooked  = 20000            // names of a folder that are looked at
	defaultSize = 1 << 30
)

// benchTarget finds or makes what is measured: a file is read; in a folder one is made, if it is to be written
// to and can be, else the largest files in it are read. A Zarr hierarchy is written to only if that is asked for.
func benchTarget(ctx context.Context, path string, write, asked bool, size, block int64) (*benchData, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, cli.BadInput(err)
	}
	switch {
	case info.Mode().IsRegular():
		if info.Size() < leastBench {
			return nil, cli.BadInputf("%s: has %s, too little to measure: want %s or more", path, units.FormatSize(info.Size()), units.FormatSize(leastBench))
		}
		if err := unix.Access(path, unix.R_OK); err != nil {
			return nil, cli.BadInputf("%s: cannot be read: %w", path, err)
		}
		return &benchData{files: []benchFile{{path, info.Size() / page * page}}, block: block}, nil
	case !info.IsDir():
		return nil, cli.BadInputf("%s: is neither a file nor a folder", path)
	}
	why := ""
	switch {
	case write && !asked && isZarr(path):
		why = "it is a Zarr array or group, where no other files belong (--write makes one)"
	case write:
		d, err := makeBenchFile(path, size, block)
		if err == nil || cli.ExitCode(err) == cli.ExitUsage {
			return d, err
		}
		why = oneReason(err)
	}
	files, err := largest(ctx, path)
	if err != nil {
		return nil, err
	}
	d := &benchData{files: files, block: block, why: why}
	if d.bytes() < leastBench {
		if why != "" {
			return nil, fmt.Errorf("%s: no file is made (%s), and those that are there have less than %s to read", path, why, units.FormatSize(leastBench))
		}
		return nil, cli.BadInputf("%s: its files have less than %s to read (with --write one is made)", path, units.FormatSize(leastBench))
	}
	return d, nil
}

func isZarr(dir string) bool {
	for _, name := range []string{"zarr.json", ".zgroup", ".zarray"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// makeBenchFile makes the file that is written and read, with its content to come. Those that killed
// processes left are removed.
func makeBenchFile(dir string, size, block int64) (*benchData, error) {
	sweep(dir)
	free, err := freeSpace(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case size > free:
		return nil, cli.Usage("flag --size: %s are asked for, %s has %s free", units.FormatSize(size), dir, units.FormatSize(free))
	case size == 0:
		size = min(defaultSize, free/4)
	}
	if size = size / page * page; size < leastBench {
		return nil, fmt.Errorf("only %s are free", units.FormatSize(free))
	}
	path := filepath.Join(dir, benchName+strconv.FormatUint(rand.Uint64(), 36))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "create", Path: path, Err: err}
	}
	_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // without it another run may take it for one that was left
	var once sync.Once
	d := &benchData{files: []benchFile{{path, size}}, block: block, made: true}
	d.unlock = func() {
		once.Do(func() {
			_ = os.Remove(path)
			_ = unix.Close(fd)
		})
	}
	return d, nil
}

// sweep removes files of runs that were killed: nobody holds their locks.
func sweep(dir string) {
	names, _ := filepath.Glob(filepath.Join(escapeGlob(dir), benchName+"*"))
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

// escapeGlob makes a pattern that matches a path alone.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(min(uint64(s.Bavail), 1<<60/uint64(max(s.Bsize, 1)))) * int64(s.Bsize), nil
}

// largest are the largest files of a folder that can be read, those of a zarr array for example.
func largest(ctx context.Context, dir string) ([]benchFile, error) {
	var files []benchFile
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
			files = append(files, benchFile{path, info.Size() / page * page})
		}
		return nil
	})
	slices.SortFunc(files, func(a, b benchFile) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.path, b.path))
	})
	return files[:min(len(files), mostFiles)], err
}

// oneReason is an error without the path that the reader knows.
func oneReason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return reason(err)
}
