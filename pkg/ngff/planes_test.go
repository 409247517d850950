package ngff

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/zarr/codec"
	"strata/pkg/zarr/store"
)

func TestAnalysisLevels(t *testing.T) {
	for _, c := range []struct {
		shape          []int
		voxel, targets []float64
		isotropic      bool
		want           string
	}{
		{[]int{68, 50, 51}, []float64{8, 10, 10}, []float64{10, 25, 50, 100}, true,
			"[[54 50 51] [21 20 20] [10 10 10] [5 5 5]]"},
		{[]int{38, 50, 51}, []float64{8, 10, 10}, []float64{30, 10}, false, "[[30 40 40] [10 13 13]]"},
		{[]int{38, 50, 51}, []float64{8, 10, 10}, []float64{5, 7.9}, true, "[]"},        // all too fine
		{[]int{38, 50, 51}, []float64{12, 10, 10}, []float64{10}, true, "[[45 50 51]]"}, // upsampled along z
		{[]int{6, 7, 9}, []float64{2.3, 2.3, 2.3}, []float64{6.9}, true, "[[2 2 3]]"},   // 6 / (6.9/2.3) is 1.9999999999999998
		{[]int{3, 3, 3}, []float64{1, 1, 1}, []float64{100, 100}, true, "[[1 1 1]]"},
		{[]int{9, 9, 9}, []float64{10 * 1.0000000000000002, 10, 10}, []float64{10}, true, "[[9 9 9]]"},
	} {
		if got := fmt.Sprint(AnalysisLevels(c.shape, c.voxel, c.targets, c.isotropic)); got != c.want {
			t.Errorf("%v of %v to %v: %s, want %s", c.shape, c.voxel, c.targets, got, c.want)
		}
	}
}

// oracleAxis blurs and samples one axis (middle one of outer, n, inner) in float64.
func oracleAxis(v []float64, outer, n, inner, m int) []float64 {
	f := float64(n) / float64(m)
	mirror := func(i int) int {
		for i < 0 || i >= n {
			if n == 1 {
				return 0
			}
			if i < 0 {
				i = -i
			}
			if i >= n {
				i = 2*(n-1) - i
			}
		}
		return i
	}
	kernel, r := []float64{1}, 0
	if sigma := (f - 1) / 2; f > 1 && int(4*sigma+0.5) > 0 {
		r = int(4*sigma + 0.5)
		kernel = make([]float64, 2*r+1)
		sum := 0.0
		for j := range kernel {
			kernel[j] = math.Exp(-float64((j-r)*(j-r)) / (2 * sigma * sigma))
			sum += kernel[j]
		}
		for j := range kernel {
			kernel[j] /= sum
		}
	}
	blurred := make([]float64, len(v))
	for o := range outer {
		for i := range n {
			for x := range inner {
				for j, k := range kernel {
					blurred[(o*n+i)*inner+x] += k * v[(o*n+mirror(i+j-r))*inner+x]
				}
			}
		}
	}
	out := make([]float64, outer*m*inner)
	for o := range outer {
		for i := range m {
			p := min(max((float64(i)+0.5)*float64(n)/float64(m)-0.5, 0), float64(n-1))
			lo := int(p)
			hi := min(lo+1, n-1)
			for x := range inner {
				a, b := blurred[(o*n+lo)*inner+x], blurred[(o*n+hi)*inner+x]
				out[(o*m+i)*inner+x] = a + (b-a)*(p-float64(lo))
			}
		}
	}
	return out
}

func oracleLevel(v []float32, from, to []int) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	w = oracleAxis(w, 1, from[0], from[1]*from[2], to[0])
	w = oracleAxis(w, to[0], from[1], from[2], to[1])
	return oracleAxis(w, to[0]*to[1], from[2], 1, to[2])
}

