package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strata/pkg/runrecord"
	"strata/tests/clitest"
)

// stage is a stage with what it is run on in these tests: everything below the
// folder "in", that specimen writes, and its outputs in the folder "o".
type stage struct {
	name     string
	in       string   // what it reads; "" for slices
	args     []string // without the number of levels
	sidecars []string // outputs beside the image
	perTile  int64    // memory for each tile of a mosaic, whatever its size
	cpu      bool     // it has no --use_gpu
}

const mosaic = "in/mosaic_grid_3d_z00.ome.zarr"

var stages = []stage{
	{"aip", mosaic, []string{mosaic, "o/out.ome.zarr", "--png", "o/out.png"}, []string{"out.png"}, 0, false},
	{"resample", mosaic, []string{mosaic, "o/out.ome.zarr", "--resolution", "6"}, nil, 0, false},
	{"focal", mosaic, []string{mosaic, "o/out.ome.zarr", "--save_map", "o/maps"}, []string{"maps"}, 448 << 10, false}, // BaSiC takes all tiles at 128 × 128
	{"crop", mosaic, []string{mosaic, "o/out.ome.zarr", "--depth", "200", "--crop_before_interface"}, []string{"out_crop.json"}, 0, false},
	{"stitch", mosaic, []string{mosaic, "o/out.ome.zarr", "--estimate", "--save_transform", "o/transform.json", "--save_positions", "o/positions.json"},
		[]string{"transform.json", "positions.json"}, 128 << 10, false}, // overviews of 128 × 128 pixels, and as much again until it is collected
	{"smooth", mosaic, []string{mosaic, "o/out.ome.zarr", "--median", "3", "--sigma_px", "1.5"}, nil, 0, true},
	{"stack", "", []string{"in/slices", "in/shifts_xy.csv", "o/out.ome.zarr", "--blend", "--slicing_interval_mm", "0.2", "--pyramid_resolutions", "10,25",
		"--output_z_matches", "o/z_matches.csv", "--output_stacking_decisions", "o/decisions.csv"}, []string{"z_matches.csv", "decisions.csv"}, 0, false},
}

func (s stage) line(more ...string) []string {
	line := slices.Concat(s.args, []string{"--progress", "none"}, more)
	if !s.cpu {
		line = append(line, "--no-use_gpu")
	}
	return line
}

// specimen writes a phantom's mosaics into dir/in, and links them as slices.
func specimen(t *testing.T, dir string, args ...string) {
	t.Helper()
	run(t, dir, "phantom", append([]string{"in", "-q"}, args...)...)
	found, err := filepath.Glob(dir + "/in/mosaic_grid_3d_z*.ome.zarr")
	if err != nil || len(found) == 0 {
		t.Fatalf("no mosaic: %v", err)
	}
	for _, f := range found {
		staged(t, dir, "in/slices/"+strings.Replace(filepath.Base(f), "mosaic_grid_3d", "slice", 1), f)
	}
	if err := os.MkdirAll(dir+"/o", 0o777); err != nil {
		t.Fatal(err)
	}
}

// outputs is what lies in dir/o.
func outputs(t *testing.T, dir string, hidden bool) map[string]string {
	t.Helper()
	files := tree(t, dir+"/o")
	maps.DeleteFunc(files, func(name, _ string) bool { return !hidden && strings.Contains(name, ".strata-") })
	return files
}

// Killed or interrupted at any moment, a stage leaves its outputs as they were,
// all of them, or has put all new ones in place.
func TestStagesKilledInTheMiddle(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every stage a dozen times")
	}
	dir := t.TempDir()
	specimen(t, dir, "--slices", "3", "--tiles", "3,3", "--tile", "96,128,128", "--codec", "gzip:1")
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			reset := func(levels string) map[string]string {
				if err := os.RemoveAll(dir + "/o"); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(dir+"/o", 0o777); err != nil {
					t.Fatal(err)
				}
				run(t, dir, s.name, s.line("--codec", levels)...)
				return outputs(t, dir, true)
			}
			started := time.Now()
			renewed := reset("zstd:1")
			whole := time.Since(started)
			for _, f := range s.sidecars {
				if _, err := os.Stat(filepath.Join(dir, "o", f)); err != nil {
					t.Error(err)
				}
			}
			old := reset("raw")
			if maps.Equal(old, renewed) {
				t.Fatal("two runs that should differ do not")
			}
			hit, terminated := 0, 0
			signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}
			// 8 moments of a run; more where the machine was busier when the run was timed than now
			for i := 0; i < 8 || (hit < 3 || terminated == 0) && i < 60; i++ {
				sig := signals[i%2]
				c := command(dir, s.name, s.line("--codec", "zstd:1", "-f", "-q")...)
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(whole * time.Duration(i%8+1) / 9)
				_ = c.Process.Signal(sig) // it may have ended
				err := c.Wait()
				code := c.ProcessState.ExitCode()
				early := sig == syscall.SIGTERM && code == -1 // it did not listen yet, and removed nothing of the killed one before
				got := outputs(t, dir, sig != syscall.SIGKILL && !early)
				switch {
				case early && maps.Equal(got, old):
				case maps.Equal(got, old) && err != nil:
					hit++
					if sig == syscall.SIGTERM {
						terminated++
						if code != 143 {
							t.Errorf("SIGTERM: exit code %d, want 143", code)
						}
					}
				case maps.Equal(got, renewed):
					whole = whole * 4 / 5
					reset("raw")
				case sig == syscall.SIGKILL && everyFileOf(got, old, renewed):
					reset("raw") // between the renames of a commit
				default:
					t.Fatalf("%v after %d/9 of a run: neither the old outputs nor the new ones (exit code %d)", sig, i%8+1, code)
				}
			}
			if hit < 3 || terminated == 0 {
				t.Errorf("only %d of 60 runs were hit in the middle, %d of them by SIGTERM", hit, terminated)
			}
			// the next run removes what a dead one left
			run(t, dir, s.name, s.line("--codec", "zstd:1", "-f")...)
			if got := outputs(t, dir, true); !maps.Equal(got, renewed) {
				t.Errorf("%d files after the last run, want %d", len(got), len(renewed))
			}
		})
	}
}

