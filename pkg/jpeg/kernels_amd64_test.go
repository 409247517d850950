//go:build !noasm

package jpeg

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// scalar runs f without assembly.
func scalar(f func()) {
	avx2, bmi2 := haveAVX2, haveBMI2
	haveAVX2, haveBMI2 = false, false
	defer func() { haveAVX2, haveBMI2 = avx2, bmi2 }()
	f()
}

func needsAVX2(t *testing.T) {
	if !haveAVX2 || !haveBMI2 {
		t.Skip("no AVX2")
	}
}

// TestScalar: the scalar forms give libjpeg-turbo's pixels, too, and the same errors.
func TestScalar(t *testing.T) {
	needsAVX2(t)
	scalar(func() {
		TestGolden(t)
		TestDamagedData(t)
		TestRestart(t)
		TestEncodeAsCjpeg(t)
	})
}

// TestTwinIDCT: blocks as encoders make them, sparse ones, and of coefficients and tables that overflow.
func TestTwinIDCT(t *testing.T) {
	needsAVX2(t)
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 20000 {
		var c, same [2]coefficients
		var quant [2][64]uint16
		reach, q := []int{30, 300, 1 << 15}[i%3], []int{16, 255, 1 << 16}[i%3]
		for b := range c {
			for range r.IntN(64) {
				c[b][r.IntN(64)] = int16(r.IntN(2*reach) - reach)
			}
			for k := range quant[b] {
				quant[b][k] = uint16(r.IntN(q))
			}
			if i%7 == 0 {
				clear(c[b][1:])
			}
		}
		same = c
		got, want := bytes.Repeat([]byte{0xA5}, 600), bytes.Repeat([]byte{0xA5}, 600)
		idct2AVX2(&got[3], 21, &got[300], 9, &c, &quant[0], &quant[1])
		only := same
		idctScalar(want[3:], 21, &same[0], &quant[0])
		idctScalar(want[300:], 9, &same[1], &quant[1])
		if !bytes.Equal(got, want) || c != same {
			t.Fatalf("block %d: the two forms differ", i)
		}
		if i%7 == 0 {
			idctDC(want[3:], 21, only[0][0], quant[0][0])
			idctDC(want[300:], 9, only[1][0], quant[1][0])
			if !bytes.Equal(got, want) {
				t.Fatalf("block %d: the short form for DC alone differs", i)
			}
		}
	}
}

// TestTwinFDCT: random samples, extreme ones, and all numbers of the quantization table.
func TestTwinFDCT(t *testing.T) {
	needsAVX2(t)
	r := rand.New(rand.NewPCG(6, 6))
	var quant [64]uint16
	for i := range 20000 {
		samples := make([]byte, 8*20)
		for k := range samples {
			if samples[k] = byte(r.Uint32()); i%3 == 0 {
				samples[k] = byte(r.IntN(2) * 255)
			} else if i%3 == 1 {
				samples[k] = byte(i / 3)
			}
		}
		for k := range quant {
			quant[k] = uint16(r.IntN(255)) + 1
		}
		var d divisors
		d.set(&quant)
		var got, want [2][64]int16
		fdct2AVX2(&got[0][0], &samples[0], 20, &d)
		for b := range want {
			fdct(&want[b], samples[8*b:], 20)
			exact := want[b]
			d.quantize(&want[b])
			for k, v := range exact {
				if q := float64(v) / 8 / float64(quant[k]); want[b][k] != int16(math.Round(q)) {
					t.Fatalf("%d by 8·%d is %d", v, quant[k], want[b][k])
				}
			}
		}
		if got != want {
			t.Fatalf("block %d: the two forms differ", i)
		}
	}
}

