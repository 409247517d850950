package attenuation

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/blocks"
	"strata/pkg/zarr/store"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// defaults are the parameters of the workflow.
func defaults() Options {
	return Options{Method: Li, Radius: 10, Strength: 0.3, MinBias: 0.05, SNR: 6, MaskSigma: 2}
}

// The mask and the volume are those of the golden set, whatever the workers, the memory and the chunks.
func TestAttenuationGolden(t *testing.T) {
	for _, c := range golden.Cases(t, "attenuation") {
		t.Run(c.Name, func(t *testing.T) {
			p := struct {
				Method   string
				K        int
				Strength float64
				MinBias  float64 `json:"min_bias"`
				SNR      float64 `json:"snr_threshold_db"`
				Sigma    float64 `json:"mask_smoothing_sigma"`
			}{Li, 10, 0.3, 0.05, 6, 2}
			var file struct {
				Planes    []int `json:"plane_index"`
				Tolerance struct {
					Volume struct {
						Rel, Abs float64
						Off      float64 `json:"max_fraction_off"`
					}
				}
				MaxGain struct{ Own float64 } `json:"max_gain"`
			}
			if err := errors.Join(json.Unmarshal(c.Params, &p), json.Unmarshal(c.File, &file)); err != nil {
				t.Fatal(err)
			}
			in := octtest.Open(t, store.Folder(golden.Image(t, c)))
			o := Options{Method: p.Method, Radius: p.K, Strength: p.Strength, MinBias: p.MinBias, SNR: p.SNR, MaskSigma: p.Sigma, Scratch: t.TempDir()}
			var first []float32
			for _, run := range []struct {
				workers int
				mem     int64
				chunks  []int
			}{{1, 256 << 20, nil}, {3, 64 << 20, []int{5, 9, 11}}, {2, 5 << 20, []int{26, 16, 16}}} {
				im, r, err := Run(octtest.Ctx, in, store.Memory(), o, oct.Layout{Chunks: run.chunks}, oct.Resources{Workers: run.workers, Mem: run.mem})
				if err != nil {
					t.Fatal(err)
				}
				got := octtest.Read(t, im.Levels[0].Array)
				if first != nil {
					octtest.SameBits(t, got, first)
					continue
				}
				first = got
				shape := in.Levels[0].Array.Shape()
				area := shape[1] * shape[2]
				off, n := 0, 0
				tol := file.Tolerance.Volume
				for k, want := range octtest.Numbers(c.Arrays["volume_planes"]) {
					v := float64(got[file.Planes[k/area]*area+k%area])
					n++
					if !(math.Abs(v-want) <= tol.Abs+tol.Rel*math.Abs(want)) {
						off++
					}
				}
				if float64(off) > tol.Off*float64(n) {
					t.Errorf("%d of %d voxels are off", off, n)
				}
				for z, want := range octtest.Numbers(c.Arrays["mean_per_plane"]) {
					sum := 0.0
					for _, f := range got[z*area:][:area] {
						sum += float64(f)
					}
					if mean := sum / float64(area); math.Abs(mean-want) > 1e-3*want {
						t.Errorf("plane %d: mean %v, want %v", z, mean, want)
					}
				}
				if math.Abs(r.MaxGain-file.MaxGain.Own) > 1e-3*file.MaxGain.Own || r.MedianGain < 1 || r.MedianGain > r.MaxGain {
					t.Errorf("gains: median %v, largest %v, want %v", r.MedianGain, r.MaxGain, file.MaxGain.Own)
				}
				checkMask(t, in, o, c.Arrays["mask"].Data, off == 0)
			}
			if left, err := os.ReadDir(o.Scratch); err != nil || len(left) > 0 {
				t.Errorf("%d files are left, %v", len(left), err)
			}
		})
	}
}

