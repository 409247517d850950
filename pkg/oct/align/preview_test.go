package align

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"testing"

	"strata/pkg/filter/mattes"
	"strata/pkg/mem"
	"strata/pkg/oct"
	"strata/tests/octtest"
)

// bodyOf is the anatomy in an image, seen through a transform.
func bodyOf(shape [3]int, mm float64, e *mattes.Euler) *mattes.Volume {
	v := &mattes.Volume{Shape: shape, Spacing: mattes.Vec{mm, mm, mm}, Voxels: make([]float32, shape[0]*shape[1]*shape[2])}
	m, offset := e.Affine()
	for i := range v.Voxels {
		q := m.Apply(mattes.Vec{float64(i%shape[2]) * mm, float64(i/shape[2]%shape[1]) * mm, float64(i/shape[2]/shape[1]) * mm})
		for d := range q {
			q[d] += offset[d] - 1.2
		}
		v.Voxels[i] = float32(anatomy(q))
	}
	return v
}

// The panels of a preview show the template, the volume where the transform lays it, and both in turn.
func TestPreview(t *testing.T) {
	turn := &mattes.Euler{Angles: mattes.Vec{0.1, -0.05, 0.15}, Translation: mattes.Vec{0.1, -0.05, 0.08}, Centre: mattes.Vec{1.2, 1.2, 1.2}}
	template := bodyOf([3]int{48, 50, 52}, 0.05, turn)
	volume := bodyOf([3]int{60, 60, 60}, 0.04, &mattes.Euler{})
	r := &Result{preview: draw(template, volume, turn)}
	var b bytes.Buffer
	if err := r.WritePreview(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	g := img.(*image.Gray)
	if want := image.Rect(0, 0, 52+52+50+2*gap, 3*50+2*gap); g.Rect != want {
		t.Fatalf("%v, want %v", g.Rect, want)
	}
	// off is the mean difference of two rows of panels
	off := func(a, b int) float64 {
		sum, n := 0.0, 0
		for y := range 50 {
			for x := range g.Rect.Dx() {
				p, q := g.GrayAt(x, a*(50+gap)+y).Y, g.GrayAt(x, b*(50+gap)+y).Y
				sum, n = sum+math.Abs(float64(p)-float64(q)), n+1
			}
		}
		return sum / float64(n)
	}
	if d := off(0, 1); d > 3 {
		t.Errorf("template and volume differ by %.1f", d)
	}
	if c := off(0, 2); c == 0 || c > off(0, 1) {
		t.Errorf("the checkerboard differs from the template by %.2f, the volume by %.2f", c, off(0, 1))
	}
	wrong := &Result{preview: draw(template, volume, &mattes.Euler{})}
	g = wrong.preview
	if d := off(0, 1); d < 6 {
		t.Errorf("without the transform, template and volume differ by %.1f only", d)
	}
	// the first section is across z, with y upwards
	if got, want := g.GrayAt(20, 30).Y, shade(template)(float64(template.Voxels[(23*50+49-30)*52+20])); got != want {
		t.Errorf("pixel (20, 30) of the template is %d, want %d", got, want)
	}
	empty := &mattes.Volume{Shape: [3]int{1, 1, 1}, Spacing: mattes.Vec{1, 1, 1}, Voxels: []float32{0}}
	if g := draw(empty, empty, &mattes.Euler{}); g.GrayAt(0, 0).Y != 0 {
		t.Error("an empty template is not black")
	}
}

// The picture of the start shows the volume as it is turned: near the registered one when turned right, far from it
// when turned wrong, which the mutual information says, too. A run that registers draws the same picture, and frees as
// much.
func TestStart(t *testing.T) {
	in, to := imageOf(t, volumeShape, [3]float64{volumeUM, volumeUM, volumeUM}, 1, specimen), template(t)
	res := oct.Resources{Workers: 2, Mem: 128 << 20}
	o := options()
	o.Preview, o.StartPreview = true, true
	registered := run(t, in, to, o, oct.Layout{}, res)
	// laid is the mean difference of the volume in a picture, the second row of panels, from the registered one
	laid := func(g *image.Gray) float64 {
		height := (g.Rect.Dy() - 2*gap) / 3
		sum := 0.0
		for y := height + gap; y < 2*height+gap; y++ {
			for x := range g.Rect.Dx() {
				sum += math.Abs(float64(g.GrayAt(x, y).Y) - float64(registered.preview.GrayAt(x, y).Y))
			}
		}
		return sum / float64(height*g.Rect.Dx())
	}
	var off, information [2]float64
	for i, turn := range [2]float64{0, 90} {
		o.Rotation = []float64{turn}
		if _, err := Start(octtest.Ctx, in, to, o, res); err == nil {
			t.Error("one angle is taken for three")
		}
		o.Rotation = []float64{truth.Angles[0] * 180 / math.Pi, truth.Angles[1] * 180 / math.Pi, truth.Angles[2]*180/math.Pi + turn}
		before := mem.InUse()
		r, err := Start(octtest.Ctx, in, to, o, res)
		if err != nil {
			t.Fatal(err)
		}
		if mem.InUse()-before > 1<<20 {
			t.Errorf("%d bytes are not freed", mem.InUse()-before)
		}
		if r.Image != nil || r.preview != nil || r.startPreview.Rect != registered.preview.Rect {
			t.Errorf("a start made %v, %v, and a picture of %v", r.Image, r.preview, r.startPreview.Rect)
		}
		off[i], information[i] = laid(r.startPreview), r.Transform.Information
	}
	if off[0] > 4 || off[1] < 3*off[0] {
		t.Errorf("the pictures differ from the registered one by %.1f, and by %.1f when turned wrong", off[0], off[1])
	}
	if information[0] < 2*information[1] || registered.Transform.Information < information[0]-0.01 {
		t.Errorf("mutual information %.3f, %.3f when turned wrong, %.3f registered", information[0], information[1], registered.Transform.Information)
	}
	if registered.startPreview == nil || laid(registered.startPreview) == 0 {
		t.Error("a run draws no start, or draws the end")
	}
	again, err := Start(octtest.Ctx, in, to, options(), res)
	if err != nil || !bytes.Equal(again.startPreview.Pix, registered.startPreview.Pix) || math.Abs(again.Transform.Information-registered.Transform.Before) > 1e-12 {
		t.Errorf("a run and its start alone differ: %v", err)
	}
}
