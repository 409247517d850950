package provenance

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/runrecord"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// mostFiles is the maximum number of files of an image that are counted to see whether it has changed.
const mostFiles = 200_000

// state holds what was found at a place.
type state struct {
	there    bool
	file     bool   // it is a file
	reason   string // why it could not be looked at; "": it could
	made     *runrecord.Provenance
	metadata string
	shape    []int
	dtype    string
	bytes    int64
	modified time.Time
}

// look looks at a file, folder or address.
func (t *tracer) look(ctx context.Context, place string) state {
	s := state{bytes: -1}
	if isRemote(place) {
		if strings.Contains(place, secret) {
			s.reason = "its address is recorded without a secret that it needs"
			return s
		}
		if !t.o.Remote && serverOf(place) != t.server {
			s.reason = "it is on another server; --remote looks there"
			return s
		}
	} else {
		file, key := images.Split(place)
		if key == "" {
			file = place
		}
		info, err := os.Stat(file)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.reason = address.Redact(err.Error())
			}
			return s
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			s.there = true
			s.reason = "it is no file or folder"
			return s
		}
		s.there, s.file = true, info.Mode().IsRegular()
		s.bytes, s.modified = runrecord.OnDisk(file, mostFiles)
	}
	err := s.open(ctx, place, t.o.Requests)
	if isRemote(place) {
		s.there = err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.reason = address.Redact(err.Error())
		}
	}
	return s
}

// open reads the metadata of an image. A file that is no image gives an error.
func (s *state) open(ctx context.Context, place string, requests []store.HTTPOption) error {
	st, key, err := images.Open(ctx, place, requests...)
	if err != nil {
		return err
	}
	defer func() { _ = st.Close() }() // it was only read from
	im, err := ngff.OpenPresent(ctx, st, key, zarr.Workers(1))
	if err != nil {
		return err
	}
	defer func() {
		for _, l := range im.Levels {
			l.Array.Close()
		}
	}()
	a := im.Levels[0].Array
	s.shape, s.dtype = a.Shape(), a.DType().String()
	s.metadata = runrecord.MetadataDigest(im.Group.Attributes(), s.shape, s.dtype)
	if raw, ok := im.Group.Attributes()[runrecord.Attribute]; ok {
		p := new(runrecord.Provenance)
		if json.Unmarshal(raw, p) == nil && p.Program != "" {
			s.made = p
		}
	}
	return nil
}

// differs reports whether the number of bytes at a place differs from the recorded number. It returns false for a
// folder that is no image, such as raw tiles, if the record counts only the bytes that were read and notes no
// modification time.
func (s *state) differs(d runrecord.Dataset) bool {
	return d.Bytes > 0 && s.bytes >= 0 && d.Bytes != s.bytes && (s.file || s.metadata != "" || d.Modified != nil)
}

// secret replaces the secret parts of recorded addresses.
const secret = "xxxxx"

// isRemote reports whether a place is an address.
func isRemote(place string) bool {
	switch address.Address(place).Scheme() {
	case "http", "https", "s3":
		return true
	}
	return false
}

// serverOf returns the server that an address leads to, and in S3 its bucket.
func serverOf(place string) string {
	u, err := address.Address(place).Parse()
	if err != nil {
		return ""
	}
	endpoint := ""
	if q, err := url.ParseQuery(u.RawQuery); err == nil {
		endpoint = q.Get("endpoint")
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) + " " + endpoint
}

// nameOf returns the last part of a path or an address that is not the number of a level.
func nameOf(place string) string { return path.Base(plain(place)) }

// plain returns a path or an address without a query and without the number of a level in an image.
func plain(place string) string {
	if isRemote(place) {
		place, _, _ = strings.Cut(place, "?")
	}
	place = strings.TrimRight(place, "/")
	for {
		up, last := path.Split(place)
		up = strings.TrimRight(up, "/")
		if last == "" || strings.Trim(last, "0123456789") != "" || !strings.Contains(path.Base(up), ".zarr") && !store.IsNode(up) {
			return place
		}
		place = up
	}
}

// identity returns the name under which a place is known once: an address, or a path without links.
func identity(place string) string {
	if isRemote(place) {
		return plain(place)
	}
	if abs, err := filepath.Abs(place); err == nil {
		place = abs
	}
	if real, err := filepath.EvalSymlinks(place); err == nil {
		return real
	}
	return filepath.Clean(place)
}
