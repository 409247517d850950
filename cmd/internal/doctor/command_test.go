package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"strata/pkg/gpu/lease"
	"strata/tests/clitest"
	"strata/tests/sysinfotest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"doctor": clitest.Of(Command), "with-lease": withLease, "recorded": unpack})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

// No driver, and what else a machine without a GPU may have.
func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// unpack is "recorded NAME DIR": it unpacks a recorded machine.
func unpack() {
	archive := filepath.Join(os.Getenv("ROOT"), "pkg/sysinfo/testdata", os.Args[1]+".txtar")
	if err := sysinfotest.Unpack(archive, os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// withLease is "with-lease UUID BYTES CMD...": it runs a command while it holds, or
// waits for, memory of a device of 8 GiB.
func withLease() {
	if err := runWithLease(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runWithLease(uuid, size string, command []string) error {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	run := func() error {
		c := exec.Command(command[0], command[1:]...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		return c.Run()
	}
	var waited bool
	var failed error
	l, err := lease.Acquire(ctx, "", []lease.Device{{UUID: uuid, Memory: 8 << 30}}, n, lease.Options{Wait: func(string) {
		waited = true
		failed = run()
		cancel()
	}})
	if waited {
		return failed
	}
	if err != nil {
		return err
	}
	defer l.Release()
	return run()
}
