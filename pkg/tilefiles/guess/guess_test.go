package guess

import (
	"fmt"
	"strings"
	"testing"

	"strata/pkg/tilefiles"
)

// series makes names of a format for all combinations of numbers, the last fastest; verbs take them in this order.
func series(format string, ranges ...[]any) (out []string) {
	out = []string{""}
	args := [][]any{nil}
	for _, r := range ranges {
		var next [][]any
		for _, a := range args {
			for _, v := range r {
				next = append(next, append(a[:len(a):len(a)], v))
			}
		}
		args = next
	}
	out = out[:0]
	for _, a := range args {
		out = append(out, fmt.Sprintf(format, a...))
	}
	return out
}

func count(from, n int) (out []any) {
	for i := range n {
		out = append(out, from+i)
	}
	return out
}

func steps(by, n int) (out []any) {
	for i := range n {
		out = append(out, by*i)
	}
	return out
}

// Names of microscopes and programs have the pattern that a user of them would type.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		who        string
		names      []string
		want       string
		confidence string
	}{
		{"Micro-Manager 1.4", series("img_channel%03d_position%03d_time000000000_z%03d.tif", count(0, 2), count(0, 12), count(0, 3)), "img_channel{c}_position{index}_time000000000_z{z}.tif", Certain},
		{"Micro-Manager 2", series("scan_1_MMStack_Pos%d.ome.tif", count(0, 9)), "scan_1_MMStack_Pos{index}.ome.tif", Certain},
		{"Micro-Manager 2, grid", series("scan_MMStack_1-Pos_%03d_%03d.ome.tif", count(0, 3), count(0, 4)), "scan_MMStack_1-Pos_{row}_{col}.ome.tif", Likely},
		{"MetaMorph", series("brain_w%d_s%d_t1.TIF", count(1, 2), count(1, 20)), "brain_w{c}_s{index}_t1.TIF", Certain},
		{"MetaMorph, times", series("brain_w%d_s%d_t%d.TIF", count(1, 2), count(1, 6), count(1, 3)), "brain_w{c}_s{index}_t{t}.TIF", Certain},
		{"Leica", series("image--L0000--S00--U00--V00--J07--E00--O00--X%02d--Y%02d--T0000--Z%02d--C%02d.ome.tif", count(0, 3), count(0, 4), count(0, 5), count(0, 2)),
			"image--L0000--S00--U00--V00--J07--E00--O00--X{col}--Y{row}--T0000--Z{z}--C{c}.ome.tif", Certain},
		{"Leica, short", series("a--X%02d--Y%02d--Z00--C00.tif", count(0, 3), count(0, 4)), "a--X{col}--Y{row}--Z00--C00.tif", Certain},
		{"Zeiss", series("Experiment-01_s%dm%02d_ORG.tif", count(1, 2), count(1, 12)), "Experiment-01_s{slice}m{index}_ORG.tif", Certain},
		{"Zeiss, channels", series("Exp_c%dm%02d.tif", count(1, 2), count(1, 12)), "Exp_c{c}m{index}.tif", Certain},
		{"ImageJ", series("tile_%02d.tif", count(1, 30)), "tile_{index}.tif", Certain},
		{"ImageJ, filename defined", series("tile_x%03d_y%03d.tif", count(1, 4), count(1, 3)), "tile_x{col}_y{row}.tif", Certain},
		{"TeraStitcher", tera(3, 4, 5), "{y_um}/{y_um}_{x_um}/{y_um}_{x_um}_{z}.tif", Certain},
		{"Opera", series("Images/r01c01f%02dp%02d-ch%dsk1fk1fl1.tiff", count(1, 9), count(1, 3), count(1, 2)), "Images/r01c01f{index}p{z}-ch{c}sk1fk1fl1.tiff", Certain},
		{"ASHLAR", series("scan-cycle-01-%d.ome.tif", count(0, 12)), "scan-cycle-01-{index}.ome.tif", Likely},
		{"ASHLAR, series", series("img_s%02d.tif", count(0, 12)), "img_s{index}.tif", Certain},
		{"tiles called t", series("t%02d.tif", count(0, 12)), "t{index}.tif", Likely},
		{"rows and columns", series("tile_r%02d_c%02d.tif", count(1, 3), count(1, 4)), "tile_r{row}_c{col}.tif", Certain},
		{"one row", series("tile_r01_c%02d.tif", count(1, 4)), "tile_r{row}_c{col}.tif", Certain},
		{"slices", series("sl%02d_tile%d-%d.tif", count(1, 5), count(0, 3), count(0, 4)), "sl{slice}_tile{row}-{col}.tif", Likely},
		{"the index runs in a slice", series("Scan 7/s%03d_%04d.tif", count(10, 3), count(0, 48)), "Scan 7/s{slice}_{index}.tif", Likely},
		{"µm", series("x%s_y%s_488.png", []any{"-1200.5", "-12", "1176.5"}, []any{"0", "340.25"}), "x{x_um}_y{y_um}_488.png", Certain},
		{"wide steps", series("x%05d_y%05d.npy", steps(1200, 4), steps(900, 3)), "x{x_um}_y{y_um}.npy", Certain},
		{"planes in folders", series("r%dc%d/z%03d.tif", count(1, 2), count(1, 3), count(0, 7)), "r{row}c{col}/z{z}.tif", Certain},
		{"numbers in folders", series("tile%02d/%04d.tif", count(1, 6), count(0, 9)), "tile{index}/{z}.tif", Likely},
		{"no UTF-8", series("m\xfcll_r%d_c%d.tif", count(1, 3), count(1, 4)), "m\xfcll_r{row}_c{col}.tif", Certain},
		{"channels by name", series("tile_r%d_c%d_%s.tif", count(1, 3), count(1, 4), []any{"DAPI", "FITC", "Cy5"}), "tile_r{row}_c{col}_{channel}.tif", Certain},
		{"Micro-Manager 1.4, names", series("1-Pos_%03d_%03d/img_000000000_%s_%03d.tif", count(0, 3), count(0, 4), []any{"DAPI", "GFP", "mCherry"}, count(0, 5)),
			"1-Pos_{row}_{col}/img_000000000_{channel}_{z}.tif", Likely},
		{"channels in folders", append(series("Alexa488/Alexa488_%03d.tif", count(0, 12)), series("DAPI/DAPI_%03d.tif", count(0, 12))...), "{channel}/{channel}_{index}.tif", Likely},
		{"a word that is no dye", series("s_%s_%d.tif", []any{"DAPI", "tdTom", "PV"}, count(1, 12)), "s_{channel}_{index}.tif", Likely},
		{"other scripts", series("скан %d 列%d.tif", count(1, 3), count(1, 4)), "скан {row} 列{col}.tif", Likely},
	} {
		got := Names(c.names)
		if len(got) != 1 || len(got[0].Proposals) == 0 {
			t.Errorf("%s: %+v", c.who, got)
			continue
		}
		p := got[0].Proposals[0]
		if p.Pattern != c.want || p.Confidence != c.confidence || p.Files != len(c.names) {
			t.Errorf("%s: %q, %s, %d files (%s): want %q, %s, %d", c.who, p.Pattern, p.Confidence, p.Files, p.Why, c.want, c.confidence, len(c.names))
		}
		if p.Why == "" {
			t.Errorf("%s: no reason", c.who)
		}
		matches(t, c.who, p.Pattern, c.names)
	}
}

