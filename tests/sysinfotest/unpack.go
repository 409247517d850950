// Package sysinfotest unpacks recorded machines. A recorded machine is a txtar archive of the files of its
// /proc, /sys, /etc and so on; some names have a special meaning:
//
//	-- sys/block/md0 -> ../devices/virtual/block/md0 --   a symbolic link
//	-- sys/class/iommu/ --                                an empty folder
//	-- sys/devices/…/config.hex --                        bytes in hexadecimal; 00*256 is 256 times 00
//	-- proc/self/environ.nul --                           lines that end in NUL
package sysinfotest

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Unpack writes the machine of an archive into a folder.
func Unpack(archive, dir string) error {
	a, err := txtar.ParseFile(archive)
	if err != nil {
		return err
	}
	for _, f := range a.Files {
		if err := write(dir, f); err != nil {
			return fmt.Errorf("%s: %s: %w", archive, f.Name, err)
		}
	}
	return nil
}

func write(dir string, f txtar.File) error {
	name, target, link := strings.Cut(f.Name, " -> ")
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the name leads out of the folder")
	}
	at := filepath.Join(dir, name)
	if strings.HasSuffix(name, "/") {
		return os.MkdirAll(at, 0o777)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	data := f.Data
	switch {
	case link:
		return os.Symlink(target, at)
	case strings.HasSuffix(at, ".hex"):
		b, err := unhex(string(data))
		if err != nil {
			return err
		}
		at, data = strings.TrimSuffix(at, ".hex"), b
	case strings.HasSuffix(at, ".nul"):
		at, data = strings.TrimSuffix(at, ".nul"), []byte(strings.ReplaceAll(string(data), "\n", "\x00"))
	}
	return os.WriteFile(at, data, 0o666)
}

func unhex(text string) ([]byte, error) {
	var out []byte
	for word := range strings.FieldsSeq(text) {
		word, times, repeated := strings.Cut(word, "*")
		b, err := hex.DecodeString(word)
		if err != nil {
			return nil, err
		}
		n := 1
		if repeated {
			if n, err = strconv.Atoi(times); err != nil || n < 0 || n > 1<<16 {
				return nil, fmt.Errorf("%q is no count", times)
			}
		}
		for range n {
			out = append(out, b...)
		}
	}
	return out, nil
}
