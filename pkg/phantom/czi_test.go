package phantom

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"strata/pkg/czi"
	"strata/pkg/dtype"
	"strata/pkg/zarr/store"
)

// TestCZI reads a slide scan: tiles are those of RenderTile where the stage was sent to, and channels differ.
func TestCZI(t *testing.T) {
	cfg := Default()
	cfg.Tiles, cfg.Tile, cfg.DType, cfg.Jitter = [2]int{2, 3}, [3]int{3, 40, 48}, dtype.Uint16, 3
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "a.czi"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := s.WriteCZI(t.Context(), out, 0, Scan{Channels: 2, Compression: czi.Zstd1, Workers: 3, Mem: 1 << 20, Pyramid: true}); err != nil {
		t.Fatal(err)
	}
	o, err := store.Folder(dir).Open(t.Context(), "a.czi")
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	f, err := czi.Open(t.Context(), o, "a.czi")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(f.Factors(0), f.Channels(), f.Bounds(0)); got != "[2 4] [0 1] (0,0)-(125,72)" {
		t.Errorf("levels, channels and box %s", got)
	}
	n, got, off := 40*48*2, make([]byte, 40*48*2), 0.0
	for ch := range 2 {
		whole := make([]byte, 3*n)
		for tile := range 6 {
			if err := s.Channel(ch).RenderTile(whole, 0, tile/3, tile%3); err != nil {
				t.Fatal(err)
			}
			for z := range 3 {
				i, ok := f.Tile(0, f.Plane(ch, z, 0), tile)
				if err := f.ReadSubBlock(t.Context(), i, got); !ok || err != nil || !bytes.Equal(got, whole[z*n:(z+1)*n]) {
					t.Errorf("channel %d, tile %d, plane %d: other pixels, %v, %v", ch, tile, z, ok, err)
				}
				p, sb := s.TilePosition(0, tile/3, tile%3), f.SubBlock(i)
				off = max(off, math.Abs(p[0]-float64(sb.Rect.Min.Y)), math.Abs(p[1]-float64(sb.Rect.Min.X)))
				if sb.Rect.Min.X != []int{0, 38, 77}[tile%3] || sb.Rect.Min.Y != 32*(tile/3) {
					t.Errorf("tile %d lies at %v", tile, sb.Rect)
				}
			}
		}
	}
	if off < 2 || off > 12 {
		t.Errorf("recorded positions are off by up to %g px", off)
	}
	a, b := make([]byte, 3*n), make([]byte, 3*n)
	if err := s.RenderTile(a, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Channel(1).RenderTile(b, 0, 0, 0); err != nil || bytes.Equal(a, b) || s.Channel(1).TilePosition(0, 1, 1) != s.TilePosition(0, 1, 1) {
		t.Errorf("channels are equal, or lie apart; %v", err)
	}
}
