package benchzarr

import (
	"context"
	"errors"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/cli/record"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Where what is read ends.
const (
	toHost   = "host"
	toDevice = "device"
)

// setting is one way to read an array.
type setting struct {
	backend  string // as the flag --backend
	to       string
	threads  int
	inFlight int   // chunks that are worked on at a time, or regions on their way to a device; 0: as it comes
	task     int64 // bytes that a thread of package gds takes at once; 0: as the flags and the environment say
	cold     bool  // the page cache is emptied of the array before each repetition
}

// endsOnDevice reports whether a backend brings chunks to a device.
func endsOnDevice(backend string) bool {
	return backend == "bounce" || backend == "gds" || backend == "nvcomp"
}

// workers is how many chunks are worked on at a time in the host's memory.
func (s setting) workers() int {
	if s.inFlight > 0 {
		return s.inFlight
	}
	return s.threads
}

// target is an array that is read.
type target struct {
	path   string // as OpenURL takes it
	layout layout
	format int
	raw    bool             // chunks are not encoded
	web    store.HTTPOption // how requests to servers are tried again
	far    bool             // not in this machine's file systems
	zip    bool
	// dataset is the array for the run record.
	dataset record.Dataset
}

// errBackend is a backend that cannot serve an array: the user's choice.
type errBackend struct{ error }

func (e errBackend) Unwrap() error { return e.error }

// errImage is an OME-Zarr image in place of an array: its level 0 is meant.
type errImage struct{ level string }

func (e *errImage) Error() string { return "is an image" }

// below is the path of a node in a group, which may be an address with a query.
func below(path, name string) string {
	query := ""
	if i := strings.Index(path, "?"); i >= 0 && strings.Contains(path, "://") {
		path, query = path[:i], path[i:]
	}
	return strings.TrimRight(path, "/") + "/" + name + query
}

// look opens an array, or the level 0 of an image, to see what it is.
func look(ctx context.Context, r *cli.Run, path string) (*target, error) {
	t := &target{path: path, web: store.Settings(r.Options.HTTP)}
	a, st, err := t.open(ctx, setting{backend: "auto"})
	var image *errImage
	if errors.As(err, &image) {
		t.path = below(path, image.level)
		a, st, err = t.open(ctx, setting{backend: "auto"})
	}
	if err != nil {
		return nil, cli.BadInput(err)
	}
	defer st.Close()
	defer a.Close()
	t.dataset = datasets.Describe(a, t.path)
	t.layout, t.format, t.raw = layoutOf(a), a.Format(), len(a.Codecs()) == 0
	_, t.zip = st.(*store.ZipStore)
	if d, ok := st.(store.Distant); ok {
		t.far = d.Requests() > 0
	}
	if len(t.layout.shape) == 0 || volume(t.layout.shape) == 0 {
		return nil, cli.BadInputf("%s: shape %v has nothing to read", a.Location(), t.layout.shape)
	}
	return t, nil
}

// open opens the array as a setting has it. The caller closes both.
func (t *target) open(ctx context.Context, s setting, opts ...zarr.Option) (*zarr.Array, store.Store, error) {
	web := []store.HTTPOption{t.web}
	if s.inFlight > 0 {
		web = append(web, store.AtOnce(s.inFlight))
	}
	st, key, err := images.Open(ctx, t.path, web...)
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*zarr.Array, store.Store, error) { return nil, nil, errors.Join(err, st.Close()) }
	how := map[string]store.Reading{"direct": store.ReadDirect, "mmap": store.ReadMapped}[s.backend]
	if how != store.ReadCached {
		folder, ok := st.(*store.FolderStore)
		if !ok {
			return fail(errBackend{errors.New("--backend " + s.backend + " cannot read " + st.Location("") + ": it is not a folder of files; give auto or host")})
		}
		st = folder.With(store.ReadBy(how))
	}
	n, err := zarr.Open(ctx, st, key, opts...)
	switch {
	case errors.Is(err, store.ErrNoDirect):
		return fail(errBackend{errors.New("--backend direct cannot read " + st.Location("") + ": " + store.ErrNoDirect.Error() + "; give auto or host")})
	case err != nil:
		return fail(err)
	}
	a, ok := n.(*zarr.Array)
	if !ok {
		if m, _ := ngff.ReadMetadata(n); len(m.Multiscales) > 0 && len(m.Multiscales[0].Datasets) > 0 {
			level := m.Multiscales[0].Datasets[0].Path
			if !strings.HasSuffix(strings.TrimRight(t.path, "/"), key) { // the only folder of a zip file
				level = store.Join(key, level)
			}
			return fail(&errImage{level})
		}
		return fail(cli.BadInputf("%s: is a group: name one of its arrays (zarr-tool info lists them)", t.path))
	}
	return a, st, nil
}

// files are the local files that the array lies in.
func (t *target) files(ctx context.Context) ([]string, error) {
	root := strings.TrimPrefix(t.path, "file://")
	if i := strings.Index(strings.ToLower(root), ".zip/"); t.zip && i >= 0 {
		root = root[:i+len(".zip")]
	}
	return benchkit.Files(ctx, root)
}

// drop lets the page cache forget the array, and says what share of it stays all the same; -1
// where the system does not tell.
func (t *target) drop(ctx context.Context) (float64, error) {
	list, err := t.files(ctx)
	if err != nil {
		return 0, err
	}
	return benchkit.Forget(list)
}
