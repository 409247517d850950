package view

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asOther runs f on a thread of user 65533.
func asOther(t *testing.T, f func()) {
	t.Helper()
	const user = 65533
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, user, user, user)
		if errno != 0 {
			done <- errno
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
