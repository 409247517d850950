package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strata/pkg/cli/flags"
	"strata/pkg/runrecord"
)

// inBatch runs a command of a function for each pair of a list, and returns its exit code and what it wrote to
// standard error.
func inBatch(t *testing.T, list string, do func(ctx context.Context, r *Run) error, more ...string) (code int, said string) {
	t.Helper()
	c := &flags.Command{
		Name: "demo", Usage: "write what stands in IN to OUT", Args: []flags.Arg{{Name: "IN"}, {Name: "OUT"}}, Shared: flags.Pairs | flags.Outputs,
		Flags: []flags.Flag{{Name: "side", Value: "FILE", Written: true}, {Name: "with", Value: "FILE"}}, Run: Do(do),
	}
	var stderr bytes.Buffer
	err := flags.Parse(c, append([]string{"--batch", "-"}, more...), func(l *flags.Line) error {
		if err := l.Count(); err != nil {
			return err
		}
		code = c.Run(l, flags.Streams{In: strings.NewReader(list), Out: io.Discard, Err: &stderr})
		return nil
	})
	if err != nil {
		return PrintError(&stderr, "demo", err), stderr.String()
	}
	return code, stderr.String()
}

// copied writes a file.
func copied(_ context.Context, r *Run) error {
	out, err := r.OutputFile(r.Arg("OUT"))
	if err != nil {
		return err
	}
	return out.Write(func(w io.Writer) error { _, err := io.WriteString(w, r.Arg("IN")+" "+r.String("with")); return err })
}

func TestBatch(t *testing.T) {
	t.Chdir(t.TempDir())
	code, said := inBatch(t, "a\tx/one.ome.zarr\nb\ttwo.zarr\nc\tthree\n", copied, "--with", "{name} of {out}", "--report", "{out}.json")
	for path, want := range map[string]string{"x/one.ome.zarr": "a one of x/one", "two.zarr": "b two of two", "three": "c three of three"} {
		if got, err := os.ReadFile(path); string(got) != want {
			t.Errorf("%s: %q, want %q (%v)", path, got, want, err)
		}
	}
	if code != 0 || !strings.Contains(said, "demo: 3 of 3 pairs done; ") {
		t.Errorf("exit code %d: %s", code, said)
	}
	r, err := runrecord.Read(t.Context(), "x/one.json")
	if err != nil || r.Batch == nil || *r.Batch != (runrecord.Batch{List: standardInput, Line: 1, Pairs: 3, In: "a", Out: "x/one.ome.zarr"}) {
		t.Errorf("record %+v: %v", r, err)
	}
}

// TestBatchCode: each pair has its turn whatever became of those before, a panic included; the exit code is the worst.
func TestBatchCode(t *testing.T) {
	t.Chdir(t.TempDir())
	failures := map[string]error{"usage": Usage("no"), "input": BadInputf("bad"), "gpu": GPUFailure(io.EOF), "machine": io.ErrShortWrite}
	do := func(ctx context.Context, r *Run) error {
		in := r.Arg("IN")
		if in == "panic" {
			panic("on purpose")
		}
		if err := failures[in]; err != nil {
			return err
		}
		return copied(ctx, r)
	}
	for i, c := range []struct {
		pairs string
		code  int
		done  int
	}{
		{"ok", 0, 1}, {"input ok", 3, 1}, {"ok input usage", 2, 1}, {"usage input ok ok", 2, 2}, {"gpu usage input", 4, 0}, {"input gpu ok", 4, 1},
		{"machine gpu usage", 1, 0}, {"input machine", 1, 0}, {"panic ok", 1, 1}, {"gpu panic", 1, 0},
	} {
		var list strings.Builder
		words := strings.Fields(c.pairs)
		for k, in := range words {
			fmt.Fprintf(&list, "%s\t%d-%d\n", in, i, k)
		}
		code, said := inBatch(t, list.String(), do)
		if want := fmt.Sprintf("%d of %d pair", c.done, len(words)); code != c.code || !strings.Contains(said, want) {
			t.Errorf("%s: exit code %d, want %d and %q: %s", c.pairs, code, c.code, want, said)
		}
	}
}

// TestBatchMany names at most ten pairs that failed in its last line.
func TestBatchMany(t *testing.T) {
	var list strings.Builder
	for i := range 15 {
		fmt.Fprintf(&list, "in\tout%d\n", i)
	}
	code, said := inBatch(t, list.String(), func(context.Context, *Run) error { return BadInputf("bad") }, "--quiet")
	last := said[strings.LastIndex(strings.TrimSpace(said), "\n")+1:]
	if code != 3 || !strings.HasPrefix(last, "demo: 0 of 15 pairs done; failed: out0 (standard input:1, exit code 3), ") || !strings.Contains(last, ", 5 more; ") || strings.Count(last, "(") != 10 {
		t.Errorf("exit code %d: %s", code, last)
	}
}

// TestBatchSignal: a signal ends the pair that is worked on, and no other is begun; those that are done stay.
func TestBatchSignal(t *testing.T) {
	t.Chdir(t.TempDir())
	do := func(ctx context.Context, r *Run) error {
		if err := copied(ctx, r); err != nil || r.Arg("IN") != "second" {
			return err
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return fmt.Errorf("no signal")
		}
	}
	code, said := inBatch(t, "first\ta\nsecond\tb\nthird\tc\n", do)
	for _, want := range []string{
		`(?m)^demo: standard input:2: interrupted by SIGTERM: unfinished outputs are removed$`,
		`(?m)^demo: 1 of 3 pairs done; interrupted by SIGTERM before 2 pairs$`,
	} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("no %s in %s", want, said)
		}
	}
	left, _ := filepath.Glob("*")
	hidden, _ := filepath.Glob(".*")
	if code != ExitTerminated || fmt.Sprint(left, hidden) != "[a] []" {
		t.Errorf("exit code %d, %v, %v", code, left, hidden)
	}
}

// TestBatchTakenOver: what a process hands over is what the next one goes on with.
func TestBatchTakenOver(t *testing.T) {
	b := &batch{List: "list", Pairs: []pair{{1, "a\x80", "b"}, {7, "c", "d"}}, Next: 1, Done: 1, Failed: []failure{{0, 3}}, Started: time.Now().Round(0)}
	fd, err := b.handOver()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(batchVariable, fmt.Sprint(fd))
	got, err := taken()
	if err != nil || !slices.Equal(got.Pairs, b.Pairs) || got.Next != 1 || got.Done != 1 || len(got.Failed) != 1 || !got.Started.Equal(b.Started) {
		t.Errorf("%+v: %v", got, err)
	}
	if os.Getenv(batchVariable) != "" {
		t.Error("programs that are started from here would take it over, too")
	}
	for _, wrong := range []string{"x", "2", "-1", "999"} {
		t.Setenv(batchVariable, wrong)
		if got, err := taken(); err == nil {
			t.Errorf("%q: %+v", wrong, got)
		}
	}
}

func FuzzPairs(f *testing.F) {
	for _, s := range []string{"a\tb\n", "\ufeffa\tb\r\n# c\n\n \n", "a", "a\tb\tc", "\t", "a\x00\tb"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		pairs, err := pairsIn(text, "list")
		if err != nil {
			if ExitCode(err) != ExitBadInput || !strings.HasPrefix(err.Error(), "--batch list:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		lines := bytes.Split(text, []byte("\n"))
		for _, p := range pairs {
			if line := string(lines[p.Line-1]); p.In == "" || p.Out == "" || !strings.Contains(line, p.In+"\t"+p.Out) {
				t.Errorf("%q: %+v", text, p)
			}
		}
	})
}