// matches reports names that a pattern does not match.
func matches(t *testing.T, who, pattern string, names []string) {
	t.Helper()
	p, err := tilefiles.ParsePattern(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, ok := p.Match(n); !ok {
			t.Errorf("%s: %q does not match %q", who, pattern, n)
		}
	}
}

// tera returns names of TeraStitcher.
func tera(rows, columns, planes int) (out []string) {
	for r := range rows {
		for c := range columns {
			for z := range planes {
				y, x := fmt.Sprintf("%06d", 4000*r), fmt.Sprintf("%06d", 5000*c)
				out = append(out, fmt.Sprintf("%s/%s_%s/%s_%s_%06d.tif", y, y, x, y, x, 20*z))
			}
		}
	}
	return out
}

// Of several wells the first is taken; others are mosaics of their own.
func TestWells(t *testing.T) {
	s := Names(series("r%02dc%02df%02dp01-ch1sk1fk1fl1.tiff", count(2, 2), count(3, 2), count(1, 9)))[0]
	p := s.Proposals[0]
	if p.Pattern != "r02c03f{index}p01-ch1sk1fk1fl1.tiff" || p.Files != 9 || !strings.Contains(p.Why, "the well r02c03") {
		t.Errorf("%+v", p)
	}
}

// Rows and columns without words have the other order as an alternative.
func TestAlternatives(t *testing.T) {
	s := Names(series("%03d_%03d.tif", count(0, 3), count(0, 4)))[0]
	if len(s.Proposals) != 2 || !s.Proposals[0].Swap || s.Proposals[0].Pattern != "{row}_{col}.tif" || s.Proposals[1].Pattern != "{col}_{row}.tif" {
		t.Errorf("%+v", s.Proposals)
	}
	if !Names(tera(2, 2, 2))[0].Proposals[0].Tenths {
		t.Error("TeraStitcher's positions are not in tenths of µm")
	}
}

