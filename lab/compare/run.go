package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// runner takes measurements. It stays small itself, because a child's resident memory starts from its parent's.
type runner struct {
	least, most int
	patience    time.Duration
	only        string
	w, log      io.Writer
}

// all runs every case and prints the lines of the runs file.
func (r *runner) all(ctx context.Context, p *plan, cases []unit) error {
	f, err := gatherFacts(ctx, p)
	if err != nil {
		return err
	}
	if err := r.print(line{Facts: f}); err != nil {
		return err
	}
	for _, u := range cases {
		if !strings.Contains(u.Name, r.only) {
			continue
		}
		start := time.Now()
		if err := r.unit(ctx, p, &u); err != nil {
			return fmt.Errorf("%s: %w", u.Name, err)
		}
		fmt.Fprintf(r.log, "%-20s %6.1f s\n", u.Name, time.Since(start).Seconds())
	}
	return nil
}

func (r *runner) print(l line) error { return json.NewEncoder(r.w).Encode(l) }

// unit measures a case in rounds. In each round every program runs once, and another one begins, because the
// machine's speed drifts and the first may find caches warmer or colder.
func (r *runner) unit(ctx context.Context, p *plan, u *unit) error {
	if err := u.sizeUp(); err != nil {
		return err
	}
	if err := r.print(line{Case: &u.header}); err != nil {
		return err
	}
	start := time.Now()
	failed := map[string]bool{}
	var check uint64 // of who had one first
	var first string
	least := max(r.least, u.least)
	if r.most < u.least { // a trial of all cases
		least = r.least
	}
	for round := 0; round < least || round < r.most && time.Since(start) < r.patience; round++ {
		if u.reads != "" {
			if err := warm(u.reads); err != nil {
				return err
			}
		}
		for i := range u.who {
			c := &u.who[(i+round)%len(u.who)]
			if failed[c.who] || c.most > 0 && round >= c.most {
				continue
			}
			if u.large {
				if err := p.makeRoom(ctx); err != nil {
					return err
				}
			}
			if c.clear != "" {
				if err := errors.Join(os.RemoveAll(c.clear), os.MkdirAll(c.clear, 0o777)); err != nil {
					return err
				}
			}
			s, err := measure(ctx, c, u.env...)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil && u.writes {
				// what was written, read by us, holds what the others wrote
				s.Stored, s.Check, err = p.written(ctx, u, round == 0)
			} else if err == nil && c.clear != "" {
				s.Stored, err = size(c.clear)
			}
			if err != nil {
				if c.who == strata || c.who == inC || c.who == ioAlone {
					return err
				}
				failed[c.who] = true
				s.Failed = p.withoutFolders(err.Error())
				fmt.Fprintf(r.log, "%s: %s: %v\n", u.Name, c.who, err)
			}
			if check == 0 {
				check, first = s.Check, c.who
			}
			if s.Check != 0 && s.Check != check {
				return fmt.Errorf("%s has other numbers than %s: sums %d and %d", c.who, first, s.Check, check)
			}
			s.Case, s.Round, s.Who = u.Name, round, c.who
			if err := r.print(line{Run: &s}); err != nil {
				return err
			}
		}
		if round == 0 {
			if err := r.compare(ctx, u, failed); err != nil {
				return err
			}
		}
	}
	return emptyFolder(p.out)
}

// sizeUp records the size of the stored input if programs read an array or images.
func (u *unit) sizeUp() (err error) {
	path := cmp.Or(u.stored, u.reads)
	if info, statErr := os.Stat(path); !u.apart && statErr == nil && info.IsDir() && u.Group != "start" {
		u.Input, err = size(path)
	}
	return err
}

