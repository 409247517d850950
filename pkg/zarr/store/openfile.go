package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"strata/pkg/address"
)

// OpenFile opens one object at an address for reading: https://host/folder/file (with a query, as in
// presigned addresses), or s3://bucket/folder/file; see [S3]. It requests the object's size. Closing the
// object also closes its connections.
func OpenFile(ctx context.Context, s string, opts ...HTTPOption) (Object, error) {
	a := address.Address(s)
	u, err := a.Parse()
	if err != nil {
		return nil, err
	}
	folder, name := u.Path[:strings.LastIndexByte(u.Path, '/')+1], u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	u.Path, u.RawPath = folder, ""
	var in Store
	scheme := a.Scheme()
	switch {
	case scheme != "http" && scheme != "https" && scheme != "s3":
		return nil, fmt.Errorf("%s: not an address of a file on a server: want http://, https:// or s3://", a)
	case u.Host == "":
		return nil, fmt.Errorf("%s: no host or bucket in the address", a)
	case name == "":
		return nil, fmt.Errorf("%s: names no file: want it behind the last slash", a)
	case scheme == "s3":
		in, err = S3(ctx, u.String(), opts...)
	default:
		in = HTTP(u.String(), opts...)
	}
	if err != nil {
		return nil, err
	}
	o, err := in.Open(ctx, name)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return &lone{o, in}, nil
}

// lone is an object together with the store that exists only for it.
type lone struct {
	Object
	store Store
}

// Close closes both.
func (l *lone) Close() error { return errors.Join(l.Object.Close(), l.store.Close()) }
