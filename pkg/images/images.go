// Package images opens images in files of every format that this module reads, as OME-Zarr.
//
//	st, key, err := images.Open(ctx, "slides/scan.svs")
//	im, err := ngff.OpenPresent(ctx, st, key)
//
// It returns a [store.Store] that shows the image as an OME-Zarr hierarchy. Folders, zip files and servers hold such a
// hierarchy already; packages tiffstore, czistore and volumes make one of TIFF, CZI, NIfTI and NRRD files on the fly.
// Stages, viewers and tools read [ngff.Image] and zarr.Array and need to know no other format.
//
// To add a format, write a package whose store shows its files as a hierarchy (Get, Open and List of metadata documents
// and chunks, Decode of chunks in its own encoding, Location for messages), and add a line to the table formats below,
// which recognises the format by the first bytes of a file (and its name, where it is compressed as a whole).
package images

import (
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"strata/pkg/address"
	"strata/pkg/czi"
	"strata/pkg/czi/czistore"
	"strata/pkg/tiff"
	"strata/pkg/tiff/tiffstore"
	"strata/pkg/volumes"
	"strata/pkg/volumes/nifti"
	"strata/pkg/volumes/nrrd"
	"strata/pkg/zarr/store"
)

// file is an open file that may be an image.
type file struct {
	store.Object
	where    string // for messages
	requests int    // worth having on their way at a time; 0: the file is near
	sibling  func(ctx context.Context, name string) (store.Object, error)
}

// format is a format of image files.
type format struct {
	is   func(head []byte, name string) bool
	open func(ctx context.Context, f file) (store.Store, error)
}

// headBytes is the number of bytes that suffices to tell all formats.
const headBytes = 352

var formats = []format{
	{byHead(tiff.IsTIFF), openTIFF},
	{byHead(czi.IsCZI), openCZI},
	{byHead(nifti.Is), openNIfTI},
	{nifti.IsPacked, openNIfTI},
	{byHead(nrrd.Is), openNRRD},
}

// byHead tells a format by a file's first bytes alone.
func byHead(is func(head []byte) bool) func(head []byte, name string) bool {
	return func(head []byte, _ string) bool { return is(head) }
}

func openNIfTI(ctx context.Context, f file) (store.Store, error) {
	return volume(nifti.Open(ctx, f.Object, f.where, f.requests, f.sibling))
}

func openNRRD(ctx context.Context, f file) (store.Store, error) {
	return volume(nrrd.Open(ctx, f.Object, f.where, f.requests, f.sibling))
}

// volume returns no store with an error.
func volume(st *volumes.Store, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return st, nil
}

func openCZI(ctx context.Context, f file) (store.Store, error) {
	return czistore.Open(ctx, f.Object, f.where, czistore.Requests(f.requests))
}

func openTIFF(ctx context.Context, f file) (store.Store, error) {
	return tiffstore.Open(ctx, f.Object, f.where, tiffstore.Requests(f.requests), tiffstore.Siblings(f.sibling))
}

// Open opens an address that a user typed for reading: everything that [store.OpenURL] and [File] accept.
func Open(ctx context.Context, s string, opts ...store.HTTPOption) (store.Store, string, error) {
	st, key, err := File(ctx, s, opts...)
	if st != nil || err != nil {
		return st, key, err
	}
	return store.OpenURL(ctx, s, opts...)
}

// File opens an address that a user typed if it names an image file that is not Zarr; otherwise it returns a
// nil store. The file may lie on a server or in a bucket (https://host/scan.svs). A path may continue below
// it: scan.svs/label names another image in it, scan.svs/pages/0 a page. The caller closes the store.
func File(ctx context.Context, s string, opts ...store.HTTPOption) (store.Store, string, error) {
	a := address.Address(s)
	switch a.Scheme() {
	case "http", "https", "s3":
		return openFar(ctx, a, opts)
	case "file":
		u, err := a.Parse()
		if err != nil {
			return nil, "", err
		}
		s = u.Path
	case "":
	default:
		return nil, "", nil
	}
	name, key := Split(s)
	if name == "" {
		return nil, "", nil
	}
	st, err := openLocal(ctx, name)
	return st, key, err
}

// formatOf returns the format of a file of a name that begins with these bytes, nil if it is none.
func formatOf(head []byte, name string) *format {
	for i, k := range formats {
		if k.is(head, name) {
			return &formats[i]
		}
	}
	return nil
}

// Is reports whether a local file has one of the formats, judged by its first bytes.
func Is(name string) bool {
	o, err := store.Folder(filepath.Dir(name)).Open(context.Background(), filepath.Base(name)) // a pipe would wait for its writer
	if err != nil {
		return false
	}
	defer o.Close()
	head := make([]byte, min(headBytes, o.Size()))
	n, _ := o.ReadAt(context.Background(), head, 0) // a shorter file is told by what it has
	return formatOf(head[:n], name) != nil
}

// Split divides a path that goes through a regular file into the file's path and the key below it; name is ""
// if the path goes through no file.
func Split(p string) (name, key string) {
	name = strings.TrimRight(p, "/")
	for name != "" && name != "." {
		if info, err := os.Stat(name); err == nil {
			if !info.Mode().IsRegular() {
				return "", ""
			}
			return name, key
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return "", ""
		}
		name, key = name[:i], store.Join(name[i+1:], key)
	}
	return "", ""
}

