package benchczi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"strata/pkg/czi"
	"strata/pkg/zarr/store"
	"strata/tests/clitest"
	"strata/tests/czicorpus"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){
		"bench-czi": clitest.Of(Command), "false-python": falsePython, "mosaic": mosaic, "damage": damage, "nobody-has": nobodyHas,
		// links, by which it is started
		"benchmark_czi_loading.py": clitest.Of(Command), "profile-czi-loading": clitest.Of(Command), "quick_test_czi.py": clitest.Of(Command),
	})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// failed ends a command of the scripts.
func failed(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// mosaic is "mosaic FILE raw|zstd1 ROWS COLUMNS SIDE OVERLAP": two channels of grey tiles that overlap.
func mosaic() {
	var n [4]int
	for i := range n {
		n[i], _ = strconv.Atoi(os.Args[3+i])
	}
	rows, columns, side, step := n[0], n[1], n[2], n[2]-n[3]
	f, err := os.Create(os.Args[1])
	failed(err)
	spec := czi.Spec{Compression: czi.Zstd1}
	if os.Args[2] == "raw" {
		spec.Compression = czi.None
	}
	w, err := czi.NewWriter(f, spec)
	failed(err)
	failed(w.Add(context.Background(), 2, 2*rows*columns, func(i int, t *czi.Tile) error {
		k := i / 2
		t.C, t.M, t.X, t.Y = i%2, k, k%columns*step-50, k/columns*step
		t.Width, t.Height, t.Pixels = side, side, czi.Gray16
		t.Grow(2 * side * side)
		for p := range t.Data {
			t.Data[p] = byte(p>>3*(i+7) ^ p>>9)
		}
		return nil
	}))
	failed(w.AddPyramid(context.Background(), 1, side))
	failed(w.Close())
	failed(f.Close())
}

// damage is "damage FILE N": the payload of sub-block N is zeroed.
func damage() {
	ctx, name := context.Background(), os.Args[1]
	o, err := store.Folder(".").Open(ctx, name)
	failed(err)
	f, err := czi.Open(ctx, o, name)
	failed(err)
	n, err := strconv.Atoi(os.Args[2])
	failed(err)
	segment, err := f.Segment(ctx, n)
	failed(err)
	text, err := os.ReadFile(name)
	failed(err)
	clear(text[segment.Payload+3 : segment.Payload+segment.PayloadBytes])
	failed(os.WriteFile(name, text, 0o666))
}

// nobodyHas is "nobody-has TEXT": it waits until no other process has TEXT among its arguments.
func nobodyHas() {
	var left []string
	for range 100 {
		left = nil
		names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err == nil && bytes.Contains(text, []byte(os.Args[1])) && !strings.Contains(name, fmt.Sprintf("/%d/", os.Getpid())) {
				left = append(left, strings.ReplaceAll(string(text), "\x00", " "))
			}
		}
		if len(left) == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	failed(fmt.Errorf("still there: %q", left))
}

// falsePython answers as the peers' script does; PEERS says what it is told to do wrong, a word for each peer:
// "czifile=missing".
func falsePython() {
	if len(os.Args) < 6 || os.Args[1] != "-c" || !strings.Contains(os.Args[2], "class PylibCZIrw") {
		failed(fmt.Errorf("want -c SCRIPT WHO THREADS IN_FLIGHT"))
	}
	mode := ""
	for word := range strings.FieldsSeq(os.Getenv("PEERS")) {
		if who, m, _ := strings.Cut(word, "="); who == os.Args[3] {
			mode = m
		}
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var q question
		failed(json.Unmarshal(in.Bytes(), &q))
		out := map[string]any{"s": 0.5, "cpu": 0.25, "hwm": 1 << 20}
		switch {
		case q.Do == "hello" && mode == "missing":
			out = map[string]any{"missing": "No module named " + os.Args[3]}
		case q.Do == "hello":
			out = map[string]any{"version": "1.2.3"}
		case mode == "fails":
			out = map[string]any{"error": "ValueError: no"}
		case q.Do == "check":
			sum, err := answerOf(q)
			failed(err)
			if mode == "wrong" {
				sum++
			}
			out = map[string]any{"ck": sum}
		}
		failed(json.NewEncoder(os.Stdout).Encode(out))
	}
}

// answerOf is the checksum that a right peer returns, by the tiles' coordinates.
func answerOf(q question) (sum uint32, err error) {
	ctx := context.Background()
	o, err := store.Folder(filepath.Dir(q.File)).Open(ctx, filepath.Base(q.File))
	if err != nil {
		return 0, err
	}
	f, err := czi.Open(ctx, o, q.File)
	if err != nil {
		return 0, err
	}
	switch q.Op {
	case opOpen:
		return opener{&scan{path: q.File}}.boxes(ctx)
	case opMosaic:
		s := &scan{path: q.File, file: f, tiles: []int{0}, scene: -1}
		return composer{s, 1, 1 << 30}.check(ctx, nil)
	}
	for k, t := range q.Tiles {
		i, ok := f.Tile(t.At["S"], f.Plane(t.At["C"], t.At["Z"], t.At["T"]), t.At["M"])
		if !ok || f.SubBlock(i).Rect.Min.X != t.X || i != t.N {
			return 0, fmt.Errorf("no tile %v", t)
		}
		b := make([]byte, f.SubBlock(i).Bytes())
		if err := f.ReadSubBlock(ctx, i, b); err != nil {
			return 0, err
		}
		sum += checksum(k, b)
	}
	return sum, nil
}

// Broken files end each command in one line, or are measured where what is broken is not read.
func TestBroken(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	program := clitest.Program(t, "bench-czi")
	t.Chdir(t.TempDir())
	refused := 0
	for _, x := range czicorpus.Negatives(t) {
		path := czicorpus.Write(t, x.Name)
		for _, args := range [][]string{{"profile"}, {"run", "--quick", "--reps", "1", "-f", "-o", "r.json"}} {
			var said bytes.Buffer
			cmd := exec.Command(program, append(args, "-q", path)...)
			cmd.Stderr = &said
			err := cmd.Run()
			text := said.String()
			switch {
			case err == nil:
			case cmd.ProcessState.ExitCode() == 1 && strings.Contains(text, "half of --mem"): // of a tile that is as large as it says
			case cmd.ProcessState.ExitCode() == 3 && strings.Count(text, "\n") == 1 && strings.HasPrefix(text, "bench-czi: "+path+": "):
				refused++
			default:
				t.Errorf("%s (%s): %v: %s", x.Name, x.Why, err, text)
			}
		}
	}
	if refused < 20 {
		t.Errorf("%d runs were refused", refused)
	}
}

// A file on a server is read by all commands, also by processes of their own; its caches are nobody's here to empty.
func TestServer(t *testing.T) {
	program := clitest.Program(t, "bench-czi")
	server := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(czicorpus.Write(t, "mosaic_overlap.czi")))))
	defer server.Close()
	t.Chdir(t.TempDir())
	address := server.URL + "/mosaic_overlap.czi"
	for want, list := range map[int][][]string{
		0: {{"run", "--ways", "sequential,processes", "--reps", "1", "-o", "r.json", "--http_timeout", "90s", "--http_status_codes", "500,503"}, {"profile", "--results", "p.json"}, {"quick", "--results", "q.json"}},
		2: {{"run", "--cold"}, {"quick", "--cold"}},
	} {
		for _, args := range list {
			out, err := exec.Command(program, append(args, "-q", address)...).CombinedOutput()
			var exit *exec.ExitError
			if code := 0; errors.As(err, &exit) {
				if code = exit.ExitCode(); code != want {
					t.Errorf("%v: exit code %d: %s", args, code, out)
				}
			} else if err != nil || want != 0 || !strings.HasPrefix(string(out), address+": 12 tiles of level 0") {
				t.Errorf("%v: %v: %s", args, err, out)
			}
		}
	}
}

