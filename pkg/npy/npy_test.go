package npy

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"strata/pkg/dtype"
)

func TestRoundTrip(t *testing.T) {
	for _, h := range []Header{
		{Type: dtype.Float32, Shape: []int{3, 4, 5}},
		{Type: dtype.Uint8, Shape: []int{7}},
		{Type: dtype.Complex128, Shape: []int{}, Fortran: true},
		{Type: dtype.Int16, Shape: []int{0, 2}, BigEndian: true},
		{Type: dtype.Bool, Shape: slices.Repeat([]int{1}, 32)},
	} {
		var b bytes.Buffer
		if err := WriteHeader(&b, h); err != nil {
			t.Fatal(err)
		}
		if b.Len()%64 != 0 {
			t.Errorf("%v: header of %d bytes", h, b.Len())
		}
		b.WriteString("data")
		got, err := ReadHeader(&b)
		if err != nil {
			t.Fatalf("%v: %v", h, err)
		}
		if got.Type != h.Type || got.BigEndian != h.BigEndian || got.Fortran != h.Fortran || !slices.Equal(got.Shape, h.Shape) {
			t.Errorf("%+v came back as %+v", h, got)
		}
		if rest, _ := io.ReadAll(&b); string(rest) != "data" {
			t.Errorf("%q left after the header", rest)
		}
	}
}

// What numpy.save writes for numpy.arange(6, dtype='>i4').reshape(2, 3).
func TestNumpysOwn(t *testing.T) {
	text := "{'descr': '>i4', 'fortran_order': False, 'shape': (2, 3), }"
	file := "\x93NUMPY\x01\x00v\x00" + text + strings.Repeat(" ", 117-len(text)) + "\n"
	h, err := ReadHeader(strings.NewReader(file))
	if err != nil || h.Type != dtype.Int32 || !h.BigEndian || !slices.Equal(h.Shape, []int{2, 3}) {
		t.Errorf("%+v, %v", h, err)
	}
	if n, err := h.Bytes(); n != 24 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestBroken(t *testing.T) {
	file := func(text string) string {
		return "\x93NUMPY\x01\x00" + string([]byte{byte(len(text)), byte(len(text) >> 8)}) + text
	}
	for name, s := range map[string]string{
		"empty":        "",
		"magic":        "NUMPY123456789",
		"version":      "\x93NUMPY\x09\x00\x10\x00",
		"cut":          file("{'descr': '<f4'}")[:20],
		"huge":         "\x93NUMPY\x02\x00\xff\xff\xff\x7f",
		"object":       file("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}"),
		"record":       file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}"),
		"missing":      file("{'descr': '<f4', 'shape': (2,)}"),
		"twice":        file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"),
		"unknown key":  file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}"),
		"negative":     file("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}"),
		"overflow":     file("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}"),
		"order":        file("{'descr': '<f4', 'fortran_order': 1, 'shape': (2,)}"),
		"unterminated": file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,"),
		"trailing":     file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x"),
	} {
		if h, err := ReadHeader(strings.NewReader(s)); err == nil {
			t.Errorf("%s: accepted as %+v", name, h)
		}
	}
}

func FuzzReadHeader(f *testing.F) {
	var b bytes.Buffer
	if err := WriteHeader(&b, Header{Type: dtype.Uint16, Shape: []int{2, 3}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\x93NUMPY\x02\x00\x05\x00\x00\x00{'a':"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := ReadHeader(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := WriteHeader(&out, h); err != nil {
			t.Fatal(err)
		}
		again, err := ReadHeader(&out)
		if err != nil || again.Type != h.Type || again.Fortran != h.Fortran || !slices.Equal(again.Shape, h.Shape) {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}
