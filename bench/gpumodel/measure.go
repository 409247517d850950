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

// stage is a program with its arguments. IN, SLICES, SHIFTS and OUT stand for files.
type stage struct {
	name  string
	args  string
	share float64 // of the input that the output has, where only the arguments say it
}

var stages = []stage{
	{"aip", "IN OUT", 0},
	{"resample", "IN OUT", 0},
	{"focal", "IN OUT", 0},
	{"crop", "IN OUT --depth 250", 72.0 / 200},
	{"stitch", "IN OUT", 0},
	{"stack", "SLICES SHIFTS OUT --moving_z_first_index 1", 0},
}

// slices is the number of mosaics for stack.
const slices = 3

// phantoms are the mosaics to measure, by their tiles along y and x. What a run does for more tiles is the difference between the two: the start of a
// process, and the first chunk of each array, which nvCOMP and the host decode to be compared, are in both. Tiles are those that are predicted for.
var phantoms = map[string][2]int64{"few": {1, 2}, "many": {2, 2}}

var tile = [3]int64{region / 4 / 256 / 256, 256, 256}

// more says how many tiles, and how many decoded bytes, many has and few has not.
func more() (tiles, bytes float64) {
	few, many := phantoms["few"], phantoms["many"]
	tiles = float64(many[0]*many[1] - few[0]*few[1])
	return tiles, tiles * tileBytes()
}

func tileBytes() float64 { return float64(4 * tile[0] * tile[1] * tile[2]) }

// input is a way to store the phantom.
type input struct {
	name  string
	flag  string
	codec cost.Codec
}

var codecs = []input{{"raw", "raw", cost.Raw}, {"blosc-zstd:1", "blosc-zstd:1", cost.Blosc}, {"zstd:3", "zstd:3", cost.Zstd}}

// machine runs programs on the host and on the double.
type machine struct {
	bin, dir, lib string
}

func (m *machine) inputs(ctx context.Context) error {
	for size, grid := range phantoms {
		for _, c := range codecs {
			to := m.input(size, c)
			if _, err := os.Stat(filepath.Join(to, "shifts_xy.csv")); err == nil {
				continue
			}
			if err := os.MkdirAll(m.dir, 0o777); err != nil {
				return err
			}
			phantom := exec.CommandContext(ctx, filepath.Join(m.bin, "phantom"), to, "-q", "-f", "--anatomy", "0", "--tiles", fmt.Sprintf("%d,%d", grid[0], grid[1]),
				"--tile", fmt.Sprintf("%d,%d,%d", tile[0], tile[1], tile[2]), "--slices", fmt.Sprint(slices),
				"--interval", "500", "--codec", c.flag)
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

// asSlices presents the mosaics to stack as slices.
func asSlices(dir string) error {
	to := filepath.Join(dir, "slices")
	if err := os.MkdirAll(to, 0o777); err != nil {
		return err
	}
	for z := range slices {
		link := filepath.Join(to, fmt.Sprintf("slice_z%02d.ome.zarr", z))
		if err := os.Symlink(fmt.Sprintf("../mosaic_grid_3d_z%02d.ome.zarr", z), link); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return nil
}

// measured holds the work of a stage per byte of its decoded input, and its fixed costs.
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
		mosaics = slices
	}
	cpu, clock := map[string]float64{}, map[string]cudaemu.Clock{}
	for size := range phantoms {
		for range rounds {
			seconds, err := m.program(ctx, s, m.input(size, c), nil, "--no-use_gpu")
			if err != nil {
				return r, err
			}
			cpu[size] = shortest(cpu[size], seconds)
		}
		var err error
		if clock[size], err = m.onDouble(ctx, s, m.input(size, c)); err != nil {
			return r, err
		}
		if size != "many" {
			continue
		}
		if err := r.sizes(m.dir, m.input(size, c), mosaics); err != nil {
			return r, err
		}
	}
	few, many := clock["few"], clock["many"]
	tiles, n := more()
	tiles, n = tiles*mosaics, n*mosaics
	r.count(few, many, n, tiles)
	r.Host = max(cpu["many"]-cpu["few"], 0) / n * 1e9
	r.Beside = max(many.Host.Worked-few.Host.Worked, 0) / n * 1e9
	return r, nil
}

// sizes notes what many of an input, and of the output of a stage, take as stored.
func (r *measured) sizes(dir, in string, mosaics float64) error {
	n := mosaics * tileBytes() * float64(phantoms["many"][0]*phantoms["many"][1])
	stored, err := folder(filepath.Join(in, "mosaic_grid_3d_z00.ome.zarr", "0"))
	if err != nil {
		return err
	}
	out, err := folder(filepath.Join(dir, "out.ome.zarr"))
	r.Stored, r.Written = float64(stored)*mosaics/n, float64(out)/n
	return err
}

func (m *machine) input(size string, c input) string {
	return filepath.Join(m.dir, size+"-"+string(c.codec))
}

// rounds is the number of runs of a program on the host; the shortest processor time counts, because others use the
// machine, too.
const rounds = 3

func shortest(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return min(before, now)
}

// count takes from the virtual clocks of two runs what n more bytes in so many more tiles make a stage do.
func (m *measured) count(few, many cudaemu.Clock, n, tiles float64) {
	bytes := func(names ...string) (sum float64) {
		for _, name := range names {
			sum += float64(many.Work[name].Bytes - few.Work[name].Bytes)
		}
		return sum / n
	}
	calls := func(names ...string) (sum float64) {
		for _, name := range names {
			sum += float64(many.Work[name].Calls - few.Work[name].Calls)
		}
		return sum
	}
	m.Up, m.Down = bytes("up", "gds"), bytes("down") // of raw chunks cuFile reads
	m.Traffic = bytes("kernels", "across", "memset")
	m.Launches = calls("kernels", "across", "memset") / tiles
	m.Decoded, m.DecodeStreams = bytes("zstd_decode", "lz4_decode", "deflate_decode"), calls("zstd_decode_streams", "lz4_decode_streams", "deflate_decode_streams")/n
	m.Encoded, m.EncodeStreams = bytes("zstd_encode", "lz4_encode", "deflate_encode"), calls("zstd_encode_streams", "lz4_encode_streams", "deflate_encode_streams")/n
	m.Kernels = int(many.Work["function"].Calls)
	m.Pinned = many.Work["pin"].Bytes
	if m.Reads = m.Up / m.Stored; m.Codec == cost.Zstd {
		m.Reads = m.Decoded
	}
	m.Clock = many.Seconds
}

// onDouble runs a stage on the double and returns its virtual clock.
func (m *machine) onDouble(ctx context.Context, s stage, in string) (c cudaemu.Clock, err error) {
	file := filepath.Join(m.dir, "clock.json")
	env := []string{"CUEMU_CLOCK=" + file, "CUEMU_GPU=A100", "CUEMU_CC=80", "CUEMU_MEM=8589934592", "STRATA_LEASE_DIR=" + filepath.Join(m.dir, "lease")}
	for k, v := range cudaemu.Environment(m.lib) {
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

// folder returns the size of the files in a folder.
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