// everyFileOf says whether every output is wholly that of one run or of the other.
func everyFileOf(got, old, renewed map[string]string) bool {
	place := func(file string) string { // of the output to which a file belongs: focal's maps are outputs of their own
		parts := strings.SplitN(file[1:], "/", 3)
		if parts[0] == "maps" {
			return parts[0] + "/" + parts[1]
		}
		return parts[0]
	}
	output := func(files map[string]string, name string) map[string]string {
		m := map[string]string{}
		for f, content := range files {
			if place(f) == name {
				m[f] = content
			}
		}
		return m
	}
	names := map[string]bool{}
	for f := range renewed {
		names[place(f)] = true
	}
	for name := range names {
		if g := output(got, name); !maps.Equal(g, output(old, name)) && !maps.Equal(g, output(renewed, name)) {
			return false
		}
	}
	return true
}

// An input that breaks in the middle of the work leaves nothing either.
func TestStagesBrokenChunk(t *testing.T) {
	dir := t.TempDir()
	specimen(t, dir, "--slices", "3", "--tiles", "2,2", "--tile", "24,32,32", "--codec", "zstd:1")
	for i := range 3 {
		chunk := fmt.Sprintf("%s/in/mosaic_grid_3d_z%02d.ome.zarr/0/c/0/1/1", dir, i)
		if err := os.WriteFile(chunk, []byte("broken"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			out := fails(t, 3, dir, s.name, s.line("--report", dir+"/"+s.name+".json")...)
			if !strings.Contains(out, "0/c/0/1/1: ") {
				t.Errorf("the broken chunk is not named:\n%s", out)
			}
			if left := outputs(t, dir, true); len(left) > 0 {
				t.Errorf("left behind: %q", slices.Sorted(maps.Keys(left)))
			}
			if r := readRecord(t, dir+"/"+s.name+".json"); r.ExitCode != 3 || !strings.Contains(out, r.Error) || r.Error == "" {
				t.Errorf("record: exit code %d, error %q", r.ExitCode, r.Error)
			}
		})
	}
}

func readRecord(t *testing.T, path string) runrecord.Record {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r runrecord.Record
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// The record says what went in and out, what it cost, and which outputs there are.
func TestStagesRecord(t *testing.T) {
	dir := t.TempDir()
	specimen(t, dir, "--slices", "3", "--tiles", "2,2", "--tile", "64,64,64", "--dtype", "uint16")
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			if err := os.RemoveAll(dir + "/o"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir+"/o", 0o777); err != nil {
				t.Fatal(err)
			}
			run(t, dir, s.name, s.line("--report", "r-"+s.name+".json", "-j", "2", "--mem", "100MiB")...)
			r := readRecord(t, dir+"/r-"+s.name+".json")
			if r.Tool != s.name || r.ExitCode != 0 || r.Error != "" || r.Threads != 2 || r.Mem != 100<<20 || r.WallSeconds <= 0 || r.PeakResidentBytes == 0 {
				t.Errorf("record: %+v", r)
			}
			if r.BytesRead == 0 || r.BytesWritten == 0 || r.Phases.Read <= 0 || r.Phases.Compute <= 0 || r.Phases.Encode <= 0 || r.Phases.Write <= 0 {
				t.Errorf("costs: %d bytes read, %d written, phases %+v", r.BytesRead, r.BytesWritten, r.Phases)
			}
			if want := map[bool]int{true: 1, false: 4}[s.in != ""]; len(r.Inputs) < want {
				t.Fatalf("%d inputs, want %d", len(r.Inputs), want)
			}
			images := 0
			for _, in := range r.Inputs {
				if in.Path == "" || in.Bytes <= 0 {
					t.Errorf("input: %+v", in)
				}
				if len(in.Shape) == 3 && in.DType == "uint16" && len(in.Chunks) == 3 && len(in.Codecs) > 0 {
					images++
				}
			}
			if want := map[bool]int{true: 1, false: 3}[s.in != ""]; images != want {
				t.Errorf("%d images among the inputs, want %d: %+v", images, want, r.Inputs)
			}
			if len(r.Outputs) == 0 || r.Outputs[0].Path != "o/out.ome.zarr" && r.Outputs[0].Path.Reveal() != dir+"/o/out.ome.zarr" || len(r.Outputs[0].Shape) < 2 || r.Outputs[0].Bytes <= 0 {
				t.Errorf("outputs: %+v", r.Outputs)
			}
		})
	}
}

