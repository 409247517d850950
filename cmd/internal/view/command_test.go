package view

import (
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"strata/cmd/internal/phantom"
	"strata/cmd/internal/zarrtool"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"view": clitest.Of(Command), "zarr-tool": clitest.Of(zarrtool.Command), "phantom": clitest.Of(phantom.Command)})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// What the program prints is the address of a page that it serves until it is interrupted.
func TestServes(t *testing.T) {
	page, cmd, messages := serveProcess(t, nil, "../../../tests/golden/inputs/m_u16_v3shard.zip")
	for _, c := range []struct {
		address, says string
		code          int
	}{
		{page, "<!doctype html>", 200},
		{page + "api/images/0", `"shape":[40,96,160]`, 200},
		{page + "api/images/0/value?z=1&y=2&x=3", `"value":"`, 200},
		{page[:strings.Index(page[7:], "/")+8], "not found", 404},
	} {
		r, err := http.Get(c.address)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil || r.StatusCode != c.code || !strings.Contains(string(b), c.says) {
			t.Errorf("%s: %d %v, %.200q does not say %q", c.address, r.StatusCode, err, b, c.says)
		}
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGINT) {
		t.Errorf("it ended with %v: %s", err, messages.String())
	}
	if strings.Contains(messages.String(), "outputs") {
		t.Errorf("there are no outputs: %s", messages.String())
	}
	if token := strings.Split(page, "/")[3]; len(token) != 32 || strings.Contains(messages.String(), token) {
		t.Errorf("token %q, messages %s", token, messages.String())
	}
}

// Over SSH and in a job, the line is the one that leads from the reader's machine to this one.
func TestTunnel(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", ""},
		{"USER=ada", ""},
		{"USER=ada SSH_CONNECTION=10.0.0.9_50000_10.0.0.1_22", "ssh -N -L 8080:127.0.0.1:8080 ada@10.0.0.1"},
		{"SSH_CONNECTION=10.0.0.9_50000_10.0.0.1_2222", "ssh -N -L 8080:127.0.0.1:8080 -p 2222 10.0.0.1"},
		{"USER=ada SSH_CONNECTION=nonsense", ""},
		{"USER=ada SLURM_JOB_ID=7 SLURMD_NODENAME=node3 SLURM_SUBMIT_HOST=login1 SSH_CONNECTION=a_1_b_22", "ssh -N -L 8080:127.0.0.1:8080 -J ada@login1 ada@node3"},
		{"USER=ada SLURM_JOB_ID=7 SLURMD_NODENAME=node3", "ssh -N -L 8080:127.0.0.1:8080 ada@node3"},
	} {
		env := map[string]string{}
		for _, f := range strings.Fields(c.env) {
			name, v, _ := strings.Cut(f, "=")
			env[name] = strings.ReplaceAll(v, "_", " ")
		}
		for name := range env {
			if strings.HasSuffix(name, "ID") || name == "USER" {
				env[name] = strings.ReplaceAll(env[name], " ", "_")
			}
		}
		if got := tunnel(8080, func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%s: %q, want %q", c.env, got, c.want)
		}
	}
}
