package repo

import (
	"os"
	"path/filepath"
	"testing"
)

// The root is found from the folder of any package, and stays when a test goes elsewhere.
func TestPath(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := Path("tests", "repo"); got != here {
		t.Errorf("the folder of this test is %s, want %s", got, here)
	}
	t.Chdir(t.TempDir())
	if got := Path("tests", "repo"); got != here {
		t.Errorf("after a change of the working directory the folder of this test is %s, want %s", got, here)
	}
}

// From a folder of another module in the repository, the root is the repository's; outside of it, the working
// directory.
func TestFind(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(dir, "lab", "tests")
	if err := os.MkdirAll(below, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Chdir(below)
	if got := find(); got != below {
		t.Errorf("outside of a repository: %s, want %s", got, below)
	}
	for _, file := range []string{"lab/go.mod", mark} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got := find(); got != dir {
		t.Errorf("from a module in the repository: %s, want %s", got, dir)
	}
}
