package jpeg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var background = context.Background()

// picture is a colourful image of w×h pixels with slopes, edges and noise.
func picture(w, h, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	p := make([]byte, w*h*n)
	for i := range p {
		x, y, c := i/n%w, i/n/w, float64(i%n)
		v := 128 + 90*math.Sin(float64(x)/(9+c)+float64(y)/17)*math.Cos(float64(y)/(13-c)) + 6*r.NormFloat64()
		if (x/37+y/29)%5 == 0 {
			v = 255 - v + 20*c
		}
		p[i] = clamp(int32(v))
	}
	return p
}

func encoded(t testing.TB, src []byte, w, h, n int, o Options) []byte {
	t.Helper()
	var e Encoder
	stream, err := e.Encode(nil, src, w, h, n, o)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func decoded(t testing.TB, d *Decoder, tables, stream []byte, c Config) []byte {
	t.Helper()
	dst := make([]byte, c.Width*c.Height*c.Components)
	if _, err := d.Decode(background, dst, tables, stream, c); err != nil {
		t.Fatal(err)
	}
	return dst
}

func psnr(a, b []byte) float64 {
	var sum float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		sum += d * d
	}
	return 10 * math.Log10(255*255*float64(len(a))/sum)
}

// cut returns the stream without the segments that which names.
func cut(t testing.TB, stream []byte, which func(marker byte) bool) []byte {
	t.Helper()
	out := bytes.Clone(stream[:2])
	for pos := 2; ; {
		marker, _, next, err := segment(stream, pos)
		if err != nil {
			t.Fatal(err)
		}
		if marker == markSOS {
			return append(out, stream[pos:]...)
		}
		if !which(marker) {
			out = append(out, stream[pos:next]...)
		}
		pos = next
	}
}

func isTable(marker byte) bool { return marker == markDQT || marker == markDHT }

// TestAbbreviated: tables in a stream of their own, before and after streams that have others.
func TestAbbreviated(t *testing.T) {
	const w, h = 100, 70
	src := picture(w, h, 3)
	var d Decoder
	c := Config{Width: w, Height: h, Components: 3, Color: ToRGB}
	for _, o := range []Options{{Quality: 90, Color: ToRGB}, {Quality: 40, Color: ToRGB, Subsampling: [2]int{2, 2}}, {Quality: 70}} {
		whole := encoded(t, src, w, h, 3, o)
		want := decoded(t, &d, nil, whole, c)
		o.Abbreviated = true
		short, tables := encoded(t, src, w, h, 3, o), Tables(o, 3)
		if len(short)+len(tables) != len(whole)+4 {
			t.Errorf("%+v: %d and %d bytes, together %d", o, len(short), len(tables), len(whole))
		}
		if !bytes.Equal(decoded(t, &d, tables, short, c), want) {
			t.Errorf("%+v: the abbreviated stream has other pixels", o)
		}
		// Tables are those of one call only.
		if _, err := d.Decode(background, want, nil, short, c); err == nil || !strings.Contains(err.Error(), "is not defined") {
			t.Errorf("without tables: %v", err)
		}
		// A stream's own come first.
		other := Tables(Options{Quality: 5, Color: ToRGB}, 3)
		if !bytes.Equal(decoded(t, &d, other, whole, c), want) {
			t.Errorf("%+v: tables of another stream hold", o)
		}
	}
}

// TestNoMarkers: a stream of three components without JFIF and Adobe markers is YCbCr.
func TestNoMarkers(t *testing.T) {
	var d Decoder
	for _, g := range goldens(t) {
		if !strings.HasPrefix(g.Name, "sample") {
			continue
		}
		if got := decoded(t, &d, nil, cut(t, g.data, func(m byte) bool { return m >= markAPP0 }), g.config(ToRGB)); sum(got) != g.RGB {
			t.Errorf("%s: other pixels without markers", g.Name)
		}
	}
}

