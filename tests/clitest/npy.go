package clitest

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"strata/pkg/npy"
)

// npyDiff says how two .npy files differ; "" if they do not.
func npyDiff(a, b string) string {
	ha, da, err := readNpy(a)
	if err != nil {
		return err.Error()
	}
	hb, db, err := readNpy(b)
	if err != nil {
		return err.Error()
	}
	switch {
	case ha.Type != hb.Type:
		return fmt.Sprintf("type %v against %v", ha.Type, hb.Type)
	case !slices.Equal(ha.Shape, hb.Shape):
		return fmt.Sprintf("shape %v against %v", ha.Shape, hb.Shape)
	case ha.BigEndian != hb.BigEndian || ha.Fortran != hb.Fortran:
		return "byte order or axis order differ"
	case len(da) != len(db):
		return fmt.Sprintf("%d against %d bytes", len(da), len(db))
	case bytes.Equal(da, db):
		return ""
	}
	size := ha.Type.Size()
	first, count := -1, 0
	for i := 0; i+size <= len(da); i += size {
		if !bytes.Equal(da[i:i+size], db[i:i+size]) {
			if first < 0 {
				first = i / size
			}
			count++
		}
	}
	return fmt.Sprintf("%d elements differ, the first is number %d in storage order", count, first)
}

func readNpy(path string) (npy.Header, []byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return npy.Header{}, nil, err
	}
	r := bytes.NewReader(text)
	h, err := npy.ReadHeader(r)
	if err != nil {
		return h, nil, fmt.Errorf("%s: %w", path, err)
	}
	return h, text[len(text)-r.Len():], nil
}
