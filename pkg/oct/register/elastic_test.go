package register

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"strata/pkg/filter/bspline"
	"strata/pkg/oct"
	"strata/pkg/registration"
	"strata/tests/octtest"
)

// A slice of the phantom, with its own speckle, that is displaced by a few pixels, beside its turn, is laid on the one
// before it; what is written does not depend on workers and memory, and large planes are averaged first.
func TestElastic(t *testing.T) {
	const size, ny, nx = 2.5, 160, 180
	deform := bspline.NewWarp(ny, nx, 50).Like(func(x, y float64) (float64, float64) {
		return size * math.Sin(x/28) * math.Cos(y/40), size * math.Cos(x/36+1) * math.Sin(y/30)
	})
	fixed, moving, truth := cuts(t, 31, 1*math.Pi/180, 1, 150, deform)
	o := Defaults()
	o.SlicingIntervalMM, o.SearchRangeMM, o.MovingZ, o.MaxTranslationPx, o.Elastic = 0.15, 0.05, 4, 100, true
	missed := func(r *Result) (rms, before float64) {
		n := 0
		for y := 20; y < ny-20; y += 4 {
			for x := 20; x < nx-20; x += 4 {
				// where the slice shows the place of the fixed one's pixel: q with q + w(q) = T(p)
				p := [2]float64{float64(x), float64(y)}
				tx, ty := apply(truth, p)
				if tx < 15 || ty < 15 || tx > nx-15 || ty > ny-15 {
					continue
				}
				qx, qy := tx, ty
				for range 30 {
					dx, dy := deform.At(qx, qy)
					qx, qy = tx-dx, ty-dy
				}
				fx, fy := apply(r.Transform, p)
				before += (fx-qx)*(fx-qx) + (fy-qy)*(fy-qy)
				if r.Elastic != nil {
					dx, dy := r.Elastic.At(fx, fy)
					fx, fy = fx+dx, fy+dy
				}
				rms += (fx-qx)*(fx-qx) + (fy-qy)*(fy-qy)
				n++
			}
		}
		return math.Sqrt(rms / float64(n)), math.Sqrt(before / float64(n))
	}
	defer func(n int) { mostPixels = n }(mostPixels)
	for _, mostPixels = range []int{1 << 22, 10000} {
		var first *Result
		for _, res := range []oct.Resources{{Workers: 2, Mem: 64 << 20}, {Workers: 1, Mem: 20 << 20}, {Workers: 5, Mem: 1 << 30}} {
			r, err := Run(octtest.Ctx, fixed, moving, o, res)
			if err != nil {
				t.Fatal(err)
			}
			r.planes = [2]*plane{}
			if first == nil {
				first = r
			}
			if !reflect.DeepEqual(r, first) {
				t.Errorf("%d workers and %d MiB: %+v, want %+v", res.Workers, res.Mem>>20, r, first)
			}
		}
		rms, before := missed(first)
		t.Logf("%d pixels: %.3f px RMS left of %.3f, %+v", mostPixels, rms, before, first.Deformed)
		if first.Elastic == nil || rms > 0.6 || rms > before/2 {
			t.Errorf("%d pixels: %.3f px RMS left of %.3f: %v", mostPixels, rms, before, first.Warnings)
		}
		if mostPixels > 10000 {
			written(t, first)
		}
	}
}

// written checks the folder of a pair with displacements, and of one without.
func written(t *testing.T, r *Result) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "z01")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	files, err := r.Files("transform.tfm", "offsets.txt")
	if err != nil || files[len(files)-1].Name != MetricsName {
		t.Fatal("the metrics are not last: ", err)
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Content, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	p, err := registration.OpenPair(octtest.Ctx, dir)
	if err != nil || p.Elastic == nil {
		t.Fatal(err, p)
	}
	stale(t, dir)
	ax, ay := p.Elastic.At(70, 60)
	bx, by := r.Elastic.At(70, 60)
	if math.Abs(ax-bx) > 2e-6 || math.Abs(ay-by) > 2e-6 {
		t.Errorf("read: (%v, %v), want (%v, %v)", ax, ay, bx, by)
	}
	if m, ok := r.Metrics().Metric("elastic_applied"); !ok || m.Value != true {
		t.Errorf("metrics: %+v", m)
	}
}

// stale changes files of a pair one by one, as another registration in the same folder would: readers say so, and do
// not apply displacements of another registration.
func stale(t *testing.T, dir string) {
	t.Helper()
	for name, want := range map[string]string{
		"transform.tfm":            "transform.tfm: is not the file that pairwise_registration_metrics.json describes",
		"offsets.txt":              "offsets.txt: is not the file that",
		registration.ElasticName:   "its displacements are not applied",
		"another_registration.tfm": "",
	} {
		path := filepath.Join(dir, name)
		old, err := os.ReadFile(path)
		if err != nil && want != "" {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(old, '\n'), 0o666); err != nil {
			t.Fatal(err)
		}
		folder, err := registration.OpenFolder(filepath.Dir(dir))
		if err != nil {
			t.Fatal(err)
		}
		p, warnings, err := folder.Pair(octtest.Ctx, 1)
		if err != nil || len(warnings) != min(1, len(want)) || !strings.Contains(strings.Join(warnings, "\n"), want) {
			t.Errorf("%s: %q, %v", name, warnings, err)
		}
		if (p.Elastic == nil) != (name == registration.ElasticName) || p.Transform == nil {
			t.Errorf("%s changed: transform %v, displacements %v", name, p.Transform, p.Elastic)
		}
		if err := os.WriteFile(path, old, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// A slice that is only turned and moved gets next to no displacements.
func TestElasticRigid(t *testing.T) {
	fixed, moving, _ := sections(t, 32, -1*math.Pi/180)
	o := Defaults()
	o.SlicingIntervalMM, o.SearchRangeMM, o.MovingZ, o.MaxTranslationPx, o.Elastic = 0.15, 0.05, 4, 100, true
	r, err := Run(octtest.Ctx, fixed, moving, o, octtest.Small())
	if err != nil || r.Refused != "" {
		t.Fatal(err, r)
	}
	sum, n := 0.0, 0
	if r.Elastic != nil {
		for y := 20.0; y < 140; y += 5 {
			for x := 20.0; x < 160; x += 5 {
				dx, dy := r.Elastic.At(x, y)
				sum += dx*dx + dy*dy
				n++
			}
		}
	}
	rms := math.Sqrt(sum / float64(max(n, 1)))
	t.Logf("%.3f px RMS: %+v", rms, r.Deformed)
	if rms > 0.35 {
		t.Errorf("%.3f px RMS: %+v", rms, r.Deformed)
	}
}
