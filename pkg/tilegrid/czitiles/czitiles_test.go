package czitiles

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/czi"
	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/oct/stitch/canvas"
	"strata/pkg/phantom"
	"strata/pkg/tilegrid"
	"strata/pkg/zarr/store"
	"strata/tests/czicorpus"
)

// opened opens a file of the corpus.
func opened(t *testing.T, name string) *czi.File {
	t.Helper()
	f, err := czi.Open(t.Context(), czicorpus.Open(t, name), name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Every plane of every tile of the corpus is that of its sub-block, colours taken apart, or 0.
func TestOf(t *testing.T) {
	compared := 0
	for _, name := range []string{"c2z3t2.czi", "mosaic_overlap.czi", "mosaic_gaps_c2.czi", "mosaic_bgr.czi", "scenes3.czi", "no_m_no_s.czi", "unsorted_m.czi", "raw_bgr48.czi", "raw_bgr96f.czi"} {
		f := opened(t, name)
		s, err := Of(t.Context(), f, czi.AllScenes)
		if err != nil {
			t.Error(err)
			continue
		}
		there := map[string]int{} // sub-blocks by where and what they show
		for i := range f.Len() {
			if sb := f.SubBlock(i); sb.Level0() {
				there[fmt.Sprint(sb.Rect.Min, sb.C, sb.Z, sb.T)] = i
			}
		}
		channels, samples := f.Channels(), max(s.Together, 1)
		z0, _, _ := f.Dimension('Z')
		t0, _, _ := f.Dimension('T')
		dst := make([]byte, s.Tile[0]*s.Tile[1]*s.DType.Size()*samples)
		for k, at := range s.Positions {
			for n := range max(s.Times, 1) * max(s.Channels/samples, 1) * max(s.Planes, 1) {
				z := n % max(s.Planes, 1)
				c := n / max(s.Planes, 1) % max(s.Channels/samples, 1)
				time := n / max(s.Planes, 1) / max(s.Channels/samples, 1)
				if err := s.Read(t.Context(), k, time, c*samples, z, dst); err != nil {
					t.Fatal(err)
				}
				place := fmt.Sprintf("(%d,%d)", int(math.Round(at[1]/s.Voxel[2])), int(math.Round(at[0]/s.Voxel[1])))
				i, ok := there[fmt.Sprint(place, " ", channels[c], " ", z0+z, " ", t0+time)]
				want := make([]byte, len(dst))
				if ok {
					if err := f.ReadSubBlock(t.Context(), i, want); err != nil {
						t.Fatal(err)
					}
				}
				size := s.DType.Size()
				for p := range len(want) / size {
					pixel, sample := p/samples, p%samples
					shown := (samples - 1 - sample) * len(dst) / samples // blue comes first in the file, red in the scan
					if got := dst[shown+pixel*size:][:size]; !bytes.Equal(got, want[p*size:][:size]) {
						t.Fatalf("%s: tile %d at %s, channel %d, plane %d, time %d: pixel %d is %v", name, k, place, c, z, time, pixel, got)
					}
				}
				compared++
			}
		}
	}
	if compared < 40 {
		t.Errorf("only %d planes were compared", compared)
	}
}

func TestBad(t *testing.T) {
	for name, want := range map[string]string{
		"sizes_1px.czi":      "a mosaic grid has tiles of one kind",
		"c2_mixed_types.czi": "a mosaic grid has tiles of one kind",
	} {
		if _, err := Of(t.Context(), opened(t, name), czi.AllScenes); err == nil || !strings.HasPrefix(err.Error(), name+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Of(t.Context(), opened(t, "scenes3.czi"), 17); err == nil || !strings.Contains(err.Error(), "there are no tiles") {
		t.Error(err)
	}
}

// A slide scan whose stage erred is stitched to where its tiles are in truth: from the CZI file to positions.
func TestStitched(t *testing.T) {
	c := phantom.Default()
	c.Tiles, c.Tile, c.DType, c.Overlap, c.Jitter, c.Speckle, c.FillTissue = [2]int{3, 4}, [3]int{1, 160, 160}, dtype.Uint16, 0.2, 3, 0.02, true
	c.Water, c.Relief, c.Bowl = 0, 0, 0
	s, err := phantom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "scan.czi"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := s.WriteCZI(t.Context(), out, 0, phantom.Scan{Channels: 2, Compression: czi.Zstd1, Workers: 2, Mem: 8 << 20, Pyramid: true}); err != nil {
		t.Fatal(err)
	}
	o, err := store.Folder(dir).Open(t.Context(), "scan.czi")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	f, err := czi.Open(t.Context(), o, "scan.czi")
	if err != nil {
		t.Fatal(err)
	}
	scan, err := Of(t.Context(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	st := store.Memory()
	positions, err := scan.Write(t.Context(), st, tilegrid.Storage{Format: 3, Workers: 2, Mem: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	grid, err := ngff.Open(t.Context(), st, "")
	if err != nil {
		t.Fatal(err)
	}
	opt := stitch.Options{Transform: affine.Identity, Overlap: c.Overlap, Blending: canvas.BlendDiffusion, Positions: positions, Tolerance: stitch.DefaultTolerance}
	_, stitched, err := stitch.Run(t.Context(), grid, store.Memory(), oct.Layout{}, opt, oct.Resources{Workers: 2, Mem: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var before, after [2][]float64 // errors along y and x
	for k, tile := range stitched.Tiles {
		i, j := tile.Tile[0], tile.Tile[1]
		truth := s.TilePosition(0, i, j)
		for d := range 2 {
			after[d] = append(after[d], tile.Position[d]-truth[d])
			before[d] = append(before[d], positions.Tiles[k].Position[d]/scan.Voxel[1+d]-truth[d])
		}
	}
	if b, a := rms(before), rms(after); b < 2 || a > 0.15 {
		t.Errorf("recorded positions are off by %.2f px, stitched ones by %.2f", b, a)
	}
}

// rms is the root mean square of errors, but for what all have in common.
func rms(errors [2][]float64) float64 {
	sum, n := 0.0, 0
	for _, e := range errors {
		mean := 0.0
		for _, v := range e {
			mean += v / float64(len(e))
		}
		for _, v := range e {
			sum += (v - mean) * (v - mean)
		}
		n = len(e)
	}
	return math.Sqrt(sum / float64(n))
}
