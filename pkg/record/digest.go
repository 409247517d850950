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

// Attribute is the attribute of an image's group that holds its [Provenance].
const Attribute = "strata"

// Provenance says which run wrote an image. It depends on nothing but what determines the image: not on where inputs and
// outputs lie, nor on the machine, its processors and memory, or the time.
type Provenance struct {
	Program string   `json:"program,omitempty"`
	Version string   `json:"version,omitempty"`
	Command []string `json:"command,omitempty"` // the command line, without outputs and what does not change them; paths by their last part
	Inputs  []string `json:"inputs,omitempty"`  // their last parts
	Files   []string `json:"files,omitempty"`   // digests of the files that were written with the image, sorted
	Nodes   []string `json:"nodes,omitempty"`   // groups and arrays in the image besides its levels, sorted
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
