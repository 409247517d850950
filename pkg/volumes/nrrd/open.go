package nrrd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"strata/pkg/volumes"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Open shows the volume of a file, which it takes over; of a detached header (.nhdr), with the file that it names.
// where is the file's location in messages, requests how many reads to have in flight if it lies on a server, else 0.
func Open(ctx context.Context, file store.Object, where string, requests int, sibling volumes.Siblings) (*volumes.Store, error) {
	fail := func(err error) (*volumes.Store, error) { return nil, errors.Join(err, file.Close()) }
	bad := func(err error) (*volumes.Store, error) { return fail(&zarr.FormatError{Path: where, Err: err}) }
	text := make([]byte, min(mostHeader, file.Size()))
	if _, err := io.ReadFull(volumes.Reader(ctx, file, 0), text); err != nil {
		return fail(fmt.Errorf("%s: %w", where, err))
	}
	h, err := split(text)
	if err != nil {
		return bad(err)
	}
	p, err := parse(h)
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return bad(err)
	}
	base := path.Base(strings.ReplaceAll(where, `\`, "/"))
	p.Name = strings.TrimSuffix(strings.TrimSuffix(base, ".nhdr"), ".nrrd")
	for i, w := range p.Warnings {
		p.Warnings[i] = where + ": " + w
	}
	begin := h.length
	switch {
	case p.file != "":
		if p.file != path.Base(p.file) || strings.ContainsAny(p.file, " %\\") || strings.EqualFold(p.file, "list") || sibling == nil {
			return bad(fmt.Errorf("data file: %q is not read: it must be the name of one file beside the header", shorten(p.file)))
		}
		data, err := sibling(ctx, p.file)
		if err != nil {
			return bad(fmt.Errorf("data file: %w", err))
		}
		if err := file.Close(); err != nil {
			return nil, errors.Join(err, data.Close())
		}
		file, begin, where = data, 0, path.Join(path.Dir(where), p.file)
	case begin == 0:
		return bad(fmt.Errorf("the header does not end with an empty line"))
	}
	if begin, err = skipLines(ctx, file, begin, p.lineSkip); err != nil {
		return bad(err)
	}
	if p.gzip {
		unpacked, err := volumes.Unpack(ctx, file, begin, max(p.byteSkip, 0), p.Bytes(), where)
		if err != nil {
			return nil, err
		}
		return volumes.New(unpacked, where, 0, p.Volume, 0)
	}
	if begin += p.byteSkip; p.byteSkip == -1 { // the voxels are what the file ends with
		begin = file.Size() - p.Bytes()
	}
	return volumes.New(file, where, begin, p.Volume, requests)
}

// skipLines returns the offset behind so many lines.
func skipLines(ctx context.Context, file store.Object, at, lines int64) (int64, error) {
	in := volumes.Reader(ctx, file, at)
	b := make([]byte, 4096)
	for lines > 0 {
		n, err := in.Read(b)
		for part := b[:n]; lines > 0 && len(part) > 0; {
			i := bytes.IndexByte(part, '\n')
			if i < 0 {
				at += int64(len(part))
				break
			}
			at, part, lines = at+int64(i)+1, part[i+1:], lines-1
		}
		if err != nil && lines > 0 {
			return 0, fmt.Errorf("line skip: the file ends before: %w", err)
		}
	}
	return at, nil
}
