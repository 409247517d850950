package view

import (
	"context"
	"crypto/subtle"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/colormap"
	"strata/pkg/mem"
	"strata/pkg/webpage"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
)

//go:embed page
var pageFiles embed.FS

// Serve answers requests to a listener until ctx ends. It then grants open requests a moment to finish, cuts off
// the rest, and closes the viewer.
func (v *Viewer) Serve(ctx context.Context, l net.Listener) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{Handler: v, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base }}
	g, ending := work.WithContext(ctx)
	g.Go(func() error {
		<-ending.Done()
		cancel() // requests stop to work
		soon, done := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer done()
		if server.Shutdown(soon) != nil {
			return server.Close()
		}
		return nil
	})
	g.Go(func() error { return server.Serve(l) })
	err := g.Wait()
	v.Close()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// ServeHTTP answers a request after checking its host, the token and its origin.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the address has the token
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
	if !isLocal(r.Host) {
		http.Error(w, "the viewer answers to 127.0.0.1 and localhost only", http.StatusForbidden)
		return
	}
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if token == entrancePath {
		v.enter(w, r, rest)
		return
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(v.o.Token)) != 1 {
		v.unknown(w)
		return
	}
	if !v.admit(w, r, rest) {
		return
	}
	if rest == "" && !strings.HasSuffix(r.URL.Path, "/") {
		http.Redirect(w, r, "/"+v.o.Token+"/", http.StatusMovedPermanently)
		return
	}
	if rest != "" && path.Clean("/"+rest) != "/"+rest { // the router would redirect to where no token is
		http.Error(w, "not found", http.StatusNotFound)
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = "/"+rest, ""
	v.routes.ServeHTTP(w, inner)
}

// unknown answers a request that does not know the token.
func (v *Viewer) unknown(w http.ResponseWriter) {
	http.Error(w, "not found: the address must be the one that view printed", http.StatusNotFound)
}

// isLocal reports whether a Host field names this machine as the local browser does. Other names that resolve to
// it could be made up by a page elsewhere.
func isLocal(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return name == "127.0.0.1" || name == "localhost" || name == "::1" || name == "[::1]"
}

// admit reports whether a request may proceed. It refuses requests of pages from other origins, except for stored
// images if their origin is allowed. If it returns false, the answer has been sent.
func (v *Viewer) admit(w http.ResponseWriter, r *http.Request, rest string) bool {
	origin := r.Header.Get("Origin")
	switch {
	case origin == "" && foreignSite(r) && r.Header.Get("Sec-Fetch-Mode") != "navigate":
	case origin == "" || origin == "http://"+r.Host:
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			return true
		}
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "GET and HEAD only", http.StatusMethodNotAllowed)
		return false
	case slices.Contains(v.o.Origins, origin) && strings.HasPrefix(rest, "zarr/"):
		return allow(w, r, origin)
	}
	http.Error(w, "pages of other origins are not answered; view --allow_origin lets one read the stored images", http.StatusForbidden)
	return false
}

// foreignSite reports whether a request comes, by its browser's word, from a page of another site or of another port of
// this machine.
func foreignSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// allow adds the headers for a page of an allowed origin. It answers preflight requests and unsupported methods,
// and returns false.
func allow(w http.ResponseWriter, r *http.Request, origin string) bool {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Accept-Ranges, Content-Length, Content-Range")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return true
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		h.Set("Access-Control-Allow-Headers", "Range, If-Range, Cache-Control")
		h.Set("Access-Control-Allow-Private-Network", "true")
		h.Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "GET and HEAD only", http.StatusMethodNotAllowed)
	}
	return false
}

// handler returns the routes below the token.
func (v *Viewer) handler() http.Handler {
	files, _ := fs.Sub(pageFiles, "page") // the folder is embedded
	m := http.NewServeMux()
	m.Handle("GET /", http.FileServerFS(files))
	m.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write([]byte(webpage.CSS))
	})
	m.Handle("GET /api/view", v.answer(v.list))
	m.Handle("GET /api/images/{id}", v.answer(v.describe))
	m.Handle("GET /api/images/{id}/statistics", v.answer(v.stats))
	m.Handle("GET /api/images/{id}/value", v.answer(v.value))
	m.Handle("GET /api/images/{id}/tile", v.answer(v.tile))
	m.HandleFunc("GET /pages/{id}", v.page)
	m.HandleFunc("GET /zarr/{id}/{key...}", v.stored)
	return m
}

