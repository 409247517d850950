//go:build unix

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"strata/pkg/address"
	"strata/pkg/smallfile"
)

// OpenURL opens an address that a user typed for reading. It returns the store and the key of the node that
// the address means; "" is the store's root:
//
//	/data/x.zarr, x.zarr/0, file:///data/x.zarr   a folder
//	x.zarr.zip, x.ozx, x.zip/inner/0              a zip file, or a node in it
//	http://host/x.zarr, https://…                 a folder on a web server
//	https://host/x.zip, https://host/x.zip/0      a zip file on a web server
//	s3://bucket/x.zarr, s3://bucket/x.zip/0       the same in a bucket; see [S3]
//
// If the root of a zip file is not a node but holds exactly one folder that is, the key is that folder. A
// path that does not exist is fs.ErrNotExist; web addresses are first contacted when something is read. The
// caller closes the store.
func OpenURL(ctx context.Context, s string, opts ...HTTPOption) (Store, string, error) {
	a := address.Address(s)
	switch a.Scheme() {
	case "":
		return openPath(s)
	case "file":
		u, err := a.Parse()
		if err != nil {
			return nil, "", err
		}
		if u.Host != "" && u.Host != "localhost" {
			return nil, "", fmt.Errorf("%s: a file address has no host: want file:///path", a)
		}
		return openPath(u.Path)
	case "http", "https":
		return openWeb(ctx, a, opts)
	case "s3":
		return openS3(ctx, a, opts)
	}
	if _, err := os.Lstat(s); err == nil { // "://" is allowed in the name of a file
		return openPath(s)
	}
	return nil, "", fmt.Errorf("%s: no store for %s:// addresses: want a path, http://, https:// or s3://", a, a.Scheme())
}

func openPath(path string) (Store, string, error) {
	if path == "" {
		return nil, "", errors.New("empty path")
	}
	file, key := strings.TrimRight(path, "/"), ""
	if file == "" {
		file = "/"
	}
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		return Folder(path), "", nil
	}
	// a zip file may stand in the middle: x.zip/inner
	for err != nil {
		i := strings.LastIndexByte(file, '/')
		if i <= 0 {
			return nil, "", missing(path, err)
		}
		file, key = file[:i], Join(file[i+1:], key)
		info, e := os.Stat(file)
		if e == nil && info.IsDir() {
			return nil, "", missing(path, err) // the first error names the whole path
		}
		if e == nil && info.Mode().IsRegular() {
			break
		}
	}
	if key != "" {
		if err := checkKey(key); err != nil {
			return nil, "", fmt.Errorf("%s: %w", path, err)
		}
	}
	z, err := Zip(file)
	if errors.Is(err, errNoZip) {
		return nil, "", fmt.Errorf("%s: is %s: want Zarr in a folder or a zip file, or an image in TIFF, CZI, NIfTI or NRRD", file, kindOf(file))
	}
	if err != nil {
		return nil, "", err
	}
	return z, rootOf(z, key), nil
}

// missing returns the error for a path that cannot be opened. It names the path without secrets, since that may be a
// mistyped address such as "http:/me:secret@host".
func missing(path string, err error) error {
	if address.Address(path).String() == path {
		err = smallfile.Cause(path, err)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return &fs.PathError{Op: p.Op, Path: address.Address(path).String(), Err: p.Err}
	}
	return err
}

func openWeb(ctx context.Context, a address.Address, opts []HTTPOption) (Store, string, error) {
	u, err := a.Parse()
	if err != nil {
		return nil, "", err
	}
	if u.Host == "" {
		return nil, "", fmt.Errorf("%s: no host in the address", a)
	}
	file, key, err := zipIn(u)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", a, err)
	}
	if file == "" {
		return HTTP(a.Reveal(), opts...), "", nil
	}
	z, err := ZipFrom(ctx, HTTP(u.String(), opts...), file)
	if err != nil {
		return nil, "", err
	}
	return z, rootOf(z, key), nil
}

func openS3(ctx context.Context, a address.Address, opts []HTTPOption) (Store, string, error) {
	u, err := a.Parse()
	if err != nil {
		return nil, "", err
	}
	file, key, err := zipIn(u)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", a, err)
	}
	s, err := S3(ctx, u.String(), opts...)
	if err != nil || file == "" {
		return s, "", err
	}
	z, err := ZipFrom(ctx, s, file)
	if err != nil {
		return nil, "", errors.Join(err, s.Close())
	}
	return z, rootOf(z, key), nil
}

// zipIn splits an address with a zip file in its path into the file's address and the key of the node in the
// file.
func zipIn(u *url.URL) (file, key string, err error) {
	path := u.Path
	end := zipSegment(path)
	if end < 0 {
		return "", "", nil
	}
	if key = strings.Trim(path[end:], "/"); key != "" {
		if err := checkKey(key); err != nil {
			return "", "", err
		}
	}
	start := strings.LastIndexByte(path[:end], '/') + 1
	u.Path, u.RawPath = path[:start], ""
	return path[start:end], key, nil
}

// zipSegment returns the end of the first path segment with a zip file's extension, or -1.
func zipSegment(path string) int {
	for at := 0; at < len(path); {
		end := len(path)
		if n := strings.IndexByte(path[at:], '/'); n >= 0 {
			end = at + n
		}
		if seg := strings.ToLower(path[at:end]); len(seg) > 4 && (strings.HasSuffix(seg, ".zip") || strings.HasSuffix(seg, ".ozx")) {
			return end
		}
		at = end + 1
	}
	return -1
}

// rootOf returns key. In a zip file whose root is not a node but holds one folder alone that is, it returns the key
// within that folder.
func rootOf(z *ZipStore, key string) string {
	if isNode(z, "") || key != "" && isNode(z, key) {
		return key
	}
	only := ""
	for name := range z.tree.entries {
		if name == "__MACOSX" { // where one system's zip program puts file attributes
			continue
		}
		if only != "" {
			return key
		}
		only = name
	}
	if only != "" && isNode(z, only) && (key == "" || isNode(z, Join(only, key))) {
		return Join(only, key)
	}
	return key
}

// isNode reports whether key has the metadata document of a Zarr node.
func isNode(z *ZipStore, key string) bool {
	for _, name := range NodeFiles() {
		if _, err := z.tree.object(Join(key, name)); !errors.Is(err, fs.ErrNotExist) {
			return err == nil
		}
	}
	return false
}
