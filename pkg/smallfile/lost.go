package smallfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// LostError reports a symbolic link that leads to nothing: what it stands for was not fetched (git-annex, DataLad), or
// was moved or deleted. It is not an absent file, and [errors.Is] does not take it for [io/fs.ErrNotExist]: whoever
// would go on without the file must not go on without what is lost.
type LostError struct {
	Path   string // that was to be opened
	Link   string // at or above it
	Target string // as the link names it
}

// Error names the file, the link and its target.
func (e *LostError) Error() string { return e.Path + ": " + e.Cause() }

// Cause says what is wrong without the name of the file, for callers that add it.
func (e *LostError) Cause() string {
	about := "is a link"
	if e.Link != e.Path {
		about = fmt.Sprintf("is not there, because %s is a link", e.Link)
	}
	return fmt.Sprintf("%s to %s, which does not exist: fetch its content (such as with git annex get) or restore it", about, e.Target)
}

// Lost returns a [LostError] for a path that does not exist because it, or a folder above it, is a symbolic link that
// leads to nothing. For any other path it returns nil.
func Lost(path string) error {
	for at := path; ; {
		info, err := os.Lstat(at)
		switch {
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			target, err := os.Readlink(at)
			if err != nil {
				return nil // replaced meanwhile
			}
			return &LostError{path, at, target}
		case !errors.Is(err, fs.ErrNotExist):
			return nil
		}
		above := filepath.Dir(strings.TrimRight(at, "/"))
		if above == at || len(above) >= len(at) {
			return nil
		}
		at = above
	}
}

// Cause returns the [LostError] behind an error about a path, and any other error as it is.
func Cause(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		if lost := Lost(path); lost != nil {
			return lost
		}
	}
	return err
}
