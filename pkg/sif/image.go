package sif

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/sylabs/sif/v2/pkg/sif"

	"strata/pkg/sif/squashfs"
)

// ErrImage is wrapped by errors that an image file causes.
var ErrImage = errors.New("not a whole image")

// Limits of the sizes that an image's headers may claim.
const (
	maxDescriptors = 4096
	maxText        = 16 << 20 // of a definition or metadata
)

// Image is an image file open for reading.
type Image struct {
	path  string
	file  *os.File
	size  int64
	image *sif.FileImage
}

// Object describes one descriptor of an image.
type Object struct {
	ID        uint32 `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"name,omitempty"`
	Group     uint32 `json:"group,omitempty"`  // 0: none
	Linked    uint32 `json:"linked,omitempty"` // object that a signature belongs to
	LinkGroup bool   `json:"linked_group,omitempty"`
	Offset    int64  `json:"offset"`
	Size      int64  `json:"size"`
	Detail    string `json:"detail,omitempty"` // "squashfs, primary system, amd64"
}

// Open opens an image. If the file is truncated or of another kind, the error wraps [ErrImage] and says what is
// missing.
func Open(path string) (*Image, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a named pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	i := &Image{path: path, file: f}
	if err := i.load(); err != nil {
		f.Close()
		return nil, err
	}
	return i, nil
}

func (i *Image) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %w", i.path, ErrImage, fmt.Errorf(format, args...))
}

func (i *Image) load() error {
	info, err := i.file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return i.errorf("it is a folder")
	}
	i.size = info.Size()
	if err := i.checkHeader(); err != nil {
		return err
	}
	i.image, err = sif.LoadContainer(readOnly{i.file}, sif.OptLoadWithCloseOnUnload(false))
	if err != nil {
		return i.errorf("%w", err)
	}
	var bad error
	i.image.WithDescriptors(func(d sif.Descriptor) bool {
		switch end := d.Offset() + d.Size(); {
		case d.Offset() < 0 || d.Size() < 0 || end < 0: // or their sum is too large
			bad = i.errorf("object %d (%v) has an impossible place: byte %d, %d bytes", d.ID(), d.DataType(), d.Offset(), d.Size())
		case end > i.size:
			bad = i.errorf("it is cut off: object %d (%v) ends at byte %d, the file at byte %d", d.ID(), d.DataType(), end, i.size)
		}
		return bad != nil
	})
	return bad
}

// readOnly keeps the library from changing an image.
type readOnly struct{ f *os.File }

func (r readOnly) ReadAt(p []byte, at int64) (int, error)   { return r.f.ReadAt(p, at) }
func (r readOnly) Seek(at int64, whence int) (int64, error) { return r.f.Seek(at, whence) }
func (r readOnly) Write([]byte) (int, error)                { return 0, fs.ErrPermission }
func (r readOnly) Truncate(int64) error                     { return fs.ErrPermission }

// checkHeader compares the claims of the global header with the file, before the library allocates memory for
// them.
func (i *Image) checkHeader() error {
	const (
		size           = 128
		descriptorSize = 585
	)
	head := make([]byte, size)
	n, err := i.file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return err
	}
	switch {
	case n < 42 || string(head[32:42]) != "SIF_MAGIC\x00":
		return i.errorf("it has no SIF header")
	case n < size:
		return i.errorf("it is cut off in its header, at byte %d", n)
	}
	total := int64(binary.LittleEndian.Uint64(head[88:]))
	at, length := int64(binary.LittleEndian.Uint64(head[96:])), int64(binary.LittleEndian.Uint64(head[104:]))
	switch {
	case total < 0 || total > maxDescriptors || at < 0 || length < 0:
		return i.errorf("it claims %d descriptors in %d bytes from byte %d on", total, length, at)
	case at > i.size || max(length, total*descriptorSize) > i.size-at:
		return i.errorf("it is cut off: %d descriptors from byte %d on end behind the file, at byte %d", total, at, i.size)
	}
	return nil
}

