package tilegrid

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

func TestGrid(t *testing.T) {
	tile := [2]float64{100, 200}
	for _, c := range []struct {
		name      string
		positions [][2]float64
		places    [2]int
		want      string
	}{
		{"a snake, with stage errors", [][2]float64{{0, 0}, {3, 180}, {-2, 362}, {88, 359}, {91, 181}, {90, -4}}, [2]int{2, 3}, "[[0 0] [0 1] [0 2] [1 2] [1 1] [1 0]]"},
		{"gaps", [][2]float64{{0, 180}, {90, 0}, {180, 360}}, [2]int{3, 3}, "[[0 1] [1 0] [2 2]]"},
		{"rows that are shifted by half a tile", [][2]float64{{0, 0}, {0, 180}, {90, 90}, {90, 270}}, [2]int{2, 4}, "[[0 0] [0 2] [1 1] [1 3]]"},
		{"rows that slope", [][2]float64{{0, 0}, {20, 180}, {40, 360}, {90, 0}, {110, 180}, {130, 360}}, [2]int{2, 3}, "[[0 0] [0 1] [0 2] [1 0] [1 1] [1 2]]"},
		{"two tiles at one place", [][2]float64{{0, 0}, {0, 180}, {0, 181}}, [2]int{1, 3}, "[[0 0] [0 1] [0 2]]"},
		{"the same position twice", [][2]float64{{5, 5}, {5, 5}}, [2]int{1, 2}, "[[0 0] [0 1]]"},
		{"one", [][2]float64{{-7, 1e9}}, [2]int{1, 1}, "[[0 0]]"},
	} {
		g, err := NewGrid(c.positions, tile)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(g.Tiles); got != c.want || g.Places != c.places {
			t.Errorf("%s: %s of %v, want %s of %v", c.name, got, g.Places, c.want, c.places)
		}
	}
	// pieces that lie anywhere do not make a grid of mostly nothing
	var far [][2]float64
	for i := range 300 {
		far = append(far, [2]float64{float64(i) * 1000, float64(i) * 1000})
	}
	g, err := NewGrid(far, tile)
	if err != nil || g.Places != [2]int{300, 1} {
		t.Errorf("%v places, %v", g.Places, err)
	}
	for _, bad := range [][][2]float64{nil, {{0, math.NaN()}}, {{math.Inf(1), 0}}} {
		if _, err := NewGrid(bad, tile); err == nil {
			t.Errorf("%v is no error", bad)
		}
	}
	if _, err := NewGrid(far, [2]float64{0, 1}); err == nil {
		t.Error("tiles of no height are no error")
	}
}

// FuzzGrid: whatever positions are, each tile has a place of its own.
func FuzzGrid(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p [][2]float64
		for ; len(b) >= 4; b = b[4:] {
			p = append(p, [2]float64{float64(binary.LittleEndian.Uint16(b)), float64(int16(binary.LittleEndian.Uint16(b[2:])))})
		}
		g, err := NewGrid(p, [2]float64{500, 400})
		if err != nil {
			return
		}
		seen := map[[2]int]bool{}
		for k, at := range g.Tiles {
			if seen[at] || at[0] < 0 || at[1] < 0 || at[0] >= g.Places[0] || at[1] >= g.Places[1] {
				t.Fatalf("tile %d at %v of %v", k, at, g.Places)
			}
			seen[at] = true
		}
	})
}

