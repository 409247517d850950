package repo

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Programs brings bin/ up to date with make build, and returns its path. A program that is current keeps its bytes and
// its times, and costs a second; a stale one is linked again, so that no test runs what its sources no longer say.
// Tests of several packages that call it at the same time wait for each other.
func Programs() (string, error) {
	if err := os.MkdirAll(Path("build"), 0o777); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(Path("build", "programs.lock"), os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	c := exec.Command("make", "-s", "build")
	c.Dir = root
	for _, v := range os.Environ() { // make test is another make's business
		if name, _, _ := strings.Cut(v, "="); name != "MAKEFLAGS" && name != "MAKELEVEL" && name != "MFLAGS" {
			c.Env = append(c.Env, v)
		}
	}
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("make build: %w\n%s", err, out)
	}
	return Path("bin"), nil
}
