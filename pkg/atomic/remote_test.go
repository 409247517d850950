package atomic

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// noted is a remote output that notes what happens to it.
type noted struct {
	calls []string
	fails error
}

func (n *noted) Commit() error { n.calls = append(n.calls, "commit"); return n.fails }
func (n *noted) Abort() error  { n.calls = append(n.calls, "abort"); return nil }

// Remote outputs and local ones are there together, or none.
func TestRemoteOutputs(t *testing.T) {
	broken := errors.New("connection lost")
	for name, c := range map[string]struct {
		remote  error
		blocked bool // the local output's place is taken while the run works
		want    []string
	}{
		"both":         {nil, false, []string{"commit"}},
		"remote fails": {broken, false, []string{"commit", "abort"}},
		"local fails":  {nil, true, []string{"abort"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewGroup(Options{})
			path := filepath.Join(t.TempDir(), "out.json")
			if _, err := g.File(path, nil); err != nil {
				t.Fatal(err)
			}
			r := &noted{fails: c.remote}
			g.Remote("s3://bucket/x", r)
			if c.blocked {
				if err := os.WriteFile(path, []byte("another's"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := g.Commit()
			if ok := !c.blocked && c.remote == nil; ok != (err == nil) || c.remote != nil && !errors.Is(err, broken) {
				t.Errorf("Commit: %v", err)
			}
			if !slices.Equal(r.calls, c.want) {
				t.Errorf("%v, want %v", r.calls, c.want)
			}
			if _, e := os.Stat(path); (e == nil) != (err == nil || c.blocked) {
				t.Errorf("the local output: %v", e)
			}
			g.Abort()
			if !slices.Equal(r.calls, c.want) {
				t.Errorf("after the end: %v, want %v", r.calls, c.want)
			}
		})
	}
}