// Tiles overlap where they share a pixel of the same plane.
func TestOverlap(t *testing.T) {
	for name, want := range map[string]bool{"mosaic_overlap.czi": true, "mosaic_gaps_c2.czi": false, "raw_g16.czi": false, "c2z3t2.czi": false} {
		f, err := czi.Open(t.Context(), czicorpus.Open(t, name), name)
		if err != nil {
			t.Fatal(err)
		}
		s := &scan{file: f}
		for i := range f.Len() {
			if f.SubBlock(i).Level0() {
				s.tiles = append(s.tiles, i)
			}
		}
		if got := s.overlap(); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What memory does not hold of a mosaic wraps around; colours are put into order in all of it.
func TestCanvas(t *testing.T) {
	f, err := czi.Open(t.Context(), czicorpus.Open(t, "mosaic_bgr.czi"), "mosaic_bgr.czi")
	if err != nil {
		t.Fatal(err)
	}
	r := czi.Region{Plane: f.Plane(0, 0, 0), Scene: czi.AllScenes, Rect: f.Bounds(czi.AllScenes)}
	whole := make([]byte, 3*r.Rect.Dx()*r.Rect.Dy())
	if err := f.ReadRegion(t.Context(), r, whole); err != nil {
		t.Fatal(err)
	}
	for _, rows := range []int{r.Rect.Dy(), 33} {
		for _, columns := range []int{r.Rect.Dx(), 41} {
			c := &canvas{box: r.Rect, rows: rows, columns: columns, stride: 3 * columns, data: make([]byte, 3*rows*columns), pixels: czi.Bgr24}
			last := 0
			for i := range f.Len() {
				b := make([]byte, f.SubBlock(i).Bytes())
				if err := f.ReadSubBlock(t.Context(), i, b); err != nil {
					t.Fatal(err)
				}
				c.put(f.SubBlock(i), b)
				last = i
			}
			if !c.finalise() || c.whole() != (rows == r.Rect.Dy() && columns == r.Rect.Dx()) {
				t.Error("not finalised, or not as whole as it is")
			}
			box := f.SubBlock(last).Rect.Sub(r.Rect.Min) // nothing lies on it
			for y := box.Min.Y; y < box.Max.Y; y++ {
				for x := box.Min.X; x < box.Max.X; x++ {
					at, from := 3*(y%rows*columns+x%columns), 3*(y*r.Rect.Dx()+x)
					if c.data[at] != whole[from+2] || c.data[at+1] != whole[from+1] || c.data[at+2] != whole[from] {
						t.Fatalf("%d × %d: pixel %d, %d", columns, rows, x, y)
					}
				}
			}
		}
	}
}

func TestResultsFile(t *testing.T) {
	now := time.Date(2025, 11, 11, 12, 34, 56, 0, time.UTC)
	data := t.TempDir()
	t.Chdir(t.TempDir())
	const name = "benchmark_results_20251111_123456"
	for _, c := range []struct {
		named     string
		container bool
		data      string
		want      string
	}{
		{"", false, data, name + ".json"},
		{"", true, data, data + "/" + name + ".json"},
		{"", true, data + "/none", name + ".json"},
		{"x.json", true, data, "x.json"},
	} {
		if got := resultsFile(c.named, c.container, c.data, now); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if err := os.WriteFile(name+".json", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if got := resultsFile("", false, data, now); got != name+"_2.json" {
		t.Error(got)
	}
}

// The toolbox's bands, at their limits.
func TestBands(t *testing.T) {
	for _, c := range []struct {
		band band
		v    float64
		want string
	}{
		{readBand, 0.0099, "fast"}, {readBand, 0.01, "moderate"}, {readBand, 0.05, "moderate"}, {readBand, 0.07, "between"}, {readBand, 0.11, "slow"},
		{stitchBand, 0.0009, "fast"}, {stitchBand, 0.001, "moderate"}, {stitchBand, 0.007, "between"}, {stitchBand, 0.02, "slow"},
		{speedUp, 3.1, "fast"}, {speedUp, 1.6, "moderate"}, {speedUp, 1.3, "between"}, {speedUp, 1.1, "slow"}, {speedUp, 0.5, "slow"},
		{throughput, 101, "fast"}, {throughput, 60, "moderate"}, {throughput, 20, "moderate"}, {throughput, 19, "slow"},
	} {
		if got := c.band.grade(c.v); !strings.HasPrefix(got, c.want+" ") {
			t.Errorf("%v: %s, want %s", c.v, got, c.want)
		}
	}
}