// Over HTTP a stage makes what it makes from the disk.
func TestStagesOverHTTP(t *testing.T) {
	dir := t.TempDir()
	specimen(t, dir, "--tiles", "2,2", "--tile", "32,64,64", "--shard", "32,128,128", "--chunks", "32,64,64")
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	for _, s := range stages {
		if s.in == "" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			line := s.line("-f")
			run(t, dir, s.name, line...)
			if err := os.Rename(dir+"/o/out.ome.zarr", dir+"/"+s.name+".ome.zarr"); err != nil {
				t.Fatal(err)
			}
			line[slices.Index(line, s.in)] = server.URL + "/" + s.in
			run(t, dir, s.name, line...)
			run(t, dir, "zarr-tool", "validate", "o/out.ome.zarr", s.name+".ome.zarr", "-q")
		})
	}
}

// Links to inputs, and to the folder of the output, are followed; results do
// not depend on threads, memory, or how the input is stored.
func TestStagesSameNumbers(t *testing.T) {
	dir := t.TempDir()
	specimen(t, dir, "--slices", "3", "--tiles", "2,3", "--tile", "40,48,56", "--crop", "5,7")
	for i := range 3 {
		name := fmt.Sprintf("mosaic_grid_3d_z%02d.ome.zarr", i)
		run(t, dir, "zarr-tool", "reencode", "in/"+name, "other/"+name, "--zarr_format", "2", "--codec", "lz4", "-q")
		staged(t, dir, "other/slices/slice_"+name[len("mosaic_grid_3d_"):], dir+"/other/"+name)
	}
	staged(t, dir, "elsewhere", t.TempDir())
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			run(t, dir, s.name, s.line("-f", "-j", "1")...)
			for _, change := range [][]string{
				{"-j", "4", "--mem", "40MiB"},
				{"-j", "3", "--mem", "2GiB", "--codec", "gzip:1", "--zarr_format", "2"},
			} {
				line := s.line(append(change, "-f")...)
				for i, a := range line {
					a = strings.ReplaceAll(a, "in/mosaic", "other/mosaic")
					a = strings.ReplaceAll(a, "in/slices", "other/slices")
					line[i] = strings.Replace(a, "o/", "elsewhere/", 1)
					if strings.HasPrefix(a, "other/") {
						line[i] = a
					}
				}
				run(t, dir, s.name, line...)
				run(t, dir, "zarr-tool", "validate", "o/out.ome.zarr", "elsewhere/out.ome.zarr", "-q")
				for _, f := range s.sidecars {
					if filepath.Ext(f) == "" || f == "out_crop.json" {
						continue // folders of images; paths within
					}
					a, errA := os.ReadFile(filepath.Join(dir, "o", f))
					b, errB := os.ReadFile(filepath.Join(dir, "elsewhere", f))
					if errA != nil || errB != nil || string(a) != string(b) {
						t.Errorf("%v: %s differs (%v, %v)", change, f, errA, errB)
					}
				}
			}
		})
	}
}

// Memory is flat: four times the input, about the same peak, not far above --mem.
func TestStagesMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 600 MB")
	}
	small, large := t.TempDir(), t.TempDir()
	specimen(t, small, "--noise", "--tiles", "4,4", "--tile", "64,128,128", "--dtype", "uint16", "--slices", "2", "--codec", "zstd:1")
	specimen(t, large, "--noise", "--tiles", "8,8", "--tile", "64,128,128", "--dtype", "uint16", "--slices", "2", "--codec", "zstd:1")
	const limit = 64 << 20
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			peak := func(dir string) int64 {
				run(t, dir, s.name, s.line("-f", "--mem", "64MiB", "-j", "2", "--report", "r.json")...)
				return readRecord(t, dir+"/r.json").PeakResidentBytes
			}
			a, b := peak(small), peak(large)
			t.Logf("%d MiB for %d MiB of input, %d MiB for %d MiB", a>>20, 32, b>>20, 128)
			// 48 tiles more; under --mem it is a matter of who is faster, reader or writer, and
			// the program itself comes on top
			if b > max(a, limit)+24<<20+48*s.perTile || b > 3*limit {
				t.Errorf("peak grew from %d to %d MiB with the input", a>>20, b>>20)
			}
		})
	}
}

// Full disks and read-only inputs need file systems of their own: see testdata.
func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }
