package sif

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"strata/pkg/work"
)

// RunRoot runs a command in an unpacked root, in its own user namespace, and returns its exit code. It
// changes nothing on the machine. If user namespaces are disabled, the error wraps [errNamespace].
func RunRoot(ctx context.Context, r Run) (code int, err error) {
	temp, err := os.MkdirTemp("", "sif-run-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(temp) // what is mounted there is in another namespace
	p, err := r.plan(temp)
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	planFile, err := os.CreateTemp(temp, "plan-")
	if err != nil {
		return 0, err
	}
	defer planFile.Close()
	if _, err := planFile.Write(text); err != nil {
		return 0, err
	}
	if _, err := planFile.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	status, child, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer status.Close()
	defer child.Close()

	cmd := exec.CommandContext(ctx, "/proc/self/exe") // not looked for on the PATH
	cmd.Args = r.Self
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Stdin, r.Stdout, r.Stderr
	cmd.ExtraFiles = []*os.File{planFile, child} // 3 and 4 there
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.SysProcAttr = namespaces()

	// The command dies with the thread that started it, which is with us.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return 0, namespaceError(err)
	}
	child.Close()
	said, err := io.ReadAll(io.LimitReader(status, 1<<16)) // ends when the command is started
	if len(said) > 0 || err != nil {
		_ = cmd.Wait()
		return 0, errors.Join(insideError(said), err)
	}
	if r.Started != nil {
		r.Started()
	}
	defer passSignals(cmd.Process, r.Stdin)()
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return 128 + int(s.Signal()), ctx.Err()
		}
		return exit.ExitCode(), ctx.Err()
	}
	return 0, err
}

// namespaces returns the attributes of a process in a user namespace, in which the user stays the same, and
// in a mount namespace.
func namespaces() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
	}
	if os.Geteuid() != 0 {
		// Else they would be lost when the second half is started.
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE}
	}
	return a
}

// passSignals forwards signals to a command. An interrupt from the terminal reaches the command anyway; ours
// must not end before it does.
func passSignals(p *os.Process, stdin *os.File) (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Reset(syscall.SIGINT, syscall.SIGQUIT)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGCONT)
	terminal := stdin != nil && term.IsTerminal(int(stdin.Fd()))
	done := work.Async(func() error {
		for s := range signals {
			if !terminal || s != syscall.SIGINT && s != syscall.SIGQUIT {
				_ = p.Signal(s)
			}
		}
		return nil
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		_ = done()
	}
}

// namespaceError explains why no namespace could be made.
func namespaceError(err error) error {
	for _, no := range []error{syscall.EPERM, syscall.EINVAL, syscall.ENOSPC, syscall.EUSERS, syscall.ENOSYS, syscall.EACCES} {
		if errors.Is(err, no) {
			return fmt.Errorf("%w: they are off on this machine (%w): ask its administrator for user.max_user_namespaces above 0"+
				" (and kernel.apparmor_restrict_unprivileged_userns=0 where there is such a setting), or use apptainer", errNamespace, no)
		}
	}
	return err
}

// insideError returns the error that the second half reported before it could start the command.
func insideError(said []byte) error {
	kind, text, _ := strings.Cut(string(said), "\n")
	if n, err := strconv.Atoi(kind); err == nil && n != 0 {
		return namespaceError(fmt.Errorf("%s: %w", text, syscall.Errno(n)))
	}
	return errors.New(text)
}

// fixed lists the machine's folders that every command sees unchanged, if they exist.
var fixed = []string{"/dev", "/proc", "/sys", "/tmp", "/var/tmp"}

