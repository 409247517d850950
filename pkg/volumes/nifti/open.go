package nifti

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/klauspost/compress/gzip"

	"strata/pkg/volumes"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// IsPacked reports whether a file is one of NIfTI that gzip compressed: by its first bytes, and by its name.
func IsPacked(head []byte, name string) bool {
	name = strings.ToLower(name)
	return len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b && (strings.HasSuffix(name, ".nii.gz") || strings.HasSuffix(name, ".hdr.gz"))
}

// Open shows the volume of a file, which it takes over; of a header in a file of its own (.hdr), with the voxels beside
// it (.img, packed or not). where is the file's location in messages, requests how many reads to have in flight if it
// lies on a server, else 0.
func Open(ctx context.Context, file store.Object, where string, requests int, sibling volumes.Siblings) (*volumes.Store, error) {
	fail := func(err error) (*volumes.Store, error) { return nil, errors.Join(err, file.Close()) }
	bad := func(err error) (*volumes.Store, error) { return fail(&zarr.FormatError{Path: where, Err: err}) }
	head := make([]byte, HeaderBytes)
	in := volumes.Reader(ctx, file, 0)
	packed, err := isGzip(ctx, file)
	if err != nil {
		return fail(fmt.Errorf("%s: %w", where, err))
	}
	if packed {
		z, err := gzip.NewReader(volumes.Reader(ctx, file, 0))
		if err != nil {
			return bad(fmt.Errorf("compressed data: %w", err))
		}
		in = z
	}
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fail(fmt.Errorf("%s: %w", where, err))
	}
	v, offset, err := parse(head[:n])
	if err != nil {
		return bad(err)
	}
	base := path.Base(strings.ReplaceAll(where, `\`, "/"))
	if v.Name == "" {
		v.Name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(base, ".gz"), ".nii"), ".hdr")
	}
	for i, w := range v.Warnings {
		v.Warnings[i] = where + ": " + w
	}
	if err := v.Check(); err != nil {
		return bad(err)
	}
	if isPair(head[:n]) {
		voxels, name, err := openVoxels(ctx, base, sibling)
		if err != nil {
			return bad(err)
		}
		if err := file.Close(); err != nil {
			return nil, errors.Join(err, voxels.Close())
		}
		file, where = voxels, path.Join(path.Dir(where), name)
		if packed, err = isGzip(ctx, file); err != nil {
			return fail(fmt.Errorf("%s: %w", where, err))
		}
	}
	if !packed {
		return volumes.New(file, where, offset, v, requests)
	}
	unpacked, err := volumes.Unpack(ctx, file, 0, offset, v.Bytes(), where)
	if err != nil {
		return nil, err
	}
	return volumes.New(unpacked, where, 0, v, 0)
}

// isGzip reports whether a file begins as gzip's do.
func isGzip(ctx context.Context, file store.Object) (bool, error) {
	head := make([]byte, 2)
	_, err := io.ReadFull(volumes.Reader(ctx, file, 0), head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return head[0] == 0x1f && head[1] == 0x8b, err
}

// openVoxels opens the file of voxels beside a header, and returns its name.
func openVoxels(ctx context.Context, header string, sibling volumes.Siblings) (voxels store.Object, name string, err error) {
	stem := header
	for _, ext := range []string{".gz", ".hdr"} {
		if k := len(stem) - len(ext); k > 0 && strings.EqualFold(stem[k:], ext) {
			stem = stem[:k]
		}
	}
	var first error
	for _, ext := range []string{".img", ".img.gz", ".IMG"} {
		if sibling == nil {
			break
		}
		if voxels, err = sibling(ctx, stem+ext); err == nil {
			return voxels, stem + ext, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, "", fmt.Errorf("the voxels lie in another file, which is not read: want %s.img beside the header: %w", stem, cmp.Or(first, errors.New("no file beside it can be opened")))
}
