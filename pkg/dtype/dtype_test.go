package dtype

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
)

func TestNamesRoundTrip(t *testing.T) {
	for ty := Bool; ty <= Complex128; ty++ {
		got, err := Parse(ty.String())
		if err != nil || got != ty {
			t.Errorf("Parse(%q) = %v, %v", ty, got, err)
		}
		got, big, err := ParseTypestr(ty.Typestr())
		if err != nil || got != ty || big {
			t.Errorf("ParseTypestr(%q) = %v, %v, %v", ty.Typestr(), got, big, err)
		}
	}
}

func TestTypestrOrders(t *testing.T) {
	if ty, big, err := ParseTypestr(">f8"); err != nil || ty != Float64 || !big {
		t.Errorf(">f8 = %v, %v, %v", ty, big, err)
	}
	for _, bad := range []string{"", "<", "f4", "|f4", "=i4", "<f3", "<O8", "?i4"} {
		if ty, _, err := ParseTypestr(bad); err == nil {
			t.Errorf("ParseTypestr(%q) = %v, want an error", bad, ty)
		}
	}
}

// Every half float survives the way through float32, and halfway cases go to even.
func TestFloat16(t *testing.T) {
	for h := 0; h < 1<<16; h++ {
		v := Float16Value(uint16(h))
		if v != v {
			if b := Float16Bits(v); b&0x7c00 != 0x7c00 || b&0x3ff == 0 {
				t.Fatalf("NaN %#x became %#x", h, b)
			}
			continue
		}
		if b := Float16Bits(v); b != uint16(h) {
			t.Fatalf("%#x -> %v -> %#x", h, v, b)
		}
	}
	for _, c := range []struct {
		v    float32
		want uint16
	}{{65504, 0x7bff}, {65519, 0x7bff}, {65520, 0x7c00}, {1e9, 0x7c00}, {1 + 1.0/2048, 0x3c00}, {1 + 3.0/2048, 0x3c02},
		{float32(math.Pow(2, -25)), 0}, {float32(math.Pow(2, -24)), 1}, {-2, 0xc000}} {
		if got := Float16Bits(c.v); got != c.want {
			t.Errorf("Float16Bits(%v) = %#x, want %#x", c.v, got, c.want)
		}
	}
}

func TestBytesAndSliceShareMemory(t *testing.T) {
	s := []uint16{1, 2, 3}
	b := Bytes(s)
	if len(b) != 6 {
		t.Fatalf("%d bytes", len(b))
	}
	Slice[uint16](b)[1] = 9
	if s[1] != 9 {
		t.Errorf("s = %v", s)
	}
	if Of[int64]() != Int64 || Of[float32]() != Float32 || Of[uint8]() != Uint8 {
		t.Error("Of names the wrong type")
	}
}

func TestTypesInJSON(t *testing.T) {
	type record struct{ Type Type }
	for typ := Bool; typ <= Complex128; typ++ {
		b, err := json.Marshal(record{typ})
		if want := fmt.Sprintf(`{"Type":%q}`, typ); err != nil || string(b) != want {
			t.Errorf("%s, %v, want %s", b, err, want)
		}
		var got record
		if err := json.Unmarshal(b, &got); err != nil || got.Type != typ {
			t.Errorf("%s: %v, %v", b, got.Type, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"Type": "uint17"}`), new(record)); err == nil {
		t.Error("uint17 is accepted")
	}
}