// plan puts everything together that the second half needs.
func (r *Run) plan(temp string) (*plan, error) {
	p := &plan{Root: r.Root, Mount: filepath.Join(temp, "root")}
	if err := os.Mkdir(p.Mount, 0o755); err != nil {
		return nil, err
	}
	home, _ := os.UserHomeDir()
	work, _ := os.Getwd()
	var binds []Bind
	add := func(source, target string) {
		taken := slices.ContainsFunc(append(binds, r.Binds...), func(b Bind) bool { return b.Target == target })
		if info, err := os.Stat(source); err == nil && !taken && (info.IsDir() || info.Mode().IsRegular()) {
			binds = append(binds, Bind{Source: source, Target: target})
		}
	}
	for _, dir := range fixed {
		add(dir, dir)
	}
	for _, name := range []string{"/etc/resolv.conf", "/etc/hosts"} {
		add(name, name)
	}
	if err := identity(r.Root, temp, home, add); err != nil {
		return nil, err
	}
	if home != "" && home != "/" {
		add(home, filepath.Clean(home))
	}
	if r.Dir == "" && work != "" && work != "/" {
		seen := slices.ContainsFunc(append(binds, r.Binds...), func(b Bind) bool { return work == b.Target || below(work, b.Target) })
		if _, err := os.Stat(filepath.Join(r.Root, work)); !seen && err != nil {
			add(work, work)
		}
	}
	if r.NVIDIA {
		for _, b := range driverFiles() {
			add(b.Source, b.Target)
		}
	}
	if err := p.arrange(append(binds, r.Binds...)); err != nil {
		return nil, err
	}
	p.Dirs = []string{r.Dir}
	if r.Dir == "" {
		p.Dirs = []string{work, home, "/"}
	}
	p.Args, p.Env = r.command()
	return p, nil
}

// identity binds copies of the image's user and group files in which we are.
func identity(root, temp, home string, add func(source, target string)) error {
	uid, gid := strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid())
	name, group := "user", "group"
	if u, err := user.LookupId(uid); err == nil {
		name = u.Username
	}
	if g, err := user.LookupGroupId(gid); err == nil {
		group = g.Name
	}
	for _, f := range []struct{ file, id, line string }{
		{"passwd", uid, fmt.Sprintf("%s:x:%s:%s::%s:/bin/sh\n", name, uid, gid, home)},
		{"group", gid, fmt.Sprintf("%s:x:%s:\n", group, gid)},
	} {
		text, err := os.ReadFile(filepath.Join(root, "etc", f.file))
		if err != nil || hasID(text, f.id) {
			continue // the image has no such file, or knows us
		}
		copied := filepath.Join(temp, f.file)
		if err := os.WriteFile(copied, append(text, f.line...), 0o644); err != nil {
			return err
		}
		add(copied, "/etc/"+f.file)
	}
	return nil
}

// hasID reports whether the third field of a line is the id.
func hasID(text []byte, id string) bool {
	for line := range bytes.Lines(text) {
		if f := strings.Split(strings.TrimSpace(string(line)), ":"); len(f) > 2 && f[2] == id {
			return true
		}
	}
	return false
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the machine's environment with the paths of an image.
func (r *Run) environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "BASH_ENV", "ENV"}, name)
	})
	env = append(env, "PATH="+defaultPath)
	for _, prefix := range []string{"APPTAINER", "SINGULARITY"} {
		env = append(env, prefix+"_CONTAINER="+r.Image, prefix+"_NAME="+filepath.Base(r.Image))
	}
	if r.NVIDIA {
		env = append(env, "LD_LIBRARY_PATH="+libsDir)
	}
	return env
}

// enter reads the image's environment, sets what the user gave, and becomes the
// command.
const enter = `for file in ` + metaDir + `/env/*.sh; do [ ! -f "$file" ] || . "$file"; done
while [ "$1" != -- ]; do export "$1"; shift; done
shift
exec "$@"`

// command returns the command to start in the root, and its environment.
func (r *Run) command() (args, env []string) {
	args, env = r.Args, r.environment()
	// No command has a name with a dash in front: flags are the runscript's.
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		script := runscriptFile
		if _, err := os.Stat(filepath.Join(r.Root, runscriptFile)); err != nil {
			script = "/bin/sh"
		}
		args = append([]string{script}, args...)
	}
	if at, err := inRoot(r.Root, "/bin/sh"); err == nil {
		if _, err := os.Stat(filepath.Join(r.Root, at)); err == nil {
			script := append([]string{"/bin/sh", "-c", enter, "sh"}, r.Env...)
			return append(append(script, "--"), args...), env
		}
	}
	// An image without a shell has no scripts that could set anything.
	for _, v := range r.Env {
		name, _, _ := strings.Cut(v, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, v)
	}
	return args, env
}
