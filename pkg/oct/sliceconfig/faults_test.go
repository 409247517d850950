package sliceconfig

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/oct"
	"strata/pkg/phantom"
	"strata/pkg/registration"
	"strata/tests/golden"
	"strata/tests/octtest"
)

// acquisition returns a phantom of one tile, which tissue fills but for its corners.
func acquisition() phantom.Config {
	c := phantom.Default()
	c.Slices, c.Tiles, c.Tile, c.Water, c.Anatomy = 16, [2]int{1, 1}, [3]int{40, 128, 128}, 0, 0.5
	return c
}

// scanned returns a slice as a microscope with these settings records it, one of those that there are if it has been
// scanned before.
func scanned(t *testing.T, known map[string]*ngff.Image, id, slice int, change func(c *phantom.Config)) Slice {
	t.Helper()
	c := acquisition()
	change(&c)
	key := fmt.Sprint(slice, c)
	if im := known[key]; im != nil {
		return Slice{id, im}
	}
	s, err := phantom.New(c)
	if err != nil {
		t.Fatal(err)
	}
	v := make([]byte, c.Tile[0]*c.Tile[1]*c.Tile[2]*c.DType.Size())
	if err := s.RenderTile(v, slice, 0, 0); err != nil {
		t.Fatal(err)
	}
	var im *ngff.Image
	if c.DType == dtype.Uint16 {
		im, _ = octtest.Made(t, c.Tile[:], []int{8, 64, 64}, nil, nil, func(i int) uint16 { return dtype.Slice[uint16](v)[i] })
	} else {
		im, _ = octtest.Made(t, c.Tile[:], []int{8, 64, 64}, nil, nil, func(i int) float32 { return dtype.Slice[float32](v)[i] })
	}
	known[key] = im
	return Slice{id, im}
}

// agarose makes a phantom without tissue.
func agarose(c *phantom.Config) {
	c.FillTissue, c.Texture, c.Anatomy, c.Gain = true, 0, 0, c.Agarose*1000
	c.Floor /= c.Agarose
}

// again makes slice 2k of a phantom lie at the depth of slice k of others.
func again(c *phantom.Config) { c.Cut /= 2 }