// ReadBy returns a store that reads local files in another way, to replace one that [Open] returned for s. It
// returns the store unchanged and false if there are no such files, as in zip files and on servers.
func ReadBy(ctx context.Context, st store.Store, s string, how store.Reading) (store.Store, bool, error) {
	switch st := st.(type) {
	case *store.FolderStore:
		return st.With(store.ReadBy(how)), true, nil
	case shown:
		name, _ := Split(strings.TrimPrefix(s, "file://"))
		if name == "" {
			return st, false, nil
		}
		other, err := openLocal(ctx, name, store.ReadBy(how))
		return other, true, errors.Join(err, st.Close())
	}
	return st, false, nil
}

// openLocal opens a file that is of one of the formats; nil: it is of none.
func openLocal(ctx context.Context, name string, opts ...store.FolderOption) (store.Store, error) {
	folder := store.Folder(filepath.Dir(name), opts...)
	o, err := folder.Open(ctx, filepath.Base(name))
	if err != nil {
		return nil, err
	}
	return open(ctx, file{Object: o, where: name, sibling: folder.Open})
}

// open finds the format of a file by its first bytes. It takes the file over.
func open(ctx context.Context, f file) (store.Store, error) {
	head := make([]byte, min(headBytes, f.Size()))
	if _, err := f.ReadAt(ctx, head, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(err, f.Close())
	}
	if k := formatOf(head, f.where); k != nil {
		return k.open(ctx, f)
	}
	return nil, f.Close()
}

// openFar opens a file on a server if it has one of the formats; it returns nil if it does not, or does not
// exist.
func openFar(ctx context.Context, a address.Address, opts []store.HTTPOption) (store.Store, string, error) {
	u, err := a.Parse()
	if err != nil || u.Host == "" {
		return nil, "", nil // the other says why
	}
	name, key, likely := farFile(u.Path)
	if name == "" {
		return nil, "", nil
	}
	folder := *u
	folder.Path, folder.RawPath = path.Dir(name), ""
	if !strings.HasSuffix(folder.Path, "/") {
		folder.Path += "/"
	}
	st, err := openFolder(ctx, &folder, opts)
	if err != nil {
		if !likely { // the other's words are of the whole address
			err = nil
		}
		return nil, "", err
	}
	o, err := st.Open(ctx, path.Base(name))
	if err != nil {
		if !likely {
			return nil, "", st.Close() // a folder, which others look into
		}
		return nil, "", errors.Join(err, st.Close())
	}
	requests := 0
	if far, ok := st.(store.Distant); ok {
		requests = far.Requests()
	}
	found, err := open(ctx, file{Object: &owner{o, st}, where: st.Location(path.Base(name)), requests: requests, sibling: st.Open})
	return found, key, err
}

func openFolder(ctx context.Context, u *url.URL, opts []store.HTTPOption) (store.Store, error) {
	if u.Scheme == "s3" {
		return store.S3(ctx, u.String(), opts...)
	}
	return store.HTTP(u.String(), opts...), nil
}

// owner closes the store with the object that it was opened for.
type owner struct {
	store.Object
	store store.Store
}

// Close closes both.
func (o *owner) Close() error { return errors.Join(o.Object.Close(), o.store.Close()) }

// extensions lists the extensions by which a segment of an address is taken for an image file, so that the
// path may continue below it.
var extensions = map[string]bool{
	".tif": true, ".tiff": true, ".btf": true, ".tf2": true, ".tf8": true, ".svs": true, ".qptiff": true, ".scn": true, ".ndpi": true, ".bif": true,
	".czi": true, ".nii": true, ".gz": true, ".nrrd": true, ".nhdr": true,
}

// farFile splits the path of an address behind the first segment that looks like an image file; likely is
// then true. A path that does not look like Zarr may be a file as a whole, to be told by its content.
func farFile(p string) (name, key string, likely bool) {
	for at := 0; at < len(p); {
		end := len(p)
		if n := strings.IndexByte(p[at:], '/'); n >= 0 {
			end = at + n
		}
		switch ext := strings.ToLower(path.Ext(p[at:end])); {
		case extensions[ext]:
			return p[:end], strings.Trim(p[end:], "/"), true
		case ext == ".zarr" || ext == ".zip" || ext == ".ozx":
			return "", "", false
		}
		at = end + 1
	}
	if p = strings.TrimRight(p, "/"); p == "" {
		return "", "", false
	}
	return p, "", false
}

// Warnings returns the warnings of a store returned by [Open] about a file that is not Zarr.
func Warnings(st store.Store) []string {
	if t, ok := st.(shown); ok {
		return t.Warnings()
	}
	return nil
}

// shown is a store of one of the formats.
type shown interface {
	store.Decoder
	Warnings() []string
}

// Sparse reports whether missing chunks are normal, as in a TIFF file, whose empty tiles are often left out,
// or in a CZI file, whose tiles leave gaps.
func Sparse(st store.Store) bool {
	_, other := st.(store.Decoder)
	return other
}
