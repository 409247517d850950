package replace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"strata/pkg/atomic"
)

// signatures are what files begin with, by the last part of their name. Text has no signature.
var signatures = map[string][]string{
	".png":  {"\x89PNG\r\n\x1a\n"},
	".jpg":  {"\xff\xd8\xff"},
	".jpeg": {"\xff\xd8\xff"},
	".tif":  {"II*\x00", "MM\x00*", "II+\x00", "MM\x00+"},
	".tiff": {"II*\x00", "MM\x00*", "II+\x00", "MM\x00+"},
	".czi":  {"ZISRAWFILE"},
	".npy":  {"\x93NUMPY"},
	".zip":  {"PK\x03\x04", "PK\x05\x06"},
	".ozx":  {"PK\x03\x04", "PK\x05\x06"},
	".json": {"{", "["},
	".html": {"<"},
	".svg":  {"<"},
	".tfm":  {"#Insight Transform File"},
}

// Any returns a function that describes what the first of the given functions finds.
func Any(all ...atomic.Foreign) atomic.Foreign {
	return func(path string) (what string, err error) {
		for _, f := range all {
			if what, err = f(path); what != "" || err != nil {
				break
			}
		}
		return what, err
	}
}

// Begins returns a function that describes files which do not begin with a text, and are not empty, as something else
// than kind.
func Begins(kind, text string) atomic.Foreign {
	return func(file string) (string, error) {
		head, err := beginning(file, len(text))
		if err == nil && len(head) > 0 && string(head) != text {
			return "no " + kind, nil
		}
		return "", err
	}
}

// LooksLike describes what a file is that does not begin as one of its name does; "" for a file that does, is empty, or
// whose name ends in something else.
func LooksLike(file string) (string, error) {
	ending := strings.ToLower(path.Ext(file))
	want := signatures[ending]
	if want == nil {
		return "", nil
	}
	head, err := beginning(file, 64)
	if err != nil {
		return "", err
	}
	n := len(head)
	if ending == ".json" || ending == ".html" || ending == ".svg" {
		head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	}
	for _, s := range want {
		if n == 0 || strings.HasPrefix(string(head), s) {
			return "", nil
		}
	}
	return fmt.Sprintf("no %s file", strings.ToUpper(ending[1:])), nil
}

// beginning returns the first n bytes of a file, or all if there are fewer.
func beginning(file string, n int) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, n)
	got, err := io.ReadFull(f, head)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil
	}
	return head[:got], err
}
