package number

import (
	"encoding/json"
	"math/big"
	"testing"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"5": "5", "-5": "-5", "0": "0", "-0": "-0", "5.0": "5", "5.": "5", "1e3": "1000", "1E+3": "1000", "-1.50e1": "-15", "50e-1": "5", "0.0": "0", "-0.0": "0",
		"18446744073709551615": "18446744073709551615", "18446744073709551615.0": "18446744073709551615", "1.8446744073709551615e19": "18446744073709551615",
		"0e5": "0", "0.0005e4": "5", " 7 ": "7",
	} {
		if got, ok := Text([]byte(in)); !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "5.5", "1e-1", "+5", "1e41", "1e999999999999", `"5"`, "null", "true", "NaN", "0x10", "1_0", "[5]", "e3", ".5", "5e", "--5"} {
		if got, ok := Text([]byte(in)); ok {
			t.Errorf("%s: %q, want no whole number", in, got)
		}
	}
	if n, ok := Int([]byte("9223372036854775808")); ok {
		t.Errorf("2^63 is the int %d", n)
	}
}

// What is a number of JSON is whole exactly where big.Rat says so.
func FuzzText(f *testing.F) {
	for _, s := range []string{"5.0", "1e3", "-1.50e1", "0.0005e4", "100e-2", "7e-400"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := Text([]byte(s))
		if !json.Valid([]byte(s)) || len(s) > 60 {
			return
		}
		var number json.Number
		if json.Unmarshal([]byte(s), &number) != nil || s[0] == '"' || len(number) == 0 {
			if ok {
				t.Fatalf("%s is no number, but %s", s, got)
			}
			return
		}
		if !ok {
			return // it may be too large
		}
		want, _ := new(big.Rat).SetString(number.String())
		if have, valid := new(big.Rat).SetString(got); !valid || want == nil || have.Cmp(want) != 0 {
			t.Fatalf("%s: %s", s, got)
		}
	})
}
