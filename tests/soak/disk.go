package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// fill runs a step on a file system with too little space, or with a limit on the size of files. The run must fail
// as the machine's fault and leave existing files unchanged; with enough space the step must succeed.
func (f *fixtures) fill(ctx context.Context, dir string, r *rand.Rand) (string, error) {
	s := f.steps[r.IntN(len(f.steps))]
	need := int64(0)
	for name := range s.made {
		if info, err := os.Stat(filepath.Join(f.dir, "reference-"+s.out) + name); err == nil {
			need += (info.Size() + 4095) &^ 4095
		}
	}
	p := program{bin: f.bin, dir: dir}
	old, err := diskBytes(f.old)
	if err != nil {
		return "", err
	}
	limited := r.IntN(4) == 0
	if !limited {
		size := old + 64<<10 + int64(r.Float64()*1.2*float64(need))
		err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size))
		switch limited = errors.Is(err, syscall.EPERM); { // not root: limits only
		case err == nil:
			defer func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }()
		case !limited:
			return "", fmt.Errorf("mount: %w", err)
		}
	}
	if limited {
		p.prefix = []string{"prlimit", fmt.Sprintf("--fsize=%d", 1+r.Int64N(need))}
	}
	path, before, err := f.place(dir, s, r.IntN(2) == 0)
	if err != nil {
		return "", err
	}
	p.args = s.command(path, "-f")
	e, err := p.run(ctx)
	if err != nil {
		return "", err
	}
	what, err := s.whole(path, before)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", s.args[0], err)
	case e.code != 0 && e.code != 1 || e.hung || e.crashed():
		return "", fmt.Errorf("%s: %v", s.args[0], e)
	case e.code == 0 && what != "new":
		return "", fmt.Errorf("%s: exit code 0, and the output is %s", s.args[0], what)
	}
	if left, err := remains(dir); left != "" || err != nil {
		return "", fmt.Errorf("%s: %s is left (%v)", s.args[0], left, err)
	}
	if limited {
		if err := f.again(ctx, s, dir, path); err != nil {
			return "", err
		}
	}
	return what, nil
}

// diskBytes returns the size of a folder in blocks of 4 KiB, including its entries.
func diskBytes(path string) (total int64, err error) {
	err = filepath.WalkDir(path, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += (info.Size()+4095)&^4095 + 4096
		}
		return err
	})
	return total, err
}
