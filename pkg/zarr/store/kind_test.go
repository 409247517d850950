package store

import (
	"os"
	"path/filepath"
	"testing"
)

func TestKindOf(t *testing.T) {
	for head, want := range map[string]string{
		"":                                 "empty",
		"a,b\n1,2\n":                       "a text file",
		"\x89HDF\r\n\x1a\n\x00\x00":        "an HDF5 file, such as Imaris and BigDataViewer write",
		"\x89PNG\r\n\x1a\n\x00":            "a file of type image/png",
		"%PDF-1.7":                         "a file of type application/pdf",
		"PK\x03\x04\x14\x00":               "a zip file that was cut off: it has no end-of-directory record",
		"\x00\x01\x02\x03":                 "a file of unknown kind",
		string(make([]byte, 128)) + "DICM": "a DICOM file",
	} {
		name := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(name, []byte(head), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := kindOf(name); got != want {
			t.Errorf("%.20q: %s, want %s", head, got, want)
		}
	}
}