// TestTwinBlock: on random bits, with tables that leave out codes and have long ones.
func TestTwinBlock(t *testing.T) {
	needsAVX2(t)
	r := rand.New(rand.NewPCG(8, 8))
	a, b := &window{}, &window{}
	ends := map[int]int{}
	for i := range 3000 {
		tables := tables{}
		for class := range 2 {
			spec := make([]byte, 16, 272)
			symbols := r.Perm(256)
			if i%3 == 0 {
				spec = append(spec[:0], annexKCodes[i&1][class]...)
			} else {
				for left, length := 1<<16, 0; length < 16; length++ { // as many codes as fit
					size := 1 << (15 - length)
					n := r.IntN(min(left/size, 20-length+1) + 1)
					left -= n * size
					spec[length] = byte(n)
					for range n {
						s := symbols[0]
						symbols = symbols[1:]
						if class == 0 {
							s &= 15
						}
						spec = append(spec, byte(s))
					}
				}
			}
			if err := tables.huff[class][0].build(spec, class == 0); err != nil {
				t.Fatal(err)
			}
		}
		data := make([]byte, 300)
		for k := range data {
			data[k] = byte(r.Uint32() & 0x7F >> (i % 4))
		}
		a.open(data, 0)
		b.open(data, 0)
		var preds [2]int32
		for range 10 {
			a.ready()
			b.ready()
			var ca, cb coefficients
			ka := blockBMI2(a, &ca, &tables.huff[0][0], &tables.huff[1][0], &preds[0])
			kb := blockScalar(b, &cb, &tables.huff[0][0], &tables.huff[1][0], &preds[1])
			if ka != kb || ca != cb || preds[0] != preds[1] || a.acc != b.acc || a.n != b.n || a.p != b.p {
				t.Fatalf("tables %d: the two forms differ: %d, %d", i, ka, kb)
			}
			if ends[min(ka, 66)]++; ka == badCode || a.overrun() {
				break
			}
		}
	}
	if len(ends) < 4 || ends[badCode] < 50 || ends[64] < 10 || ends[65] < 10 || ends[66] < 100 {
		t.Errorf("the blocks ended in too few ways: %v", ends)
	}
}

// TestTwinRGB: all colours.
func TestTwinRGB(t *testing.T) {
	needsAVX2(t)
	var rows [4][]byte
	for i := range rows {
		rows[i] = make([]byte, 256*256)
	}
	for i := range 256 * 256 {
		rows[1][i], rows[2][i] = byte(i), byte(i>>8)
	}
	got, want := make([]byte, 3*256*256), make([]byte, 3*256*256)
	for y := range 256 {
		for i := range rows[0] {
			rows[0][i] = byte(y)
		}
		mixRGB(got, &rows, 256*256)
		scalar(func() { mixRGB(want, &rows, 256*256) })
		if !bytes.Equal(got, want) {
			t.Fatalf("luma %d: the two forms differ", y)
		}
	}
}

// TestTwinRows: rows of all lengths, and nothing written behind them.
func TestTwinRows(t *testing.T) {
	needsAVX2(t)
	r := rand.New(rand.NewPCG(9, 9))
	var e expander
	e.out, e.sums = make([]byte, 1000), make([]int16, 1000)
	for n := 1; n < 200; n++ {
		var rows [4][]byte
		for i := range rows {
			rows[i] = make([]byte, n+slack)
			for j := range rows[i] {
				rows[i][j] = byte(r.Uint32())
			}
		}
		for _, round := range [][2]uint16{{4, 8}, {8, 7}} {
			e.spread(rows[0], rows[1], n, round[0], round[1])
			got := bytes.Clone(e.out[:2*n])
			scalar(func() { e.spread(rows[0], rows[1], n, round[0], round[1]) })
			if !bytes.Equal(got, e.out[:2*n]) {
				t.Fatalf("%d samples: the two forms of spread differ", n)
			}
		}
		for name, f := range map[string]mix{"mix3": mix3, "mixRGB": mixRGB} {
			got, want := bytes.Repeat([]byte{0xA5}, 3*n+slack), bytes.Repeat([]byte{0xA5}, 3*n+slack)
			f(got, &rows, n)
			scalar(func() { f(want, &rows, n) })
			if !bytes.Equal(got, want) {
				t.Fatalf("%d pixels: the two forms of %s differ", n, name)
			}
		}
	}
}