func TestFindFaults(t *testing.T) {
	constant, _ := octtest.Made(t, []int{40, 128, 128}, []int{40, 64, 64}, nil, nil, func(int) uint16 { return 9 })
	white, _ := octtest.Made(t, []int{40, 128, 128}, []int{40, 64, 64}, nil, nil, func(int) uint16 { return 65535 })
	rng := rand.New(rand.NewPCG(1, 2))
	normal, _ := octtest.Made(t, []int{40, 128, 128}, []int{40, 64, 64}, nil, nil, func(int) float32 { return float32(rng.NormFloat64()*3 + 20) })
	known := map[string]*ngff.Image{}
	bright := func(c *phantom.Config) { c.Gain = 8000 }
	dark := func(c *phantom.Config) { c.Gain, c.Floor = 100, 0.2 }
	for _, c := range []struct {
		name   string
		change func(c *phantom.Config)         // of all slices
		of     map[int]func(c *phantom.Config) // of single ones
		slice  map[int]int                     // which of the phantom a slice is, if not its own
		made   map[int]*ngff.Image
		want   map[int]string
	}{
		{name: "good"},
		{name: "one brighter, one darker than others", of: map[int]func(*phantom.Config){2: bright, 4: dark}},
		{name: "tissue everywhere", change: func(c *phantom.Config) { c.FillTissue = true }},
		{name: "plain tissue everywhere", change: func(c *phantom.Config) { c.FillTissue, c.Anatomy, c.Texture = true, 0, 0.2 }},
		{name: "cut thin", change: func(c *phantom.Config) { c.Cut = 25 }},
		{name: "strong speckle", change: func(c *phantom.Config) { c.Speckle = 1 }},
		{name: "no attenuation", change: func(c *phantom.Config) { c.Attenuation = 0 }},
		{name: "part of it saturated", change: func(c *phantom.Config) { c.DType, c.Gain = dtype.Uint16, 6554 }, of: map[int]func(*phantom.Config){3: func(c *phantom.Config) { c.DType, c.Gain = dtype.Uint16, 35000 }}},
		{name: "the specimen's end", of: map[int]func(*phantom.Config){0: agarose, 5: agarose, 6: agarose}, want: map[int]string{0: FaultNoTissue, 5: FaultNoTissue, 6: FaultNoTissue}},
		{name: "noise", of: map[int]func(*phantom.Config){3: func(c *phantom.Config) { c.Noise = true }}, made: map[int]*ngff.Image{5: normal}, want: map[int]string{3: FaultNoise, 5: FaultNoise}},
		{name: "empty", made: map[int]*ngff.Image{2: constant, 6: white}, want: map[int]string{2: FaultEmpty, 6: FaultSaturated}},
		{name: "saturated", change: func(c *phantom.Config) { c.DType = dtype.Uint16 }, of: map[int]func(*phantom.Config){3: func(c *phantom.Config) { c.DType, c.Gain = dtype.Uint16, 120000 }}, want: map[int]string{3: FaultSaturated}},
		{name: "scanned twice", change: func(c *phantom.Config) { c.Relief, c.Speckle = 0, 0.2 }, of: map[int]func(*phantom.Config){4: again}, slice: map[int]int{4: 6, 5: 4, 6: 5}, want: map[int]string{4: FaultDuplicate}},
		{name: "copied", slice: map[int]int{1: 0, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5}, want: map[int]string{1: FaultDuplicate}},
	} {
		var in []Slice
		for id := range 7 {
			slice := id
			if other, ok := c.slice[id]; ok {
				slice = other
			}
			if im := c.made[id]; im != nil {
				in = append(in, Slice{id, im})
				continue
			}
			in = append(in, scanned(t, known, id, slice, func(p *phantom.Config) {
				if c.change != nil {
					c.change(p)
				}
				if one := c.of[id]; one != nil {
					one(p)
				}
			}))
		}
		got := map[int]string{}
		faults, err := FindFaults(octtest.Ctx, in, DefaultAssessOptions(), octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			got[f.Slice] = f.Name
			if ends := c.name == "the specimen's end"; ends != strings.Contains(f.Text, "specimen") {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %v", c.name, faults, c.want)
		}
		few, err := FindFaults(octtest.Ctx, in, DefaultAssessOptions(), oct.Resources{Workers: 1, Mem: 5 << 20})
		if err != nil || fmt.Sprint(few) != fmt.Sprint(faults) {
			t.Errorf("%s, one worker: %v, %+v, want %+v", c.name, err, few, faults)
		}
	}
}

// Slices that others drew, one of them empty, have no other fault.
func TestFindFaultsGolden(t *testing.T) {
	for name, want := range map[string]map[int]string{
		"slices_a": {}, "slices_b": {}, "w_common_excluded_median": {}, "w_common_f32_centred": {}, "w_common_u16_nocentre": {}, "w_common_refine_unreliable": {},
		"w_interp_average": {}, "w_interp_zmorph": {}, "w_interp_zmorph_unrelated": {}, "w_quality_roi_existing": {}, "w_quality_workflow": {3: FaultEmpty},
	} {
		dir := golden.Unpack(t, "inputs/"+name+".zip")
		folders, err := filepath.Glob(filepath.Join(dir, "*", "slice_z*.ome.zarr"))
		if err != nil || len(folders) < 2 {
			t.Fatalf("%s: %v, %d slices", name, err, len(folders))
		}
		faults, err := FindFaults(octtest.Ctx, openSlices(t, filepath.Dir(folders[0])), DefaultAssessOptions(), octtest.Small())
		got := map[int]string{}
		for _, f := range faults {
			got[f.Slice] = f.Name
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %+v, want %v", name, err, faults, want)
		}
	}
}

// A slice by itself, of one plane, narrow, or with NaN is looked at, too.
func TestFindFaultsOfLittle(t *testing.T) {
	wave := func(i int) float32 { return 3 + float32(math.Sin(float64(i%9))*math.Cos(float64(i/9%9)/2)) }
	one, _ := octtest.Made(t, []int{1, 9, 9}, []int{1, 9, 9}, nil, nil, wave)
	nan, _ := octtest.Made(t, []int{1, 9, 9}, []int{1, 9, 9}, nil, nil, func(int) float32 { return float32(math.NaN()) })
	for _, in := range [][]Slice{{{0, one}}, {{0, nan}}, {{0, one}, {1, nan}, {2, one}}} {
		faults, err := FindFaults(octtest.Ctx, in, DefaultAssessOptions(), octtest.Small())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range faults {
			if in[f.Slice].Image != nan || f.Name != FaultEmpty {
				t.Errorf("%+v", f)
			}
		}
	}
	if _, err := FindFaults(octtest.Ctx, []Slice{{0, one}}, AssessOptions{Depth: 5, Level: 3}, octtest.Small()); !errors.Is(err, oct.ErrInput) {
		t.Error(err)
	}
}

func TestCompareGrids(t *testing.T) {
	usual := Grid{Tiles: [2]int{4, 5}, Tile: [3]int{100, 200, 200}, Voxel: [3]float64{3.5, 2, 2}}
	wide, coarse, small := usual, usual, usual
	wide.Tiles[1], coarse.Voxel[1], small.Tile[2] = 6, 4, 100
	series := func(all ...Grid) []Grid {
		for i := range all {
			all[i].Slice = 10 * i
		}
		return all
	}
	for _, c := range []struct {
		in   []Grid
		want string
	}{
		{series(usual, usual), ""},
		{nil, ""},
		{series(usual, usual, wide, usual), "20 4 × 6 tiles, where those of most slices are 4 × 5; "},
		{series(usual, usual, usual, wide), "30 4 × 6 tiles, where those of most slices are 4 × 5; "},
		{series(usual, usual, usual, wide, wide), "30 4 × 6 tiles, where those of most slices are 4 × 5; so have all slices behind it, lasting; 40 4 × 6 tiles, where those of most slices are 4 × 5; so have all slices behind it, lasting; "},
		{series(wide, wide, usual, usual, usual), "0 4 × 6 tiles, where those of most slices are 4 × 5; so have all slices before it, lasting; 10 4 × 6 tiles, where those of most slices are 4 × 5; so have all slices before it, lasting; "},
		{series(usual, usual, usual, coarse, coarse), "30 voxels of 3.5 × 4 × 2 µm, where those of most slices are 3.5 × 2 × 2 µm; 40 voxels of 3.5 × 4 × 2 µm, where those of most slices are 3.5 × 2 × 2 µm; "},
		{series(usual, small, usual), "10 tiles of 100 × 200 × 100 voxels, where those of most slices are 100 × 200 × 200; "},
	} {
		got := ""
		for _, f := range CompareGrids(c.in) {
			got += fmt.Sprintf("%d %s%s; ", f.Slice, f.Text, map[bool]string{true: ", lasting"}[f.Lasting])
		}
		if got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	merged := Merge([]Fault{{Slice: 3, Name: FaultNoise}}, []Fault{{Slice: 1, Name: FaultGrid}, {Slice: 3, Name: FaultGrid}})
	if len(merged) != 2 || merged[0].Slice != 1 || merged[1].Name != FaultNoise {
		t.Errorf("%+v", merged)
	}
}

func TestDecideFaults(t *testing.T) {
	scores := []Score{{ID: 1, HasData: true}, {ID: 2, HasData: true}, {ID: 3, HasData: true, Judged: true, Quality: 0.5}, {ID: 4, HasData: true, Judged: true, Quality: 0.5}}
	o := DecideOptions{Faults: []Fault{{Slice: 2, Name: FaultNoise, Text: "a, b"}, {Slice: 3, Name: FaultGrid, Text: "c", Lasting: true}}}
	const old = "slice_id,use,fault,fault_reason,mine\n1,false,,,x\n4,true,noise,old,y\n"
	config := table(t, old)
	for i, v := range Decide(config, scores, o) {
		if want := []string{previously, FaultNoise, "", ""}[i]; v.Reason != want {
			t.Errorf("%+v, want %q", v, want)
		}
	}
	text := written(t, config)
	for _, want := range []string{",fault,fault_reason,mine\n", "\n01,false,previously_excluded,,,,,,,,,,,,,,,x\n", "\n02,false,noise,,,,,,,,,,,,,noise,\"a, b\",\n", "\n03,true,,0.500,,,,,,,,,,,,grid,c,\n", "\n04,true,,0.500,,,,,,,,,,,,,,y\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	o.KeepFaulty = true
	kept := new(registration.SliceTable)
	Decide(kept, scores, o)
	if text := written(t, kept); !strings.Contains(text, "\n02,true,,,,,,,,,,,,,,noise,\"a, b\"\n") {
		t.Error(text)
	}
	m := AssessMetrics("c.csv", Decide(kept, scores, o), o)
	if v, _ := m.Metric("num_faulty"); v.Value != 2 {
		t.Errorf("%v", v)
	}
	none := new(registration.SliceTable)
	Decide(none, scores, DecideOptions{})
	if text := written(t, none); strings.Contains(text, "fault") {
		t.Error(text)
	}
}