// TestRepeated: a decoder gives the same pixels whatever it has decoded before, also what was wrong.
func TestRepeated(t *testing.T) {
	var d Decoder
	list := goldens(t)
	r := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		g := list[r.IntN(len(list))]
		c := g.config(ToRGB)
		dst := make([]byte, c.Width*c.Height*c.Components)
		if r.IntN(2) == 0 {
			data := bytes.Clone(g.data[:r.IntN(len(g.data))])
			if len(data) > 0 {
				data[r.IntN(len(data))] ^= 1 << r.IntN(8)
			}
			_, _ = d.Decode(background, dst, nil, data, c)
		}
		if _, err := d.Decode(background, dst, nil, g.data, c); err != nil || sum(dst) != g.RGB {
			t.Fatalf("%s: %v, or other pixels", g.Name, err)
		}
	}
}

// TestStride: rows apart, and fewer than expected; what lies between and below stays.
func TestStride(t *testing.T) {
	var d Decoder
	for _, g := range goldens(t) {
		c := g.config(ToRGB)
		want := decoded(t, &d, nil, g.data, c)
		row := c.Width * c.Components
		c.Stride, c.Height = row+5, c.Height+3
		dst := bytes.Repeat([]byte{0xA5}, c.Stride*c.Height)
		rows, err := d.Decode(background, dst[:c.Stride*(c.Height-4)+row], nil, g.data, c)
		if err != nil || rows != c.Height-3 {
			t.Fatalf("%s: %d rows, %v", g.Name, rows, err)
		}
		for i, v := range dst {
			y, x := i/c.Stride, i%c.Stride
			if y < rows && x < row {
				if v != want[y*row+x] {
					t.Fatalf("%s: another pixel in row %d", g.Name, y)
				}
			} else if v != 0xA5 {
				t.Fatalf("%s: a byte outside the image changed, row %d, byte %d", g.Name, y, x)
			}
		}
	}
}

