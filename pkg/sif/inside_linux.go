package sif

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Inside runs the second half of [RunRoot] in its namespaces: the program calls it when it is started by
// [Run.Self]. It becomes the command and returns only if it cannot.
func Inside() error {
	runtime.LockOSThread()
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	status := os.NewFile(4, "status")
	err := inside()
	var errno syscall.Errno
	text := "0"
	if errors.As(err, &errno) && (errno == syscall.EPERM || errno == syscall.EACCES) && errors.Is(err, errNamespace) {
		text = fmt.Sprint(int(errno))
	}
	_, _ = fmt.Fprintf(status, "%s\n%v", text, err)
	return err
}

func inside() error {
	var p plan
	if err := json.NewDecoder(os.NewFile(3, "plan")).Decode(&p); err != nil {
		return fmt.Errorf("no plan to run: %w", err)
	}
	if err := p.mounts(); err != nil {
		return err
	}
	if err := enterRoot(p.Mount); err != nil {
		return err
	}
	if err := p.chdir(); err != nil {
		return err
	}
	// The command gets no rights that its user has not, and ends with us.
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("parent's death: %w", err)
	}
	file, err := lookPath(p.Args[0], p.Env)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", p.Args[0], syscall.Exec(file, p.Args, p.Env))
}

// mounts puts the new root together.
func (p *plan) mounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("%w: mounts of its own: %w", errNamespace, err)
	}
	if err := unix.Mount("tmpfs", p.Mount, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("%w: tmpfs: %w", errNamespace, err)
	}
	if err := p.graft("/"); err != nil {
		return err
	}
	for _, b := range p.Make {
		if err := makeTarget(filepath.Join(p.Mount, b.Target), b.Source); err != nil {
			return err
		}
	}
	for _, b := range p.Binds {
		if err := bind(b.Source, filepath.Join(p.Mount, b.Target), b.ReadOnly); err != nil {
			return fmt.Errorf("bind %s to %s: %w", b.Source, b.Target, err)
		}
	}
	// The folders that were made anew are as read-only as those of the image.
	if err := unix.Mount("", p.Mount, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return fmt.Errorf("read-only root: %w", err)
	}
	return nil
}

// graft fills a folder of the new root with the image's content. It recreates folders in which something must
// be made, and binds all others.
func (p *plan) graft(dir string) error {
	entries, err := os.ReadDir(filepath.Join(p.Root, dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		from, to := filepath.Join(p.Root, name), filepath.Join(p.Mount, name)
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err == nil {
				err = os.Symlink(target, to)
			}
			if err != nil {
				return err
			}
			continue
		case e.IsDir() && slices.Contains(p.Open, name):
			if err := os.Mkdir(to, 0o755); err != nil {
				return err
			}
			if err := p.graft(name); err != nil {
				return err
			}
			continue
		}
		if err := makeTarget(to, from); err != nil {
			return err
		}
		if err := bind(from, to, true); err != nil {
			return fmt.Errorf("bind %s of the image: %w", name, err)
		}
	}
	return nil
}

// makeTarget makes an empty file or folder, as the source is, to bind on.
func makeTarget(name, source string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.MkdirAll(name, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func bind(source, target string, readOnly bool) error {
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if !readOnly {
		return nil
	}
	// What the mount forbids already must stay so.
	var s unix.Statfs_t
	if err := unix.Statfs(target, &s); err != nil {
		return err
	}
	flags := uintptr(s.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if s.Flags&unix.ST_RELATIME != 0 {
		flags |= unix.MS_RELATIME
	}
	return unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|flags, "")
}

// enterRoot makes a folder the root.
func enterRoot(dir string) error {
	if err := os.Chdir(dir); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err == nil {
		// The old root lies on the new one.
		if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
			return fmt.Errorf("leave the old root: %w", err)
		}
		return os.Chdir("/")
	}
	// The root of an initial RAM disk cannot be pivoted from.
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("%w: chroot: %w", errNamespace, err)
	}
	return os.Chdir("/")
}

func (p *plan) chdir() error {
	var err error
	for _, dir := range p.Dirs {
		if dir == "" {
			continue
		}
		if err = os.Chdir(dir); err == nil {
			return nil
		}
	}
	return err
}

// lookPath finds a program as a shell would.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	search := defaultPath
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			search = value
		}
	}
	for _, dir := range filepath.SplitList(search) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: no such program in the image", name)
}
