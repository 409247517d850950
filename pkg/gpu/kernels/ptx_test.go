//go:build !nocuda

package kernels

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// kernelText returns the PTX of a kernel.
func kernelText(t *testing.T, name string) string {
	t.Helper()
	all, err := ptx()
	if err != nil {
		t.Fatal(err)
	}
	text, err := alone(all, name)
	if err != nil {
		t.Fatal(name, err)
	}
	_, text, _ = strings.Cut(text, entry)
	return text
}

var accesses = regexp.MustCompile(`\b(ld|st)\.global(?:\.nc)?(?:\.v([24]))?\.[a-z](\d+)`)

// widest returns the bytes of the widest load and of the widest store of the device's memory.
func widest(text string) (load, store int) {
	for _, m := range accesses.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[3])
		if k, _ := strconv.Atoi(m[2]); k > 0 {
			n *= k
		}
		if m[1] == "ld" {
			load = max(load, n/8)
		} else {
			store = max(store, n/8)
		}
	}
	return load, store
}

// Of small elements a thread takes several at once.
func TestAccessesAreWide(t *testing.T) {
	for _, c := range []struct {
		kernel      string
		load, store int
	}{
		{"add_planes_u8", 16, 8}, {"add_planes_i16", 16, 8},
		{"roll_u8", 4, 4}, {"roll_i8", 4, 4}, {"roll_u16", 4, 4}, {"roll_i16", 4, 4},
		{"from_f32_u8", 16, 4}, {"from_f32_i16", 16, 8}, {"from_f32_i32", 16, 16}, {"from_f32_f64", 16, 16},
		{"row_means_u8", 4, 16}, {"row_means_f32", 16, 16},
		{"counts_u8", 16, 0}, {"counts_i16", 16, 0}, {"xxh64_ranges", 8, 8},
	} {
		load, store := widest(kernelText(t, c.kernel))
		if load < c.load || store < c.store {
			t.Errorf("%s: loads of up to %d bytes, want %d; stores of %d, want %d", c.kernel, load, c.load, store, c.store)
		}
	}
}

// Integers are finite: nothing is computed to find that out.
func TestIntegersAreNotTested(t *testing.T) {
	const test = "sub.rn"
	for _, operator := range []string{"add_planes_", "place_"} {
		for _, kind := range names {
			if is := strings.Contains(kernelText(t, operator+kind), test); is != (kind[0] == 'f') {
				t.Errorf("%s%s: has %s: %v", operator, kind, test, is)
			}
		}
	}
}

// Eight loads of a thread are on their way at least, before what they bring is used.
func TestLoadsAreAhead(t *testing.T) {
	for kernel, use := range map[string]string{
		"xxh64_ranges": "mul.lo.s64", "add_planes_u8": "and.b32", "add_planes_i16": "and.b32", "roll_u8": "st.shared", "roll_f32": "st.shared",
	} {
		most, run := 0, 0
		for line := range strings.Lines(kernelText(t, kernel)) {
			switch {
			case strings.Contains(line, "ld.global"):
				run++
			case strings.Contains(line, use):
				run = 0
			}
			most = max(most, run)
		}
		if most < 8 {
			t.Errorf("%s: %d loads before %s, want 8", kernel, most, use)
		}
	}
}

// What is rounded to 8 and 16 bits takes no branch: those of a grid's end are left.
func TestRoundingDoesNotBranch(t *testing.T) {
	for _, kind := range []string{"u8", "i8", "u16", "i16"} {
		if n := strings.Count(kernelText(t, "from_f32_"+kind), "bra"); n > 6 {
			t.Errorf("from_f32_%s: %d branches", kind, n)
		}
	}
}
