package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"strata/pkg/host"
)

// facts holds the conditions that the numbers depend on besides the programs.
type facts struct {
	Date, Commit, Changed string // Changed: files that differ from the commit
	CPU, OS, Kernel, Go   string
	Cores                 int
	MemoryMiB             int64
	Load                  string // before the run
	Versions              string // of the peers and the C libraries
	About                 string // the data, in words
	Shape                 []int
	Out                   string // file system of what is written
}

func gatherFacts(ctx context.Context, p *plan) (*facts, error) {
	packages := "'zarr', 'numcodecs', 'zarrs', 'tensorstore', 'numpy'"
	if p.shape == nil && p.mosaics == "" {
		packages = "'zarr', 'numpy', 'scipy', 'scikit-image', 'BaSiCPy', 'jax'"
	}
	if p.packages != "" {
		packages = p.packages
	}
	f := &facts{Date: time.Now().UTC().Format("2006-01-02 15:04 MST"), CPU: host.CPUModel(), Cores: runtime.NumCPU(), Go: runtime.Version(), Shape: p.shape, About: p.about}
	f.Commit = output(ctx, "git", "rev-parse", "--short", "HEAD")
	if changed := output(ctx, "git", "status", "--porcelain", "--", "*.go", "*.s", "go.mod"); changed != "" {
		f.Changed = fmt.Sprint(len(strings.Split(changed, "\n")))
	}
	f.Kernel = output(ctx, "uname", "-sr")
	for _, l := range strings.Split(readFile("/etc/os-release"), "\n") {
		if v, ok := strings.CutPrefix(l, "PRETTY_NAME="); ok {
			f.OS = strings.Trim(v, `"`)
		}
	}
	f.MemoryMiB = host.Memory() >> 20
	f.Load, _, _ = strings.Cut(readFile("/proc/loadavg"), " ")
	f.Out = output(ctx, "stat", "-f", "-c", "%T", p.out)
	if p.files {
		f.Versions = p.fileVersions(ctx)
		return f, nil
	}
	python := output(ctx, p.python, "-c", "import sys, importlib.metadata as m\n"+
		"print('Python', sys.version.split()[0], *(', %s %s' % (n, m.version(n)) for n in ("+packages+")), sep='')")
	c := output(ctx, p.tool("floor"), "versions")
	if python == "" || c == "" {
		return nil, fmt.Errorf("the peers (%s) or the C floor (%s) do not run", p.python, p.tool("floor"))
	}
	f.Versions = strings.Replace(python, "Python", "Python ", 1) + "; " + c
	if crate := output(ctx, p.tool("zarrs-bench"), "version"); crate != "" {
		f.Versions += "; " + crate
	}
	return f, nil
}

// output returns the output of a command, or "" if it does not run.
func output(ctx context.Context, name string, args ...string) string {
	b, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func readFile(name string) string {
	b, _ := os.ReadFile(name) // a fact less
	return string(b)
}
