package meta

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"strata/pkg/dtype"
)

func TestFillValues(t *testing.T) {
	const nan32 = 0x7fc00000
	for _, c := range []struct {
		raw    string
		t      dtype.Type
		format int
		bits   uint64
		ok     bool
	}{
		{"true", dtype.Bool, 3, 1, true},
		{"false", dtype.Bool, 2, 0, true},
		{"1", dtype.Bool, 3, 1, true},
		{"1", dtype.Bool, 2, 1, true},
		{"2", dtype.Bool, 2, 0, false},
		{"-128", dtype.Int8, 3, 0x80, true},
		{"-129", dtype.Int8, 3, 0, false},
		{"255", dtype.Uint8, 3, 255, true},
		{"256", dtype.Uint8, 3, 0, false},
		{"-1", dtype.Uint8, 3, 0, false},
		{"-9223372036854775808", dtype.Int64, 3, 1 << 63, true},
		{"18446744073709551615", dtype.Uint64, 3, math.MaxUint64, true},
		{"18446744073709551616", dtype.Uint64, 3, 0, false},
		{"3.0", dtype.Int32, 3, 3, true},
		{"3.0", dtype.Int32, 2, 3, true},
		{"3.5", dtype.Int32, 2, 0, false},
		{"1e3", dtype.Int32, 3, 1000, true},
		{`"0"`, dtype.Uint16, 2, 0, true},
		{`"-1"`, dtype.Int16, 2, 0xffff, true},
		{`"0.0"`, dtype.Float32, 2, 0, true},
		{`"0"`, dtype.Float32, 3, 0, true},
		{`"x"`, dtype.Uint16, 2, 0, false},
		{`"70000"`, dtype.Uint16, 2, 0, false},
		{"18446744073709551615.0", dtype.Uint64, 2, 1<<64 - 1, true},
		{`"1"`, dtype.Bool, 2, 1, true},
		{"2", dtype.Bool, 2, 0, false},
		{"null", dtype.Int32, 3, 0, false},
		{"null", dtype.Int32, 2, 0, true},
		{`"NaN"`, dtype.Int32, 2, 0, false},
		{"3", dtype.Float32, 3, uint64(math.Float32bits(3)), true},
		{"-0.0", dtype.Float32, 3, 1 << 31, true},
		{`"NaN"`, dtype.Float32, 3, nan32, true},
		{`"NaN"`, dtype.Float64, 3, 0x7ff8000000000000, true},
		{`"NaN"`, dtype.Float16, 2, 0x7e00, true},
		{`"Infinity"`, dtype.Float32, 3, 0x7f800000, true},
		{`"-Infinity"`, dtype.Float64, 3, 0xfff0000000000000, true},
		{`"0x7fc00001"`, dtype.Float32, 3, 0x7fc00001, true},
		{`"0x7fc001"`, dtype.Float32, 3, 0, false},
		{`"0x7fc0000g"`, dtype.Float32, 3, 0, false},
		{`"0x7e01"`, dtype.Float16, 3, 0x7e01, true},
		{"65504", dtype.Float16, 3, 0x7bff, true},
		{"65520", dtype.Float16, 3, 0, false},
		{"1.00048828125", dtype.Float16, 3, 0x3c00, true},      // halfway: to even
		{"1.0004882812500002", dtype.Float16, 3, 0x3c01, true}, // above halfway, which float32 does not see
		{"-1.0014648437499998", dtype.Float16, 3, 0xbc01, true},
		{"1e39", dtype.Float32, 3, 0, false},
		{"1e400", dtype.Float64, 3, 0, false},
		{"5e-324", dtype.Float64, 3, 1, true},
		{"true", dtype.Float64, 3, 0, false},
		{`"nan"`, dtype.Float64, 3, 0, false},
		{"[1]", dtype.Float64, 3, 0, false},
		{`["NaN",1.5]`, dtype.Complex64, 3, uint64(math.Float32bits(1.5))<<32 | nan32, true},
		{"[1.5]", dtype.Complex64, 3, 0, false},
		{"1.5", dtype.Complex64, 3, 0, false},
		{"1.5", dtype.Complex64, 2, uint64(math.Float32bits(1.5)), true},
	} {
		b, err := ParseFill("fill_value", json.RawMessage(c.raw), c.t, c.format)
		if c.ok != (err == nil) {
			t.Errorf("%s as %s in format %d: %v", c.raw, c.t, c.format, err)
			continue
		}
		if err != nil {
			var fe *FormatError
			if !errors.As(err, &fe) || fe.Field != "fill_value" {
				t.Errorf("%s: %v", c.raw, err)
			}
			continue
		}
		if GetUint(b) != c.bits {
			t.Errorf("%s as %s: %#x, want %#x", c.raw, c.t, GetUint(b), c.bits)
		}
		if c.format == 3 {
			again, err := ParseFill("", EncodeFill(b, c.t, 3), c.t, 3)
			if err != nil || !bytes.Equal(again, b) {
				t.Errorf("%s: written as %s, read as %x, %v", c.raw, EncodeFill(b, c.t, 3), again, err)
			}
		}
	}
}

func TestFillOfSpecs(t *testing.T) {
	for _, c := range []struct {
		fill any
		t    dtype.Type
		want string
	}{
		{nil, dtype.Uint16, "0"},
		{7, dtype.Uint16, "7"},
		{7.0, dtype.Uint16, "7"},
		{true, dtype.Bool, "true"},
		{math.NaN(), dtype.Float32, `"NaN"`},
		{float32(math.Inf(-1)), dtype.Float64, `"-Infinity"`},
		{0.1, dtype.Float32, "0.1"},
		{"NaN", dtype.Float64, `"NaN"`},
		{[]byte{1, 0, 0xc0, 0x7f}, dtype.Float32, `"0x7fc00001"`},
		{complex(math.NaN(), math.Inf(-1)), dtype.Complex128, `["NaN","-Infinity"]`},
		{complex(1, -2), dtype.Complex64, "[1.0,-2.0]"},
		{complex64(complex(1, -2)), dtype.Complex128, "[1.0,-2.0]"},
	} {
		b, err := FillBytes(c.fill, c.t, 3)
		if err != nil {
			t.Errorf("%v as %s: %v", c.fill, c.t, err)
			continue
		}
		if got := string(EncodeFill(b, c.t, 3)); got != c.want {
			t.Errorf("%v as %s: %s, want %s", c.fill, c.t, got, c.want)
		}
	}
}
