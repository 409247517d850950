//go:build !nocuda

package cudaemu_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"strata/pkg/gpu"
	"strata/pkg/gpu/cost"
	"strata/pkg/gpu/cufile"
	"strata/pkg/gpu/nvcomp"
	"strata/tests/cudaemu"
)

// TestClock: the virtual clock puts work where streams, events, engines and waits allow it, at the speeds of the table.
func TestClock(t *testing.T) {
	_, f := cost.ForGPU("A100", 80)
	up := func(bytes float64) float64 { return f["copy_latency"] + bytes/f["up"] }
	memory := func(bytes float64) float64 { return f["kernel"] + bytes/(f["memory"]*f["memory_share"]) }
	for name, c := range map[string]struct {
		do   func(b *bench)
		want float64 // seconds from the beginning to the end of what both streams do
	}{
		"upload":         {func(b *bench) { b.s[0].Upload(b.b[0].Span, b.h[0]) }, up(n)},
		"one way, twice": {func(b *bench) { b.s[0].Upload(b.b[0].Span, b.h[0]); b.s[1].Upload(b.b[1].Span, b.h[1]) }, 2 * up(n)},
		"both ways":      {func(b *bench) { b.s[0].Upload(b.b[0].Span, b.h[0]); b.s[1].Download(b.h[1], b.b[1].Span) }, up(n)},
		"both ways in a stream": {func(b *bench) {
			b.s[0].Upload(b.b[0].Span, b.h[0])
			b.s[0].Download(b.h[1], b.b[0].Span)
		}, 2 * up(n)},
		"event": {func(b *bench) {
			b.s[0].Upload(b.b[0].Span, b.h[0])
			b.s[0].Record(b.e)
			b.s[1].Follow(b.e)
			b.s[1].Download(b.h[1], b.b[0].Span)
		}, 2 * up(n)},
		"memory beside a copy": {func(b *bench) { b.s[0].Upload(b.b[0].Span, b.h[0]); b.s[1].Zero(b.b[1].Span) }, max(up(n), memory(n))},
		"copy on the device":   {func(b *bench) { b.s[0].Copy(b.b[0].Span, b.b[1].Span) }, memory(2 * n)},
	} {
		t.Run(name, func(t *testing.T) {
			there, out, passed := apart(t, "CUEMU_CLOCK=/dev/null", "CUEMU_CLOCK_HOST=0")
			if !there {
				if !passed {
					t.Error(out)
				}
				return
			}
			b := newBench(t)
			var e [3]*gpu.Event // begin, ends
			for i := range e {
				var err error
				if e[i], err = b.TimedEvent(); err != nil {
					t.Fatal(err)
				}
			}
			b.s[0].Record(e[0])
			c.do(b)
			b.s[0].Record(e[1])
			b.s[1].Record(e[2])
			if err := b.wait(); err != nil {
				t.Fatal(err)
			}
			took := 0.0
			for _, end := range e[1:] {
				s, err := end.Since(e[0])
				if err != nil {
					t.Fatal(err)
				}
				took = max(took, s)
			}
			if math.Abs(took-c.want) > 1e-3*c.want {
				t.Errorf("%.4g s, want %.4g", took, c.want)
			}
		})
	}
}

// TestClockStart: what comes before the first kernel is counted, and a driver without cubins compiles.
func TestClockStart(t *testing.T) {
	_, f := cost.ForGPU("H100", 90)
	file := filepath.Join(t.TempDir(), "clock.json")
	there, out, passed := apart(t, "CUEMU_CLOCK="+file, "CUEMU_CLOCK_HOST=0", "CUEMU_GPU=H100")
	if there {
		d := open(t, gpu.Limits{Pinned: 1 << 20})
		if _, err := d.Kernel(machineCode(cubin("mean", 75, meanSizes...)), "mean"); err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !passed {
		t.Fatal(out)
	}
	got := readClock(t, file)
	if want := f["init"] + f["context"] + f["cubin"]; got.GPU != "H100" || math.Abs(got.Seconds-want) > 1e-6 {
		t.Errorf("%s: %v s, want %v", got.GPU, got.Seconds, want)
	}
}

// TestClockLibraries: cuFile's driver takes a second to open, also where it refuses, and the first call of nvCOMP for
// each format and direction loads kernels.
func TestClockLibraries(t *testing.T) {
	_, f := cost.ForGPU("H100", 90)
	for _, mode := range []string{"native", "compat"} {
		t.Run(mode, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "clock.json")
			there, out, passed := apart(t, "CUEMU_CLOCK="+file, "CUEMU_CLOCK_HOST=0", "CUEMU_GPU=H100", "CUEMU_CUFILE="+mode)
			if there {
				d := open(t, gpu.Limits{Memory: 64 << 20, Pinned: 1 << 20})
				if c, err := cufile.Open(d); err == nil {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				} else if mode == "native" {
					t.Error(err)
				}
				lib, err := nvcomp.Open(d)
				if err != nil {
					t.Fatal(err)
				}
				for _, format := range []nvcomp.Format{nvcomp.Zstd, nvcomp.LZ4} {
					if err := lib.Warm(d, format); err != nil {
						t.Error(err)
					}
				}
				if err := d.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			if !passed {
				t.Fatal(out)
			}
			got := readClock(t, file)
			for kind, calls := range map[string]int64{"gds_open": 1, "decode_first": 3, "encode_first": 2} {
				if w := got.Work[kind]; w.Calls != calls || math.Abs(w.Seconds-float64(calls)*f[kind]) > 1e-9 || f[kind] <= 0 {
					t.Errorf("%s: %+v, want %d calls of %v s", kind, w, calls, f[kind])
				}
			}
			if least := f["init"] + f["context"] + f["gds_open"]; got.Seconds < least {
				t.Errorf("%v s, of which the start takes %v", got.Seconds, least)
			}
		})
	}
}

func readClock(t *testing.T, file string) cudaemu.Clock {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c cudaemu.Clock
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return c
}
