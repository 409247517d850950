package benchzarr

import (
	"context"
	"errors"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/cli/datasets"
	"strata/pkg/images"
	"strata/pkg/ngff"
	"strata/pkg/runrecord"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

// Where what is read ends.
const (
	ToHost   = "host"
	ToDevice = "device"
)

// Setting is one way to read an array.
type Setting struct {
	Backend  string // as the flag --backend
	To       string
	Threads  int
	InFlight int   // chunks that are worked on at a time, or regions on their way to a device; 0: as it comes
	Task     int64 // bytes that a thread of package filelayer takes at once; 0: as the flags and the environment say
	Cold     bool  // the page cache is emptied of the array before each repetition
}

// endsOnDevice reports whether a backend brings chunks to a device.
func endsOnDevice(backend string) bool {
	return backend == "bounce" || backend == "gds" || backend == "nvcomp"
}

// workers returns the number of chunks processed at a time in host memory.
func (s Setting) workers() int {
	if s.InFlight > 0 {
		return s.InFlight
	}
	return s.Threads
}

// Target is an array to read.
type Target struct {
	Path   string // as OpenURL takes it
	Layout Layout
	format int
	Raw    bool             // chunks are not encoded
	web    store.HTTPOption // how requests to servers are tried again
	far    bool             // not in this machine's file systems
	zip    bool
	Level  int  // of a pyramid, for peers who read by that; -1: of none
	Lossy  bool // chunks are encoded with loss: decoders may differ in their rounding
	// Dataset describes the array for the run record.
	Dataset runrecord.Dataset
}

// errImage reports an OME-Zarr image in place of an array: its level 0 is meant.
type errImage struct{ level string }

func (e *errImage) Error() string { return "is an image" }

// Below returns the path of a node in a group, which may be an address with a query.
func Below(path, name string) string {
	query := ""
	if i := strings.Index(path, "?"); i >= 0 && strings.Contains(path, "://") {
		path, query = path[:i], path[i:]
	}
	return strings.TrimRight(path, "/") + "/" + name + query
}

// Look opens an array, or level 0 of an image, to examine it.
func Look(ctx context.Context, r *cli.Run, path string) (*Target, error) {
	t := &Target{Path: path, web: store.Settings(r.Options.HTTP)}
	a, st, err := t.Open(ctx, Setting{Backend: "auto"})
	var image *errImage
	if errors.As(err, &image) {
		t.Path = Below(path, image.level)
		a, st, err = t.Open(ctx, Setting{Backend: "auto"})
	}
	if err != nil {
		return nil, cli.BadInput(err)
	}
	defer st.Close()
	defer a.Close()
	r.ReadsFrom(st)
	t.Dataset = datasets.Describe(a, t.Path)
	t.Layout, t.format, t.Raw = layoutOf(a), a.Format(), len(a.Codecs()) == 0
	_, t.zip = st.(*store.ZipStore)
	if d, ok := st.(store.Distant); ok {
		t.far = d.Requests() > 0
	}
	if len(t.Layout.Shape) == 0 || Volume(t.Layout.Shape) == 0 {
		return nil, cli.BadInputf("%s: shape %v has nothing to read", a.Location(), t.Layout.Shape)
	}
	return t, nil
}

// Open opens the array as a setting requires. The caller must close both results.
func (t *Target) Open(ctx context.Context, s Setting, opts ...zarr.Option) (*zarr.Array, store.Store, error) {
	web := []store.HTTPOption{t.web}
	if s.InFlight > 0 {
		web = append(web, store.AtOnce(s.InFlight))
	}
	st, key, err := images.Open(ctx, t.Path, web...)
	if err != nil {
		return nil, nil, err
	}
	fail := func(err error) (*zarr.Array, store.Store, error) { return nil, nil, errors.Join(err, st.Close()) }
	how := map[string]store.Reading{"direct": store.ReadDirect, "mmap": store.ReadMapped}[s.Backend]
	if how != store.ReadCached {
		var ok bool
		st, ok, err = images.ReadBy(ctx, st, t.Path, how)
		switch {
		case errors.Is(err, store.ErrNoDirect):
			return nil, nil, t.noDirect()
		case err != nil:
			return nil, nil, err
		case !ok:
			return fail(benchkit.Unablef("--backend %s cannot read %s: it is not a folder of files; give auto or host", s.Backend, st.Location("")))
		}
	}
	n, err := zarr.Open(ctx, st, key, opts...)
	switch {
	case errors.Is(err, store.ErrNoDirect):
		return fail(t.noDirect())
	case err != nil:
		return fail(err)
	}
	a, ok := n.(*zarr.Array)
	if !ok {
		if m, _ := ngff.ReadMetadata(n); len(m.Multiscales) > 0 && len(m.Multiscales[0].Datasets) > 0 {
			level := m.Multiscales[0].Datasets[0].Path
			if !strings.HasSuffix(strings.TrimRight(t.Path, "/"), key) { // the only folder of a zip file
				level = store.Join(key, level)
			}
			return fail(&errImage{level})
		}
		return fail(cli.BadInputf("%s: is a group: name one of its arrays (zarr-tool info lists them)", t.Path))
	}
	return a, st, nil
}

func (t *Target) noDirect() error {
	return benchkit.Unablef("--backend direct cannot read %s: %s; give auto or host", t.Path, store.ErrNoDirect.Error())
}

// files returns the local files that contain the array.
func (t *Target) files(ctx context.Context) ([]string, error) {
	root := strings.TrimPrefix(t.Path, "file://")
	if name, _ := images.Split(root); name != "" {
		root = name
	}
	return benchkit.Files(ctx, root)
}

// drop drops the array from the page cache, and returns the fraction of it that remains, or −1 if the system
// does not tell.
func (t *Target) drop(ctx context.Context) (float64, error) {
	list, err := t.files(ctx)
	if err != nil {
		return 0, err
	}
	return benchkit.Forget(list)
}