// writePlanes writes a volume in batches and returns the levels as stored.
func writePlanes(t *testing.T, spec ImageSpec, levels [][]int, v []float32, batches func(left, unit int) int) (*Image, [][]float32) {
	t.Helper()
	ctx := context.Background()
	st := store.Memory()
	w, err := CreatePlanes(ctx, st, "", spec, levels)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	size := spec.Shape[1] * spec.Shape[2]
	for z := 0; z < spec.Shape[0]; {
		n := min(batches(spec.Shape[0]-z, w.Batch()), spec.Shape[0]-z)
		var planes [][]float32
		for range n {
			planes = append(planes, slices.Clone(v[z*size:(z+1)*size]))
			z++
		}
		if err := w.Write(ctx, planes); err != nil {
			t.Fatal(err)
		}
		for _, p := range planes {
			clear(p) // the writer is done with them
		}
	}
	if err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	im, err := Open(ctx, st, "")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]float32
	for _, l := range im.Levels {
		n := 1
		for _, s := range l.Array.Shape() {
			n *= s
		}
		got := make([]float32, n)
		if err := l.Array.Read(ctx, l.Array.Bounds(), dtype.Bytes(got)); err != nil {
			t.Fatal(err)
		}
		out = append(out, got)
	}
	return im, out
}

func TestPlaneWriter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	voxels := [][]float64{{10, 10, 10}, {8, 10, 10}, {12, 9, 10}, {3, 4, 5}, {30, 4, 4}, {40, 50, 60}}
	targets := [][]float64{{10, 25, 50, 100}, {10, 30}, {20, 40}, {11}, {7}, nil}
	for trial := range 60 {
		shape := []int{1 + rng.IntN(40), 1 + rng.IntN(40), 1 + rng.IntN(60)}
		v := make([]float32, shape[0]*shape[1]*shape[2])
		for i := range v {
			v[i] = float32(rng.ExpFloat64() * 100)
		}
		chain, err := codec.FromFlag("blosc-zstd:1", dtype.Float32, 3)
		if err != nil {
			t.Fatal(err)
		}
		voxel := voxels[rng.IntN(len(voxels))]
		spec := ImageSpec{
			Format: 2 + trial%2, Shape: shape, Scale: []float64{voxel[0] / 1000, voxel[1] / 1000, voxel[2] / 1000},
			Chunks:  []int{1 + rng.IntN(9), 1 + rng.IntN(30), 1 + rng.IntN(30)},
			Axes:    []Axis{{Name: "z", Type: TypeSpace, Unit: "millimeter"}, {Name: "y", Type: TypeSpace, Unit: "millimeter"}, {Name: "x", Type: TypeSpace, Unit: "millimeter"}},
			Workers: 1 + rng.IntN(4),
		}
		if trial%2 == 1 {
			spec.Codecs = chain
		}
		if trial%4 == 3 {
			spec.Shard = []int{spec.Chunks[0] * (1 + rng.IntN(2)), spec.Chunks[1] * (1 + rng.IntN(3)), spec.Chunks[2] * 2}
		}
		levels := AnalysisLevels(shape, voxel, targets[rng.IntN(len(targets))], rng.IntN(2) == 0)
		im, got := writePlanes(t, spec, levels, v, func(left, unit int) int { return unit * (1 + rng.IntN(5)) })
		if len(levels) == 0 {
			if len(got) != 1 || !slices.Equal(got[0], v) || !slices.Equal(im.Levels[0].Scale, spec.Scale) {
				t.Fatalf("trial %d: without levels the base must be kept", trial)
			}
			continue
		}
		source, from := v, shape
		for k, l := range levels {
			want := oracleLevel(source, from, l)
			if len(want) != len(got[k]) {
				t.Fatalf("trial %d: level %d has %d voxels, want %d", trial, k, len(got[k]), len(want))
			}
			for i := range want {
				if d := math.Abs(float64(got[k][i]) - want[i]); d > 1e-5*math.Abs(want[i])+1e-3 {
					t.Fatalf("trial %d, %v to %v: level %d, voxel %d is %v, want %v", trial, from, l, k, i, got[k][i], want[i])
				}
			}
			for d, n := range l {
				if s := im.Levels[k].Scale[d]; math.Abs(s-spec.Scale[d]*float64(shape[d])/float64(n)) > 1e-12 {
					t.Fatalf("trial %d: scale of level %d: %v", trial, k, im.Levels[k].Scale)
				}
			}
			if k == 0 {
				source, from = got[0], l
			}
		}
		// other workers, chunks and batches: the same bits
		spec.Workers, spec.Shard, spec.Chunks = 5-spec.Workers, nil, []int{4, 7, 100}
		_, again := writePlanes(t, spec, levels, v, func(left, unit int) int { return left })
		for k := range got {
			if !slices.Equal(got[k], again[k]) {
				t.Fatalf("trial %d: level %d depends on workers, chunks or batches", trial, k)
			}
		}
	}
}

