package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"strata/pkg/gds/settings"
)

func TestBlockOf(t *testing.T) {
	for _, c := range []struct {
		task    int64
		threads int
		want    int64
	}{{4 << 20, 2, 4 << 20}, {1, 2, page}, {5000, 1, page}, {1 << 60, 4, 32 << 20}, {4 << 20, 1024, 128 << 10}} {
		if got := blockOf(c.task, c.threads); got != c.want || got*int64(c.threads) > mostUnderWay && got > page {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestParts(t *testing.T) {
	d := &benchData{block: 8192, files: []benchFile{{"a", 20480}, {"b", 4096}, {"c", 16384}}}
	var got []part
	for i := range d.count() {
		got = append(got, d.at(i))
	}
	want := []part{{0, 0, 8192}, {0, 8192, 8192}, {0, 16384, 4096}, {1, 0, 4096}, {2, 0, 8192}, {2, 8192, 8192}}
	if len(got) != len(want) || d.bytes() != 40960 {
		t.Fatal(got, d.bytes())
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("part %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestRates(t *testing.T) {
	s := func(bytes int64, seconds int) sample { return sample{bytes, time.Duration(seconds) * time.Second} }
	for _, c := range []struct {
		list                []sample
		middle, least, most float64
	}{{nil, 0, 0, 0}, {[]sample{s(10, 2)}, 5, 5, 5}, {[]sample{s(9, 1), s(2, 2), s(8, 2)}, 4, 1, 9}, {[]sample{s(9, 1), s(1, 1)}, 5, 1, 9}} {
		if m, l, h := rates(c.list); m != c.middle || l != c.least || h != c.most {
			t.Errorf("%v: %v %v %v", c.list, m, l, h)
		}
	}
}

func TestAdvise(t *testing.T) {
	half, all := int64(40), int64(100)
	x := func(way string, rate float64) benchResult {
		return benchResult{Way: way, Op: "read", Rounds: 1, Rate: rate}
	}
	none := func(way string) benchResult { return benchResult{Way: way, Op: "read", Reason: "no"} }
	host := x("host", 1e9)
	held, some := host, host
	held.Cached, some.Cached = &all, &half
	partly := x("gds", 3e9)
	partly.Remark = "5% went by way of the host: cuFileRead: no"
	for want, list := range map[string][]benchResult{
		"no way is much faster":                                                                  {host, x("direct", 1.1e9), x("mmap", 0.9e9), none("bounce")},
		"direct reads 3.0 times as fast":                                                         {some, x("direct", 3e9), x("mmap", 2e9)},
		"mmap reads 2.0 times as fast":                                                           {host, none("direct"), x("mmap", 2e9)},
		"the files stay in memory":                                                               {held, x("direct", 3e9)},
		"files come straight to the GPU, 2.0 times":                                              {host, x("bounce", 1e9), x("gds", 2e9)},
		"by way of the host the GPU gets its data 2.0 times":                                     {host, x("bounce", 2e9), x("gds", 1e9)},
		"files do not come straight to the GPU here: 5% went":                                    {host, x("bounce", 2e9), partly},
		"files come to the GPU by way of the host: doctor '/a b' says what a straight way needs": {host, x("bounce", 2e9), none("gds")},
	} {
		r := &benchReport{Path: "/a b", Results: append(list, benchResult{Way: "mmap", Op: "write", Rounds: 1, Rate: 1e12})}
		if got := r.advise(); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"/data/a-b_c.zarr": "/data/a-b_c.zarr", "/my data": "'/my data'", "/it's": `'/it'\''s'`, "/$HOME": "'/$HOME'"} {
		if got := quote(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// Files of runs that were killed go, those of runs that live and of others stay; names that are
// patterns are no patterns.
func TestSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*?")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	live, err := makeBenchFile(dir, leastBench, page)
	if err != nil {
		t.Fatal(err)
	}
	left, foreign := filepath.Join(dir, benchName+"left"), filepath.Join(dir, "data")
	for _, name := range []string{left, foreign} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	sweep(dir)
	there := func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	}
	if !there(live.files[0].path) || there(left) || !there(foreign) {
		t.Error(there(live.files[0].path), there(left), there(foreign))
	}
	live.remove()
	live.remove()
	if there(live.files[0].path) {
		t.Error("is not removed")
	}
}

// Only large files are read, the largest first, and links are not followed.
func TestLargest(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{"small": leastFile - 1, "a/large": 3 * leastBench, "a/b/larger": 5*leastBench + 100, "c": leastBench} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "c"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	got, err := largest(context.Background(), dir)
	if err != nil || len(got) != 3 || got[0] != (benchFile{filepath.Join(dir, "a/b/larger"), 5 * leastBench}) || got[2].path != filepath.Join(dir, "c") {
		t.Error(got, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := largest(ctx, dir); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// What becomes shorter while it is read is an error with its name, whichever way it is read.
func TestShorter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 4*page), 0o666); err != nil {
		t.Fatal(err)
	}
	b := &bench{threads: 1, data: &benchData{block: 4 * page, files: []benchFile{{path, 4 * page}}}}
	if err := b.allocate(); err != nil {
		t.Fatal(err)
	}
	defer b.free()
	for _, open := range []func(*bench, bool) (mover, error){openHost, openMapped} {
		m, err := open(b, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, page); err != nil {
			t.Fatal(err)
		}
		if err := m.move(context.Background(), 0, b.data.at(0)); err == nil || err.Error() != path+": became shorter while it was read" {
			t.Error(err)
		}
		if _, err := m.close(); err != nil {
			t.Error(err)
		}
		if err := os.Truncate(path, 4*page); err != nil {
			t.Fatal(err)
		}
	}
}

// failing moves a number of parts and then fails.
type failing struct{ left int }

func (f *failing) move(context.Context, int, part) error {
	if f.left--; f.left < 0 {
		return syscall.ENOSPC
	}
	return nil
}

func (f *failing) close() (string, error) { return "", nil }

// A way that fails is listed with its reason and what it did before; one that fails at once does not
// end the others, and all that fail are an error.
func TestWaysFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 4*page), 0o666); err != nil {
		t.Fatal(err)
	}
	b := &bench{threads: 1, settings: settings.Default(), noDevice: "none", data: &benchData{block: page, files: []benchFile{{path, 4 * page}}}}
	got, err := b.measure(context.Background(), benchWay{name: "x"}, &failing{left: 4 * 3}, time.Hour)
	if !errors.Is(err, syscall.ENOSPC) || len(got.samples) != 3 || got.samples[0].bytes != 4*page {
		t.Errorf("%v %v", got, err)
	}
	before := benchWays
	defer func() { benchWays = before }()
	fail := func(*bench, bool) (mover, error) { return nil, errors.New("no such way") }
	benchWays = []benchWay{{"first", false, false, fail}, {"host", false, false, openHost}, {"gds", false, true, openStraight}}
	if err := b.allocate(); err != nil {
		t.Fatal(err)
	}
	defer b.free()
	r := &benchReport{Path: path}
	if err := b.all(context.Background(), r, time.Millisecond); err != nil || len(r.Results) != 3 || r.Results[0].Reason != "no such way" || r.Results[1].Rounds == 0 || r.Results[2].Reason != "none" {
		t.Errorf("%+v %v", r.Results, err)
	}
	benchWays = benchWays[:1]
	if err := b.all(context.Background(), &benchReport{Path: path}, time.Millisecond); err == nil || !strings.Contains(err.Error(), "nothing could be measured: no such way") {
		t.Error(err)
	}
}
