package run

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"strata/pkg/host"
)

// If a process lacks files, threads or memory, Go's runtime ends it with a dump of all goroutines and exit code 2,
// which means wrong usage. Shortages that are known beforehand are refused here; the supervisor handles the others.

// fewestFiles is the number of files that a run has open at the same time, in addition to its streams and the runtime's
// files: chunks being read and written, and the folders that lead to them.
const fewestFiles = 6

// checkFiles fails where the process may open too few files.
func checkFiles() error {
	var open []int
	defer func() {
		for _, fd := range open {
			_ = unix.Close(fd)
		}
	}()
	for range fewestFiles {
		fd, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
		if err == syscall.EMFILE {
			var limit unix.Rlimit
			_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
			return fmt.Errorf("too few files may be open (ulimit -n is %d): at least %d more are needed", limit.Cur, fewestFiles-len(open))
		}
		if err != nil {
			return nil // standard error is closed, or the machine has no more: later errors say so
		}
		open = append(open, fd)
	}
	return nil
}

// memoryLimits returns the limits for buffers, and where they come from in words: the control group, or the
// remaining address space if that is less.
func memoryLimits() (l host.Limits, what string) {
	l, what = host.CgroupLimits(), "its control group allows"
	if _, left, limited := host.AddressSpace(); limited && (l.Memory == nil || left < *l.Memory) {
		l.Memory, what = &left, "its address space (ulimit -v) leaves"
	}
	return l, what
}
