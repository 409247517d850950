// Command gds measures the file layer, pkg/filelayer, with host memory:
//
//	gds OP FILE BYTES THREADS PIECE REPS COLD SYNC SHIFT
//
// lab/gds-floor.c explains the arguments and the output. Operations are read and write with the layer's default
// settings; direct and write-cached switch direct I/O on and off; mmap, calls and files are as there. "gen" makes
// FILE, and "gen-files" the folder FILE.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"strata/pkg/filelayer"
	"strata/pkg/mem"
	"strata/pkg/settings"
	"strata/pkg/work"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gds:", err)
		os.Exit(1)
	}
}

// task is the requested measurement.
type task struct {
	op, file      string
	bytes, piece  int
	threads, reps int
	cold, sync    bool
	shift         int
	memory        []byte
	pool          *filelayer.Pool
}

const calls = 100_000

func run(args []string) error {
	if len(args) != 9 {
		return errors.New("usage: gds OP FILE BYTES THREADS PIECE REPS COLD SYNC SHIFT")
	}
	var n [7]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(args[2+i]); err != nil || n[i] < 0 {
			return fmt.Errorf("%q is not a number", args[2+i])
		}
	}
	t := &task{op: args[0], file: args[1], bytes: n[0], threads: n[1], piece: n[2], reps: n[3], cold: n[4] == 1, sync: n[5] == 1, shift: n[6]}
	if t.bytes == 0 || t.piece == 0 || t.piece > t.bytes || t.threads == 0 || t.reps == 0 || t.shift >= 4096 {
		return fmt.Errorf("cannot do %v", args)
	}
	area, err := mem.Alloc(t.bytes + t.shift)
	if err != nil {
		return err
	}
	defer mem.Free(area)
	t.memory = area[t.shift:][:t.bytes]
	for i := range t.memory {
		t.memory[i] = 1 // the pages are there
	}
	if strings.HasPrefix(t.op, "write") || strings.HasPrefix(t.op, "gen") {
		t.fill()
	}
	switch t.op {
	case "gen":
		return os.WriteFile(t.file, t.memory, 0o666)
	case "gen-files":
		return t.files(func(i int, b []byte) error { return os.WriteFile(filepath.Join(t.file, strconv.Itoa(i)), b, 0o666) })
	}
	return t.measure()
}

// fill generates the content that is written.
func (t *task) fill() {
	x := uint64(88172645463325252)
	for i := 0; i+8 <= t.bytes; i += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(t.memory[i:], x)
	}
}

// files calls do with the number and the memory of each file, from first to last.
func (t *task) files(do func(i int, b []byte) error) error {
	for i := range t.bytes / t.piece {
		if err := do(i, t.memory[i*t.piece:][:t.piece]); err != nil {
			return err
		}
	}
	return nil
}

func (t *task) measure() error {
	s := settings.Default()
	s.Threads = t.threads
	if t.op != "calls" && t.op != "files" {
		s.TaskSize = int64(t.piece)
	}
	s.DirectRead = t.op == "direct"
	s.DirectWrite = t.op != "write-cached"
	var err error
	if t.pool, err = filelayer.NewPool(nil, s, nil); err != nil {
		return err
	}
	var seconds, cpu []float64
	for range t.reps {
		if strings.HasPrefix(t.op, "write") {
			if err := os.Remove(t.file); err != nil && !os.IsNotExist(err) {
				return err
			}
		}
		if t.cold {
			if err := drop(t.file); err != nil {
				return err
			}
		}
		used, start := processor(), time.Now()
		if err := t.once(context.Background()); err != nil {
			return err
		}
		seconds, cpu = append(seconds, time.Since(start).Seconds()), append(cpu, processor()-used)
	}
	if err := t.pool.Close(); err != nil {
		return err
	}
	if strings.HasPrefix(t.op, "write") {
		clear(t.memory)
		f, err := os.Open(t.file)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := io.ReadFull(f, t.memory); err != nil {
			return err
		}
	}
	moved, seen := t.bytes, t.bytes
	if t.op == "calls" {
		moved, seen = calls*t.piece, t.piece
	}
	sum := uint64(0)
	for i := 0; i < seen; i += 4093 {
		sum = sum*31 + uint64(t.memory[i])
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return err
	}
	out := map[string]any{"bytes": moved, "hwm_kb": u.Maxrss, "ck": sum}
	if t.reps > 1 { // the first pass of the process is told apart
		out["first_s"] = seconds[0]
		seconds, cpu = seconds[1:], cpu[1:]
	}
	out["s"], out["cpu_s"] = middle(seconds), middle(cpu)
	return json.NewEncoder(os.Stdout).Encode(out)
}

// once moves everything once.
func (t *task) once(ctx context.Context) (err error) {
	switch t.op {
	case "mmap":
		return t.mapped(ctx)
	case "files":
		return t.readFiles(ctx)
	}
	mode := "r"
	if strings.HasPrefix(t.op, "write") {
		mode = "w"
	}
	flag, err := filelayer.Flags(mode)
	if err != nil {
		return err
	}
	f, err := t.pool.Open(t.file, flag, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	switch t.op {
	case "read", "direct":
		return f.ReadAt(ctx, t.memory, 0)
	case "write", "write-cached":
		if err := f.WriteAt(ctx, t.memory, 0); err != nil || !t.sync {
			return err
		}
		return f.Sync()
	case "calls":
		x := uint64(1)
		for range calls {
			x = x*6364136223846793005 + 1442695040888963407
			if err := f.ReadAt(ctx, t.memory[:t.piece], int64(x>>33%uint64(t.bytes/t.piece))*int64(t.piece)); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("operation %q is not known", t.op)
}

func (t *task) mapped(ctx context.Context) error {
	m, err := filelayer.OpenMap(t.file, 0, 0)
	if err != nil {
		return err
	}
	if err := m.Prefetch(0, 0); err != nil {
		return errors.Join(err, m.Close())
	}
	err = work.Each(ctx, t.threads, (t.bytes+t.piece-1)/t.piece, func(_, i int) error {
		at := i * t.piece
		_, err := m.ReadAt(ctx, t.memory[at:min(at+t.piece, t.bytes)], int64(at))
		return err
	})
	return errors.Join(err, m.Close())
}

// readFiles reads the files of a folder, as many at a time as there are threads.
func (t *task) readFiles(ctx context.Context) error {
	return work.Each(ctx, t.threads, t.bytes/t.piece, func(_, i int) error {
		f, err := t.pool.Open(filepath.Join(t.file, strconv.Itoa(i)), os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.ReadAt(ctx, t.memory[i*t.piece:][:t.piece], 0), f.Close())
	})
}

// drop drops a file from the page cache.
func drop(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return filelayer.DropCached(f, 0, 0)
}

func processor() float64 {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail for the own process
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func middle(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}
