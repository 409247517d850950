package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"strata/pkg/cli"
	"strata/pkg/host"
	"strata/tests/clitest"
)

// A writer is a command line that can replace what lies at OUT.
type writer struct {
	line string
	kind string // of OUT: image (a Zarr hierarchy), folder (replaced as a whole), file, files (in a folder that may hold others)
}

// writers has every way in which a program replaces something; names not in capitals are inputs that [material] makes.
var writers = []writer{
	{line: "start in --json --preview OUT.png", kind: "file"},
	{line: "mosaic raw/z00 OUT", kind: "image"},
	{line: "mosaic raw OUT --all", kind: "files"},
	{line: "aip mosaic OUT", kind: "image"},
	{line: "aip mosaic FRESH --png OUT.png", kind: "file"},
	{line: "resample mosaic OUT --resolution 20", kind: "image"},
	{line: "focal mosaic OUT", kind: "image"},
	{line: "focal mosaic FRESH --save_map OUT", kind: "files"},
	{line: "flatfield mosaic OUT", kind: "image"},
	{line: "stitch mosaic OUT", kind: "image"},
	{line: "stitch mosaic --estimate_only OUT.json", kind: "file"},
	{line: "stitch mosaic FRESH --save_transform OUT.json --estimate", kind: "file"},
	{line: "stitch mosaic FRESH --save_positions OUT.json", kind: "file"},
	{line: "stitch estimate in OUT.json", kind: "file"},
	{line: "stitch compare slice slice OUT", kind: "files"},
	{line: "beam-profile slice OUT", kind: "image"},
	{line: "crop slice OUT", kind: "image"},
	{line: "attenuation slice OUT", kind: "image"},
	{line: "normalize slice OUT", kind: "image"},
	{line: "smooth slice OUT --sigma 20", kind: "image"},
	{line: "slices config in/shifts_xy.csv OUT.csv", kind: "file"},
	{line: "slices assess slices OUT.csv", kind: "file"},
	{line: "slices exclude transforms config.csv OUT.csv", kind: "file"},
	{line: "slices finalise manifests config.csv OUT.csv", kind: "file"},
	{line: "shifts estimate raw OUT.csv", kind: "file"},
	{line: "shifts clean in/shifts_xy.csv OUT.csv", kind: "file"},
	{line: "shifts analyze in/shifts_xy.csv OUT", kind: "files"},
	{line: "shifts rotation in/shifts_xy.csv OUT", kind: "files"},
	{line: "shifts suggest in/shifts_xy.csv OUT", kind: "files"},
	{line: "common-space slices in/shifts_xy.csv OUT", kind: "folder"},
	{line: "interpolate slice next OUT", kind: "image"},
	{line: "register slice next OUT", kind: "files"},
	{line: "register --all slices OUT", kind: "files"},
	{line: "register analyze transforms OUT", kind: "files"},
	{line: "manual export slices transforms OUT", kind: "files"},
	{line: "manual apply OUT place.json", kind: "files"},
	{line: "manual transform slices transforms OUT", kind: "files"},
	{line: "stack slices in/shifts_xy.csv OUT", kind: "image"},
	{line: "bias-field slice OUT", kind: "image"},
	{line: "bias-field slice FRESH --save_bias_field OUT", kind: "image"},
	{line: "align slice OUT --template next --max_iterations 1", kind: "image"},
	{line: "preview slice OUT.png", kind: "file"},
	{line: "qc-report OUT.html --run report", kind: "file"},
	{line: "phantom OUT --tile 8,16,16", kind: "folder"},
	{line: "zarr-tool cat slice/0 --output OUT.npy", kind: "file"},
	{line: "zarr-tool import slice.tif OUT", kind: "image"},
	{line: "zarr-tool export slice OUT.tif", kind: "file"},
	{line: "zarr-tool reencode slice OUT", kind: "image"},
	{line: "zarr-tool ome slice/0 OUT", kind: "image"},
	{line: "zarr-tool clip slice OUT --percentile_upper 99", kind: "image"},
	{line: "zarr-tool mask slice OUT --threshold 1", kind: "image"},
	{line: "sif lock OUT.lock", kind: "elsewhere"},                // asks a package mirror; its file is one that the user names
	{line: "sif build OUT.sif", kind: "elsewhere"},                // the same
	{line: "sif sign OUT.sif", kind: "elsewhere"},                 // replaces an image by itself and a signature
	{line: "sif extract image.sif OUT", kind: "elsewhere"},        // takes only an empty folder: cmd/internal/sif/testdata
	{line: "bench-io PATH --results OUT.json", kind: "elsewhere"}, // files of the same function as the next
	{line: "bench-tile views slice --results OUT.json --quick", kind: "elsewhere"},
	{line: "bench-tile html bench.json OUT.html", kind: "elsewhere"}, // its file is started like that of qc-report
	{line: "bench-zarr read slice/0 --results OUT.json", kind: "elsewhere"},
	{line: "bench-zarr write PLACE --results OUT.json", kind: "elsewhere"},
	{line: "bench-zarr sweep WHERE --results OUT.json", kind: "elsewhere"},
	{line: "bench-zarr html bench.json OUT.html", kind: "elsewhere"}, // its file is started like that of qc-report
	{line: "bench-tiff read slice.tif --results OUT.json", kind: "elsewhere"},
	{line: "bench-tiff round-trip slice.tif OUT", kind: "image"},
	{line: "bench-tiff convert slice.tif OUT.tif", kind: "file"},
	{line: "bench-tiff make OUT.tif --size 64", kind: "file"},
	{line: "bench-tiff html bench.json OUT.html", kind: "elsewhere"}, // its file is started like that of qc-report
	{line: "bench-czi run scan.czi --output OUT.json", kind: "elsewhere"},
	{line: "bench-czi profile scan.czi --results OUT.json", kind: "elsewhere"},
	{line: "bench-czi quick scan.czi --results OUT.json", kind: "elsewhere"},
	{line: "bench-czi html bench.json OUT.html", kind: "elsewhere"}, // its file is started like that of qc-report
}

