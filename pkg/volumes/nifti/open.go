package nifti

import (
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
	return len(head) > 2 && head[0] == 0x1f && head[1] == 0x8b && strings.HasSuffix(strings.ToLower(name), ".nii.gz")
}

// Open shows the volume of a file, which it takes over. where is the file's location in messages, requests how many reads to have in flight
// if it lies on a server, else 0.
func Open(ctx context.Context, file store.Object, where string, requests int) (*volumes.Store, error) {
	fail := func(err error) (*volumes.Store, error) { return nil, errors.Join(err, file.Close()) }
	bad := func(err error) (*volumes.Store, error) { return fail(&zarr.FormatError{Path: where, Err: err}) }
	head := make([]byte, HeaderBytes)
	in := volumes.Reader(ctx, file, 0)
	packed := false
	if _, err := io.ReadFull(in, head[:2]); err == nil && head[0] == 0x1f && head[1] == 0x8b {
		packed = true
		z, err := gzip.NewReader(volumes.Reader(ctx, file, 0))
		if err != nil {
			return bad(fmt.Errorf("compressed data: %w", err))
		}
		in = z
	} else {
		in = volumes.Reader(ctx, file, 0)
	}
	n, err := io.ReadFull(in, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return fail(fmt.Errorf("%s: %w", where, err))
	}
	v, offset, err := parse(head[:n])
	if err != nil {
		return bad(err)
	}
	if v.Name == "" {
		v.Name = strings.TrimSuffix(strings.TrimSuffix(path.Base(strings.ReplaceAll(where, `\`, "/")), ".gz"), ".nii")
	}
	for i, w := range v.Warnings {
		v.Warnings[i] = where + ": " + w
	}
	if !packed {
		return volumes.New(file, where, offset, v, requests)
	}
	if err := v.Check(); err != nil {
		return bad(err)
	}
	unpacked, err := volumes.Unpack(ctx, file, 0, offset, v.Bytes(), where)
	if err != nil {
		return nil, err
	}
	return volumes.New(unpacked, where, 0, v, 0)
}