// TestRefused: what is wrong, and that no memory is taken for it.
func TestRefused(t *testing.T) {
	const w, h = 64, 48
	good := encoded(t, picture(w, h, 3), w, h, 3, Options{Color: ToRGB, Subsampling: [2]int{2, 2}})
	sof := bytes.Index(good, []byte{0xFF, markSOF0})
	sos := bytes.Index(good, []byte{0xFF, markSOS})
	change := func(at int, b ...byte) []byte {
		s := bytes.Clone(good)
		copy(s[at:], b)
		return s
	}
	insert := func(at int, b ...byte) []byte { return append(append(bytes.Clone(good[:at]), b...), good[at:]...) }
	grey := encoded(t, picture(w, h, 1), w, h, 1, Options{})
	full := Config{Width: w, Height: h, Components: 3, Color: ToRGB}
	for name, c := range map[string]struct {
		src    []byte
		config Config
		want   string
	}{
		"empty":          {nil, full, "does not begin with FF D8"},
		"no JPEG":        {[]byte("II*\x00...."), full, "does not begin with FF D8"},
		"SOI only":       {good[:2], full, "byte 2: the stream ends where a marker should be"},
		"end in segment": {good[:30], full, "bytes are left"},
		"no scan":        {append(bytes.Clone(good[:sos]), 0xFF, markEOI), full, "ends without a scan"},
		"no frame":       {cut(t, good, func(m byte) bool { return m == markSOF0 }), full, "a scan without a frame"},
		"no tables":      {cut(t, good, isTable), full, "Huffman table 0 is not defined"},
		"no DQT":         {cut(t, good, func(m byte) bool { return m == markDQT }), full, "quantization table 0 is not defined"},
		"two frames":     {insert(sos, good[sof:sos]...), full, "a second frame"},
		"garbage":        {insert(sof, 1, 2, 3), full, "no marker where one should be"},
		"12 bit":         {change(sof+4, 12), full, "samples of 12 bits"},
		"no pixels":      {change(sof+5, 0, 0), full, "a frame of 64×0 pixels"},
		"sampling":       {change(sof+11, 0x52), full, "sampling factors 5×2"},
		"big MCU":        {change(sof+11, 0x44), full, "an MCU of 18 blocks"},
		"huge":           {change(sof+5, 0xFF, 0xFF, 0xFF, 0xFF), full, "the frame has 65535×65535 pixels, expected are 64×48"},
		"wider":          {good, Config{Width: w - 1, Height: h, Components: 3}, "the frame has 64×48 pixels, expected are 63×48"},
		"narrower":       {good, Config{Width: w + 1, Height: h, Components: 3}, "expected are 65×48"},
		"taller":         {good, Config{Width: w, Height: h - 1, Components: 3}, "expected are 64×47"},
		"components":     {grey, full, "the frame has 1 components, expected are 3"},
		"small stride":   {good, Config{Width: w, Height: h, Components: 3, Stride: 3*w - 1}, "a stride of 191 bytes for rows of 192"},
		"negative":       {good, Config{Width: w, Height: h, Components: 3, Stride: -200}, "a stride of -200 bytes"},
		"small dst":      {good, Config{Width: w, Height: h, Components: 3, Stride: 3*w + 1}, "bytes of memory for 48 rows of 192, 193 apart"},
		"arithmetic":     {change(sof+1, 0xC9), full, "arithmetic coding (marker C9)"},
		"lossless":       {change(sof+1, 0xC3), full, "a lossless or hierarchical frame (marker C3)"},
		"scan of absent": {change(sos+5, 9), full, "a scan of component 9"},
		"scan twice":     {change(sos+7, 1), full, "a scan of component 1"},
		"DHT too long":   {change(bytes.Index(good, []byte{0xFF, markDHT})+5, 255, 255), full, "codes in"},
		"DHT overfull":   {change(bytes.Index(good, []byte{0xFF, markDHT})+5, 3, 0, 0), full, "more codes of 1 bits than there are"},
		"DQT class":      {change(bytes.Index(good, []byte{0xFF, markDQT})+4, 0x20), full, "quantization table 0 of precision 2"},
		"DNL":            {insert(sof, 0xFF, markDNL, 0, 4, 0, 9), full, "number of lines"},
		"restart marker": {insert(sof, 0xFF, markRST0), full, "a restart marker outside a scan"},
		"SOI twice":      {insert(sof, 0xFF, markSOI), full, "a second start of image"},
	} {
		t.Run(name, func(t *testing.T) {
			var d Decoder
			dst := make([]byte, w*h*3)
			_, err := d.Decode(background, dst, nil, c.src, c.config)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "jpeg: ") {
				t.Errorf("%v; expected: …%s…", err, c.want)
			}
			for i := range d.parser.frame.comps {
				if d.parser.frame.comps[i].strip != nil {
					t.Error("memory was taken")
				}
			}
		})
	}
	var d Decoder
	for name, tables := range map[string][]byte{"no SOI": {1, 2}, "cut": Tables(Options{}, 1)[:20], "an image": good, "frame": {0xFF, markSOI, 0xFF, markSOF0, 0, 2}} {
		if _, err := d.Decode(background, make([]byte, w*h*3), tables, good, full); err == nil || !strings.HasPrefix(err.Error(), "jpeg: tables: ") {
			t.Errorf("tables, %s: %v", name, err)
		}
	}
}

