package atomic

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"strata/pkg/work"
)

// state is the progress of an output.
type state int

const (
	writing   state = iota // under its hidden name
	fresh                  // in place, where nothing was
	exchanged              // in place; the old one has the hidden name
	replaced               // in place; the old one lies aside
	forgotten              // in place; the old one is gone for good
	stranded               // both have hidden names: the old one could not be put back
	removed                // the old one lies aside, and nothing is in its place
)

// Commit puts all outputs in place: files, folders, then remote ones, each in the order they were started. If
// one fails, it takes back those already in place and restores the earlier state. Remote ones come last
// because the old one that they replace cannot be restored.
func (g *Group) Commit() error {
	if g.done {
		return nil
	}
	order := slices.Clone(g.outs)
	slices.SortStableFunc(order, func(a, b *Output) int { return rank(a) - rank(b) })
	err := g.place(order)
	if err == nil {
		err = g.commitRemote()
	}
	if err != nil {
		for _, o := range slices.Backward(order) {
			if back := o.takeBack(g.ops); back != nil {
				err = errors.Join(err, fmt.Errorf("output %s: cannot be taken back: %w", o.path, cause(back)))
			}
		}
		g.Abort()
		return err
	}
	g.done = true
	for _, o := range order {
		switch o.state {
		case exchanged:
			g.remove(o.work)
		case replaced, removed:
			g.remove(o.aside)
		}
		if o.absent {
			g.remove(o.work)
		}
	}
	return nil
}

func (g *Group) commitRemote() error {
	for _, r := range g.remote {
		if err := r.Commit(); err != nil {
			return fmt.Errorf("output %s: cannot be completed: %w", r.path, cause(err))
		}
	}
	return nil
}

func rank(o *Output) int {
	if o.file {
		return 0
	}
	return 1
}

func (g *Group) place(order []*Output) error {
	if g.opt.Sync {
		for _, o := range order {
			if err := syncTree(o.work); err != nil {
				return fmt.Errorf("output %s: flush: %w", o.path, err)
			}
		}
	}
	for _, o := range order {
		if g.opt.Overwrite { // what lies there may have changed while the run worked
			if err := g.mayReplace(o); err != nil {
				return err
			}
		}
		err := o.old.give(o.work)
		if err == nil {
			err = g.placeOne(o)
		}
		if errors.Is(err, ErrExists) {
			return err
		} else if err != nil {
			return fmt.Errorf("output %s: cannot be put in place: %w", o.path, cause(err))
		}
		if err := o.checkReplaced(); err != nil {
			return err
		}
	}
	if g.opt.Sync {
		dirs := map[string]bool{}
		for _, d := range g.made {
			dirs[filepath.Dir(d)] = true
		}
		for _, o := range order {
			dirs[filepath.Dir(o.final)] = true
		}
		for d := range dirs {
			if err := syncPath(d); err != nil {
				return fmt.Errorf("flush %w", err)
			}
		}
	}
	return nil
}

// placeOne renames the output to its final name. Another process may put
// something there, or take it away, at any moment: then it looks again.
func (g *Group) placeOne(o *Output) error {
	if o.absent {
		return g.clear(o)
	}
	for range 100 {
		err := g.ops.renameNew(o.work, o.final)
		if err == nil {
			o.state = fresh
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if !g.opt.Overwrite {
			return refuse(ErrExists, "output %s exists now: another process wrote it; give --overwrite (-f) to replace it", o.path)
		}
		if err = o.replace(g.ops); !errors.Is(err, errAgain) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("another process keeps changing it")
}

// clear moves away the old file or folder of an output that is absent.
func (g *Group) clear(o *Output) error {
	if _, err := os.Lstat(o.final); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !g.opt.Overwrite {
		return refuse(ErrExists, "output %s exists now: another process wrote it; give --overwrite (-f) to remove it", o.path)
	}
	err := g.ops.rename(o.final, o.aside)
	if err == nil {
		o.state = removed
	}
	return err
}

// replace swaps the output with the folder or file in its place.
func (o *Output) replace(ops operations) error {
	err := ops.exchange(o.work, o.final)
	if err == nil {
		o.state = exchanged
		return nil
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return o.replaceInSteps(ops)
}

// errAgain is the answer to a name that another process has just put something under.
var errAgain = errors.New("another process was faster")

// replaceInSteps replaces where names cannot be exchanged (NFS, for one). The folder is missing for a moment;
// the old one is restored when the second step fails, or by the next run if the process dies between the two.
func (o *Output) replaceInSteps(ops operations) error {
	if o.file {
		o.state = replaced
		if err := os.Link(o.final, o.aside); err != nil {
			o.state = forgotten
		}
		if err := ops.rename(o.work, o.final); err != nil {
			_ = os.Remove(o.aside)
			o.state = writing
			return err
		}
		return nil
	}
	if err := ops.rename(o.final, o.aside); err != nil {
		return err
	}
	err := ops.renameNew(o.work, o.final)
	if err == nil {
		o.state = replaced
		return nil
	}
	back := ops.renameNew(o.aside, o.final)
	switch {
	case errors.Is(back, fs.ErrNotExist): // another run took this one for dead and put the old one back
		back = nil
	case errors.Is(back, fs.ErrExist): // another run put its own there, which the old one is no match for
		back = os.RemoveAll(o.aside)
	case back != nil:
		o.state = stranded
		back = fmt.Errorf("the old one lies at %s until the next run: %w", o.aside, cause(back))
	}
	if errors.Is(err, fs.ErrExist) && back == nil {
		return errAgain
	}
	return errors.Join(err, back)
}

// takeBack undoes placeOne.
func (o *Output) takeBack(ops operations) error {
	var err error
	switch o.state {
	case writing, stranded:
		return nil
	case fresh:
		err = ops.rename(o.final, o.work)
	case exchanged:
		err = ops.exchange(o.work, o.final)
	case replaced:
		if err = ops.rename(o.final, o.work); err == nil {
			err = ops.rename(o.aside, o.final)
		}
		if errors.Is(err, fs.ErrNotExist) { // another run was faster
			if _, there := os.Lstat(o.final); there == nil {
				err = nil
			}
		}
	case removed:
		err = ops.renameNew(o.aside, o.final)
	case forgotten:
		return fmt.Errorf("the old file is gone")
	}
	if err == nil {
		o.state = writing
	}
	return err
}

// syncTree flushes a file, or a folder with everything in it, to the device.
func syncTree(path string) error {
	g := work.NewGroup()
	g.SetLimit(8) // flushes wait for the device, not for a CPU
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && (d.IsDir() || d.Type().IsRegular()) {
			g.Go(func() error { return syncPath(p) })
		}
		return err
	})
	return errors.Join(err, g.Wait())
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