// answer returns a handler that sends the result of f: bytes as they are, anything else as JSON.
func (v *Viewer) answer(f func(r *http.Request, entry int) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var result any
		err := v.begin(r.Context())
		if err == nil {
			defer v.end()
			err = work.Guard(func() (err error) {
				entry := 0
				if id := r.PathValue("id"); id != "" {
					if entry, err = strconv.Atoi(id); err != nil {
						return badRequest("image %q: want a number", id)
					}
				}
				result, err = f(r, entry)
				return err
			})
		}
		if err != nil {
			v.fail(w, r, err)
			return
		}
		// Who does not take an answer is not waited for: it has a turn.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTime)) // tests' recorders have none
		if b, ok := result.([]byte); ok {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Content-Length", strconv.Itoa(len(b)))
			_, _ = w.Write(b) // the browser went away
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(result)
	})
}

// fail sends an error to the page. An abandoned request gets no answer.
func (v *Viewer) fail(w http.ResponseWriter, r *http.Request, err error) {
	var wrong requestError
	code := http.StatusInternalServerError
	switch {
	case r.Context().Err() != nil:
		return
	case errors.As(err, &wrong):
		code = http.StatusBadRequest
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrNoFile), errors.Is(err, errNoKey):
		code = http.StatusNotFound
	case errors.Is(err, errOutside), errors.Is(err, fs.ErrPermission):
		code = http.StatusForbidden
	}
	text := address.Redact(err.Error())
	if errors.Is(err, mem.ErrBudget) {
		text += ": give view more --mem"
	}
	if code == http.StatusInternalServerError && v.o.Warn != nil {
		v.o.Warn("%s", text)
	}
	http.Error(w, text, code)
}

// list returns what the page needs first.
func (v *Viewer) list(_ *http.Request, _ int) (any, error) {
	type entry struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
		Page bool   `json:"page"`
	}
	entries := []entry{}
	for i, e := range v.o.Entries {
		entries = append(entries, entry{i, e.Name, e.Page})
	}
	maps := map[string]string{}
	for _, name := range colormap.Names() {
		m, err := colormap.ByName(name)
		if err != nil {
			return nil, err
		}
		var b []byte
		for _, c := range m {
			b = append(b, c.R, c.G, c.B)
		}
		maps[name] = hex.EncodeToString(b)
	}
	return map[string]any{"title": v.o.Title, "version": v.o.Version, "entries": entries, "first": v.o.First, "overlay": v.o.Overlay, "place": v.o.Place, "colormaps": maps,
		"colormapNames": colormap.Names(), "origins": append([]string{}, v.o.Origins...), "tileSide": tileSide}, nil
}

func (v *Viewer) describe(r *http.Request, entry int) (any, error) {
	s, err := v.source(r.Context(), entry)
	if err != nil {
		return nil, err
	}
	return s.describe(v.o.Entries[entry].Name), nil
}

func (v *Viewer) stats(r *http.Request, entry int) (any, error) {
	q := query{r.URL.Query(), nil}
	others := q.list("other")
	if q.err != nil {
		return nil, q.err
	}
	return v.statistics(r.Context(), entry, others)
}

func (v *Viewer) tile(r *http.Request, entry int) (any, error) {
	q := query{r.URL.Query(), nil}
	t := tile{level: q.number("level"), plane: q.Get("plane"), at: q.number("at"), row: q.number("row"), col: q.number("col"), others: q.list("other")}
	if q.err != nil {
		return nil, q.err
	}
	s, err := v.source(r.Context(), entry)
	if err != nil {
		return nil, err
	}
	return s.tile(r.Context(), t)
}

func (v *Viewer) value(r *http.Request, entry int) (any, error) {
	q := query{r.URL.Query(), nil}
	at := [3]int{q.number("z"), q.number("y"), q.number("x")}
	others := q.list("other")
	if q.err != nil {
		return nil, q.err
	}
	s, err := v.source(r.Context(), entry)
	if err != nil {
		return nil, err
	}
	text, err := s.value(r.Context(), at, others)
	if err != nil {
		return nil, err
	}
	l := &s.levels[0]
	var um [3]float64
	for d := range um {
		um[d] = l.Origin[d] + float64(at[d])*l.Size[d]
	}
	return map[string]any{"value": text, "um": um}, nil
}

// query parses the numbers of a request and keeps the first error.
type query struct {
	url.Values
	err error
}

func (q *query) number(name string) int {
	n, err := strconv.Atoi(q.Get(name))
	if err != nil && q.err == nil {
		q.err = badRequest("%s=%q: want a whole number", name, q.Get(name))
	}
	return n
}

// list returns comma-separated numbers, none for "".
func (q *query) list(name string) (list []int) {
	if q.Get(name) == "" {
		return nil
	}
	for s := range strings.SplitSeq(q.Get(name), ",") {
		n, err := strconv.Atoi(s)
		if err != nil && q.err == nil {
			q.err = badRequest("%s=%q: want whole numbers, separated by commas", name, q.Get(name))
		}
		list = append(list, n)
	}
	return list
}