// TestDamagedData: errors of entropy-coded data name the row of MCUs and the byte.
func TestDamagedData(t *testing.T) {
	const w, h = 640, 480
	good := encoded(t, picture(w, h, 3), w, h, 3, Options{Color: ToRGB, Subsampling: [2]int{2, 2}, Quality: 92})
	var d Decoder
	c := Config{Width: w, Height: h, Components: 3, Color: ToRGB}
	dst := make([]byte, w*h*3)
	if len(good) < 4*windowBytes {
		t.Fatalf("%d bytes are too few to test the window", len(good))
	}
	// The stream may lack the end of the image, nothing else.
	if _, err := d.Decode(background, dst, nil, good[:len(good)-2], c); err != nil {
		t.Error(err)
	}
	last := -1
	for _, n := range []int{len(good) / 10, len(good) / 2, len(good) - 10} {
		rows, err := d.Decode(background, dst, nil, good[:n], c)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("byte %d: the entropy-coded data end early", n)) {
			t.Errorf("%d bytes of %d: %v", n, len(good), err)
			continue
		}
		var row int
		if _, err := fmt.Sscanf(err.Error(), "jpeg: row %d of MCUs", &row); err != nil || row <= last || rows > 16*row || rows < 16*row-1 && row > 0 {
			t.Errorf("%d bytes of %d: %v, %d rows", n, len(good), err, rows)
		}
		last = row
	}
	// A code that there is not: ones only, as many as no window begins with.
	for _, at := range []int{2000, len(good) / 2, len(good) - 300} {
		bad := bytes.Clone(good)
		for i := range 16 {
			bad[at+i] = byte(0xFF * ((i + 1) & 1)) // FF 00 FF 00 …
		}
		_, err := d.Decode(background, dst, nil, bad, c)
		if err == nil {
			t.Errorf("ones at byte %d are decoded", at)
			continue
		}
		var row, where int
		if _, err2 := fmt.Sscanf(err.Error(), "jpeg: row %d of MCUs: byte %d:", &row, &where); err2 != nil || where < at-8 || where > at+400 {
			t.Errorf("ones at byte %d: %v", at, err)
		}
	}
}

// various are streams that differ in what decodes them.
var various = []string{"size_17x33_2x2", "size_5x3_2x1", "size_130x20_1x2", "grey_restart", "progressive_refined", "scans_two", "sample_4x4", "ycck_420"}

// TestHostile: whatever byte of a stream is missing or changed, there is an error or a picture, and every error has a
// place.
func TestHostile(t *testing.T) {
	var d Decoder
	for _, g := range goldens(t) {
		if !slices.Contains(various, g.Name) || testing.Short() && len(g.data) > 1200 {
			continue
		}
		c := g.config(ToRGB)
		dst := make([]byte, c.Width*c.Height*c.Components)
		try := func(data []byte) {
			if rows, err := d.Decode(background, dst, nil, data, c); err == nil && (rows < 1 || rows > c.Height) {
				t.Fatalf("%s: %d rows", g.Name, rows)
			}
			_, _ = ReadHeader(data)
		}
		end := len(g.data) - 2 // of the data
		for n := range g.data {
			_, err := d.Decode(background, dst, nil, g.data[:n], c)
			if err == nil && n < end {
				t.Fatalf("%s: %d bytes of %d are a picture", g.Name, n, len(g.data))
			}
		}
		bad := bytes.Clone(g.data)
		for i := range bad {
			for bit := range 8 {
				bad[i] ^= 1 << bit
				try(bad)
				bad[i] ^= 1 << bit
			}
			for _, v := range []byte{0, 0xFF} {
				old := bad[i]
				bad[i] = v
				try(bad)
				bad[i] = old
			}
		}
	}
}