// An image of which the caller makes level 0 is the same, metadata included.
func TestMadePlanes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	shape := []int{17, 20, 31}
	spec := ImageSpec{Format: 3, Shape: shape, Chunks: []int{2, 8, 8}, Axes: []Axis{{Name: "z", Type: TypeSpace}, {Name: "y", Type: TypeSpace}, {Name: "x", Type: TypeSpace}}, Scale: []float64{10, 10, 10}}
	v := make([]float32, shape[0]*shape[1]*shape[2])
	for i := range v {
		v[i] = float32(rng.ExpFloat64() * 100)
	}
	for _, targets := range [][]float64{{25, 40}, {25}, {10, 30}} {
		levels := AnalysisLevels(shape, spec.Scale, targets, true)
		_, want := writePlanes(t, spec, levels, v, func(left, unit int) int { return left })
		ctx := context.Background()
		files := [2]map[string]string{{}, {}}
		for i := range files {
			dir := t.TempDir()
			create, planes, size := CreatePlanes, v, shape[1]*shape[2]
			if i == 1 {
				create, planes, size = CreateMadePlanes, want[0], levels[0][1]*levels[0][2]
			}
			w, err := create(ctx, store.Folder(dir), "", spec, levels)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Abort()
			if err := w.Write(ctx, slices.Collect(slices.Chunk(planes, size))); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				b, err := os.ReadFile(filepath.Join(dir, name))
				files[i][name] = string(b)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		if !maps.Equal(files[0], files[1]) || len(files[0]) < 3 {
			t.Errorf("%v: %d files, want the same %d", targets, len(files[1]), len(files[0]))
		}
	}
}

func TestPlaneWriterRefuses(t *testing.T) {
	ctx := context.Background()
	spec := ImageSpec{Shape: []int{5, 3, 4}, Scale: []float64{1, 1, 1}, Chunks: []int{2, 3, 4}, Axes: []Axis{{Name: "z", Type: TypeSpace}, {Name: "y", Type: TypeSpace}, {Name: "x", Type: TypeSpace}}}
	plane := make([]float32, 12)
	for name, c := range map[string]struct {
		planes []int // planes in each write; a negative number: of the wrong size
		want   string
	}{
		"no whole batch": {[]int{2, 1}, "want a multiple of 2"},
		"too many":       {[]int{6}, "6 planes after 0 of 5"},
		"wrong size":     {[]int{-2}, "plane 0 has 11 voxels, want 3 × 4"},
		"missing":        {[]int{2, 2}, "1 of 5 planes were not written"},
	} {
		w, err := CreatePlanes(ctx, store.Memory(), "", spec, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range c.planes {
			planes := [][]float32{}
			for range max(n, -n) {
				planes = append(planes, plane[:12-btoi(n < 0)])
			}
			if err = w.Write(ctx, planes); err != nil {
				break
			}
		}
		if err == nil {
			err = w.Close(ctx)
		} else if again := w.Close(ctx); again == nil {
			t.Errorf("%s: the image closes after an error", name)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	spec.Shape = []int{3, 4}
	spec.Axes, spec.Scale, spec.Chunks = spec.Axes[1:], spec.Scale[1:], spec.Chunks[1:]
	if _, err := CreatePlanes(ctx, store.Memory(), "", spec, nil); err == nil || !strings.Contains(err.Error(), "2 axes") {
		t.Errorf("a plane is no volume: %v", err)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