// checkMask compares the mask at the end with packed bits, the highest first.
func checkMask(t *testing.T, in *ngff.Image, o Options, packed []byte, exact bool) {
	t.Helper()
	j, done, err := newJob(octtest.Ctx, in, o, oct.Layout{}, octtest.Small())
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := j.measure(octtest.Ctx); err != nil {
		t.Fatal(err)
	}
	off, inside, row := 0, 0, words(j.size)
	for i := range j.columns() {
		shape := j.shape(i)
		set := make([]uint64, shape[0]*shape[1]*row)
		if err := read(j.scratch, set, i, bits, 0); err != nil {
			t.Fatal(err)
		}
		for k := range product(shape) {
			z, y, x := k/shape[1]/shape[2], k/shape[2]%shape[1], k%shape[2]
			at := (z*j.v.Shape[1]+i/j.grid[1]*j.size[1]+y)*j.v.Shape[2] + i%j.grid[1]*j.size[2] + x
			got, want := set[(z*shape[1]+y)*row+x>>6]>>(x&63)&1 != 0, packed[at/8]>>(7-at%8)&1 != 0
			if got != want {
				off++
			}
			if got {
				inside++
			}
		}
	}
	n := product(j.v.Shape)
	if share := float64(off) / float64(n); exact && off > 0 || share > 0.002 {
		t.Errorf("%d of %d voxels of the mask are off", off, n)
	}
	if math.Abs(j.result.Coverage-float64(inside)/float64(n)) > 1e-12 {
		t.Errorf("coverage %v, want %v", j.result.Coverage, float64(inside)/float64(n))
	}
}

// cube is a volume with a bright cube that decays with depth by 10 % a plane, over noise of 1.
func cube(t *testing.T, change func(v []float32)) *ngff.Image {
	shape := []int{10, 30, 32}
	v := octtest.Made3(shape, func(i int) float32 {
		z, y, x := i/960, i/32%30, i%32
		if y >= 8 && y < 24 && x >= 6 && x < 26 {
			return float32(1000*math.Pow(0.9, float64(z)) + float64(i*7919%13))
		}
		return float32(1 + float64(i*7919%11)/100)
	})
	change(v)
	return octtest.MosaicOf(t, ngff.ImageSpec{Shape: shape, Chunks: []int{4, 16, 16}}, v)
}

func run(t *testing.T, in *ngff.Image, o Options) ([]float32, *Result, []string) {
	t.Helper()
	var warnings []string
	res := octtest.Small()
	res.Warn = func(m string) { warnings = append(warnings, m) }
	im, r, err := Run(octtest.Ctx, in, store.Memory(), o, oct.Layout{}, res)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := r.Step("a", "b", o).JSON(); err != nil || !json.Valid(text) {
		t.Errorf("metrics %s, %v", text, err)
	}
	return octtest.Read(t, im.Levels[0].Array), r, warnings
}

// With the whole strength the signal no longer decays: the truth of an even cube is its surface's brightness.
func TestTruth(t *testing.T) {
	for _, method := range []string{Li, Liu} {
		o := defaults()
		o.Method, o.Strength, o.Radius = method, 1, 1
		v, r, warnings := run(t, cube(t, func([]float32) {}), o)
		for z := range 10 {
			if f := v[z*960+16*32+16]; f < 900 || f > 1100 {
				t.Errorf("%s: plane %d is %v", method, z, f)
			}
			if f := v[z*960+2*32+2]; f > 1.2 {
				t.Errorf("%s: agarose of plane %d is %v", method, z, f)
			}
		}
		if len(warnings) > 0 || r.MaxGain < 2 || r.MaxGain > 6 || r.Coverage < 0.3 || r.Coverage > 0.4 {
			t.Errorf("%s: %v, gain %v, coverage %v", method, warnings, r.MaxGain, r.Coverage)
		}
	}
}

// NaN and infinite voxels stay and change little else; their neighbours are corrected as if they were not there.
func TestNotFinite(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	o := defaults()
	o.Radius = 2
	plain, _, _ := run(t, cube(t, func([]float32) {}), o)
	at := map[int]float32{0: nan, 5*960 + 16*32 + 16: nan, 6*960 + 16*32 + 15: inf, 3*960 + 12*32 + 10: -inf, 9*960 + 17*32 + 17: nan, 959: inf}
	got, _, _ := run(t, cube(t, func(v []float32) {
		for i, f := range at {
			v[i] = f
		}
	}), o)
	for i, f := range got {
		if want, ok := at[i]; ok {
			if f != want && (f == f || want == want) {
				t.Errorf("voxel %d: %v, want %v", i, f, want)
			}
			continue
		}
		if math.Abs(float64(f-plain[i])) > 0.02*float64(plain[i]) {
			t.Errorf("voxel %d: %v, without the others %v", i, f, plain[i])
		}
	}
}

