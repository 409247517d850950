package corpus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"strata/pkg/dtype"
)

// Array is the content of a .npy file: native byte order, C order.
type Array struct {
	DType dtype.Type
	Shape []int
	Data  []byte
}

// Npy reads a .npy file of the corpus, named relative to [Dir].
func Npy(t testing.TB, name string) Array {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(Dir(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	a, err := ParseNpy(raw)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return a
}

var npyHeader = regexp.MustCompile(`^\{'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \(([0-9, ]*)\), \}\s*$`)

// ParseNpy reads a .npy file (numpy's format 1.0 to 3.0) of little-endian numbers and converts Fortran order to C
// order.
func ParseNpy(raw []byte) (Array, error) {
	var a Array
	if len(raw) < 12 || !bytes.HasPrefix(raw, []byte("\x93NUMPY")) {
		return a, fmt.Errorf("not a .npy file")
	}
	n, off := int(binary.LittleEndian.Uint16(raw[8:])), 10
	if raw[6] > 1 {
		n, off = int(binary.LittleEndian.Uint32(raw[8:])), 12
	}
	if n > len(raw)-off {
		return a, fmt.Errorf("header of %d bytes in a file of %d", n, len(raw))
	}
	m := npyHeader.FindSubmatch(raw[off : off+n])
	if m == nil {
		return a, fmt.Errorf("header %q not understood", raw[off:off+n])
	}
	t, big, err := dtype.ParseTypestr(string(m[1]))
	if err != nil {
		return a, err
	}
	if big {
		return a, fmt.Errorf("header %q: only little-endian is read", raw[off:off+n])
	}
	a = Array{DType: t, Shape: []int{}, Data: raw[off+n:]}
	size := t.Size()
	for _, s := range strings.Split(string(m[3]), ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		l, err := strconv.Atoi(s)
		if err != nil {
			return a, err
		}
		a.Shape = append(a.Shape, l)
		size *= l
	}
	if len(a.Data) != size {
		return a, fmt.Errorf("%d bytes of data, shape %v of %s has %d", len(a.Data), a.Shape, t, size)
	}
	if string(m[2]) == "True" {
		a.Data = cOrder(a)
	}
	return a, nil
}

// cOrder converts data whose first dimension is fastest to C order.
func cOrder(a Array) []byte {
	size := a.DType.Size()
	out := make([]byte, 0, len(a.Data))
	at := make([]int, len(a.Shape))
	for range len(a.Data) / size {
		from, step := 0, size
		for d, i := range at {
			from += i * step
			step *= a.Shape[d]
		}
		out = append(out, a.Data[from:from+size]...)
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] < a.Shape[d] {
				break
			}
			at[d] = 0
		}
	}
	return out
}

// Diff describes the first difference between got and a, or returns "" if they are equal bit for bit. NaN equals
// NaN whatever its payload.
func (a Array) Diff(got []byte) string {
	if len(got) != len(a.Data) {
		return fmt.Sprintf("%d bytes, want %d", len(got), len(a.Data))
	}
	if bytes.Equal(got, a.Data) {
		return ""
	}
	size := a.DType.SwapSize() // the halves of a complex number are compared one by one
	float := a.DType.IsFloat() || a.DType.IsComplex()
	for i := 0; i < len(got); i += size {
		g, w := got[i:i+size], a.Data[i:i+size]
		if !bytes.Equal(g, w) && !(float && isNaN(g) && isNaN(w)) {
			return fmt.Sprintf("element %d is % x, want % x", i/a.DType.Size(), g, w)
		}
	}
	return ""
}

func isNaN(b []byte) bool {
	switch len(b) {
	case 2:
		return binary.LittleEndian.Uint16(b)&0x7fff > 0x7c00
	case 4:
		return binary.LittleEndian.Uint32(b)&0x7fffffff > 0x7f800000
	}
	return binary.LittleEndian.Uint64(b)&(1<<63-1) > 0x7ff0000000000000
}
