package atomic

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Change declares a folder that the run changes in place, and locks it until the process ends: a second run
// on it gets [ErrBusy]. If the file system cannot lock folders (NFS), nothing is locked.
func (g *Group) Change(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		g.changing = append(g.changing, f)
		return nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return refuse(ErrBusy, "%s is being changed by another run: wait for its end", path)
	}
	return nil
}

// release unlocks the folders that the run changed.
func (g *Group) release() {
	for _, f := range g.changing {
		f.Close()
	}
	g.changing = nil
}
