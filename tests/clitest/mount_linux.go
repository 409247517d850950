package clitest

import (
	"fmt"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"strata/pkg/units"
)

// mayMount tries it once.
var mayMount = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "mount")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4096") != nil {
		return false
	}
	return unix.Unmount(dir, unix.MNT_DETACH) == nil
})

func mountTmpfs(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg, "tmpfs")
	want(ts, args, 2, "tmpfs DIR SIZE")
	size, err := units.ParseSize(args[1])
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o777))
	ts.Check(unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)))
	ts.Defer(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

func makeReadOnly(ts *testscript.TestScript, neg bool, args []string) {
	noNegation(ts, neg, "readonly")
	want(ts, args, 1, "readonly DIR")
	ts.Check(unix.Mount("", ts.MkAbs(args[0]), "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
}