// Planes of tiles lie where the grid says, zeros are not stored, and the positions belong to the places.
func TestWrite(t *testing.T) {
	ctx := context.Background()
	s := Scan{
		Name: "scan", Tile: [2]int{4, 6}, Voxel: [3]float64{2, 0.5, 0.25}, Times: 2, Channels: 4, Planes: 3, DType: dtype.Uint16, Together: 2,
		Positions: [][2]float64{{1.8, 100}, {0, 100}, {0, 101.3}},
		Read: func(_ context.Context, tile, at, c, z int, dst []byte) error {
			for i := range dtype.Slice[uint16](dst) {
				dtype.Slice[uint16](dst)[i] = uint16(1 + tile + 10*at + 100*(c+i/24) + 1000*z + 10000*(i%24/6))
			}
			return nil
		},
	}
	var done atomic.Int64
	st := store.Memory()
	p, err := s.Write(ctx, st, Storage{Format: 3, Workers: 3, Mem: 16 << 20, Levels: 1, Progress: func(n int64) { done.Add(n) }})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Grid, p.Pixels, p.Tiles); got != "[2 2] false [{[1 0] [1.8 100]} {[0 0] [0 100]} {[0 1] [0 101.3]}]" {
		t.Errorf("positions %s", got)
	}
	if want := int64(3 * 2 * 4 * 3 * 4 * 6 * 2); done.Load() != want {
		t.Errorf("progress of %d bytes of %d", done.Load(), want)
	}
	im, err := ngff.Open(ctx, st, "")
	if err != nil {
		t.Fatal(err)
	}
	a := im.Levels[0].Array
	if !slices.Equal(a.Shape(), []int{2, 4, 3, 8, 12}) || !slices.Equal(a.Chunks(), []int{1, 1, 1, 4, 6}) || !slices.Equal(im.VoxelSize, []float64{1, 1, 2, 0.5, 0.25}) {
		t.Errorf("shape %v, chunks %v, voxel size %v", a.Shape(), a.Chunks(), im.VoxelSize)
	}
	v := make([]uint16, 2*4*3*8*12)
	if err := zarr.ReadSlice(ctx, a, a.Bounds(), v); err != nil {
		t.Fatal(err)
	}
	tiles := [2][2]int{{1, 2}, {0, -1}}
	for i, got := range v {
		x, y, z, c, at := i%12, i/12%8, i/12/8%3, i/12/8/3%4, i/12/8/3/4
		tile, want := tiles[y/4][x/6], uint16(0)
		if tile >= 0 {
			want = uint16(1 + tile + 10*at + 100*c + 1000*z + 10000*(y%4))
		}
		if got != want {
			t.Fatalf("voxel (%d, %d, %d, %d, %d) is %d, want %d", at, c, z, y, x, got, want)
		}
	}
	for _, key := range []string{"0/c/0/0/0/1/1", "0/c/1/3/2/1/1"} {
		if _, err := st.Get(ctx, key, nil, -1); err == nil {
			t.Errorf("%s is stored, there is no tile", key)
		}
	}
}

func TestBadScans(t *testing.T) {
	failed := errors.New("the disk is gone")
	good := Scan{Tile: [2]int{4, 4}, Voxel: [3]float64{0, 1, 1}, DType: dtype.Uint8, Positions: [][2]float64{{0, 0}}, Read: func(context.Context, int, int, int, int, []byte) error { return nil }}
	for want, change := range map[string]func(*Scan, *Storage){
		"tiles of [4 0] pixels":              func(s *Scan, _ *Storage) { s.Tile[1] = 0 },
		"tiles of [2097152 4] pixels":        func(s *Scan, _ *Storage) { s.Tile[0] = 2 << 20 },
		"3 channels (2 at a time)":           func(s *Scan, _ *Storage) { s.Channels, s.Together = 3, 2 },
		"axis x: voxel size 0 µm":            func(s *Scan, _ *Storage) { s.Voxel[2] = 0 },
		"axis z: voxel size 0 µm":            func(s *Scan, _ *Storage) { s.Planes = 2 },
		"there are no tiles":                 func(s *Scan, _ *Storage) { s.Positions = nil },
		"MiB of buffers, --mem grants 0 MiB": func(_ *Scan, st *Storage) { st.Mem = 32 },
		failed.Error(): func(s *Scan, _ *Storage) {
			s.Read = func(context.Context, int, int, int, int, []byte) error { return failed }
		},
		"a mosaic grid of 5000 × 1 tiles of [": func(s *Scan, _ *Storage) {
			s.Tile, s.Positions = [2]int{1 << 19, 4}, nil
			for i := range 5000 {
				s.Positions = append(s.Positions, [2]float64{float64(i) * (1 << 19), 0})
			}
		},
	} {
		s, st := good, Storage{Format: 3, Workers: 1, Mem: 1 << 30}
		change(&s, &st)
		if _, err := s.Write(context.Background(), store.Memory(), st); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
