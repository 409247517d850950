package cost

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestTables: all figures are numbers above zero, and say where they come from; what is asked for is there.
func TestTables(t *testing.T) {
	for name, text := range map[string]string{"figures": figuresTable, "host": hostTable} {
		for figure, row := range table(text) {
			for c, v := range row {
				if c != "figure" && c != "unit" && c != "source" && number(v, "") <= 0 {
					t.Errorf("%s: %s of %s is %s", name, figure, c, v)
				}
			}
			if row["source"] == "" {
				t.Errorf("%s: %s has no source", name, figure)
			}
		}
	}
	for _, m := range Models() {
		_, f := ForGPU("NVIDIA "+m.Name+"-SXM", 0)
		for _, c := range []Codec{Zstd, LZ4, Deflate} {
			one, all := f.get(string(c)+"_decode_stream"), f.get(string(c)+"_decode")
			if one >= all {
				t.Errorf("%s: one stream of %s is decoded faster than many", m.Name, c)
			}
		}
	}
	for _, s := range Stages() {
		if f, err := stage(s); err != nil || f.get("host_reads") < 1 || f.get("device_traffic") <= 0 || f.get("kernels") <= 0 {
			t.Errorf("%s: %v %v", s, f, err)
		}
	}
	if len(Stages()) != 9 {
		t.Error(Stages())
	}
	if _, err := stage("none"); err == nil || !strings.Contains(err.Error(), "aip, resample, focal, crop, stitch, stack, beam-profile, normalize, flatfield") {
		t.Error(err)
	}
}

func TestForGPU(t *testing.T) {
	for name, want := range map[string]string{"Tesla V100-SXM2-16GB": "V100", "NVIDIA A100 80GB PCIe": "A100", "NVIDIA H100 NVL": "H100"} {
		if m, f := ForGPU(name, 0); m != want || f.get("memory") <= 0 {
			t.Errorf("%s has the figures of %s", name, m)
		}
	}
	defer func(list []Model) { models = list }(models)
	for range 2 { // the order of the models decides nothing
		for compute, want := range map[int]string{61: "V100", 75: "V100", 80: "A100", 89: "A100", 90: "H100", 120: "H100"} {
			if m, _ := ForGPU("NVIDIA RTX", compute); m != want {
				t.Errorf("compute capability %d has the figures of %s", compute, m)
			}
		}
		models = Models()
		slices.Reverse(models)
	}
}

// a100 is a device of the table's column, with four workers.
func a100() *Device {
	m, f := ForGPU("A100", 80)
	return &Device{Model: m, Figures: f, Workers: 4, Pinned: 1 << 30, Cubins: true}
}

// TestLoad: a run takes as long as its busiest part, after its start, and says which that is.
func TestLoad(t *testing.T) {
	d := a100()
	host := Host{Cores: 1, Storage: 1e9, Figures: Figures{"scaling": 0.5}}
	f := d.Figures
	for name, c := range map[string]struct {
		l     Load
		cores int
		want  float64
		limit Limit
	}{
		"storage":          {Load{Storage: 3e9, Host: 2}, 1, 3, ByStorage},
		"host":             {Load{Storage: 3e9, Host: 4}, 1, 4, ByHost},
		"more cores":       {Load{Storage: 3e9, Host: 8}, 3, 4, ByHost},
		"start":            {Load{Start: 5, Storage: 3e9}, 1, 8, ByStart},
		"bus":              {Load{Up: int64(6 * f["up"]), Down: int64(5 * f["down"])}, 1, 6, ByBus},
		"bus, back":        {Load{Up: 1, Down: int64(5 * f["down"])}, 1, 5, ByBus},
		"kernels":          {Load{Traffic: int64(2 * f["memory"] * f["memory_share"]), Kernels: 1000}, 1, 2 + 1000*f["kernel"], ByDevice},
		"many streams":     {Load{Decode: Batches{Zstd, int64(3 * f["zstd_decode"]), 10, 1e7}}, 1, 3, ByDevice},
		"one stream":       {Load{Decode: Batches{Zstd, int64(8 * f["zstd_decode_stream"]), 10, 10}}, 1, 20, ByDevice}, // 10 regions of 8 s, 4 beside each other
		"Blosc is of zstd": {Load{Decode: Batches{Blosc, int64(3 * f["zstd_decode"]), 10, 1e7}}, 1, 3, ByDevice},
		"decode, encode": {Load{Decode: Batches{Zstd, int64(3 * f["zstd_decode"]), 10, 1e7}, Encode: Batches{Zstd, int64(2 * f["zstd_encode"]), 10, 1e7}}, 1, 5,
			ByDevice},
	} {
		host.Cores = c.cores
		// eight seconds of one stream in each of ten regions: all bytes are ten times those
		if name == "one stream" {
			c.l.Decode.Bytes *= 10
		}
		if got, limit := c.l.Seconds(host, d); math.Abs(got-c.want) > 1e-6*c.want || limit != c.limit {
			t.Errorf("%s: %v s by %s, want %v by %s", name, got, limit, c.want, c.limit)
		}
	}
}