// Close closes the file.
func (i *Image) Close() error { return i.file.Close() }

// Objects lists the used descriptors in order.
func (i *Image) Objects() []Object {
	var out []Object
	i.image.WithDescriptors(func(d sif.Descriptor) bool {
		o := Object{ID: d.ID(), Type: d.DataType().String(), Name: d.Name(), Group: d.GroupID(), Offset: d.Offset(), Size: d.Size()}
		o.Linked, o.LinkGroup = d.LinkedID()
		switch d.DataType() {
		case sif.DataPartition:
			if file, part, arch, err := d.PartitionMetadata(); err == nil {
				kind := map[sif.PartType]string{sif.PartSystem: "system", sif.PartPrimSys: "primary system", sif.PartData: "data", sif.PartOverlay: "overlay"}[part]
				o.Detail = strings.ToLower(file.String()) + ", " + kind + ", " + arch
			}
		case sif.DataSignature:
			if hash, print, err := d.SignatureMetadata(); err == nil {
				o.Detail = fmt.Sprintf("%v, key %X", hash, print)
			}
		}
		out = append(out, o)
		return false
	})
	return out
}

// primary returns the descriptor of the primary system partition, with its architecture.
func (i *Image) primary() (sif.Descriptor, string, error) {
	d, err := i.image.GetDescriptor(sif.WithPartitionType(sif.PartPrimSys))
	if err != nil {
		return d, "", i.errorf("it has no primary system partition")
	}
	file, _, arch, err := d.PartitionMetadata()
	if err != nil {
		return d, "", i.errorf("%w", err)
	}
	if file != sif.FsSquash {
		return d, arch, i.errorf("its root is of the kind %v: want squashfs", file)
	}
	return d, arch, nil
}

// Arch returns the architecture of the root by Go's name.
func (i *Image) Arch() (string, error) {
	_, arch, err := i.primary()
	return arch, err
}

// Root opens the root for reading.
func (i *Image) Root() (*squashfs.Reader, error) {
	d, _, err := i.primary()
	if err != nil {
		return nil, err
	}
	r, err := squashfs.Open(io.NewSectionReader(i.file, d.Offset(), d.Size()), d.Size())
	if err != nil {
		return nil, i.errorf("root: %w", err)
	}
	return r, nil
}

// Inspect returns the image's metadata, from its descriptors or else from the files of its root.
func (i *Image) Inspect() (*Metadata, error) {
	if d, err := i.image.GetDescriptor(sif.WithDataType(sif.DataGenericJSON), func(d sif.Descriptor) (bool, error) { return d.Name() == metadataName, nil }); err == nil {
		text, err := i.text(d)
		if err != nil {
			return nil, err
		}
		m, err := parseMetadata(text)
		if err != nil {
			return nil, i.errorf("%w", err)
		}
		return m, nil
	}
	root, err := i.Root()
	if err != nil {
		return nil, err
	}
	m, err := readMetadata(func(name string) ([]byte, error) {
		e, err := root.Lookup(name)
		if err != nil {
			return nil, err
		}
		if !e.Mode.IsRegular() || e.Size > maxText {
			return nil, fmt.Errorf("%s: not a text", name)
		}
		return io.ReadAll(root.File(e))
	})
	if err != nil {
		return nil, i.errorf("root: %w", err)
	}
	if d, err := i.image.GetDescriptor(sif.WithDataType(sif.DataDeffile)); err == nil {
		text, err := i.text(d)
		if err != nil {
			return nil, err
		}
		m.Definition = string(text)
	}
	return m, nil
}

func (i *Image) text(d sif.Descriptor) ([]byte, error) {
	if d.Size() > maxText {
		return nil, i.errorf("object %d (%v) of %d bytes: more than %d", d.ID(), d.DataType(), d.Size(), maxText)
	}
	text, err := d.GetData()
	if err != nil {
		return nil, i.errorf("object %d: %w", d.ID(), err)
	}
	return text, nil
}