// Volumes without tissue stay as they are; most say so.
func TestNothing(t *testing.T) {
	for name, c := range map[string]struct {
		value    float32
		warnings int
	}{"constant": {7, 1}, "dark": {0, 1}, "NaN": {float32(math.NaN()), 1}, "negative": {-3, 1}} {
		for _, method := range []string{Li, Liu, Vermeer} {
			o := defaults()
			o.Method = method
			v, r, warnings := run(t, cube(t, func(v []float32) {
				for i := range v {
					v[i] = c.value
				}
			}), o)
			if len(warnings) != c.warnings || r.MaxGain != 1 && name != "dark" {
				t.Errorf("%s, %s: %v, gain %v", name, method, warnings, r.MaxGain)
			}
			for i, f := range v {
				if f != c.value && (f == f || c.value == c.value) {
					t.Fatalf("%s, %s: voxel %d: %v", name, method, i, f)
				}
			}
		}
	}
}

// Flat and tiny volumes are volumes, too.
func TestSmall(t *testing.T) {
	for _, shape := range [][]int{{1, 1, 1}, {1, 12, 13}, {2, 20, 1}, {30, 1, 9}, {3, 3, 3}} {
		v := octtest.Made3(shape, func(i int) uint16 { return uint16(i * 7919 % 301) })
		in := octtest.MosaicOf(t, ngff.ImageSpec{Shape: shape, Chunks: []int{2, 4, 4}}, v)
		for _, method := range []string{Li, Liu, Vermeer} {
			o := defaults()
			o.Method = method
			got, _, _ := run(t, in, o)
			for i, f := range got {
				if !(f >= float32(v[i]) && f <= 20.001*float32(v[i])) {
					t.Fatalf("%v, %s: voxel %d: %v of %v", shape, method, i, f, v[i])
				}
			}
		}
	}
}

// What does not fit into memory lies in a file that nobody sees, and the numbers are the same.
func TestFile(t *testing.T) {
	shape := []int{8, 240, 250}
	v := octtest.Made3(shape, func(i int) float32 {
		y, x := float64(i/250%240), float64(i%250)
		return float32(100+80*math.Sin(x/9)*math.Cos(y/11)) + float32(i*7919%53)
	})
	in := octtest.MosaicOf(t, ngff.ImageSpec{Shape: shape, Chunks: []int{8, 32, 32}}, v)
	for _, method := range []string{Li, Vermeer} {
		o := defaults()
		o.Method, o.Radius, o.Scratch = method, 3, t.TempDir()
		want, _, _ := run(t, in, o)
		inFile := false
		res := oct.Resources{Workers: 3, Mem: 5 << 20, Debug: func(m string) { inFile = inFile || strings.Contains(m, "temporary file") }}
		im, _, err := Run(octtest.Ctx, in, store.Memory(), o, oct.Layout{}, res)
		if err != nil {
			t.Fatal(err)
		}
		octtest.SameBits(t, octtest.Read(t, im.Levels[0].Array), want)
		if left, err := os.ReadDir(o.Scratch); !inFile || err != nil || len(left) > 0 {
			t.Errorf("%s: in a file: %v; %d files are left, %v", method, inFile, len(left), err)
		}
	}
}