// TestRestart: markers in the wrong order, missing ones and data between them are errors.
func TestRestart(t *testing.T) {
	var d Decoder
	for _, g := range goldens(t) {
		if !strings.Contains(g.Name, "restart") {
			continue
		}
		c := g.config(ToRGB)
		dst := make([]byte, c.Width*c.Height*c.Components)
		at := bytes.Index(g.data, []byte{0xFF, markRST0})
		if at < 0 {
			t.Fatalf("%s has no restart marker", g.Name)
		}
		for want, bad := range map[string][]byte{
			"marker D3 where restart marker 0 should be":       append(append(bytes.Clone(g.data[:at]), 0xFF, 0xD3), g.data[at+2:]...),
			"in front of restart marker":                       append(append(bytes.Clone(g.data[:at]), 0x12, 0x34), g.data[at:]...),
			"the stream ends where restart marker 0 should be": g.data[:at],
		} {
			if _, err := d.Decode(background, dst, nil, bad, c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; expected: %s", g.Name, err, want)
			}
		}
		// A marker may have any number of FF in front.
		filled := append(append(bytes.Clone(g.data[:at]), 0xFF, 0xFF), g.data[at:]...)
		if _, err := d.Decode(background, dst, nil, filled, c); err != nil || sum(dst) != g.RGB {
			t.Errorf("%s: with fill bytes: %v, or other pixels", g.Name, err)
		}
	}
}

// ending is a context that is done when it is looked at for the nth time.
type ending struct {
	context.Context
	n, looks int
}

func (c *ending) Err() error {
	if c.looks++; c.looks < c.n {
		return nil
	}
	return context.Canceled
}

// TestCancelled: a decoder stops when its context is done, in the middle of a frame, too.
func TestCancelled(t *testing.T) {
	without(t)
	var d Decoder
	for _, g := range goldens(t) {
		c := g.config(ToRGB)
		all := &ending{Context: background, n: math.MaxInt}
		dst := make([]byte, c.Width*c.Height*c.Components)
		if _, err := d.Decode(all, dst, nil, g.data, c); err != nil || all.looks < ceil(c.Height, 32) {
			t.Fatalf("%s: %v, looked %d times", g.Name, err, all.looks)
		}
		for n := 1; n <= all.looks; n++ {
			ctx := &ending{Context: background, n: n}
			if rows, err := d.Decode(ctx, dst, nil, g.data, c); !errors.Is(err, context.Canceled) || ctx.looks != n || rows >= c.Height {
				t.Errorf("%s: %d rows, %v, looked %d times instead of %d", g.Name, rows, err, ctx.looks, n)
			}
		}
		if h, _ := ReadHeader(g.data); h.Progressive && all.looks < 3*ceil(c.Height, 8*h.Sampling[0][1]) {
			t.Errorf("%s: looked %d times only", g.Name, all.looks)
		}
	}
}

// TestMissingScan: a component without a scan is an error, not grey.
func TestMissingScan(t *testing.T) {
	for _, g := range goldens(t) {
		if g.Name != "scans_three" && g.Name != "sample_4x4" {
			continue
		}
		at := bytes.LastIndex(g.data, []byte{0xFF, markSOS})
		if before := bytes.LastIndex(g.data[:at], []byte{0xFF, markDHT}); bytes.LastIndex(g.data[:at], []byte{0xFF, markSOS}) < before {
			at = before
		}
		var d Decoder
		c := g.config(ToRGB)
		for want, data := range map[string][]byte{
			"component 2 has no scan":                  append(bytes.Clone(g.data[:at]), 0xFF, markEOI),
			"the stream ends where a marker should be": g.data[:at],
		} {
			if _, err := d.Decode(background, make([]byte, c.Width*c.Height*c.Components), nil, data, c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; expected: %s", g.Name, err, want)
			}
		}
	}
}

