package surface

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"strata/pkg/filter"
	"strata/pkg/oct"
	"strata/pkg/oct/compute"
	"strata/pkg/zarr/codec"
	"strata/tests/octtest"
)

// search finds all interfaces of a mosaic in tiles of 8×10 A-lines; room, unless it is negative, is the memory of
// seams. It returns how many of them found none.
func search(t *testing.T, codecs codec.Chain, sigma float64, planes int, res oct.Resources, room int64) ([]int32, int, error) {
	t.Helper()
	in, _ := octtest.Made(t, []int{11, 29, 41}, []int{4, 8, 10}, nil, codecs, octtest.Uneven[uint16])
	m, err := oct.OpenMosaic(in)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan(m, filter.InterfaceSearch{SigmaXY: sigma, SigmaZ: 1, Planes: planes}, &res, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if room >= 0 {
		p.Seams = compute.NewPool(&res, room)
	}
	var mu sync.Mutex
	all, left := make([]int32, 29*41), 29*41
	p.Found = func(_ context.Context, r oct.Rectangle, depth []int32, _ []float32) error {
		mu.Lock()
		defer mu.Unlock()
		left -= r.Area()
		for y := r.Y0; y < r.Y1; y++ {
			copy(all[y*41+r.X0:y*41+r.X1], depth[(y-r.Y0)*r.Width():])
		}
		return nil
	}
	err = p.run(octtest.Ctx)
	if err == nil && left != 0 {
		t.Errorf("sigma %v, room for %d bytes: %d A-lines missing", sigma, room, left)
	}
	return all, len(p.late), err
}

// Seams that find no room in memory are read again; more window than memory is an error.
func TestInterfaceWithoutRoomForSeams(t *testing.T) {
	res := oct.Resources{Workers: 3, Mem: 32 << 20}
	codecs := codec.Chain{codec.CRC32C()}
	for _, sigma := range []float64{2, 3, 7} {
		want, late, err := search(t, codecs, sigma, 6, res, -1)
		if err != nil || late != 0 {
			t.Errorf("sigma %v: %d seams had no room, %v", sigma, late, err)
		}
		for _, room := range []int64{0, 16 << 10} {
			got, late, err := search(t, codecs, sigma, 6, res, room)
			if err != nil || late == 0 || !slices.Equal(got, want) {
				t.Errorf("sigma %v, room for %d bytes: %d seams had none, %v", sigma, room, late, err)
			}
		}
	}
	if _, _, err := search(t, codecs, 23, 6, res, 0); err == nil || !strings.Contains(err.Error(), "a mean filter of 23 pixels") {
		t.Errorf("more window than memory: %v", err)
	}
}
