package benchio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strata/cmd/internal/iobench"
	"strata/pkg/bench"
	"strata/tests/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, map[string]func(){"bench-io": clitest.Of(Command), "fio": double, "kept-open": keptOpen})
}

func TestCommand(t *testing.T) { clitest.Check(t, Command()) }

func TestScripts(t *testing.T) { clitest.Scripts(t, "testdata") }

// double is fio as far as bench-io uses it: it moves the bytes that its arguments ask for, and writes JSON of the form
// that fio 3 writes. FIO_DOUBLE says what goes wrong.
func double() {
	if err := doubled(); err != nil {
		fmt.Fprintln(os.Stderr, "fio:", err)
		os.Exit(1)
	}
}

func doubled() error {
	how := os.Getenv("FIO_DOUBLE")
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		if how == "old" {
			fmt.Println("fio-2.16")
		} else {
			fmt.Println("fio-3.99")
		}
		return nil
	}
	o := map[string]string{}
	known := strings.Fields("name filename allow_file_create thread group_reporting fallocate invalidate rw ioengine bs numjobs size offset_increment io_size " +
		"lat_percentiles clat_percentiles output-format direct norandommap overwrite end_fsync create_on_open readonly")
	for _, a := range os.Args[1:] {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown option %s", a)
		}
		o[name] = value
	}
	if path := os.Getenv("FIO_LOG"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return err
		}
		fmt.Fprintln(f, strings.Join(os.Args[1:], " "))
		if err := f.Close(); err != nil {
			return err
		}
	}
	switch how {
	case "fail":
		return errors.New("something went wrong\nfio: and this is why")
	case "garbage":
		fmt.Println("Jobs: 1 (f=1)")
		return nil
	case "slow":
		fmt.Fprintln(os.Stderr, "fio is slow")
		time.Sleep(time.Minute)
	}
	n := map[string]int64{}
	for _, name := range []string{"bs", "numjobs", "size", "offset_increment", "io_size"} {
		v, err := strconv.ParseInt(o[name], 10, 64)
		if err != nil || v <= 0 {
			return fmt.Errorf("--%s=%s", name, o[name])
		}
		n[name] = v
	}
	write := strings.HasSuffix(o["rw"], "write")
	_, readonly := o["readonly"]
	if o["filename"] != "/dev/fd/3" || readonly == write {
		return fmt.Errorf("--filename=%s --readonly %v", o["filename"], readonly)
	}
	flag := os.O_RDONLY
	if write {
		flag = os.O_RDWR
	}
	f, err := os.OpenFile(o["filename"], flag, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, n["bs"])
	ops := int64(0)
	for job := range n["numjobs"] {
		for at := int64(0); at < n["io_size"]; at += n["bs"] {
			off := job*n["offset_increment"] + at%n["size"]
			if write {
				_, err = f.WriteAt(b, off)
			} else {
				_, err = f.ReadAt(b, off)
			}
			if err != nil {
				return fmt.Errorf("at %d of %d bytes each: %w", off, n["size"], err)
			}
			ops++
		}
	}
	one := map[string]any{"io_bytes": ops * n["bs"], "runtime": 250, "total_ios": ops, "lat_ns": map[string]any{"bins": map[string]int64{"2000": ops - 1, "9000": 1}}}
	none := map[string]any{"io_bytes": 0, "runtime": 0, "total_ios": 0, "lat_ns": map[string]any{}}
	job := map[string]any{"error": 0, "read": one, "write": none}
	if write {
		job["read"], job["write"] = none, one
	}
	fmt.Println("note: a message before what is asked for")
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{"fio version": "fio-3.99", "jobs": []any{job}})
}

