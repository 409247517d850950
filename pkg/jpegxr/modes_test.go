package jpegxr

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/modes.json, with libjxrglue")

// mode describes an image of testdata/modes.json in the terms that choose the code that decodes it.
func (o options) mode(wild bool) string {
	s := fmt.Sprintf("%v inside %d overlap %d lacks %d frequency %v scaled %v", o.Format, o.color, o.overlap, o.lacks, o.frequency, !o.unscaled)
	if len(o.tilesX)+len(o.tilesY) > 0 {
		s += " tiles"
	}
	if o.hard {
		s += " hard"
	}
	if o.trimmed > 0 {
		s += " trimmed"
	}
	if o.index[0] == 1 {
		s += " lossless"
	}
	if wild {
		s = "wild " + s
	}
	return s
}

// TestModes: testdata/modes.json has small images of as many kinds as fit, and what the library makes of them.
// TestGolden decodes them where there is no library.
func TestModes(t *testing.T) {
	l := needLibrary(t)
	var list []golden
	seen := map[string]bool{}
	size := 0
	add := func(name string, o options, src, pixels []byte) {
		list = append(list, golden{name, o.Format.String(), []int{o.Height, o.Width}, sum(pixels), src})
		seen[name], size = true, size+len(src)
	}
	for seed := uint64(0); size < 110_000; seed++ {
		o, pixels := random(seed)
		name := o.mode(false)
		if seen[name] || o.Width*o.Height > 10_000 || o.Width < 20 && seed%4 > 0 {
			continue
		}
		src, err := l.encode(o, pixels)
		if err != nil || len(src) > 2500 {
			continue
		}
		want, err := l.decode(src, o.Header)
		if err != nil {
			t.Fatal(err)
		}
		add(name, o, src, o.reverse(want))
	}
	var d Decoder
	for seed := uint64(0); size < 160_000; seed++ {
		o, src, whole, left, top := wild(seed)
		name := o.mode(true)
		h, err := ReadHeader(whole)
		if err != nil || seen[name] || len(src) > 2500 {
			continue
		}
		n := h.Format.Size()
		if d.Decode(t.Context(), make([]byte, h.Width*h.Height*n), h.Width*n, whole) != nil {
			continue
		}
		want, err := l.decode(whole, h)
		if err != nil {
			t.Fatal(err)
		}
		want = o.reverse(want)
		var window []byte
		for y := range o.Height {
			window = append(window, want[((top+y)*h.Width+left)*n:][:o.Width*n]...)
		}
		add(name, o, src, window)
	}
	data, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, '\n')
	if *update {
		if err := os.WriteFile("testdata/modes.json", data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if old, err := os.ReadFile("testdata/modes.json"); err != nil || !bytes.Equal(old, data) {
		t.Errorf("testdata/modes.json is not what the library makes now (go test -run Modes -update): %v", err)
	}
}
