// Package repo finds the files of this repository, for tests and for programs that run in it. The compiler does not
// tell their place: with -trimpath, names of sources begin with the name of their module.
package repo

import (
	"os"
	"path/filepath"
)

// mark is a file that only the root folder of the repository has, and no folder of another module in it.
const mark = "tests/skips.txt"

// root is found when the program starts: a test may change the working directory later.
var root = find()

func find() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, mark)); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// Path returns the absolute path of a file of the repository that the program was started in. Outside of one, the path
// lies below the working directory.
func Path(elem ...string) string {
	return filepath.Join(append([]string{root}, elem...)...)
}