// compare prints how far the outputs of the others differ from strata's.
func (r *runner) compare(ctx context.Context, u *unit, failed map[string]bool) error {
	for _, c := range u.who {
		if u.diff == nil || c.diff == "" || failed[c.who] {
			continue
		}
		argv := append(slices.Clone(u.diff), c.diff)
		b, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		if err != nil {
			return fmt.Errorf("%s: %w", strings.Join(argv[1:], " "), err)
		}
		d := &difference{}
		if err := json.Unmarshal(b, d); err != nil {
			return fmt.Errorf("%s printed %q: %w", argv[1], b, err)
		}
		d.Case, d.Who = u.Name, c.who
		if err := r.print(line{Diff: d}); err != nil {
			return err
		}
	}
	return nil
}

// withoutFolders removes the run's folders, which are specific to this machine, from names of files.
func (p *plan) withoutFolders(text string) string {
	for _, dir := range []string{p.data, p.out} {
		if dir != "" {
			text = strings.ReplaceAll(text, strings.TrimRight(dir, "/")+"/", "")
		}
	}
	return text
}

// makeRoom allocates memory for two arrays, or half of what there is, and releases it. Memory full of cached files
// has no huge pages at first, and an idle virtual machine must get its memory back from its host; otherwise the
// first program to ask would pay for all.
func (p *plan) makeRoom(ctx context.Context) error {
	want := 2 * p.mib()
	var kib int64
	for l := range strings.Lines(readFile("/proc/meminfo")) {
		if _, err := fmt.Sscanf(l, "MemAvailable: %d kB", &kib); err == nil {
			want = min(want, kib>>11)
		}
	}
	return exec.CommandContext(ctx, p.tool("arrays"), "memory", fmt.Sprint(want)).Run()
}

// written determines the size of the array that a program has written, reads it, and removes it.
func (p *plan) written(ctx context.Context, u *unit, look bool) (stored int64, check uint64, err error) {
	path := cmp.Or(u.output, filepath.Join(p.out, "array.zarr"))
	far := strings.Contains(path, "://")
	if !far {
		if stored, err = size(path); err != nil {
			return 0, 0, err
		}
	}
	if look {
		s, err := measure(ctx, &contestant{argv: []string{p.tool("arrays"), "check", path}}, u.env...)
		if err != nil {
			return 0, 0, err
		}
		check = s.Check
	}
	if far {
		_, err = measure(ctx, &contestant{argv: []string{p.tool("arrays"), "clear", path}}, u.env...)
		return 0, check, err
	}
	return stored, check, os.RemoveAll(path)
}

// measure runs a program once, with env added to its environment.
func measure(ctx context.Context, c *contestant, env ...string) (sample, error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env = slices.Concat(os.Environ(), env, c.env)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if c.wall { // no goroutine that copies while it runs
		cmd.Stdout, cmd.Stderr = nil, nil
	}
	start := time.Now()
	err := cmd.Run()
	wall := time.Since(start)
	if err != nil {
		if c.record != "" { // a later one would be appended
			_ = os.Remove(c.record) // there need not be one
		}
		return sample{}, fmt.Errorf("%s: %w: %s", strings.Join(c.argv[:min(len(c.argv), 4)], " "), err, lastLine(errs.String()))
	}
	if c.wall {
		s := sample{Seconds: wall.Seconds(), CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			s.HWM = u.Maxrss
		}
		if c.record != "" {
			s.Workers, err = workersIn(c.record)
		}
		return s, err
	}
	var s sample
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("%s printed %q: %w", c.argv[0], out.String(), err)
	}
	return s, nil
}

// workersIn returns the number of workers in a run record, 0 if it states none, and removes the record.
func workersIn(path string) (int, error) {
	r, err := readJSON[struct {
		Workers int `json:"workers"`
	}](path)
	if err != nil || r == nil {
		return 0, errors.Join(err, fmt.Errorf("%s: no run record", path))
	}
	return r.Workers, os.Remove(path)
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// warm reads all files below path, so that they are in the page cache.
func warm(path string) error {
	buf := make([]byte, 1<<20)
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		for {
			if _, err := f.Read(buf); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
}

// size returns the number of bytes in all files below path.
func size(path string) (total int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

func emptyFolder(path string) error {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(path, e.Name())))
	}
	return err
}

// median of v, which it sorts; 0 of nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	slices.Sort(v)
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}
