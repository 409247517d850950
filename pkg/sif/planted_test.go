package sif_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strata/pkg/sif"
)

// A root that another user has put into a shared cache is not run.
func TestUnpackPlanted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be several users")
	}
	im, err := sif.Open(build(t, goarch))
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	cache := filepath.Join(t.TempDir(), "cache")
	if err := errors.Join(os.Mkdir(cache, 0o700), os.Chmod(cache, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	root, err := im.Unpack(t.Context(), cache)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := im.Unpack(t.Context(), cache); err != nil || again != root {
		t.Errorf("%s, again %s %v", root, again, err)
	}
	if err := os.Lchown(root, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, err := im.Unpack(t.Context(), cache); err == nil || !strings.Contains(err.Error(), root+": user 65534 made it") || !strings.HasSuffix(err.Error(), "give another --cache") {
		t.Errorf("of another user: %v", err)
	}
}
