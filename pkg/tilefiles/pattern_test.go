package tilefiles

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct{ pattern, name, want string }{
		{"t_{row}_{col}.tif", "t_3_012.tif", "row=3 col=12"},
		{"t_{row}_{col}.tif", "t_-3_+4.tif", "row=-3 col=4"},
		{"t{row}-{col}.tif", "t0-1.tif", "row=0 col=1"},
		{"t{row}-{col}.tif", "t0--1.tif", "row=0 col=-1"},
		{"t{row}-{col}.tif", "t0-1.tiff", ""},
		{"t{row}-{col}.tif", "t0-.tif", ""},
		{"t{row}-{col}.tif", "T0-1.tif", ""},
		{"sl{slice}_{index}.tif", "sl0012_000.tif", "index=0 slice=12"},
		{"*{index}.tif", "img-12.tif", "index=12 *img-"},
		{"*{index}.tif", "s01_img12.tif", "index=12 *s01_img"},
		{"{index}*.tif", "007 of 12.tif", "index=7 * of 12"},
		{"*_{index}_*.tif", "a_1_2_b.tif", "index=1 *a *2_b"},
		{"*{index}", "x12y", ""},
		{"{index}", "999999999999999", "index=999999999999999"},
		{"{index}", "9999999999999999", ""},
		{"{index}", "99999999999999999999999", ""},
		{"x{x_um}_y{y_um}.tif", "x-12.50_y+3.tif", "x_um=-12.5 y_um=3"},
		{"x{x_um}y{y_um}.tif", "x12.y3.tif", ""},
		{"x{x_um}_y{y_um}.1.tif", "x1_y2.5.1.tif", "x_um=1 y_um=2.5"},
		{"x{x_um}_y{y_um}.tif", "x1e5_y2.tif", ""},
		{"sl{slice}/sl{slice}_{index}.tif", "sl3/sl03_1.tif", "index=1 slice=3"},
		{"sl{slice}/sl{slice}_{index}.tif", "sl3/sl04_1.tif", ""},
		{"sl{slice}/{index}.tif", "sl3/x/1.tif", ""},
		{"sl{slice}/{index}.tif", "1.tif", ""},
		{"层{slice} タイル{index}.tif", "层3 タイル04.tif", "index=4 slice=3"},
		{"t{row},{col} [c{c} t{t} z{z}].tif", "t1,2 [c3 t4 z5].tif", "row=1 col=2 z=5 c=3 t=4"},
		{"*{index}.tif", "._img1.tif", ""},
		{".*{index}.tif", "._img1.tif", "index=1 *_img"},
		{"**{index}**.tif", "a1b.tif", "index=1 *a *b"},
		{"t{row}_{col}_{channel}.tif", "t1_2_DAPI.tif", "row=1 col=2 channel=DAPI"},
		{"{channel}_{index}.tif", "Alexa_488_7.tif", "index=7 channel=Alexa_488"},
		{"{channel}{index}.tif", "Cy5-03.tif", "index=3 channel=Cy5-"},
		{"{channel}/{channel}_{index}.tif", "GFP/GFP_1.tif", "index=1 channel=GFP"},
		{"{channel}/{channel}_{index}.tif", "GFP/RFP_1.tif", ""},
		{"t{index}_{channel}.tif", "t1_.tif", ""},
		{"{channel}_{index}.tif", ".GFP_1.tif", ""},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		f, ok := p.Match(c.name)
		var got []string
		for k, name := range Tokens {
			switch token := Token(k); {
			case !f.set[k]:
			case token == Channel:
				got = append(got, "channel="+f.Channel)
			case token.whole():
				got = append(got, fmt.Sprintf("%s=%d", name, f.Whole[k]))
			default:
				got = append(got, fmt.Sprintf("%s=%g", name, f.UM[token-XUM]))
			}
		}
		for _, s := range strings.Split(strings.TrimSuffix(f.stars, "\x00"), "\x00") {
			if s != "" {
				got = append(got, "*"+s)
			}
		}
		if text := strings.Join(got, " "); ok != (c.want != "") || ok && text != c.want {
			t.Errorf("%s of %s: %q %v, want %q", c.pattern, c.name, text, ok, c.want)
		}
	}
}

func TestBadPatterns(t *testing.T) {
	for pattern, want := range map[string]string{
		"":                           "is empty",
		"tile.tif":                   "does not tell tiles apart: want {row} and {col}, {index}, or {x_um} and {y_um}; or {z}, {c}, {channel}, {t} or {slice} for the files of one tile",
		"t_{row}.tif":                "has {row} but not {col}",
		"t_{col}.tif":                "has {col} but not {row}",
		"t_{y_um}.tif":               "has {y_um} but not {x_um}",
		"t_{rows}_{col}.tif":         "{rows} is not known: want {row} {col}",
		"t_{}_{col}.tif":             "{} is not known",
		"t_{row_{col}.tif":           "{row_{col} is not known",
		"t_{row}_{col.tif":           "has a { without }",
		"t_row}_{col}.tif":           "has a } without {",
		"t_{row}{col}.tif":           "{col} follows another number without text between",
		"t_{row}_{col}_{index}":      "has {row} and {col} besides {index}",
		"t_{index}_{c}_{channel}":    "has {c} besides {channel}",
		"{index}_{channel}{channel}": "{channel} follows another name without text between",
		"/t_{row}_{col}":             "begins with /",
		"../t_{row}_{col}":           `has the folder ".."`,
		"a//t_{row}_{col}":           `has the folder ""`,
		"a/t_{row}_{col}/":           `has the folder ""`,
		"t_{row}_{col}\x00":          "has a zero byte",
		strings.Repeat("x", 5000):    "has 5000 bytes",
		"t_{row}_{col}_{ROW}.tif":    "{ROW} is not known",
		"t_{row\n}_{col}":            `{row\n} is not known`,
		"t_{index}_{row}_{col}_{c":   "has a { without }",
	} {
		_, err := ParsePattern(pattern)
		var option *OptionError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &option) || option.Option != "pattern" || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", pattern, err, want)
		}
	}
}

// A pattern with many stars does not take long, however a name is made.
func TestManyStars(t *testing.T) {
	p, err := ParsePattern(strings.Repeat("*a", 60) + "{index}")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Match(strings.Repeat("a", 250)); ok {
		t.Error("there is no number")
	}
	if f, ok := p.Match(strings.Repeat("a", 250) + "17"); !ok || f.Whole[Index] != 17 {
		t.Errorf("%v %v", f, ok)
	}
}

// FuzzPattern: no pattern and no name makes a panic, and what was found is in the name.
func FuzzPattern(f *testing.F) {
	for _, c := range [][2]string{{"t_{row}_{col}.tif", "t_1_2.tif"}, {"*{index}*", "a-1b"}, {"sl{slice}/x{x_um}y{y_um}*", "sl1/x-1.5y2 é"}, {"{row}*{col}", "1**2"}, {"a/{index}", "a/\xff"}} {
		f.Add(c[0], c[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := ParsePattern(pattern)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q: an error of two lines", err)
			}
			return
		}
		fields, ok := p.Match(name)
		if !ok {
			return
		}
		if strings.Count(name, "/") != strings.Count(pattern, "/") {
			t.Errorf("%q matches %q", pattern, name)
		}
		for k := range Tokens {
			if fields.set[k] != p.Has(Token(k)) {
				t.Errorf("%q of %q: %s is found: %v", pattern, name, Tokens[k], fields.set[k])
			}
		}
	})
}
