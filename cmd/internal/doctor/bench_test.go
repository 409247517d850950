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

	"strata/cmd/internal/iobench"
	"strata/pkg/settings"
)

func TestBlockOf(t *testing.T) {
	for _, c := range []struct {
		task    int64
		threads int
		want    int64
	}{{4 << 20, 2, 4 << 20}, {1, 2, iobench.Page}, {5000, 1, iobench.Page}, {1 << 60, 4, 32 << 20}, {4 << 20, 1024, 128 << 10}} {
		if got := blockOf(c.task, c.threads); got != c.want || got*int64(c.threads) > mostUnderWay && got > iobench.Page {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestRates(t *testing.T) {
	s := func(bytes int64, seconds int) iobench.Sample {
		return iobench.Sample{Bytes: bytes, Took: time.Duration(seconds) * time.Second}
	}
	for _, c := range []struct {
		list                []iobench.Sample
		middle, least, most float64
	}{{nil, 0, 0, 0}, {[]iobench.Sample{s(10, 2)}, 5, 5, 5}, {[]iobench.Sample{s(9, 1), s(2, 2), s(8, 2)}, 4, 1, 9}, {[]iobench.Sample{s(9, 1), s(1, 1)}, 5, 1, 9}} {
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
	partly.Remark = "5% went through host memory: cuFileRead: no"
	for want, list := range map[string][]benchResult{
		"all ways are about as fast":                                                          {host, x("direct", 1.1e9), x("mmap", 0.9e9), none("bounce")},
		"direct reads 3.0 times as fast":                                                      {some, x("direct", 3e9), x("mmap", 2e9)},
		"mmap reads 2.0 times as fast":                                                        {host, none("direct"), x("mmap", 2e9)},
		"the files stay in memory":                                                            {held, x("direct", 3e9)},
		"files reach the GPU directly, 2.0 times":                                             {host, x("bounce", 1e9), x("gds", 2e9)},
		"through host memory, files reach the GPU 2.0 times":                                  {host, x("bounce", 2e9), x("gds", 1e9)},
		"files do not reach the GPU directly here: 5% went":                                   {host, x("bounce", 2e9), partly},
		"files reach the GPU through host memory: doctor '/a b' says what a direct way needs": {host, x("bounce", 2e9), none("gds")},
	} {
		r := &benchReport{Path: "/a b", Results: append(list, benchResult{Way: "mmap", Op: "write", Rounds: 1, Rate: 1e12})}
		if got := r.advise(); !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// failing moves a number of parts and then fails.
type failing struct{ left int }

func (f *failing) Move(context.Context, int, iobench.Part) error {
	if f.left--; f.left < 0 {
		return syscall.ENOSPC
	}
	return nil
}

func (f *failing) Close() (string, error) { return "", nil }

// A way that fails is listed with its reason and what it did before; one that fails at once does not
// end the others, and all that fail are an error.
func TestWaysFail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 4*iobench.Page), 0o666); err != nil {
		t.Fatal(err)
	}
	b := &measurer{Bench: iobench.Bench{Threads: 1, Settings: settings.Default(), NoDevice: "none", Block: iobench.Page, Data: &iobench.Data{Files: []iobench.File{{Path: path, Bytes: 4 * iobench.Page}}}}}
	got, err := b.measure(context.Background(), &failing{left: 4 * 3}, false, time.Hour)
	if !errors.Is(err, syscall.ENOSPC) || len(got.samples) != 3 || got.samples[0].Bytes != 4*iobench.Page {
		t.Errorf("%v %v", got, err)
	}
	fail := func(*iobench.Bench, bool) (iobench.Mover, error) { return nil, errors.New("no such way") }
	ways := map[string]iobench.Way{}
	for _, w := range iobench.Ways {
		ways[w.Name] = w
	}
	b.ways = []benchWay{{iobench.Way{Name: "first", Open: fail}, false}, {ways["host"], false}, {ways["gds"], false}}
	if err := b.Allocate(); err != nil {
		t.Fatal(err)
	}
	defer b.Free()
	r := &benchReport{Path: path}
	if err := b.all(context.Background(), r, time.Millisecond); err != nil || len(r.Results) != 3 || r.Results[0].Reason != "no such way" || r.Results[1].Rounds == 0 || r.Results[2].Reason != "none" {
		t.Errorf("%+v %v", r.Results, err)
	}
	b.ways = b.ways[:1]
	if err := b.all(context.Background(), &benchReport{Path: path}, time.Millisecond); err == nil || !strings.Contains(err.Error(), "nothing could be measured: no such way") {
		t.Error(err)
	}
}