// Too little memory and a folder that is not there are errors.
func TestErrors(t *testing.T) {
	in := cube(t, func([]float32) {})
	_, _, err := Run(octtest.Ctx, in, store.Memory(), defaults(), oct.Layout{}, oct.Resources{Workers: 1, Mem: 100 << 10})
	if err == nil || !strings.Contains(err.Error(), "--mem grants") {
		t.Errorf("too little memory: %v", err)
	}
	o := defaults()
	o.Scratch = "missing"
	if _, _, err := Run(octtest.Ctx, in, store.Memory(), o, oct.Layout{}, oct.Resources{Workers: 1, Mem: 100 << 10}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, _, err := Run(octtest.Ctx, in, store.Memory(), defaults(), oct.Layout{Chunks: []int{4, 16}}, octtest.Small()); !errors.Is(err, oct.ErrLayout) {
		t.Errorf("chunks of two axes: %v", err)
	}
}

// Tissue whose light decays evenly, but whose structure brightens with depth in places, is corrected evenly by the
// slice's decay.
func TestTailOfTheSlice(t *testing.T) {
	const nz, n, decay = 40, 48, 0.02
	shape := []int{nz, n, n}
	truth := func(z, y, x int) float64 { // stripes that lie aslant
		return 1000 * (1 + 0.4*math.Sin(float64(z)/6+float64(y)/3+float64(x)/2))
	}
	im, _ := octtest.Made(t, shape, []int{nz, 16, 16}, nil, nil, func(i int) float32 {
		z, y, x := i/n/n, i/n%n, i%n
		if y < 6 || x < 6 || y >= n-6 || x >= n-6 {
			return float32(1 + (i*7919)%5)
		}
		return float32(truth(z, y, x) * math.Exp(-decay*float64(z)))
	})
	spread := func(tail string) (spread, found float64) {
		o := defaults()
		o.Tail, o.Strength, o.Radius, o.Scratch = tail, 1, 0, t.TempDir()
		out, r, err := Run(octtest.Ctx, im, store.Memory(), o, oct.Layout{}, octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		v := octtest.Read(t, out.Levels[0].Array)
		sum, squares, count := 0.0, 0.0, 0.0
		for z := range nz / 2 {
			for y := 10; y < n-10; y++ {
				for x := 10; x < n-10; x++ {
					l := math.Log(float64(v[(z*n+y)*n+x]) / truth(z, y, x))
					sum, squares, count = sum+l, squares+l*l, count+1
				}
			}
		}
		return math.Sqrt(squares/count - sum/count*sum/count), r.Decay
	}
	slice, found := spread(TailSlice)
	line, none := spread(TailLine)
	if math.Abs(found+decay) > 0.3*decay || none != 0 {
		t.Errorf("the decay is found as %v, want %v; %v for each A-line", found, -decay, none)
	}
	if slice > line/2 || slice > 0.15 {
		t.Errorf("the corrected slice is off by a factor that varies by %.3f with the slice's decay, and by %.3f with each A-line's", slice, line)
	}
}

// Tissue that does not darken with depth is not brightened, with a warning.
func TestNoDecay(t *testing.T) {
	shape := []int{30, 40, 40}
	v := octtest.Made3(shape, func(i int) float32 {
		z, y, x := i/1600, i/40%40, i%40
		if x < 8 {
			return 1
		}
		return float32(100 + z + 10*((x*7+y*3)%5))
	})
	var warnings []string
	res := octtest.Small()
	res.Warn = func(m string) { warnings = append(warnings, m) }
	im, r, err := Run(octtest.Ctx, octtest.MosaicOf(t, ngff.ImageSpec{Shape: shape, Chunks: shape}, v), store.Memory(),
		Options{Method: Li, Tail: TailSlice, Radius: 1, Strength: 1, MinBias: 0.05, SNR: 6, MaskSigma: 1}, oct.Layout{}, res)
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || r.MaxGain > 1.001 {
		t.Errorf("largest gain %v, warnings %v", r.MaxGain, warnings)
	}
	for i, f := range octtest.Read(t, im.Levels[0].Array) {
		if f < v[i] || f > v[i]*1.001 {
			t.Fatalf("voxel %d became %v from %v", i, f, v[i])
		}
	}
}

// Columns of a deep slice are smaller than its chunks, unless the layout states these, so that its depth does not
// decide whether memory holds them; the size does not depend on the memory.
func TestDeepColumns(t *testing.T) {
	v := &blocks.Volume{Shape: [3]int{1000, 2300, 2300}, Chunk: [3]int{250, 230, 200}}
	for _, c := range []struct {
		layout oct.Layout
		want   [3]int
	}{{oct.Layout{}, [3]int{1000, 58, 50}}, {oct.Layout{Chunks: []int{250, 200, 200}}, [3]int{1000, 200, 200}}, {oct.Layout{Shard: []int{250, 460, 400}}, [3]int{1000, 230, 200}}} {
		if got := columnSize(v, c.layout); got != c.want {
			t.Errorf("%+v: columns of %v, want %v", c.layout, got, c.want)
		}
	}
	shallow := &blocks.Volume{Shape: [3]int{60, 400, 400}, Chunk: [3]int{60, 128, 128}}
	if got := columnSize(shallow, oct.Layout{}); got != [3]int{60, 128, 128} {
		t.Errorf("columns of %v for a shallow slice", got)
	}
}
