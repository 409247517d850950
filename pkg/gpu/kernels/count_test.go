//go:build !nocuda

package kernels

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"strata/pkg/dtype"
	"strata/tests/cudaemu"
	"strata/tests/gputest"
)

// noise returns what tests/gpuverify measures kernels on: numbers of a normal distribution as float32, whose bytes
// are taken as they are for other types.
func noise[T dtype.Element](n int) []T {
	v := make([]T, n)
	b := make([]float32, (len(dtype.Bytes(v))+3)/4)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = float32(rng.NormFloat64() * 300)
	}
	copy(dtype.Bytes(v), dtype.Bytes(b))
	return v
}

// counted is a launch whose requests of memory are counted.
type counted struct {
	what string
	run  func(b *bench) error
	cost func(c cudaemu.Counts) int64
	old  int64   // cost of the kernels at commit 17fc8047, counted by the same interpreter on the same launch
	less float64 // the cost is so many times less than then, or at most a twentieth above the least possible, where cost is of sectors
}

// Costs: sectors that requests touch; requests; loads of a thread, one after the other. An atomic reads a sector and
// writes it.
func sectors(c cudaemu.Counts) int64  { return c.Loaded + c.Stored + 2*c.Atomic }
func requests(c cudaemu.Counts) int64 { return c.Requests }
func longest(c cudaemu.Counts) int64  { return c.Longest }
func banks(c cudaemu.Counts) int64    { return c.Shared }

// rolling rolls 65 planes of 64², by shifts of noise or by those of a smooth surface.
func rolling[T dtype.Element](smooth bool) func(b *bench) error {
	return func(b *bench) error {
		const planes, side = 65, 64
		shift := noise[float32](side * side)
		if smooth {
			for i := range shift {
				shift[i] = float32(i%side)*0.05 + float32(i/side)*0.3
			}
		}
		v := noise[T](planes * side * side)
		return Roll(b.stream, b.alloc(len(dtype.Bytes(v))), upload(b, v), b.alloc(8), dtype.Of[T](), planes, side, side, upload(b, shift), side)
	}
}

// adding sums 256 planes of 64². gpuverify's sums began 8 bytes behind the beginning of a buffer.
func adding[T dtype.Element](skip int64) func(b *bench) error {
	return func(b *bench) error {
		const planes, n = 256, 64 * 64
		return AddPlanes(b.stream, b.alloc(8*n+16).From(skip, 8*n), upload(b, noise[T](planes*n)), b.alloc(8), dtype.Of[T](), planes, n, true)
	}
}

// countingKeys counts a million magnitudes.
func countingKeys[T dtype.Element](values func(n int) []T) func(b *bench) error {
	return func(b *bench) error {
		const n = 1 << 20
		p, err := NewMagnitudePercentile(b.stream, dtype.Of[T](), 99.9, 8<<20)
		if err != nil {
			return err
		}
		b.t.Cleanup(p.Release)
		return p.Add(b.stream, upload(b, values(n)), n)
	}
}

func uniform[T dtype.Element](n int) []T {
	v := make([]T, n)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range v {
		v[i] = T(rng.Uint32())
	}
	return v
}

// TestTransactions: kernels that were far below a copy on the H100 ask for a fifth of what they asked of memory before.
// The interpreter counts it.
func TestTransactions(t *testing.T) {
	cases := []counted{
		{"roll uint8, shifts of noise", rolling[uint8](false), sectors, 292202, 5},
		{"roll uint16, shifts of noise", rolling[uint16](false), sectors, 333534, 5},
		{"roll float32, shifts of noise", rolling[float32](false), sectors, 291192, 5},
		{"roll uint8, smooth shifts", rolling[uint8](true), sectors, 31004, 5},
		{"roll uint16, smooth shifts", rolling[uint16](true), sectors, 46158, 5},
		{"roll float32, smooth shifts", rolling[float32](true), sectors, 77748, 5},
		{"add_planes uint8, sums at 8", adding[uint8](8), requests, 32896, 5},
		{"add_planes uint8, sums at 8", adding[uint8](8), longest, 2048, 5},
		{"add_planes uint8", adding[uint8](0), longest, 256, 5},
		{"add_planes uint16, sums at 8", adding[uint16](8), requests, 32896, 5},
		{"add_planes uint16, sums at 8", adding[uint16](8), longest, 1024, 5},
		{"add_planes uint16", adding[uint16](0), longest, 256, 5},
		{"keys uint16, noise", countingKeys(noise[uint16]), sectors, 1786330, 5},
		{"keys uint16, uniform", countingKeys(uniform[uint16]), sectors, 2125130, 5},
		{"keys int16, noise", countingKeys(noise[int16]), sectors, 1658064, 5},
		{"keys uint8, noise", countingKeys(noise[uint8]), banks, 345737, 2.5},
	}
	const variable = "STRATA_TEST_COUNTED"
	if os.Getenv(variable) != "" {
		b := open(t)
		for _, c := range cases {
			b.check(c.run(b))
			b.check(b.stream.Wait())
		}
		return
	}
	gputest.NeedDouble(t)
	if os.Getenv("CUEMU_PTX") != "" {
		return // the run before has counted
	}
	file := filepath.Join(t.TempDir(), "counts")
	child := exec.Command(os.Args[0], "-test.run=^TestTransactions$", "-test.count=1")
	child.Env = append(os.Environ(), variable+"=1", "CUEMU_PTX=1", "CUEMU_COUNT="+file)
	if out, err := child.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all, err := cudaemu.ReadCounts(file)
	if err != nil || len(all) != len(cases) {
		t.Fatalf("%d launches, want %d; %v", len(all), len(cases), err)
	}
	for i, c := range cases {
		now := c.cost(all[i])
		t.Logf("%s: %d, %d before (%.1f times that); %+v", c.what, now, c.old, float64(c.old)/float64(now), all[i])
		least := c.cost(cudaemu.Counts{Loaded: all[i].Least}) // 0, if cost is not of sectors
		if float64(now)*c.less > float64(c.old) && float64(now) > 1.05*float64(least) {
			t.Errorf("%s: %d, want at most %d", c.what, now, int64(float64(c.old)/c.less))
		}
	}
}
