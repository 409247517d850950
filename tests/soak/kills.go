package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// deaths lists the signals that end programs; half of the time it is the one that cannot be caught.
var deaths = []syscall.Signal{syscall.SIGKILL, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}

// moment returns a random time for the signal to a program with the given duration in seconds.
func moment(r *rand.Rand, seconds float64) time.Duration {
	return time.Duration(r.Float64() * 1.1 * seconds * float64(time.Second))
}

// place prepares the destination of a step's output: nothing, or existing content.
func (f *fixtures) place(dir string, s *step, occupied bool) (path string, before tree, err error) {
	path = filepath.Join(dir, s.out)
	if !occupied {
		return path, nil, nil
	}
	if filepath.Ext(s.out) == ".png" {
		err = os.WriteFile(path, []byte("\x89PNG\r\n\x1a\na picture that was there"), 0o666)
	} else {
		err = copyTree(f.old, path)
	}
	if err == nil {
		before, err = treeOf(path)
	}
	return path, before, err
}

// whole fails unless the output is either unchanged or the step's complete output.
func (s *step) whole(path string, before tree) (what string, err error) {
	now, err := treeOf(path)
	switch {
	case err != nil:
		return "", err
	case now.equal(s.made):
		return "new", nil
	case now.equal(before):
		return "as before", nil
	}
	return "", fmt.Errorf("%s is neither what it was nor what it should become: %s", s.out, now.difference(s.made))
}

// again runs the step to its end. It must succeed whatever an earlier run left, and leave nothing but its output.
func (f *fixtures) again(ctx context.Context, s *step, dir, path string) error {
	e, err := program{bin: f.bin, dir: dir, args: s.command(path, "-f")}.run(ctx)
	if err != nil {
		return err
	}
	if e.code != 0 {
		return fmt.Errorf("the next run fails: %v", e)
	}
	if now, err := treeOf(path); err != nil || !now.equal(s.made) {
		return fmt.Errorf("the next run makes something else: %s (%v)", now.difference(s.made), err)
	}
	if name, err := remains(dir); name != "" || err != nil {
		return fmt.Errorf("%s is left after the next run (%v)", name, err)
	}
	return nil
}

// kill ends a program at a random moment.
func (f *fixtures) kill(ctx context.Context, dir string, r *rand.Rand) (string, error) {
	s := f.steps[r.IntN(len(f.steps))]
	path, before, err := f.place(dir, s, r.IntN(2) == 0)
	if err != nil {
		return "", err
	}
	p := program{bin: f.bin, dir: dir, args: s.command(path, "-f"), signal: deaths[r.IntN(len(deaths))], after: moment(r, s.seconds)}
	name := fmt.Sprintf("%s, %v after %v", s.args[0], p.signal, p.after.Round(time.Millisecond))
	e, err := p.run(ctx)
	if err != nil {
		return "", err
	}
	what, err := s.whole(path, before)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if e.hung || e.crashed() {
		return "", fmt.Errorf("%s: %v", name, e)
	}
	if p.signal != syscall.SIGKILL && e.signaled {
		if left, err := remains(dir); left != "" || err != nil {
			return "", fmt.Errorf("%s: %s is left (%v)", name, left, err)
		}
	}
	if err := f.again(ctx, s, dir, path); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return what, nil
}

// killInPlace ends "zarr-tool ome IMAGE" at a random moment. The image must have its old pyramid or its new one,
// and the next run must make the new one.
func (f *fixtures) killInPlace(ctx context.Context, dir string, r *rand.Rand) (string, error) {
	image := filepath.Join(dir, "image.ome.zarr")
	if err := copyTree(f.old, image); err != nil {
		return "", err
	}
	p := program{bin: f.bin, dir: dir, args: []string{"zarr-tool", "ome", image, "--n_levels", "4", "-q"},
		signal: deaths[r.IntN(len(deaths))], after: moment(r, 0.1)}
	name := fmt.Sprintf("%v after %v", p.signal, p.after.Round(time.Millisecond))
	e, err := p.run(ctx)
	if err != nil {
		return "", err
	}
	if e.hung || e.crashed() {
		return "", fmt.Errorf("%s: %v", name, e)
	}
	if err := mustRun(ctx, f.bin, dir, "zarr-tool", "validate", image, "--ngff", "-q"); err != nil {
		return "", fmt.Errorf("%s: the image is damaged: %w", name, err)
	}
	what, err := levelsOf(ctx, f.bin, image)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if what != "2 levels" && what != "5 levels" {
		return "", fmt.Errorf("%s: the pyramid has %s", name, what)
	}
	if err := mustRun(ctx, f.bin, dir, p.args...); err != nil {
		return "", fmt.Errorf("%s: the next run: %w", name, err)
	}
	if err := mustRun(ctx, f.bin, dir, "zarr-tool", "validate", filepath.Join(image, "0"), filepath.Join(f.old, "0"), "-q"); err != nil {
		return "", fmt.Errorf("%s: level 0: %w", name, err)
	}
	return what, nil
}
