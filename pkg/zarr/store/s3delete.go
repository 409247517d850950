package store

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"strata/pkg/work"
)

const (
	// deleteAtOnce is the number of objects that a request deletes; its answer names them all.
	deleteAtOnce = 500
	// deletesAtOnce is the number of such requests in flight.
	deletesAtOnce = 4
)

// Delete removes the object key; see [Writer]. For a prefix that is not itself an object it does nothing and
// succeeds.
func (s *S3Store) Delete(ctx context.Context, key string) error {
	if err := s.check(ctx, key); err != nil {
		return err
	}
	return s.try(ctx, key, func(ctx context.Context) error { return s.client.remove(ctx, s.prefix+key) })
}

// remove removes the objects whose keys begin with from, except those that keep selects; keep may be nil.
func (s *S3Store) remove(ctx context.Context, from string, keep func(key string) bool) error {
	g, gctx := work.WithContext(ctx)
	g.SetLimit(deletesAtOnce)
	for entries, err := range s.pages(gctx, s.prefix+from, "", 0) {
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		var keys []string
		for _, o := range entries {
			if key := strings.TrimPrefix(o.key, s.prefix); keep == nil || !keep(key) {
				keys = append(keys, key)
			}
		}
		g.Go(func() error { return s.deleteObjects(gctx, s.prefix, keys) })
	}
	return g.Wait()
}

// deleteObjects deletes objects by their names below a prefix. Objects that do not exist are ignored.
func (s *S3Store) deleteObjects(ctx context.Context, prefix string, names []string) error {
	for len(names) > 0 {
		some := names[:min(len(names), deleteAtOnce)]
		names = names[len(some):]
		keys := make([]string, len(some))
		for i, name := range some {
			keys[i] = prefix + name
		}
		err := s.try(ctx, "", func(ctx context.Context) error { return s.client.removeAll(ctx, keys) })
		if err != nil {
			return err
		}
	}
	return nil
}

// begun is the answer to a request for unfinished multipart uploads.
type begun struct {
	Uploads []struct {
		Key string
		ID  string `xml:"UploadId"`
	} `xml:"Upload"`
	IsTruncated        bool
	NextKeyMarker      string
	NextUploadIDMarker string `xml:"NextUploadIdMarker"`
}

// giveUpParts aborts multipart uploads that dead runs began below the prefix: they are invisible but cost
// money. It ignores a server's refusal.
func (s *S3Store) giveUpParts(ctx context.Context) {
	query := url.Values{"uploads": {""}, "prefix": {s.prefix}}
	for {
		r, err := s.web.request(ctx, http.MethodGet, s.root+"?"+query.Encode(), nil)
		if err != nil {
			return
		}
		var all begun
		err = xml.NewDecoder(io.LimitReader(r.Body, maxAnswer)).Decode(&all)
		r.close()
		if err != nil || r.StatusCode != http.StatusOK {
			return
		}
		for _, u := range all.Uploads {
			if strings.HasPrefix(u.Key, s.prefix) {
				_ = s.client.abort(ctx, u.Key, u.ID)
			}
		}
		if !all.IsTruncated || all.NextKeyMarker <= query.Get("key-marker") || ctx.Err() != nil {
			return
		}
		query.Set("key-marker", all.NextKeyMarker)
		query.Set("upload-id-marker", all.NextUploadIDMarker)
	}
}
