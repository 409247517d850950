package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"strata/pkg/host"
)

func sample() *Document {
	d := New("bench-io", "1.2", []string{"/usr/bin/bench-io", "/my data", "--threads", "1,2"})
	d.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	n := 2.0
	d.System = System{Host: "node1", CPU: "A CPU", Cores: 2, Memory: 8 << 30, Limits: host.Limits{CPUs: &n}, Places: []Place{{Path: "/my data", Type: "ext4", Options: []string{"rw"}, Drives: []string{"nvme0n1"}}}, Software: []Software{{"fio", "3.33"}}}
	for i, threads := range []string{"1", "2"} {
		x := float64(i + 1)
		d.Results = append(d.Results,
			Result{Name: "read", Axes: Axes{{"way", "host"}, {"threads", threads}, {"cache", "warm"}}, Who: Strata, Backend: "host", Seconds: []float64{2 / x, 1 / x, 4 / x}, Bytes: 1 << 30, Ops: 1024, CPU: 1.5, RSS: 12 << 20,
				Latency: &Latency{Count: 3072, Least: 1e-5, Mean: 2e-3, Std: 1e-4, Most: 0.5, P50: 1.9e-3, P90: 2e-3, P95: 2e-3, P99: 8e-3, P999: 0.4, P9999: 0.5}},
			Result{Name: "read", Axes: Axes{{"way", "host"}, {"threads", threads}, {"cache", "warm"}}, Who: "fio", Seconds: []float64{4 / x}, Bytes: 1 << 30},
			Result{Name: "read", Axes: Axes{{"way", "gds"}, {"threads", threads}, {"cache", "warm"}}, Who: Strata, Reason: "no <GPU>"},
		)
	}
	d.Results = append(d.Results, Result{Name: "write", Who: Strata, Axes: Axes{{"way", "host"}}, Seconds: []float64{1}, Bytes: 1 << 29, Note: "bounced\x1b[1m"})
	d.Advice = []string{"take 2 threads"}
	return d
}

