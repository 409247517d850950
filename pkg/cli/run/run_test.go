package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"strata/pkg/host"
	"strata/pkg/zarr"
	"strata/pkg/zarr/store"
)

func TestExitCode(t *testing.T) {
	input := errors.New("chunk is broken")
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{input, 1},
		{Usage("no %d", 3), 2},
		{fmt.Errorf("in x: %w", Usage("no")), 2},
		{Usage("output %w", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}), 1}, {Usage("--backend: %w", syscall.EIO), 1}, {Usage("flag --x: %w", fs.ErrNotExist), 2},
		{BadInput(input), 3},
		{fmt.Errorf("in x: %w", BadInput(input)), 3},
		{BadInput(nil), 0},
		{BadInput(fs.ErrNotExist), 3},
		{BadInput(Usage("no")), 2},
		{BadInput(fmt.Errorf("read: %w", syscall.EIO)), 1},
		{BadInput(&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}), 1},
		{BadInput(context.Canceled), 1},
		{BadInput(fmt.Errorf("chunk: %w", &fs.PathError{Op: "read", Path: "x", Err: syscall.ESTALE})), 1},
		{BadInput(syscall.ETIMEDOUT), 1}, {BadInput(syscall.EFBIG), 1}, {BadInput(syscall.ECONNRESET), 1}, {BadInput(syscall.ENOTCONN), 1},
		{BadInput(syscall.EHOSTDOWN), 1}, {BadInput(syscall.ENETDOWN), 1}, {BadInput(syscall.ENOBUFS), 1}, {BadInput(syscall.ENODEV), 1},
		{BadInput(syscall.EISDIR), 3}, {BadInput(syscall.ENAMETOOLONG), 3}, {BadInput(fs.ErrPermission), 3},
		{fmt.Errorf("x: %w", store.ErrNoFile), 3}, {fmt.Errorf("x: %w: %w", store.ErrNoFile, syscall.EIO), 1},
		{BadInput(fmt.Errorf("http://x/0: %w", store.ErrUnavailable)), 1},
		{BadInputf("x: %w", input), 3},
		{GPUFailure(input), 4},
		{GPUFailure(nil), 0},
		{errors.Join(input, BadInput(input)), 3},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	if !errors.Is(BadInput(input), input) {
		t.Error("the cause is lost")
	}
}

func TestOneLine(t *testing.T) {
	_, missing := os.Open("/nothing/here")
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("a\nb\r\n  c "), "a; b; c"},
		{errors.Join(errors.New("a"), errors.New("b")), "a; b"},
		{missing, "/nothing/here: no such file or directory"},
		{fmt.Errorf("level 0: %w", missing), "level 0: open /nothing/here: no such file or directory"},
	} {
		if got := oneLine(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestMemBudget(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct{ limit, available, want int64 }{
		{0, 0, 512 * mib},                 // a system that does not say
		{0, 64 * gib, 32 * gib},           // the machine
		{0, 600 * mib, 512 * mib},         // a machine that is full
		{8 * gib, 64 * gib, 4 * gib},      // a control group
		{8 * gib, 2 * gib, gib},           // which is larger than what is left
		{8 * gib, 0, 4 * gib},             // where nothing else is known
		{gib, 64 * gib, 512 * mib},        // half of it is the least, too
		{256 * mib, 64 * gib, 128 * mib},  // a small one
		{256 * mib, 100 * mib, 128 * mib}, // that others use
		{8 * gib, 100 * mib, 512 * mib},   // the least, whatever is left
		{600 * mib, 500 * mib, 300 * mib}, // half of the limit
		{1 << 50, 24 * gib, 12 * gib},     // a limit that is none
	} {
		var l host.Limits
		if c.limit > 0 {
			l.Memory = &c.limit
		}
		if got := memBudget(l, c.available); got != c.want {
			t.Errorf("limit %d, available %d: %d, want %d", c.limit, c.available, got, c.want)
		}
	}
}

func TestMemCeiling(t *testing.T) {
	limit := int64(1 << 30)
	if got := memCeiling(host.Limits{Memory: &limit}); got != 896<<20 {
		t.Errorf("%d of %d", got, limit)
	}
	if got := memCeiling(host.Limits{}); got != math.MaxInt64 {
		t.Errorf("%d without a limit", got)
	}
}

func TestHideSecrets(t *testing.T) {
	HideSecrets([]string{"--in=http://u:fromArgs@h"}, []string{
		"AWS_SECRET_ACCESS_KEY=from+Aws/key", "AWS_SESSION_TOKEN=fromToken", "HTTPS_PROXY=http://me:fromProxy@proxy:3128", "http_proxy=me:fromBare@proxy",
		"AWS_ENDPOINT_URL=http://me:fromEndpoint@h", "STRATA_DEBIAN_MIRROR=http://me:fromMirror@h/debian", "PAGE=http://h/x?a=fromAPage%20and%20more", "EMPTY", "AWS_SESSION_TOKEN=",
	})
	for _, secret := range []string{"fromArgs", "from+Aws/key", "fromToken", "fromProxy", "fromBare", "fromEndpoint", "fromMirror"} {
		if got := clean("the server says " + secret + "!"); got != "the server says xxxxx!" {
			t.Error(got)
		}
	}
	if got := clean("fromAPage and more"); got != "fromAPage and more" {
		t.Error(got)
	}
}

// Nothing that another wrote moves the cursor or hides text.
func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"µm, 4 × 4, 名.zarr, ﬁ": "µm, 4 × 4, 名.zarr, ﬁ",
		"a\x1b[2Jb\rc\x07\x7f": `a\u001b[2Jb\u000dc\u0007\u007f`,
		"a\nb\tc":              `a\u000ab\u0009c`,
		"\u009b31m":            `\u009b31m`,
		"txt\u202egnp.exe":     `txt\u202egnp.exe`,
		"a\xffb\u2028":         `a\xffb\u2028`,
		"\U000e0041\ufffd":     `\udb40\udc41\ufffd`,
		"http://u:p@h/\x1b]0;": `http://xxxxx@h/\u001b]0;`,
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	var b strings.Builder
	if n, err := (cleaner{&b}).Write([]byte("a\x1bb\n")); n != 4 || err != nil || b.String() != "a\\u001bb\n" {
		t.Errorf("%d, %v, %q", n, err, b.String())
	}
}

// distant is a store that says how many requests are worth having on their way to it.
type distant struct {
	store.Store
	requests int
}

func (d distant) Requests() int { return d.requests }

// What lies on its way from and to servers is a part of --mem, taken once for all inputs.
func TestMemoryForServers(t *testing.T) {
	defer zarr.SetAhead(zarr.AheadBytes)
	r := &Run{mem: 80 << 20, Options: Options{Mem: 80 << 20}}
	for _, near := range []store.Store{store.Memory(), distant{store.Memory(), 0}} { // a zip file on a disk says 0
		if r.ReadsFrom(near); r.Options.Mem != 80<<20 || r.Options.Requests != 0 {
			t.Errorf("%T: %d bytes are left, for %d requests", near, r.Options.Mem, r.Options.Requests)
		}
	}
	for _, requests := range []int{8, 4} {
		if r.ReadsFrom(distant{store.Memory(), requests}); r.Options.Mem != 70<<20 || r.Options.Requests != 8 {
			t.Errorf("%d bytes are left, for %d requests", r.Options.Mem, r.Options.Requests)
		}
	}
	if n := r.TakeMem(4 << 20); n != 4<<20 || r.Options.Mem != 66<<20 {
		t.Errorf("%d bytes, %d are left", n, r.Options.Mem)
	}
}