// TestStartIsShared: jobs of one process share the start of a device, and one that uses a device which is open waits
// for none.
func TestStartIsShared(t *testing.T) {
	d := a100()
	whole := d.Start(3)
	if d.Jobs = 4; whole <= 0 || d.Start(3) != whole/4 {
		t.Errorf("%v s of %v for one of four jobs", d.Start(3), whole)
	}
	if d.Started = true; d.Start(3) != 0 {
		t.Errorf("%v s where the device is open", d.Start(3))
	}
}

// TestChoose: what decides, in the cases that the design names.
func TestChoose(t *testing.T) {
	const gb = 1 << 30
	array := func(c Codec, streams int64) Array {
		return Array{Codec: c, Bytes: 20 * gb, Streams: streams, Region: 52 << 20, Device: true}
	}
	for name, c := range map[string]struct {
		job             Job
		host            Host
		device          *Device
		gpu             bool
		decodes, encode bool
	}{
		"no device":                                        {Job{Stage: "focal", In: array(Blosc, 400), Out: Array{Codec: Blosc}}, Host{Cores: 4}, nil, false, false, false},
		"small input: the start decides":                   {Job{Stage: "focal", In: Array{Codec: Blosc, Bytes: gb / 8, Streams: 400, Region: 52 << 20, Device: true}, Out: Array{Codec: Blosc}}, Host{Cores: 4}, a100(), false, false, false},
		"many streams, few cores: the device decodes":      {Job{Stage: "focal", In: array(Blosc, 400), Out: Array{Codec: Blosc, Streams: 400, Region: 52 << 20, Device: true}}, Host{Cores: 2, Storage: 20e9}, a100(), true, true, true},
		"one stream, few cores: the host decodes":          {Job{Stage: "stitch", In: array(Zstd, 1), Out: Array{Codec: Blosc, Streams: 400, Region: 52 << 20, Device: true}}, Host{Cores: 6}, a100(), true, false, true},
		"aip, many cores: storage decides, the host is it": {Job{Stage: "aip", In: array(Blosc, 400), Out: Array{Codec: Blosc}}, Host{Cores: 32}, a100(), false, false, false},
		"raw, aip: nothing to win":                         {Job{Stage: "aip", In: array(Raw, 0), Out: Array{Codec: Blosc}}, Host{Cores: 16}, a100(), false, false, false},
		"what the device cannot decode the host does":      {Job{Stage: "focal", In: Array{Codec: Blosc, Bytes: 20 * gb, Streams: 400, Region: 52 << 20}, Out: Array{Codec: Blosc, Streams: 400, Region: 52 << 20, Device: true}}, Host{Cores: 4}, a100(), true, false, true},
		"one core": {Job{Stage: "crop", In: array(Blosc, 400), Out: Array{Codec: Blosc, Streams: 400, Region: 52 << 20, Device: true}}, Host{Cores: 1}, a100(), true, true, false},
		"many cores and one stream: everything on the host": {Job{Stage: "focal", In: array(Zstd, 1), Out: Array{Codec: Zstd, Streams: 1, Region: 52 << 20, Device: true}}, Host{Cores: 64}, a100(), false, false, false},
	} {
		got, err := Choose(c.job, c.host, c.device)
		if err != nil {
			t.Fatal(err)
		}
		if got.GPU != c.gpu || got.GPU && (got.DeviceDecodes != c.decodes || got.DeviceEncodes != c.encode) {
			t.Errorf("%s: %+v\n%s", name, got.Plan, got)
		}
		if got.Seconds > 1.1*min(got.Host.Seconds, got.Best.Seconds) {
			t.Errorf("%s: takes %v s, the others %v and %v", name, got.Seconds, got.Host.Seconds, got.Best.Seconds)
		}
		line := got.String()
		if strings.Contains(line, "\n") || !strings.Contains(line, "estimated") || c.device != nil && !strings.Contains(line, "A100") {
			t.Errorf("%s: %s", name, line)
		}
	}
	if _, err := Choose(Job{Stage: "smooth"}, Host{}, nil); err == nil {
		t.Error("a stage without figures has an estimate")
	}
}

