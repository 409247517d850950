package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"strata/pkg/cli/flags"
	"strata/pkg/hiddenname"
	"strata/pkg/images"
	"strata/pkg/smallfile"
	"strata/pkg/zarr/store"
)

// Input declares a file, folder or URL that the run reads, and returns it. A
// local path must exist (exit code 3 if not; a path into a zip file need not),
// and no output may collide with it. Call it for all inputs before the outputs
// or after them, but before the work.
func (r *Run) Input(path string) (string, error) {
	switch scheme := urlScheme(path); scheme {
	case "":
	case "http", "https":
		return path, nil
	case "s3":
		r.buckets = append(r.buckets, path)
		return path, nil
	default:
		return "", Usage("input %s: cannot read %s:// addresses: want a folder, a .zip file, http://, https:// or s3://", path, scheme)
	}
	if file, key := images.Split(path); key != "" { // a node in a zip file or an image file
		return path, placeError(r.outputs.Input(file))
	}
	named := path
	path, err := r.present(named)
	if err != nil {
		lost := smallfile.Lost(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && lost != nil:
			return "", BadInput(lost)
		case errors.Is(err, fs.ErrNotExist):
			return "", BadInputf("%s: no such file or folder%s", path, didYouMean(path))
		case errors.Is(err, fs.ErrPermission):
			return "", BadInputf("%s: permission denied", path)
		}
		return "", BadInput(err)
	}
	// Opening it to see would block on a pipe, and take its content.
	if err := unix.Access(path, unix.R_OK); err != nil {
		return "", BadInputf("%s: cannot be read: %w", path, err)
	}
	if path != named {
		if err := r.outputs.Input(named); err != nil {
			return "", placeError(err)
		}
	}
	return path, placeError(r.outputs.Input(path))
}

// replacing is the maximum time to wait for an input that is missing because another run replaces it.
const replacing = 2 * time.Second

// present is the path of an input that exists: where it lies while it is replaced, if
// its replacer died over that or takes long.
func (r *Run) present(path string) (string, error) {
	for waited := time.Duration(0); ; waited += replacing / 40 {
		_, err := os.Stat(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return path, err
		}
		kept := hiddenname.Find(path)
		if kept == nil {
			if _, err = os.Stat(path); err == nil { // between the two looks
				return path, nil
			}
			return path, err
		}
		if waited < replacing && hiddenname.Self().State(kept.Writer) != hiddenname.Dead {
			time.Sleep(replacing / 40)
			continue
		}
		r.Warn("%s is missing: process %d on %s did not finish replacing it; its old content is read, from %s", path, kept.Writer.PID, kept.Writer.Host, kept.Path)
		r.kept = append(r.kept, kept)
		return kept.Path, nil
	}
}

// checkKept reports an input that was read under the name where it was kept and has
// been replaced meanwhile: what was read may be of neither.
func (r *Run) checkKept() error {
	for _, k := range r.kept {
		if !k.Holds() {
			return fmt.Errorf("%s: was replaced while it was read: run this again", k.Path)
		}
	}
	return nil
}

// LocalInput is [Run.Input] of a file or folder that cannot be an address (exit code 2).
func (r *Run) LocalInput(path string) (string, error) {
	if urlScheme(path) != "" {
		return "", Usage("input %s is a URL: this one has to be a local file or folder", path)
	}
	return r.Input(path)
}

// Image is [Run.Input] for an input that must be one Zarr hierarchy. For a folder of several hierarchies, the error
// names one of them (exit code 3).
func (r *Run) Image(path string) (string, error) {
	path, err := r.Input(path)
	if err != nil || urlScheme(path) != "" {
		return path, err
	}
	if images := imagesIn(path); len(images) > 0 {
		return "", BadInputf("%s: is a folder of %d images, not an image: name one of them, such as %s", path, len(images), filepath.Join(path, images[0]))
	}
	return path, nil
}

// imagesIn returns the names of the Zarr hierarchies in a folder that is not a hierarchy itself.
func imagesIn(folder string) (images []string) {
	if store.IsNode(folder) {
		return nil
	}
	entries, _ := os.ReadDir(folder) // a file, or a folder that cannot be listed, has none
	for _, e := range entries {
		name := e.Name()
		if strings.HasSuffix(name, ".zarr.zip") || strings.HasSuffix(name, ".ozx") || store.IsNode(filepath.Join(folder, name)) {
			images = append(images, name)
		}
	}
	return images
}

// mostNames is how many files of a folder are compared with a mistyped name.
const mostNames = 4096

// didYouMean proposes an existing path for one that does not exist, or returns "" if none is similar.
func didYouMean(path string) string {
	missing, rest := filepath.Clean(path), ""
	for {
		_, err := os.Stat(filepath.Dir(missing))
		if err == nil {
			break
		}
		if filepath.Dir(missing) == missing {
			return ""
		}
		missing, rest = filepath.Dir(missing), filepath.Join(filepath.Base(missing), rest)
	}
	folder, err := os.Open(filepath.Dir(missing))
	if err != nil {
		return ""
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(mostNames) // those that come before an error
	slices.Sort(names)
	near := nearestFile(filepath.Base(missing), names)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", filepath.Join(filepath.Dir(missing), near, rest))
}

// nearestFile returns the name that is most similar to a mistyped one. It ignores extensions, which many files share.
func nearestFile(name string, names []string) string {
	stem, extension, _ := strings.Cut(name, ".")
	byStem := map[string]string{}
	var stems []string
	for _, n := range names {
		s, e, _ := strings.Cut(n, ".")
		switch {
		case strings.HasPrefix(n, "."):
		case strings.EqualFold(n, name), s == stem && (extension == "" || strings.HasPrefix(e, extension)):
			return n
		case e == extension:
			stems, byStem[s] = append(stems, s), n
		}
	}
	if near := byStem[flags.Nearest(stem, stems)]; near != "" {
		return near
	}
	return flags.Nearest(name, names)
}
