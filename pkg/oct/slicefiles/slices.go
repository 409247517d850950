// Package slicefiles lists the slices of a stack. [Find] and [FindAny] search a folder or a bucket for them.
package slicefiles

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/hiddenname"
	"strata/pkg/oct"
	"strata/pkg/pattern"
	"strata/pkg/zarr/store"
)

// File is a slice in a folder or a bucket.
type File struct {
	ID   int    // number in its name
	Path string // path or address
}

var (
	sliceName = pattern.Lazy(`^slice_z(\d+).*\.zarr(\.zip)?$`)
	anyName   = pattern.Lazy(`^[^.].*z(\d+).*\.ome\.zarr(\.zip)?$`) // the last z with digits counts
)

// Find lists the slices of a folder, slice_z<NN>*.ome.zarr, ordered by number. Two slices with one number are an
// error, and so is a folder without slices; these errors wrap [oct.ErrInput]. The folder may be in a bucket,
// s3://bucket/path; opts are for its store.
func Find(ctx context.Context, dir string, opts ...store.HTTPOption) ([]File, error) {
	return find(ctx, dir, sliceName(), "*", "slice_z<NN>*.ome.zarr", opts)
}

// FindAny is [Find] for slices of any name *z<NN>*.ome.zarr, such as mosaics, that matches glob, a pattern of
// [filepath.Match]. Of several z with digits the last counts.
func FindAny(ctx context.Context, dir, glob string, opts ...store.HTTPOption) ([]File, error) {
	want := "*z<NN>*.ome.zarr"
	if glob != "*" {
		want = glob
	}
	return find(ctx, dir, anyName(), glob, want, opts)
}

var anyNumber = regexp.MustCompile(`.*z(\d+)`)

// Number returns the number in the name of a slice: of several z with digits, the last counts.
func Number(path string) (id int, ok bool) {
	m := anyNumber.FindStringSubmatch(filepath.Base(strings.TrimRight(path, "/")))
	if m == nil {
		return 0, false
	}
	id, err := strconv.Atoi(m[1])
	return id, err == nil && id <= 1e9
}

// find lists the files whose name matches both patterns, with their number as the first group of name; want names them
// in errors.
func find(ctx context.Context, dir string, name *regexp.Regexp, glob, want string, opts []store.HTTPOption) ([]File, error) {
	names, within, err := listFolder(ctx, dir, opts)
	if err != nil {
		return nil, oct.InputFault(err)
	}
	var out []File
	for _, n := range names {
		m := name.FindStringSubmatch(n)
		if ok, _ := filepath.Match(glob, n); m == nil || !ok {
			continue
		}
		id, err := strconv.Atoi(m[1])
		if err != nil || id > 1e9 {
			return nil, oct.BadInput("%s: the number of the slice is too large", within(n))
		}
		out = append(out, File{id, within(n)})
	}
	slices.SortStableFunc(out, func(a, b File) int { return a.ID - b.ID })
	for i := 1; i < len(out); i++ {
		if out[i].ID == out[i-1].ID {
			return nil, oct.BadInput("%s and %s are both slice %d", out[i-1].Path, out[i].Path, out[i].ID)
		}
	}
	if len(out) == 0 {
		return nil, oct.BadInput("%s: there are no slices in this folder: want %s", dir, want)
	}
	return out, nil
}

// listFolder returns the names in a folder, or below a prefix of a bucket, and a function that returns the path of
// a name.
func listFolder(ctx context.Context, dir string, opts []store.HTTPOption) (names []string, within func(name string) string, err error) {
	switch scheme, _, _ := strings.Cut(strings.ToLower(dir), "://"); scheme {
	case "http", "https":
		return nil, nil, fmt.Errorf("%s: a web server does not list its slices: want a folder or s3://bucket/path", dir)
	case "s3":
	default:
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		names = append(names, hiddenname.Missing(names)...) // slices that are being replaced
		return names, func(name string) string { return filepath.Join(dir, name) }, nil
	}
	s, err := store.S3(ctx, dir, opts...)
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	entries, err := s.List(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		names = append(names, e.Name)
	}
	u, err := url.Parse(dir)
	if err != nil {
		return nil, nil, err
	}
	return names, func(name string) string { return u.JoinPath(name).String() }, nil
}