// TestNoAllocation: in the steady state. Calls of a library allocate a little.
func TestNoAllocation(t *testing.T) {
	without(t)
	var d Decoder
	for _, g := range goldens(t) {
		c := g.config(ToRGB)
		dst := make([]byte, c.Width*c.Height*c.Components)
		if n := testing.AllocsPerRun(10, func() {
			if _, err := d.Decode(background, dst, nil, g.data, c); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", g.Name, n)
		}
	}
	var e Encoder
	src := picture(64, 48, 3)
	out := make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(10, func() { out, _ = e.Encode(out, src, 64, 48, 3, Options{Color: ToRGB}) }); n != 0 {
		t.Errorf("%v allocations of the encoder", n)
	}
}

// TestMemory: progressive frames and large ones take what their pixels need and no more.
func TestMemory(t *testing.T) {
	without(t)
	var d Decoder
	for _, g := range goldens(t) {
		c := g.config(ToRGB)
		dst := make([]byte, c.Width*c.Height*c.Components)
		if _, err := d.Decode(background, dst, nil, g.data, c); err != nil {
			t.Fatal(err)
		}
		total := 0
		for i := range 4 {
			p, e := &d.parser.frame.comps[i], &d.expanders[i]
			total += cap(p.strip) + 2*cap(p.kept) + cap(e.out) + 2*cap(e.sums)
		}
		if most := 4*3*(c.Width+32)*(c.Height+32) + 1<<16; total > most {
			t.Errorf("%s: %d bytes for %d×%d", g.Name, total, c.Width, c.Height)
		}
	}
}

// TestScanLimit: scans that send nothing new are refused, so their number is bounded.
func TestScanLimit(t *testing.T) {
	for _, g := range goldens(t) {
		if g.Name != "progressive_spectral" && g.Name != "scans_three" {
			continue
		}
		at := bytes.LastIndex(g.data, []byte{0xFF, markSOS})
		again := append(bytes.Clone(g.data[:len(g.data)-2]), g.data[at:]...)
		var d Decoder
		c := g.config(ToRGB)
		if _, err := d.Decode(background, make([]byte, c.Width*c.Height*c.Components), nil, again, c); err == nil || !strings.Contains(err.Error(), "in the wrong order, or twice") {
			t.Errorf("%s: %v", g.Name, err)
		}
	}
}

func TestReadHeader(t *testing.T) {
	for _, g := range goldens(t) {
		h, err := ReadHeader(g.data)
		if err != nil || h.Width != g.Shape[1] || h.Height != g.Shape[0] || h.Components != append(g.Shape, 1)[2] || h.Progressive != strings.Contains(g.Name, "progressive") {
			t.Errorf("%s: %+v, %v", g.Name, h, err)
		}
		adobe := map[string]int{"rgb": 0, "cmyk": 0, "ycck": 2, "ycck_420": 2}
		want, ok := adobe[g.Name]
		if !ok {
			want = -1
		}
		if h.Adobe != want {
			t.Errorf("%s: Adobe %d, expected %d", g.Name, h.Adobe, want)
		}
		var s string
		for _, f := range h.Sampling {
			s += fmt.Sprintf(",%dx%d", f[0], f[1])
		}
		if g.Name == "sample_mixed" && s != ",2x2,2x1,1x2" {
			t.Errorf("%s: sampling %s", g.Name, s)
		}
	}
}

// TestFractions: factors that do not divide each other repeat the nearest sample.
func TestFractions(t *testing.T) {
	const w, h = 50, 40
	stream := encoded(t, make([]byte, w*h*3), w, h, 3, Options{Quality: 100})
	sof, sos := bytes.Index(stream, []byte{0xFF, markSOF0}), bytes.Index(stream, []byte{0xFF, markSOS})
	stream[sof+11], stream[sof+14], stream[sof+17] = 0x31, 0x21, 0x11
	// Data for them: each block of the second component is 1 brighter than the one before.
	var e bitWriter
	e.start(stream[:sos+14])
	var c [64]int16
	for range ceil(w, 24) * ceil(h, 8) {
		for _, diff := range []int32{0, 0, 0, 8, 8, 0} {
			e.block(&c, diff, &standardCodes[0])
		}
	}
	var d Decoder
	got := decoded(t, &d, nil, append(e.finish(), 0xFF, markEOI), Config{Width: w, Height: h, Components: 3})
	for i := range w * h {
		want := [3]byte{128, byte(129 + i/w/8*6 + i%w*2/3/8), 128}
		if [3]byte(got[3*i:]) != want {
			t.Fatalf("pixel %d of row %d is %d, expected %d", i%w, i/w, got[3*i:3*i+3], want)
		}
	}
}
