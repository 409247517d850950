package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What others put into a folder that everybody may write to is planted, what root or this user made is not.
func TestPlanted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be several users")
	}
	const other, third = 65534, 65533
	for name, c := range map[string]struct {
		mode          os.FileMode
		folder, owner int
		planted       bool
	}{
		"of another user":          {0o777 | os.ModeSticky, 0, other, true},
		"without sticky bit":       {0o777, 0, other, true},
		"of root":                  {0o777 | os.ModeSticky, third, 0, false},
		"of the folder's owner":    {0o777 | os.ModeSticky, other, other, false},
		"in a folder of its owner": {0o755, third, other, false},
	} {
		dir := filepath.Join(t.TempDir(), "shared")
		file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file, nil, 0o600), os.Symlink("/", link), os.Chown(file, c.owner, c.owner),
			os.Lchown(link, c.owner, c.owner), os.Chown(dir, c.folder, c.folder), os.Chmod(dir, c.mode)); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file, link} {
			if err := Planted(path); (err != nil) != c.planted || err != nil && !strings.HasPrefix(err.Error(), path+": user 65534 made it") {
				t.Errorf("%s: %s: %v, want planted: %v", name, path, err, c.planted)
			}
		}
		if err := Planted(filepath.Join(dir, "none", "none")); err != nil {
			t.Error(err)
		}
	}
}