// What is written is read again as it was.
func TestJSON(t *testing.T) {
	d := sample()
	var b bytes.Buffer
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Results {
		if d.Results[i].Seconds == nil {
			d.Results[i].Seconds = []float64{}
		}
	}
	if !reflect.DeepEqual(got, d) {
		t.Errorf("%+v\n%+v", got, d)
	}
	var raw struct {
		Results []struct {
			Axes map[string]string
			Rate float64 `json:"bytes_per_second"`
			IOPS float64 `json:"ops_per_second"`
			Med  float64 `json:"median_seconds"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &raw); err != nil {
		t.Fatal(err)
	}
	if r := raw.Results[0]; r.Rate != 1<<29 || r.IOPS != 512 || r.Med != 2 || r.Axes["threads"] != "1" {
		t.Errorf("%+v", r)
	}
	empty, again := &Document{Format: Format, Tool: "x"}, new(bytes.Buffer)
	if err := empty.WriteJSON(again); err != nil || strings.Contains(again.String(), `"results": null`) || strings.Contains(again.String(), `"advice": null`) {
		t.Errorf("%s %v", again, err)
	}
}

func TestBadJSON(t *testing.T) {
	ok := `{"format":"strata bench 2","results":[{"name":"read","axes":{"a":"1"},"seconds":[1]}]}`
	for _, text := range []string{ok, strings.Replace(ok, "bench 2", "bench 1", 1)} {
		if _, err := ReadJSON(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		``:                                     "no document of a benchmark: line 1: unexpected end of JSON input",
		"{\n\"format\": x}":                    "no document of a benchmark: line 2: invalid character",
		`{}`:                                   "field format is not",
		`{"format":"other"}`:                   "field format is not strata bench 2",
		`{"format":"strata bench 3"}`:          `field format is "strata bench 3", this version reads`,
		`{"format":"strata bench 2","x":1}`:    `unknown field "x"`,
		ok + "x":                               "invalid character 'x' after top-level",
		strings.Replace(ok, `"read"`, `""`, 1): "results[0]: name is missing",
		strings.Replace(ok, `[1]`, `[-1]`, 1):  "results[0]: seconds: -1 is not a time",
		strings.Replace(ok, `"seconds"`, `"secs"`, 1):   `unknown field "secs"`,
		strings.Replace(ok, `{"a":"1"}`, `[]`, 1):       "axes: want an object of strings",
		strings.Replace(ok, `"1"`, `1`, 1):              "axes: a",
		strings.Replace(ok, `"1"`, `"1","a":"2"`, 1):    "axes: a: is there twice",
		strings.Replace(ok, `[1]`, `[1],"bytes":-1`, 1): "below 0",
	} {
		if _, err := ReadJSON(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := ReadJSON(io.MultiReader(strings.NewReader("{"), broken{})); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func FuzzReadJSON(f *testing.F) {
	var b bytes.Buffer
	if err := sample().WriteJSON(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ReadJSON(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, write := range []func(io.Writer) error{d.WriteJSON, d.Table, d.HTML, Compare(d, d, "a", "b").Table} {
			if err := write(io.Discard); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := sample().Table(&b); err != nil {
		t.Fatal(err)
	}
	want := `read (cache warm)
  way   threads  who     GiB/s      from to  ratio      IOPS      p50      p99   p99.9    most      s  CPU s  memory
  host        1  strata  0.500   0.250–1.00  2.00× fio   512  1.90 ms  8.00 ms  400 ms  500 ms   2.00   1.50  12 MiB
  host        1  fio     0.250                                                                   4.00
  gds         1  strata      –                                                                                        no <GPU>
  host        2  strata   1.00  0.500–2.00  2.00× fio  1024  1.90 ms  8.00 ms  400 ms  500 ms   1.00   1.50  12 MiB
  host        2  fio     0.500                                                                   2.00
  gds         2  strata      –                                                                                        no <GPU>

write (way host)
  GiB/s     s
  0.500  1.00  bounced?[1m

take 2 threads
`
	squeeze := func(s string) string {
		var out []string
		for l := range strings.SplitSeq(s, "\n") {
			out = append(out, strings.Join(strings.Fields(l), " "))
		}
		return strings.Join(out, "\n")
	}
	if squeeze(b.String()) != squeeze(want) {
		t.Errorf("%s", b.String())
	}
	// Columns stand below their heads.
	lines := strings.Split(b.String(), "\n")
	at := strings.Index(lines[1], "GiB/s") + len("GiB/s")
	for _, l := range lines[2:8] {
		if field := strings.Fields(l[:at]); len(field) != 4 {
			t.Errorf("%q ends within a number", l[:at])
		}
	}
}

// Text never becomes markup, all XML is well formed, and nothing is loaded.
func TestHTML(t *testing.T) {
	d := sample()
	d.Results[0].Note = `<script>alert(1)</script>"'&`
	d.Results = append(d.Results, Result{Name: "<b>", Axes: Axes{{"<i>", `"><i>`}}, Who: "<u>", Seconds: []float64{1}, Bytes: 1})
	for i, threads := range []string{"4", "8", "16"} {
		d.Results = append(d.Results, Result{Name: "read", Axes: Axes{{"way", "host"}, {"threads", threads}, {"cache", "warm"}}, Who: Strata, Seconds: []float64{1, 2}, Bytes: int64(i) << 30})
	}
	var b strings.Builder
	if err := d.HTML(&b); err != nil {
		t.Fatal(err)
	}
	html := b.String()
	for _, bad := range []string{"<script", "<b>", "<i>", "<u>", "http:", "https:", "url(", "NaN", "ZgotmplZ"} {
		if strings.Contains(html, bad) {
			t.Errorf("%q in the page", bad)
		}
	}
	for _, want := range []string{"bench-io: /my data", "2.00× fio", "take 2 threads", "A CPU", "2 processors", "2 January 2026", "bench-io &#39;/my data&#39; --threads 1,2", "<polyline", "no &lt;GPU&gt;"} {
		if !strings.Contains(html, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	for svg := range strings.SplitSeq(html, "<svg ") {
		if end := strings.Index(svg, "</svg>"); end >= 0 {
			wellFormed(t, "<svg "+svg[:end+6])
		}
	}
}

func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
}

// A plot that would be too full becomes several, and no result is lost.
func TestPlots(t *testing.T) {
	var list []Result
	for _, way := range []string{"host", "direct", "mmap"} {
		for _, cache := range []string{"warm", "cold"} {
			for _, block := range []string{"1 MiB", "64 KiB", "4 KiB"} {
				for _, threads := range []string{"1", "2"} {
					list = append(list, Result{Name: "read", Axes: Axes{{"way", way}, {"cache", cache}, {"block", block}, {"threads", threads}}, Who: Strata, Seconds: []float64{1}, Bytes: 1 << 30})
				}
			}
		}
	}
	plots := groups(list)[0].plots()
	marks := 0
	for _, p := range plots {
		for _, tip := range []string{"block 1 MiB", "block 64 KiB", "block 4 KiB"} {
			marks += strings.Count(string(p.SVG), tip)
		}
		if a, b := strings.Index(string(p.SVG), ">4 KiB<"), strings.Index(string(p.SVG), ">1 MiB<"); a < 0 || b < a {
			t.Errorf("blocks are not in order: %d %d", a, b)
		}
	}
	if len(plots) != 3 || marks != len(list) {
		t.Errorf("%d plots, %d marks of %d results", len(plots), marks, len(list))
	}
	for i := range list {
		list[i].Axes = list[i].Axes.With("block", "x"+list[i].Axes.Get("block"))
	}
	bars := 0
	for _, p := range groups(list)[0].plots() {
		bars += strings.Count(string(p.SVG), "<rect")
	}
	if bars != len(list) {
		t.Errorf("%d bars of %d results", bars, len(list))
	}
}

func TestSVG(t *testing.T) {
	var b strings.Builder
	if err := sample().SVG(&b, "Reading & writing", nil); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	if svg := b.String(); strings.Contains(svg, "var(") || !strings.Contains(svg, "Reading &amp; writing") || !strings.Contains(svg, `xmlns="http://www.w3.org/2000/svg"`) || strings.Count(svg, "<rect x=") != 5 {
		t.Errorf("%s", svg)
	}
	if err := sample().SVG(io.Discard, "none", func(Result) bool { return false }); err == nil {
		t.Error("a plot of nothing")
	}
}

func TestCompare(t *testing.T) {
	a, b := sample(), sample()
	b.System.CPU = "B CPU"
	b.Results[0].Seconds = []float64{0.5, 0.4, 0.6} // was 1 to 4: faster by far
	b.Results[3].Seconds = []float64{1.5, 1, 3}     // was 0.5 to 2: noise
	b.Results[6].Axes = b.Results[6].Axes.With("way", "direct")
	c := Compare(a, b, "a.json", "b.json")
	if len(c.Pairs) != 4 || len(c.OnlyA) != 1 || len(c.OnlyB) != 1 || len(c.Differ) != 1 || c.Differ[0] != "CPU: A CPU, B CPU" {
		t.Fatalf("%d pairs, %v, %v, %v", len(c.Pairs), c.OnlyA, c.OnlyB, c.Differ)
	}
	if p := c.Pairs[0]; p.verdict() != "faster" || p.Ratio != 4 || math.Abs(p.Low-1/0.6) > 1e-12 || p.High != 10 {
		t.Errorf("%s %v %v %v", p.verdict(), p.Ratio, p.Low, p.High)
	}
	if p := c.Pairs[1]; p.verdict() != "one repeat" || p.Ratio != 1 {
		t.Errorf("%s %v", p.verdict(), p.Ratio)
	}
	if p := c.Pairs[2]; p.verdict() != "within noise" {
		t.Errorf("%s %v %v %v", p.verdict(), p.Ratio, p.Low, p.High)
	}
	if p := Compare(b, a, "b", "a").Pairs[0]; p.verdict() != "slower" || p.Ratio != 0.25 {
		t.Errorf("%s %v", p.verdict(), p.Ratio)
	}
	var text strings.Builder
	if err := c.Table(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"A: a.json", "the machines differ in CPU", "4.00  faster", "only A has write, way host, by strata", "only B has write, way direct, by strata"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
}

// Two results overlap if any repeat of one may be as fast as one of the other: by bytes, or by seconds if none moved.
func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b       []float64
		bytesA, by int64
		want       bool
	}{
		{[]float64{1, 2, 3}, []float64{3, 4}, 0, 0, true},
		{[]float64{1, 2, 3}, []float64{3.1, 4}, 0, 0, false},
		{[]float64{1, 2, 3}, []float64{3.1, 4}, 100, 100, false},
		{[]float64{1, 2, 3}, []float64{3.1, 4}, 100, 200, true},
		{[]float64{2}, []float64{1, 3}, 100, 100, true},
		{[]float64{2}, []float64{3}, 100, 100, false},
	} {
		a, b := Result{Seconds: c.a, Bytes: c.bytesA}, Result{Seconds: c.b, Bytes: c.by}
		if Overlap(a, b) != c.want || Overlap(b, a) != c.want {
			t.Errorf("%v s of %d bytes and %v s of %d bytes overlap: %v", c.a, c.bytesA, c.b, c.by, !c.want)
		}
	}
}

// Quantiles are those of the sorted times, within a class.
func TestHistogram(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var one, two, all Histogram
	var list []time.Duration
	for i := range 20000 {
		d := time.Duration(math.Exp(rng.NormFloat64()*3) * 1e5)
		list = append(list, d)
		if i%3 == 0 {
			one.Add(d)
		} else {
			two.Add(d)
		}
	}
	all.Merge(&one)
	all.Merge(&two)
	all.Merge(new(Histogram))
	slices.Sort(list)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 0.9999, 1} {
		want := list[max(int(math.Ceil(q*float64(len(list))))-1, 0)]
		if got := all.Quantile(q); math.Abs(float64(got-want)) > 0.02*float64(want)+1 {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	sum := 0.0
	for _, d := range list {
		sum += d.Seconds()
	}
	l := all.Latency()
	if l.Count != 20000 || l.Least != list[0].Seconds() || l.Most != list[len(list)-1].Seconds() || math.Abs(l.Mean-sum/20000) > 1e-9*sum {
		t.Errorf("%+v", l)
	}
	if new(Histogram).Latency() != nil || new(Histogram).Quantile(0.5) != 0 {
		t.Error("an empty one has times")
	}
	for _, d := range []time.Duration{-1, 0, 1, 31, 32, 33, 63, 64, 1 << 40, math.MaxInt64} {
		var h Histogram
		h.Add(d)
		if got := h.Quantile(0.5); got != max(d, 0) {
			t.Errorf("%d: %d", d, got)
		}
		if c := class(max(d, 0)); math.Abs(middle(c)-float64(max(d, 0))) > 0.017*float64(d)+0.5 {
			t.Errorf("%d is in class %d of %v", d, c, middle(c))
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0.1234: "0.123", 0.9994: "0.999", 0.9996: "1.00", 9.994: "9.99", 9.996: "10.0", 99.96: "100", 1234.4: "1234"} {
		if got := Ratio(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{1.5: "1.50 s", 0.0123: "12.3 ms", 4e-6: "4.00 µs", 5e-8: "50 ns", 0.99999: "1.00 s"} {
		if got := Time(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	if Median(nil) != 0 || Median([]float64{3, 1, 2}) != 2 || Median([]float64{4, 1, 2, 3}) != 2.5 {
		t.Error("medians")
	}
	for in, want := range map[string]string{"/data/a-b_c.zarr": "/data/a-b_c.zarr", "/my data": "'/my data'", "/it's": `'/it'\''s'`, "/$HOME": "'/$HOME'", "": "''"} {
		if got := Quote(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestUsage(t *testing.T) {
	u := Begin()
	x := 1.0
	for began := CPUTime(); CPUTime()-began < 20*time.Millisecond; {
		x = math.Sqrt(x + 1)
	}
	if cpu, peak := u.End(); cpu < 0.02 || cpu > 10 || peak < 1<<20 {
		t.Error(cpu, peak, x)
	}
}

func TestSystem(t *testing.T) {
	dir := t.TempDir()
	s := ReadSystem(context.Background(), dir, "/")
	if s.Platform == "" || s.Cores < 1 || len(s.Places) != 2 {
		t.Errorf("%+v", s)
	}
	d := &Document{Format: Format, Tool: "x", System: s}
	var b bytes.Buffer
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadJSON(&b)
	if err != nil || !reflect.DeepEqual(got.System, s) {
		t.Errorf("%+v %v", got, err)
	}
}

// What lies far apart by an axis of words, as a warm cache and a cold one, has plots of its own.
func TestScales(t *testing.T) {
	var list []Result
	for _, way := range []string{"host", "mmap"} {
		for cache, rate := range map[string]float64{"cold": 1, "warm": 10} {
			list = append(list, Result{Name: "read", Axes: Axes{{"way", way}, {"cache", cache}}, Who: Strata, Seconds: []float64{1 / rate}, Bytes: 1 << 30})
		}
	}
	list = append(list, Result{Name: "read", Axes: Axes{{"way", "mmap"}, {"cache", "cold"}}, Who: "fio", Seconds: []float64{0.5}, Bytes: 1 << 30})
	if plots := groups(list)[0].plots(); len(plots) != 2 {
		t.Errorf("%d plots, want 2", len(plots))
	}
	var html strings.Builder
	if err := (&Document{Tool: "x", Results: list}).HTML(&html); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<dt>Best read, cold</dt><dd>1.00 GiB/s", "<dt>Best read, warm</dt><dd>10.0 GiB/s"} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	for i := range list {
		list[i].Seconds = []float64{1}
	}
	if plots := groups(list)[0].plots(); len(plots) != 1 {
		t.Errorf("%d plots, want 1", len(plots))
	}
}