// keptOpen is "kept-open N CMD…": it runs a command that may have N files open.
func keptOpen() {
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -n "$1" && shift && exec "$@"`, "sh"}, os.Args[1:]...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			os.Exit(exit.ExitCode())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

// Each number comes once.
func TestOrder(t *testing.T) {
	for n := int64(1); n <= 300; n++ {
		seen := make([]bool, n)
		o := newOrder(n, uint64(n))
		for i := range n {
			v := o.at(i)
			if v < 0 || v >= n || seen[v] {
				t.Fatalf("%d: %d at %d, again or beyond", n, v, i)
			}
			seen[v] = true
		}
		if o.at(n) != o.at(0) {
			t.Errorf("%d: does not begin again", n)
		}
	}
	o, next := newOrder(1<<40+7, 1), 0
	for i := range int64(1000) {
		if d := o.at(i+1) - o.at(i); d > -1<<20 && d < 1<<20 {
			next++
		}
	}
	if next > 10 {
		t.Errorf("%d of 1000 lie beside each other", next)
	}
}

// The real fio takes our arguments and writes what we read.
func TestRealFIO(t *testing.T) {
	var real *fio
	for _, dir := range filepath.SplitList("/usr/bin:/usr/local/bin:/bin") {
		text, err := exec.Command(filepath.Join(dir, "fio"), "--version").Output()
		if v, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "fio-"); err == nil && ok && v >= "3" {
			real = &fio{filepath.Join(dir, "fio"), v}
			break
		}
	}
	if real == nil {
		t.Skip("fio 3 is not installed")
	}
	path := filepath.Join(t.TempDir(), "a:b 'c'")
	if err := os.WriteFile(path, bytes.Repeat([]byte("strata"), 4<<20/6+1)[:4<<20], 0o666); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		way     string
		op      op
		threads int
	}{{"host", ops[0], 2}, {"host", ops[1], 1}, {"direct", ops[0], 1}, {"host", ops[2], 1}, {"direct", ops[2], 2}, {"mmap", ops[2], 1}, {"mmap", ops[3], 1}, {"host", ops[3], 2}} {
		c := kase{op: one.op, way: iobench.Way{Name: one.way}, block: 64 << 10, threads: one.threads}
		size := int64(4 << 20)
		if c.write && !c.random {
			size = 0 // it writes the file anew
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		var times bench.Histogram
		m, err := real.run(context.Background(), path, real.arguments(c, 4<<20, 32), c.write, &times)
		switch {
		case err != nil && c.way.Name == "direct" && strings.Contains(err.Error(), "Invalid argument"): // the file system has no direct I/O
		case err != nil && strings.Contains(err.Error(), "less than a millisecond"):
		case err != nil || m.bytes != 2<<20 || m.ops != 32 || times.Count() != 32 || m.seconds <= 0 || m.peak <= 0:
			t.Errorf("%s %s %d: %+v, %d times, %v", c.way.Name, c.short, c.threads, m, times.Count(), err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() > 4<<20 {
			t.Errorf("%s %s %d: left a file of %d bytes, %v", c.way.Name, c.short, c.threads, info.Size(), err)
		}
		if err := os.Truncate(path, 4<<20); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseFIO(t *testing.T) {
	ok := `{
  "jobs": [{"error": 0, "read": {"io_bytes": 8192, "runtime": 4, "total_ios": 2, "lat_ns": {"bins": {"100": 1, "300": 1}}}, "write": {}}]}`
	var h bench.Histogram
	m, err := parseFIO([]byte("fio: a note {\n"+ok), false, &h)
	if err == nil {
		t.Errorf("%+v of a note with a brace", m)
	}
	if m, err = parseFIO([]byte("note\n"+ok), false, &h); err != nil || m.seconds != 0.004 || m.bytes != 8192 || m.ops != 2 || h.Count() != 2 || h.Quantile(1) < 295 || h.Quantile(1) > 305 {
		t.Errorf("%+v %v", m, err)
	}
	for text, want := range map[string]string{
		"":            "cannot parse its output",
		`{"jobs":[]}`: "has 0 jobs, want 1",
		strings.Replace(ok, `"error": 0`, `"error": 5`, 1):     "input/output error",
		strings.Replace(ok, `"runtime": 4`, `"runtime": 0`, 1): "less than a millisecond",
		strings.Replace(ok, `"300": 1`, `"x": 1`, 1):           `lat_ns has "x"`,
		strings.Replace(ok, `"300": 1`, `"300": -1`, 1):        `lat_ns has "300"`,
	} {
		if _, err := parseFIO([]byte(text), false, new(bench.Histogram)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := parseFIO([]byte(ok), true, new(bench.Histogram)); err == nil {
		t.Error("writes of a run that read")
	}
}

func TestAdvise(t *testing.T) {
	r := func(name, way, cache, threads string, rate float64, who string) bench.Result {
		a := bench.Axes{{Name: "way", Value: way}}
		if cache != "" {
			a = append(a, bench.Axis{Name: "cache", Value: cache})
		}
		a = append(a, bench.Axis{Name: "block", Value: "1 MiB"}, bench.Axis{Name: "threads", Value: threads})
		return bench.Result{Name: name, Axes: a, Who: who, Bytes: 1 << 30, Seconds: []float64{1.01 / rate, 1 / rate, 0.99 / rate}}
	}
	remark := r("read", "gds", "cold", "1", 3, bench.Strata)
	remark.Note = "5% went by way of the host: no"
	for _, c := range []struct {
		list []bench.Result
		held int
		want []string
	}{
		{[]bench.Result{r("read", "host", "cold", "1", 1, bench.Strata), r("read", "direct", "cold", "2", 2, bench.Strata), r("read", "direct", "cold", "2", 8, "fio")}, 0, []string{
			"cold read: fastest is direct with 2 threads and 1 MiB at a time, 2.00 GiB/s, 2.00× host; for the stages, give --backend direct",
			"beside fio: 0.250 times its rate"}},
		{[]bench.Result{r("read", "host", "warm", "1", 1, bench.Strata), r("read", "mmap", "warm", "1", 1.005, bench.Strata)}, 60, []string{
			"the files stay in memory, so that reading them does not measure storage: measure the folder that holds your data",
			"warm read: no way is clearly faster than host: host with 1 thread and 1 MiB at a time, 1.00 GiB/s"}},
		{[]bench.Result{r("write", "host", "", "1", 1, bench.Strata), r("write", "pool", "", "4", 3, bench.Strata)}, 0, []string{
			"write: fastest is pool with 4 threads and 1 MiB at a time, 3.00 GiB/s, 3.00× host"}},
		{[]bench.Result{r("read", "bounce", "cold", "1", 1, bench.Strata), r("read", "gds", "cold", "1", 2, bench.Strata)}, 0, []string{
			"cold read: fastest is gds with 1 thread and 1 MiB at a time, 2.00 GiB/s",
			"files reach the GPU directly, 2.00 times as fast as through host memory: leave --backend at auto"}},
		{[]bench.Result{r("read", "bounce", "cold", "1", 4, bench.Strata), r("read", "gds", "cold", "1", 2, bench.Strata), r("read", "host", "cold", "1", 1, bench.Strata)}, 0, []string{
			"cold read: fastest is host with 1 thread and 1 MiB at a time, 1.00 GiB/s",
			"through host memory, files reach the GPU 2.00 times as fast as directly: give --backend bounce"}},
		{[]bench.Result{remark}, 0, []string{
			"cold read: fastest is gds with 1 thread and 1 MiB at a time, 3.00 GiB/s",
			"files do not reach the GPU directly here: 5% went by way of the host: no"}},
		{[]bench.Result{{Name: "read", Who: bench.Strata, Reason: "no"}}, 0, nil},
	} {
		x := &runner{want: &choice{ops: ops}, doc: &bench.Document{Results: c.list}, held: c.held}
		if got := x.advise(); !slices.Equal(got, c.want) {
			t.Errorf("%q\nwant %q", got, c.want)
		}
	}
}

// A way that fails in the middle is listed with what went wrong; what it measured before stays, and is not measured by
// fio.
func TestFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 8<<20), 0o666); err != nil {
		t.Fatal(err)
	}
	data := &iobench.Data{Files: []iobench.File{{Path: path, Bytes: 8 << 20}}}
	x := &runner{data: data, reps: 3, seconds: 30 * time.Millisecond, want: &choice{ops: ops}, doc: &bench.Document{}, refused: map[string]bool{}, noDevice: "none"}
	left := 20
	way := iobench.Way{Name: "host", Open: func(*iobench.Bench, bool) (iobench.Mover, error) { return &failing{&left}, nil }}
	c := kase{op: ops[2], way: way, block: 1 << 20, threads: 1}
	got, err := x.one(context.Background(), c)
	if err != nil || len(got) != 1 || !got[0].Measured() || len(got[0].Seconds) != 2 || !strings.Contains(got[0].Reason, "input/output error") || x.refused["read host"] {
		t.Errorf("%+v %v %v", got, err, x.refused)
	}
	left = 0
	if got, err = x.one(context.Background(), c); err != nil || len(got) != 1 || got[0].Measured() || !x.refused["read host"] {
		t.Errorf("%+v %v", got, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(io.ErrClosedPipe)
	if _, err := x.one(ctx, c); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

type failing struct{ left *int }

func (f *failing) Move(context.Context, int, iobench.Part) error {
	if *f.left--; *f.left < 0 {
		return errors.New("input/output error")
	}
	return nil
}

func (f *failing) Close() (string, error) { return "", nil }