// Every command that has --overwrite is in the table.
func TestWritersAreAll(t *testing.T) {
	missing := map[string]bool{}
	var look func(path string, c *cli.Command)
	look = func(path string, c *cli.Command) {
		if c.Run != nil && c.Shared&cli.Outputs != 0 {
			missing[path] = true
		}
		for _, sub := range c.Commands {
			look(path+" "+sub.Name, sub)
		}
	}
	for _, m := range members {
		look(m.Name, m.Command())
	}
	for _, w := range writers {
		words := strings.Fields(w.line)
		delete(missing, words[0])
		delete(missing, strings.Join(words[:2], " "))
	}
	for path := range missing {
		t.Errorf("%s can overwrite and is not tried", path)
	}
}

// A place makes what a test finds at OUT.
type place struct {
	name  string
	kinds string // for which it is
	make  func(t *testing.T, w *writer, out string)
	kept  string // "": refused; otherwise this file stays, whether the program refuses or not
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o777); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// copied copies a folder of the material.
func copied(t *testing.T, from, to string) {
	t.Helper()
	mkdir(t, filepath.Dir(to))
	if out, err := exec.Command("cp", "-r", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
}

const precious = "photos/a.jpg"

var places = []place{
	{"an object as .zattrs", "image folder files", func(t *testing.T, _ *writer, out string) { put(t, out+"/.zattrs", "{}") }, precious},
	{"zarr.json that is no JSON", "image folder files", func(t *testing.T, _ *writer, out string) { put(t, out+"/zarr.json", "no JSON") }, precious},
	{".zgroup that is a folder", "image folder files", func(t *testing.T, _ *writer, out string) { mkdir(t, out+"/.zgroup") }, precious},
	{"only other things", "image folder files", func(t *testing.T, _ *writer, out string) {}, precious},
	{"an image with notes", "image folder files", func(t *testing.T, _ *writer, out string) { copied(t, "slice", out) }, precious},
	{"an image with labels by hand", "image folder files", func(t *testing.T, _ *writer, out string) {
		copied(t, "slice", out)
		copied(t, "slice", out+"/labels/mine")
	}, "labels/mine/zarr.json"},
	{"a group of two images", "image folder files", func(t *testing.T, _ *writer, out string) {
		put(t, out+"/zarr.json", `{"zarr_format":3,"node_type":"group","attributes":{}}`)
		copied(t, "slice", out+"/A")
		copied(t, "slice", out+"/B")
	}, "B/zarr.json"},
	{"a link to such a folder", "image folder files", func(t *testing.T, _ *writer, out string) {
		put(t, out+".there/zarr.json", "x")
		if err := os.Symlink(filepath.Base(out)+".there", out); err != nil {
			t.Fatal(err)
		}
	}, precious},
	{"its own output and notes", "image folder files", func(t *testing.T, w *writer, out string) {
		if text, code := strata(t, w.args(out)); code != 0 {
			t.Fatalf("%s: %s", w.line, text)
		}
	}, precious},
	{"a folder", "file", func(t *testing.T, _ *writer, out string) { mkdir(t, out) }, precious},
	{"a link to a folder", "file", func(t *testing.T, _ *writer, out string) {
		mkdir(t, out+".there")
		if err := os.Symlink(filepath.Base(out)+".there", out); err != nil {
			t.Fatal(err)
		}
	}, precious},
	{"a file", "image folder files", func(t *testing.T, _ *writer, out string) { put(t, out, "precious") }, ""},
}

// args are the arguments of the line with -f.
func (w *writer) args(out string) []string {
	args := strings.Fields(w.line)
	for i, a := range args {
		args[i] = strings.Replace(strings.Replace(a, "FRESH", out+".fresh", 1), "OUT", strings.TrimSuffix(out, filepath.Ext(a)), 1)
	}
	return append(args, "-f", "-q")
}

// strata runs a program in the folder of the material, and returns what it says and its exit code.
func strata(t *testing.T, args []string, prefix ...string) (string, int) {
	t.Helper()
	words := append(append(slices.Clone(prefix), program), args...)
	c := exec.Command(words[0], words[1:]...)
	out, err := c.CombinedOutput()
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

var program string

// material makes the inputs in a folder, and makes it the current one.
func material(t *testing.T) {
	t.Helper()
	program = clitest.Program(t, "strata")
	t.Chdir(t.TempDir())
	for _, line := range []string{
		"phantom in --slices 2 --tiles 2,2 --tile 48,64,64 --chunks 24,32,32",
		"phantom raw --raw --slices 1 --tiles 1,2 --tile 8,16,16",
		"phantom czi --czi --tiles 1,1 --tile 1,32,32",
		"stitch in/mosaic_grid_3d_z00.ome.zarr slices/slice_z00.ome.zarr",
		"stitch in/mosaic_grid_3d_z01.ome.zarr slices/slice_z01.ome.zarr",
		"register slices/slice_z00.ome.zarr slices/slice_z01.ome.zarr transforms/slice_z01",
		"slices config in/shifts_xy.csv config.csv",
		"zarr-tool export slices/slice_z00.ome.zarr slice.tif",
	} {
		if out, code := strata(t, append(strings.Fields(line), "-q")); code != 0 {
			t.Fatalf("%s: %s", line, out)
		}
	}
	for name, target := range map[string]string{"mosaic": "in/mosaic_grid_3d_z00.ome.zarr", "slice": "slices/slice_z00.ome.zarr", "next": "slices/slice_z01.ome.zarr", "scan.czi": "czi/scan_z00.czi"} {
		if err := os.Rename(target, name); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../"+name, target); err != nil {
			t.Fatal(err)
		}
	}
	mkdir(t, "report")
	mkdir(t, "manifests")
	put(t, "place.json", `{"kind": "strata placement", "fixed": "slice_z00", "moving": "slice_z01", "transform": {"tx": 3.5}}`)
}

// kinds of a place include that of a writer.
func (p *place) suits(w *writer) bool { return slices.Contains(strings.Fields(p.kinds), w.kind) }

// oneLine matches a refusal.
var oneLine = regexp.MustCompile(`^[a-z-]+: .*\n$`)

// Whatever a program is told to overwrite, what it does not write stays: it refuses with one line, or replaces its own
// files only.
func TestOverwriteKeepsWhatIsForeign(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	material(t)
	for i, w := range writers {
		for k, p := range places {
			if !p.suits(&w) {
				continue
			}
			t.Run(w.line+" over "+p.name, func(t *testing.T) {
				out := fmt.Sprintf("out-%d-%d", i, k)
				if ext := filepath.Ext(w.out()); ext != "" {
					out += ext
				}
				p.make(t, &w, out)
				files := []string{out}
				if p.kept != "" {
					put(t, out+"/"+precious, "precious")
					files = []string{out + "/" + precious, out + "/" + p.kept}
				}
				before := content(t, files)
				text, code := strata(t, w.args(out))
				if after := content(t, files); !slices.Equal(after, before) {
					t.Errorf("%v is now %.200q (exit code %d): %s", files, after, code, text)
				}
				if code != 2 && (code != 0 || w.kind != "files") {
					t.Errorf("exit code %d: %s", code, text)
				}
				if code == 2 && !oneLine.MatchString(text) {
					t.Errorf("more than a line: %s", text)
				}
				if hidden, _ := filepath.Glob(".out-*"); len(hidden) > 0 {
					t.Errorf("left over: %v", hidden)
				}
			})
		}
	}
}

// out is the word of the line that names the place.
func (w *writer) out() string {
	for _, word := range strings.Fields(w.line) {
		if strings.HasPrefix(word, "OUT") {
			return word
		}
	}
	return ""
}

// content reads files; a missing one is "gone".
func content(t *testing.T, files []string) (all []string) {
	t.Helper()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, fs.ErrNotExist) {
			b = []byte("gone")
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(b))
	}
	return all
}

