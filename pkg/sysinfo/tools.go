package sysinfo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"strata/pkg/work"
)

// Tools holds the output of NVIDIA's programs, if installed.
type Tools struct {
	GDSCheck Fact[GDSCheck] `json:"gdscheck"`
	SMI      Fact[[]SMIGPU] `json:"nvidia_smi"`
}

// smiQuery is the query for nvidia-smi; recorded outputs hold the answer.
var smiQuery = []string{"--query-gpu=" + strings.Join(smiFields, ","), "--format=csv,noheader,nounits"}

// tools reads the output of the programs, live or recorded. The two run at the same time.
func (r Root) tools(ctx context.Context, o Options) Tools {
	smi := work.Async(func() Fact[[]SMIGPU] {
		return convert(r.output(ctx, o, "nvidia-smi", []string{"/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi"}, smiQuery...), parseSMI)
	})
	places := []string{"/usr/local/cuda/gds/tools/gdscheck", "/usr/local/cuda/gds/tools/gdscheck.py", "/usr/libexec/gds/tools/gdscheck"}
	check := convert(r.output(ctx, o, "gdscheck", places, "-p"), parseGDSCheck)
	return Tools{GDSCheck: check, SMI: smi()}
}

// output runs a program and returns its output; for a recorded machine, the recorded output.
func (r Root) output(ctx context.Context, o Options, name string, places []string, args ...string) Fact[string] {
	if !r.Live() {
		b, err := r.read("/outputs/" + name)
		if err != nil {
			return Fact[string]{Reason: "no output of " + name + " was recorded"}
		}
		return known(string(b))
	}
	if o.NoTools {
		return unknown[string]("%s was not asked", name)
	}
	file, err := exec.LookPath(name)
	if err != nil {
		for _, p := range places {
			if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				file = p
				break
			}
		}
	}
	if file == "" {
		return unknown[string]("%s is not installed", name)
	}
	f := runTool(ctx, 2*time.Second, file, args...)
	if f.Known() {
		r.keep.file("outputs/"+name, []byte(f.Value))
	}
	return f
}

// runTool runs a program for a limited time and keeps the beginning of its output, even if it fails.
func runTool(ctx context.Context, limit time.Duration, file string, args ...string) Fact[string] {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, file, args...)
	c.Env = append(os.Environ(), "LC_ALL=C")
	// cuFile's log would lie in the working folder.
	if dir, err := os.MkdirTemp("", "doctor"); err == nil {
		defer os.RemoveAll(dir)
		c.Env = append(c.Env, "CUFILE_LOGFILE_PATH="+filepath.Join(dir, "cufile.log"))
	}
	c.WaitDelay = 100 * time.Millisecond
	var out bytes.Buffer
	c.Stdout = &bounded{w: &out, left: mostBytes}
	err := c.Run()
	switch {
	case ctx.Err() != nil:
		return unknown[string]("%s did not end within %v", file, limit)
	case out.Len() == 0 && err != nil:
		return unknown[string]("%s: %v", file, err)
	case out.Len() == 0:
		return unknown[string]("%s printed nothing", file)
	}
	return known(out.String())
}

// bounded passes on the first bytes that are written to it, and drops the rest.
type bounded struct {
	w    io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	if _, err := b.w.Write(p[:n]); err != nil {
		return 0, errors.New("no memory for what a program prints")
	}
	return len(p), nil
}