// TestPacked: of Blosc a device decodes no more than what encoding shrank; of other codecs all.
func TestPacked(t *testing.T) {
	for a, want := range map[Array]float64{
		{Codec: Blosc, Bytes: 100, Stored: 80}:  0.4,
		{Codec: Blosc, Bytes: 100, Stored: 40}:  1,
		{Codec: Blosc, Bytes: 100, Stored: 101}: 0,
		{Codec: Blosc, Bytes: 100}:              1, // nobody knows
		{Codec: Zstd, Bytes: 100, Stored: 80}:   1,
	} {
		if got := a.packed(); math.Abs(got-want) > 1e-9 {
			t.Errorf("%+v: %v", a, got)
		}
	}
}

// TestParseFigures: figures of others take the place of those of the tables, in the tables' units.
func TestParseFigures(t *testing.T) {
	gpu, host, err := ParseFigures("init=0.4,up=3,host.zstd_decode=2,host.tries=0")
	if err != nil || len(gpu) != 2 || len(host) != 2 || gpu["init"] != 0.4 || gpu["up"] != 3e9 || host["zstd_decode"] != 2e9 || host["tries"] != 0 {
		t.Errorf("%v %v %v", gpu, host, err)
	}
	if all := HostFigures().With(host); all["zstd_decode"] != 2e9 || all["read"] != HostFigures()["read"] {
		t.Error(all)
	}
	if gpu, host, err := ParseFigures(""); err != nil || len(gpu)+len(host) > 0 {
		t.Error(gpu, host, err)
	}
	for text, want := range map[string]string{
		"speed=1": `"speed=1" is not a figure`, "host.init=1": `"host.init=1" is not a figure`, "init": `"init" is not a number`, "up=x": `"up=x" is not a number: want up in GB/s`,
		"init=1,,": `"" is not a figure`, "host.margin=nan": "is not a number", "up=inf": "is not a number",
	} {
		if _, _, err := ParseFigures(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestMargin: a device has to save more than the margin says.
func TestMargin(t *testing.T) {
	j := Job{Stage: "focal", In: Array{Codec: Blosc, Bytes: 20 << 30, Streams: 400, Region: 52 << 20, Device: true}, Out: Array{Codec: Blosc, Streams: 400, Region: 52 << 20, Device: true}}
	for margin, gpu := range map[float64]bool{-1e12: true, 0.05: true, 0.999: false} {
		c, err := Choose(j, Host{Cores: 2, Storage: 20e9, Figures: HostFigures().With(Figures{"margin": margin})}, a100())
		if err != nil || c.GPU != gpu {
			t.Errorf("margin %v: %v %v", margin, c, err)
		}
	}
}

// TestMeasuredOnTheHost: the GPU has nothing to gain in stages that measure on the host, but where it encodes the
// output.
func TestMeasuredOnTheHost(t *testing.T) {
	raw := Array{Codec: Raw, Bytes: 20 << 30, Streams: 1, Region: 8 << 20, Device: true}
	for _, s := range []string{"beam-profile", "normalize", "flatfield"} {
		for _, cores := range []int{2, 16} {
			c, err := Choose(Job{Stage: s, In: raw, Out: Array{Codec: Blosc, Streams: 8, Region: 8 << 20}}, Host{Cores: cores}, a100())
			if err != nil || c.GPU {
				t.Errorf("%s on %d cores: %v %v", s, cores, c, err)
			}
		}
	}
}
