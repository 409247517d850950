package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// OpenFile opens one object at an address for reading: https://host/folder/file (with a
// query, as presigned addresses have it), or s3://bucket/folder/file; see [S3]. Its size is
// known when it is open. Close ends its connections too.
func OpenFile(ctx context.Context, address string, opts ...HTTPOption) (Object, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", withoutQuery(address), withoutURL(err))
	}
	folder, name := u.Path[:strings.LastIndexByte(u.Path, '/')+1], u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	u.Path, u.RawPath = folder, ""
	var s Store
	scheme := strings.ToLower(u.Scheme)
	switch {
	case scheme != "http" && scheme != "https" && scheme != "s3":
		return nil, fmt.Errorf("%s: not an address of a file on a server: want http://, https:// or s3://", withoutQuery(address))
	case u.Host == "":
		return nil, fmt.Errorf("%s: no host or bucket in the address", withoutQuery(address))
	case name == "":
		return nil, fmt.Errorf("%s: names no file: want it behind the last slash", withoutQuery(address))
	case scheme == "s3":
		s, err = S3(ctx, u.String(), opts...)
	default:
		s = HTTP(u.String(), opts...)
	}
	if err != nil {
		return nil, err
	}
	o, err := s.Open(ctx, name)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &lone{o, s}, nil
}

// withoutQuery is an address without its query, which may hold a secret.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// lone is an object with the store that is only there for it.
type lone struct {
	Object
	store Store
}

// Close closes both.
func (l *lone) Close() error { return errors.Join(l.Object.Close(), l.store.Close()) }
