package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"strata/pkg/gpu/cost"
	"strata/tests/cudaemu"
)

// stage is a program with what it is asked to do. IN, SLICES, SHIFTS and OUT stand for files.
type stage struct {
	name  string
	args  string
	share float64 // of the input that the output has, where only the arguments say it
}

var stages = []stage{
	{"aip", "IN OUT", 0},
	{"resample", "IN OUT", 0},
	{"focal", "IN OUT", 0},
	{"crop", "IN OUT --depth 100", 29.0 / 80},
	{"stitch", "IN OUT", 0},
	{"stack", "SLICES SHIFTS OUT --moving_z_first_index 1", 0},
}

// stacked counts the slices that stack gets.
const stacked = 3

// input is how the phantom is stored.
type input struct {
	name  string
	flag  string
	codec cost.Codec
}

var codecs = []input{{"raw", "raw", cost.Raw}, {"blosc-zstd:1", "blosc-zstd:1", cost.Blosc}, {"zstd:3", "zstd:3", cost.Zstd}}

// phantoms are the tiles of what is measured: the small one says what a run takes whatever its size, the medium one
// what kernels move, which is slow to see, the large one what the host's processors do, alone and beside a device.
var phantoms = map[string][3]int64{"small": {16, 32, 32}, "medium": {80, 96, 96}, "large": {80, 160, 160}}

// machine runs programs on the host and on the double.
type machine struct {
	bin, dir      string
	plain, traced string // doubles: one that is fast, and one that knows what kernels move
}

func (m *machine) inputs(ctx context.Context) error {
	for size, tile := range phantoms {
		for _, c := range codecs {
			to := m.input(size, c)
			if _, err := os.Stat(filepath.Join(to, "shifts_xy.csv")); err == nil {
				continue
			}
			if err := os.MkdirAll(m.dir, 0o777); err != nil {
				return err
			}
			phantom := exec.CommandContext(ctx, filepath.Join(m.bin, "phantom"), to, "-q", "-f", "--anatomy", "0", "--tiles", "2,2", "--tile", fmt.Sprintf("%d,%d,%d", tile[0], tile[1], tile[2]), "--slices", fmt.Sprint(stacked),
				"--interval", "200", "--codec", c.flag)
			if out, err := phantom.CombinedOutput(); err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			if err := asSlices(to); err != nil {
				return err
			}
		}
	}
	return nil
}

