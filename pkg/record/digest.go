package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"

	"strata/pkg/document"
)

// File is a file, or a folder of files, that a run wrote together with an image.
type File struct {
	Path   string `json:"path"`
	Digest string `json:"digest"` // "sha256:…"; see [Digest]
}

// Attribute names the attribute of an image's group whose field "files" lists the sorted digests of the files
// that were written with it.
const Attribute = "strata"

// Together holds the value of [Attribute].
type Together struct {
	Files []string `json:"files"`
}

// Digest returns a hash of the content of a file, or of all files below a folder with their names.
func Digest(ctx context.Context, path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if !info.IsDir() {
		err = addFile(ctx, h, path)
	} else {
		tree := os.DirFS(path)
		err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			each := sha256.New()
			if err := addFile(ctx, each, path+"/"+name); err != nil {
				return err
			}
			_, err = fmt.Fprintf(h, "%q %x\n", name, each.Sum(nil))
			return err
		})
	}
	if err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

func addFile(ctx context.Context, h hash.Hash, path string) error {
	f, err := document.Open(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(h, f)
	return err
}