// The current folder, the one above it, mount points, and folders that the user may not write to are refused with one
// line.
func TestOverwritePlaces(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	material(t)
	root := os.Geteuid() == 0
	mkdir(t, "closed")
	mkdir(t, "mounted")
	put(t, "closed/notes", "precious")
	mounted := root && unix.Mount("tmpfs", "mounted", "tmpfs", 0, "size=100000") == nil
	if mounted {
		t.Cleanup(func() { _ = unix.Unmount("mounted", unix.MNT_DETACH) })
	}
	if err := os.Chmod("closed", 0o555); err != nil {
		t.Fatal(err)
	}
	before := entries(t)
	for _, w := range writers {
		if w.kind == "elsewhere" {
			continue
		}
		for _, at := range []string{".", "..", "/", "mounted", "closed/x" + filepath.Ext(w.out())} {
			if w.kind == "files" && at == "." || at == "mounted" && (!mounted || w.kind == "files") || at == "/" && w.kind == "files" {
				continue // files in such a folder are welcome, or refused one by one
			}
			var prefix []string
			if root && (strings.HasPrefix(at, "closed") || w.kind == "files") {
				prefix = []string{"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"}
			}
			args := strings.Fields(w.line)
			for i, a := range args {
				if strings.HasPrefix(a, "OUT") {
					args[i] = at
				}
				args[i] = strings.Replace(args[i], "FRESH", "closed/fresh", 1)
			}
			text, code := strata(t, append(args, "-f", "-q"), prefix...)
			if code == 0 || code > 2 || !oneLine.MatchString(text) {
				t.Errorf("%s at %s: exit code %d: %s", w.line, at, code, text)
			}
			if now := entries(t); !slices.Equal(now, before) {
				t.Fatalf("%s at %s: %v, before %v", w.line, at, now, before)
			}
		}
	}
	if mounted != host.IsMount("mounted") {
		t.Error("the mount point is gone")
	}
}

// entries lists the names in the current folder and in those that nothing may be written to.
func entries(t *testing.T) (names []string) {
	t.Helper()
	for _, dir := range []string{".", "closed", "mounted"} {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			names = append(names, dir+"/"+e.Name())
		}
	}
	return names
}
