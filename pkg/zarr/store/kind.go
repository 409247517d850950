package store

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
)

// magics lists the signatures of formats that users try and net/http does not know, and their offsets.
var magics = []struct {
	at    int
	bytes string
	name  string
}{
	{0, "\x89HDF\r\n\x1a\n", "an HDF5 file, such as Imaris and BigDataViewer write"},
	{0, "MATLAB 5.0", "a MATLAB file"},
	{0, "\x93NUMPY", "a NumPy array"},
	{0, "\xda\xce\xbe\x0a", "a Nikon ND2 file"},
	{0, "p\x00\x00\x00", "a Leica LIF file"},
	{0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an OLE2 file, such as Olympus OIB"},
	{128, "DICM", "a DICOM file"},
	{0, "\x00\x00\x00\x0cjP  ", "a JPEG 2000 file"},
	{0, "SIMPLE  =", "a FITS file"},
	{0, "NRRD", "an NRRD file"},
}

// kindOf returns what a file is, by its first bytes, in words such as "a NumPy array" or "empty".
func kindOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "not readable"
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return "empty"
	}
	if err != nil && err != io.ErrUnexpectedEOF {
		return "not readable"
	}
	head = head[:n]
	for _, m := range magics {
		if len(head) > m.at && bytes.HasPrefix(head[m.at:], []byte(m.bytes)) {
			return m.name
		}
	}
	kind, _, _ := strings.Cut(http.DetectContentType(head), ";")
	switch kind {
	case "application/octet-stream":
		return "a file of unknown kind"
	case "text/plain":
		return "a text file"
	case "application/zip":
		return "a zip file that was cut off: it has no end-of-directory record"
	}
	return "a file of type " + kind
}
