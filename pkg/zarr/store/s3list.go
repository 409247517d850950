package store

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// pageBytes is the most bytes of a page of a listing: a thousand names of the longest kind.
	pageBytes = 8 << 20
	// pageDepth is the maximum nesting of elements of a page.
	pageDepth = 16
	// listBytes is the maximum memory for the names of a whole listing.
	listBytes = 64 << 20
	// emptyPages is the maximum number of consecutive pages without a name.
	emptyPages = 1000
	// hidden is the prefix of names that are not part of a node: [markName], and objects beside.
	hidden = ".strata-"
)

// listed is an object of a listing, or, with a name that ends in a slash, a common prefix.
type listed struct {
	key  string
	size int64
}

// page is one answer to a request for a listing.
type page struct {
	entries   []listed
	truncated bool   // there are more
	next      string // the token to ask for those with
}

// List lists the children of prefix; see [Store].
func (s *S3Store) List(ctx context.Context, prefix string) ([]Entry, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, fmt.Errorf("%s: %w", s.web.shown, err)
	}
	below := s.prefix
	if prefix != "" {
		below += prefix + "/"
	}
	var list []Entry
	found, held := false, 0
	for entries, err := range s.pages(ctx, below, "/", 0) {
		if err != nil {
			return nil, err
		}
		for _, o := range entries {
			name, folder := strings.CutSuffix(strings.TrimPrefix(o.key, below), "/")
			if strings.HasPrefix(name, hidden) {
				continue
			}
			found = true
			if checkKey(name) != nil || strings.Contains(name, "/") {
				continue // the mark of an empty folder that some programs make, or no name of ours
			}
			e := Entry{Name: strings.Clone(name), Dir: folder}
			if !folder {
				e.Size = o.size
			}
			list = append(list, e)
			if held += len(name) + 48; held > listBytes {
				return nil, fmt.Errorf("%s: %w: more than %d names below it", s.Location(prefix), ErrTooLarge, len(list)-1)
			}
		}
	}
	if !found {
		return nil, s.unlisted(ctx, prefix)
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// unlisted returns the error of a prefix with nothing below it.
func (s *S3Store) unlisted(ctx context.Context, prefix string) error {
	if prefix != "" {
		if o, err := s.Open(ctx, prefix); err == nil {
			return errors.Join(&fs.PathError{Op: "list", Path: s.Location(prefix), Err: syscall.ENOTDIR}, o.Close())
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return &fs.PathError{Op: "list", Path: s.Location(prefix), Err: fs.ErrNotExist}
}

// Keys lists the keys of all objects, in order, but for those of unfinished runs.
func (s *S3Store) Keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for name, err := range s.names(ctx, s.prefix) {
			if err == nil && (name == "" || strings.HasPrefix(name, hidden)) {
				continue
			}
			if !yield(name, err) {
				return
			}
		}
	}
}

// pages lists the objects whose names begin with below, page by page; with a delimiter, names end there. most
// is the page size; 0 leaves it to the server. It ends after an error.
func (s *S3Store) pages(ctx context.Context, below, delimiter string, most int) iter.Seq2[[]listed, error] {
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {below}}
	if delimiter != "" {
		query.Set("delimiter", delimiter)
	}
	if most > 0 {
		query.Set("max-keys", strconv.Itoa(most))
	}
	key := strings.Trim(strings.TrimPrefix(below, s.prefix), "/")
	return func(yield func([]listed, error) bool) {
		for empty := 0; ; {
			var p page
			err := s.web.retry(ctx, key, func(ctx context.Context) (_ bool, err error) {
				p, err = s.page(ctx, query)
				return false, err
			})
			if err == nil {
				err = s.checkPage(&p, below, key, query.Get("continuation-token"))
			}
			if empty++; len(p.entries) > 0 {
				empty = 0
			}
			if err == nil && empty > emptyPages {
				err = fmt.Errorf("%s: the server lists nothing, and says that there is more, %d times", s.Location(key), empty)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(p.entries, nil) || !p.truncated {
				return
			}
			query.Set("continuation-token", p.next)
		}
	}
}

// checkPage refuses a page that answers another request: listed objects may be deleted.
func (s *S3Store) checkPage(p *page, below, key, last string) error {
	if p.truncated && (p.next == "" || p.next == last) {
		return fmt.Errorf("%s: the server says that its listing goes on, and not where", s.Location(key))
	}
	for _, o := range p.entries {
		if !strings.HasPrefix(o.key, below) {
			return fmt.Errorf("%s: the server lists %s, which was not asked for", s.Location(key), foreign(o.key))
		}
	}
	return nil
}

// page requests one page.
func (s *S3Store) page(ctx context.Context, query url.Values) (p page, err error) {
	r, err := s.web.request(ctx, http.MethodGet, s.root+"?"+query.Encode(), nil)
	if err != nil {
		return p, err
	}
	defer r.close()
	if r.StatusCode != http.StatusOK {
		err := s.meaning(errorOf(r))
		if s.web.again(r.StatusCode) {
			err = busyError{err, retryAfter(r.Header.Get("Retry-After"), time.Now())}
		}
		return p, err
	}
	p, err = parsePage(r.Body)
	return p, s.meaning(err)
}

// errorBytes is the maximum number of bytes read of the body of an error.
const errorBytes = 64 << 10

// errorOf returns the error that an answer's body describes.
func errorOf(r *response) error {
	e := parseS3Error(io.LimitReader(r.Body, errorBytes))
	if e.Code == "" {
		e = &s3Error{Code: r.Status, Message: r.Status}
		if r.StatusCode == http.StatusNotFound {
			e.Code = "NoSuchBucket"
		}
	}
	e.StatusCode = r.StatusCode
	return e
}

// parsePage reads a ListBucketResult, or the error sent in its place. Its memory is limited by [pageBytes].
func parsePage(r io.Reader) (p page, err error) {
	d := xml.NewDecoder(io.LimitReader(r, pageBytes+1))
	var (
		path   []string
		text   strings.Builder
		entry  listed
		failed s3Error
		coded  bool // names are escaped as in an address
	)
	for {
		t, err := d.Token()
		if d.InputOffset() > pageBytes {
			return p, permanent(fmt.Errorf("%w: a page of the server's listing has more than %d bytes", ErrTooLarge, pageBytes))
		}
		if err != nil {
			return p, fmt.Errorf("the server's listing: %w", cut(err))
		}
		switch t := t.(type) {
		case xml.StartElement:
			if path = append(path, t.Name.Local); len(path) > pageDepth {
				return p, permanent(errors.New("the server's listing: elements lie too deep"))
			}
			text.Reset()
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			switch strings.Join(path, "/") {
			case "ListBucketResult/IsTruncated":
				p.truncated = text.String() == "true"
			case "ListBucketResult/NextContinuationToken":
				p.next = text.String()
			case "ListBucketResult/EncodingType":
				coded = text.String() == "url"
			case "ListBucketResult/Contents/Key", "ListBucketResult/CommonPrefixes/Prefix":
				entry.key = text.String()
			case "ListBucketResult/Contents/Size":
				if entry.size, err = parseSize(text.String()); err != nil {
					return p, permanent(fmt.Errorf("the server's listing: %s is not a size", foreign(text.String())))
				}
			case "ListBucketResult/Contents", "ListBucketResult/CommonPrefixes":
				p.entries = append(p.entries, entry)
				entry = listed{}
			case "ListBucketResult":
				return p, p.unescape(coded)
			case "Error/Code":
				failed.Code = text.String()
			case "Error/Message":
				failed.Message = text.String()
			case "Error":
				failed.StatusCode = http.StatusInternalServerError
				return p, &failed
			}
			path = path[:len(path)-1]
			text.Reset()
			if len(path) == 0 {
				return p, permanent(fmt.Errorf("the server's listing is a %s", foreign(t.Name.Local)))
			}
		}
	}
}

func (p *page) unescape(coded bool) error {
	for i := range p.entries {
		if o := &p.entries[i]; coded {
			key, err := url.QueryUnescape(o.key)
			if err != nil {
				return permanent(fmt.Errorf("the server's listing: %s is not escaped", foreign(o.key)))
			}
			o.key = key
		}
	}
	return nil
}
