package deb

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// Limits of what a package may claim.
const (
	maxPackage  = 8 << 30 // compressed
	maxUnpacked = 4 << 30
	maxControl  = 4 << 20
)

// Control holds the fields of a package's control file, and its unchanged text.
type Control struct {
	Fields Stanza
	Text   []byte
}

// Unpack reads a package and calls each with every member of its file system archive, in order; names are
// relative and clean ("usr/bin/bash"). It ignores maintainer scripts. Packages are untrusted: sizes are
// bounded, and a name that leads out of the root is an error. The caller must guard the target against links.
func Unpack(r io.Reader, each func(h *tar.Header, r io.Reader) error) (*Control, error) {
	a, err := newArReader(r)
	if err != nil {
		return nil, err
	}
	if name, err := a.next(); err != nil || name != "debian-binary" {
		return nil, errors.Join(errors.New("not a Debian package: its first member is not debian-binary"), err)
	}
	version, err := io.ReadAll(io.LimitReader(a, 64))
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(version, []byte("2.")) {
		return nil, fmt.Errorf("package format %.8q: want 2.0", bytes.TrimSpace(version))
	}
	var control *Control
	for {
		name, err := a.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("not a Debian package: it has no data.tar")
		case err != nil:
			return nil, err
		case strings.HasPrefix(name, "control.tar"):
			if control, err = readControl(a, name); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		case strings.HasPrefix(name, "data.tar"):
			if control == nil {
				return nil, errors.New("not a Debian package: data.tar stands before control.tar")
			}
			if err := walkTar(a, name, maxUnpacked, each); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return control, nil
		case strings.HasPrefix(name, "_"): // may be ignored, says deb(5)
		default:
			return nil, fmt.Errorf("unknown member %.20q", name)
		}
	}
}

func readControl(r io.Reader, name string) (*Control, error) {
	var c *Control
	err := walkTar(r, name, maxControl, func(h *tar.Header, r io.Reader) error {
		if h.Name != "control" || h.Typeflag != tar.TypeReg {
			return nil
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		return readStanzas(bytes.NewReader(text), func(s Stanza) error {
			if c != nil {
				return errors.New("control: more than one paragraph")
			}
			if !validName(s["Package"]) || s["Version"] == "" {
				return errors.New("control: no package name and version")
			}
			c = &Control{s, text}
			return nil
		})
	})
	if err == nil && c == nil {
		err = errors.New("no control file")
	}
	return c, err
}

// walkTar calls each with the members of a tar archive that is compressed as
// its name says.
func walkTar(r io.Reader, name string, limit int64, each func(*tar.Header, io.Reader) error) error {
	plain, err := decompress(r, path.Ext(name))
	if err != nil {
		return err
	}
	defer plain.Close()
	all := &limited{plain, limit}
	t := tar.NewReader(all)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, all) // sums stand at the end
			return err
		}
		if err != nil {
			return err
		}
		if h.Name, err = cleanName(h.Name); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeLink {
			if h.Linkname, err = cleanName(h.Linkname); err != nil {
				return err
			}
		}
		if err := each(h, t); err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// cleanName returns a member's name below the root; "." is the root.
func cleanName(name string) (string, error) {
	clean := path.Clean(strings.TrimLeft(name, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsRune(name, 0) {
		return "", fmt.Errorf("%q leads out of the root", name)
	}
	return clean, nil
}

// decompress undoes the compressions that deb(5) names, by a file's extension.
func decompress(r io.Reader, ext string) (io.ReadCloser, error) {
	switch ext {
	case ".tar":
		return io.NopCloser(r), nil
	case ".gz":
		return gzip.NewReader(r)
	case ".xz":
		x, err := xz.NewReader(r)
		return io.NopCloser(x), err
	case ".zst":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderMaxWindow(128<<20))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("compressed in an unknown way: want .gz, .xz, .zst or nothing")
}

// limited fails, rather than ends, if a stream exceeds the limit: it may be a bomb.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("unpacks to more than is plausible")
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}
