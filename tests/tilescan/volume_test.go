package tilescan

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// nifti returns a compressed NIfTI-1 file of n[0] × n[1] × n[2] voxels (x, y, z).
func nifti(t *testing.T, kind uint16, n [3]int, value func(x, y, z int) byte) []byte {
	t.Helper()
	b := make([]byte, 352)
	little := binary.LittleEndian
	little.PutUint32(b, 348)
	little.PutUint16(b[40:], 3)
	for d, v := range n {
		little.PutUint16(b[42+2*d:], uint16(v))
	}
	little.PutUint16(b[70:], kind)
	little.PutUint32(b[108:], math.Float32bits(352))
	copy(b[344:], "n+1\x00")
	for z := range n[2] {
		for y := range n[1] {
			for x := range n[0] {
				b = append(b, value(x, y, z))
			}
		}
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A scan of a volume shows what lies under each pixel, deeper in the corners of tiles, and finds where the tissue is.
func TestTilesOfAVolume(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create("nilearn/datasets/data/ramp.nii.gz")
	if err != nil {
		t.Fatal(err)
	}
	// Brighter with depth and along x; the right half is empty.
	if _, err := w.Write(nifti(t, 2, [3]int{60, 70, 11}, func(x, y, z int) byte {
		if x >= 30 {
			return 0
		}
		return byte(50 + 2*x + 10*z)
	})); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	all, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	s := Scan{Picture: "ramp.nii.gz", Tiles: 2, Side: 20, Planes: 3, Depth: 0.5, Curvature: 2, Overlap: 0.2}
	r, err := s.Render(all)
	if err != nil {
		t.Fatal(err)
	}
	// The volume is enlarged by 2: 36 + 80 px are wanted of 60.
	if r.Places[0] != [2]float64{52, 42} {
		t.Fatalf("the first tile lies at %v", r.Places[0])
	}
	for plane := range 3 {
		y, x := 0, 0 // a corner, so nearly two planes deeper
		corner := 19.0 * 19 / 400
		want := floor + (50+2*(42/2.)+10*(0.5*10+(float64(plane)+2*corner)/2))/255
		if got := float64(r.Pixels[plane*40*40+y*40+x]); math.Abs(got-want) > 1e-5 {
			t.Errorf("plane %d: %v, want %v", plane, got, want)
		}
	}
	// The right tiles lie in the empty half.
	if want := []bool{true, false, true, false}; len(r.Pixels) != 3*40*40 || !slices.Equal(r.Tissue, want) {
		t.Errorf("%d voxels, tissue in %v, want %v", len(r.Pixels), r.Tissue, want)
	}
	if _, err := (&Scan{Picture: "other.nii.gz", Tiles: 2, Side: 20}).Render(all); err == nil || !strings.Contains(err.Error(), "other.nii.gz") {
		t.Errorf("a volume that is not there: %v", err)
	}
}

// Speckle keeps the mean brightness.
func TestSpeckle(t *testing.T) {
	all := pictures(t)
	plain := Scan{Picture: "noise.png", Tiles: 2, Side: 90, Overlap: 0.25, Seed: 3}
	speckled := plain
	speckled.Speckle = 1
	var mean, square [2]float64
	for k, s := range []Scan{plain, speckled} {
		r, err := s.Render(all)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range r.Pixels {
			mean[k] += float64(v) / float64(len(r.Pixels))
			square[k] += float64(v) * float64(v) / float64(len(r.Pixels))
		}
	}
	// The square of an exponential of mean 1 has a mean of 2.
	if math.Abs(mean[1]/mean[0]-1) > 0.02 || math.Abs(square[1]/square[0]-2) > 0.1 {
		t.Errorf("means %v, squares %v", mean, square)
	}
}

func TestBadVolumes(t *testing.T) {
	good := nifti(t, 2, [3]int{3, 3, 2}, func(x, y, z int) byte { return 1 })
	if _, err := readNIfTI(bytes.NewReader(good)); err != nil {
		t.Error(err)
	}
	for name, b := range map[string][]byte{
		"no gzip":    []byte("text"),
		"cut":        good[:len(good)/2],
		"other type": nifti(t, 16, [3]int{3, 3, 2}, func(x, y, z int) byte { return 1 }),
		"no voxels":  nifti(t, 2, [3]int{0, 3, 2}, func(x, y, z int) byte { return 1 }),
		"one plane":  nifti(t, 2, [3]int{3, 3, 1}, func(x, y, z int) byte { return 1 }),
	} {
		if _, err := readNIfTI(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