// Several series in one folder are told apart, the largest first; names without a number that differs have no pattern.
func TestSeveral(t *testing.T) {
	all := append(series("a_%d_DAPI.tif", count(0, 4)), series("a_%d_GFP.tif", count(0, 6))...)
	got := Names(append(all, "readme.tif", "log.tif"))
	if len(got) != 2 || got[0].Files != 6 || got[1].Files != 4 {
		t.Fatalf("%+v", got)
	}
	if p := got[1].Proposals[0].Pattern; p != "a_{index}_DAPI.tif" {
		t.Error(p)
	}
	for _, f := range got[0].Fields {
		if f.Token != "index" || f.Values != 6 || f.Low != 0 || f.High != 5 {
			t.Errorf("%+v", f)
		}
	}
}

// Sets of tiles that words tell apart which are no dyes are not channels.
func TestNoChannels(t *testing.T) {
	all := append(series("left_r%d_c%d.tif", count(0, 3), count(0, 4)), series("right_r%d_c%d.tif", count(0, 3), count(0, 4))...)
	wells := append(series("p_A1_%03d.tif", count(0, 12)), series("p_B1_%03d.tif", count(0, 12))...)
	for _, names := range [][]string{all, wells} {
		if got := Names(names); len(got) != 2 {
			t.Errorf("%+v", got)
		}
	}
}

// Each name is split once, and memory grows with names, not with pairs of names.
func TestMany(t *testing.T) {
	small, large := series("r%d_c%d_z%d.tif", count(0, 10), count(0, 10), count(0, 10)), series("r%d_c%d_z%d.tif", count(0, 20), count(0, 50), count(0, 10))
	allocs := func(names []string) float64 { return testing.AllocsPerRun(1, func() { Names(names) }) }
	a, b := allocs(small), allocs(large)
	if b > 20*a {
		t.Errorf("%d names take %.0f allocations, %d take %.0f", len(small), a, len(large), b)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a_1.tif", "a_2.tif", "a_3.tif")
	f.Add("x-1.5_y2.tif", "x1_y2.tif", "x3_y-4.25.tif")
	f.Add("1/1_2/1_2_3.tif", "1/1_4/1_4_3.tif", "2/2_2/2_2_3.tif")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, s := range Names([]string{a, b, c}) {
			for _, p := range s.Proposals {
				if _, err := tilefiles.ParsePattern(p.Pattern); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func BenchmarkNames(b *testing.B) {
	names := series("img_channel%03d_position%03d_z%03d.tif", count(0, 4), count(0, 250), count(0, 100))
	for b.Loop() {
		Names(names)
	}
}