// asSlices lets stack take the mosaics for slices.
func asSlices(dir string) error {
	to := filepath.Join(dir, "slices")
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	for z := range stacked {
		link := filepath.Join(to, fmt.Sprintf("slice_z%02d.ome.zarr", z))
		if err := os.Symlink(fmt.Sprintf("../mosaic_grid_3d_z%02d.ome.zarr", z), link); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

// measured is what a stage does for a byte of its decoded input, and what it takes beside that.
type measured struct {
	Stage   string
	Codec   cost.Codec
	Level   string  // codec and level, as flags have them
	Host    float64 // core-seconds a GB, on the host
	Beside  float64 // core-seconds a GB, beside a device that decodes and encodes
	Stored  float64 // of the input
	Written float64 // of the output, as stored

	Reads, Up, Down, Traffic float64
	Decoded, DecodeStreams   float64
	Encoded, EncodeStreams   float64
	Launches                 float64 // a tile
	Kernels                  int
	Pinned                   int64
	Clock                    float64 // seconds of the run that was measured
}

// measure runs a stage on the host and on the double.
func (m *machine) measure(ctx context.Context, s stage, c input) (measured, error) {
	r := measured{Stage: s.name, Codec: c.codec, Level: c.name}
	mosaics := 1.0
	if s.name == "stack" {
		mosaics = stacked
	}
	cpu, beside := map[string]float64{}, map[string]float64{}
	gb := map[string]float64{}
	for size, tile := range phantoms {
		gb[size] = mosaics * float64(4*4*tile[0]*tile[1]*tile[2]) / 1e9
	}
	for range rounds {
		for _, size := range []string{"small", "large"} {
			seconds, err := m.program(ctx, s, m.input(size, c), nil, "--no-use_gpu")
			if err != nil {
				return r, err
			}
			cpu[size] = shortest(cpu[size], seconds)
			clock, err := m.onDouble(ctx, m.plain, s, m.input(size, c))
			if err != nil {
				return r, err
			}
			beside[size] = shortest(beside[size], clock.Host.Worked)
		}
	}
	clock, err := m.onDouble(ctx, m.traced, s, m.input("medium", c))
	if err != nil {
		return r, err
	}
	stored, err := folder(filepath.Join(m.input("medium", c), "mosaic_grid_3d_z00.ome.zarr", "0"))
	if err != nil {
		return r, err
	}
	out, err := folder(filepath.Join(m.dir, "out.ome.zarr"))
	if err != nil {
		return r, err
	}
	n := gb["medium"] * 1e9
	r.Stored, r.Written = float64(stored)*mosaics/n, float64(out)/n
	r.count(clock, n, 4*mosaics)
	r.Host = max(cpu["large"]-cpu["small"], 0) / (gb["large"] - gb["small"])
	r.Beside = max(beside["large"]-beside["small"], 0) / (gb["large"] - gb["small"])
	return r, nil
}

func (m *machine) input(size string, c input) string {
	return filepath.Join(m.dir, size+"-"+string(c.codec))
}

// rounds is how often a program runs on the host; the shortest processor time counts, for others use the machine, too.
const rounds = 3

func shortest(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return min(before, now)
}

// count takes from the virtual clock what a run of so many bytes in so many tiles did.
func (m *measured) count(c cudaemu.Clock, n, tiles float64) {
	of := func(name string) cudaemu.ClockSum { return c.Work[name] }
	m.Up, m.Down = float64(of("up").Bytes+of("gds").Bytes)/n, float64(of("down").Bytes)/n // of raw chunks cuFile reads
	for _, memory := range []string{"kernels", "across", "memset"} {
		m.Traffic += float64(of(memory).Bytes) / n
		m.Launches += float64(of(memory).Calls) / tiles
	}
	for _, f := range []string{"zstd", "lz4", "deflate"} {
		m.Decoded += float64(of(f+"_decode").Bytes) / n
		m.DecodeStreams += float64(of(f+"_decode_streams").Calls) / n
		m.Encoded += float64(of(f+"_encode").Bytes) / n
		m.EncodeStreams += float64(of(f+"_encode_streams").Calls) / n
	}
	m.Kernels = int(of("function").Calls)
	m.Pinned = of("pin").Bytes
	if m.Reads = m.Up / m.Stored; m.Codec == cost.Zstd {
		m.Reads = m.Decoded
	}
	m.Clock = c.Seconds
}

// onDouble runs a stage on a double and returns what its clock says.
func (m *machine) onDouble(ctx context.Context, lib string, s stage, in string) (c cudaemu.Clock, err error) {
	file := filepath.Join(m.dir, "clock.json")
	env := []string{"CUEMU_CLOCK=" + file, "CUEMU_GPU=A100", "CUEMU_CC=80", "CUEMU_MEM=8589934592", "STRATA_LEASE_DIR=" + filepath.Join(m.dir, "lease")}
	for k, v := range cudaemu.Environment(lib) {
		env = append(env, k+"="+v)
	}
	if _, err := m.program(ctx, s, in, env, "--require_gpu"); err != nil {
		return c, err
	}
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	return c, err
}

// program runs a stage with one worker and returns its processor time.
func (m *machine) program(ctx context.Context, s stage, in string, env []string, more ...string) (float64, error) {
	args := strings.NewReplacer("IN", filepath.Join(in, "mosaic_grid_3d_z00.ome.zarr"), "SLICES", filepath.Join(in, "slices"), "SHIFTS", filepath.Join(in, "shifts_xy.csv"),
		"OUT", filepath.Join(m.dir, "out.ome.zarr")).Replace(s.args)
	p := exec.CommandContext(ctx, filepath.Join(m.bin, s.name), append(append(strings.Fields(args), "-q", "-f", "--threads", "1"), more...)...)
	p.Env = append(os.Environ(), env...)
	if out, err := p.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	u := p.ProcessState.SysUsage().(*syscall.Rusage)
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime), nil
}

// folder returns how many bytes the files of a folder have.
func folder(path string) (n int64, err error) {
	err = filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		i, err := e.Info()
		if err == nil {
			n += i.Size()
		}
		return err
	})
	return n, err
}
