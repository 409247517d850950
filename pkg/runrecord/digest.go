package runrecord

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"slices"

	"strata/pkg/smallfile"
)

// File is a file, or a folder of files, that a run wrote together with an image.
type File struct {
	Path   string `json:"path"`
	Digest string `json:"digest"` // "sha256:…"; see [Digest]
}

// Attribute is the attribute of an image's group that holds its [Provenance].
const Attribute = "strata"

// Provenance describes the run that wrote an image. It holds only what determines the image: no folders of inputs and
// outputs, no machine, processors or memory, and no time.
type Provenance struct {
	Program string   `json:"program,omitempty"`
	Version string   `json:"version,omitempty"`
	Command []string `json:"command,omitempty"` // the command line, without outputs and what does not change them; paths by their last part
	Inputs  []string `json:"inputs,omitempty"`  // their last parts
	Files   []string `json:"files,omitempty"`   // digests of the files that were written with the image, sorted
	Nodes   []string `json:"nodes,omitempty"`   // groups and arrays in the image besides its levels, sorted
}

// Digest returns a hash of the content of a file, or of all files below a folder with their names. For metrics it
// ignores times and paths, so that a repeated run has the same digest.
func Digest(ctx context.Context, path string) (string, error) { return digest(ctx, path, settled) }

// Wrote reports whether the digest of a file or folder is one of the digests that a run has recorded. Runs up to
// version 0.10.0 included the time of metrics in it.
func Wrote(ctx context.Context, path string, digests []string) (bool, error) {
	for _, content := range []func(io.Reader, string) (io.Reader, error){settled, unchanged} {
		d, err := digest(ctx, path, content)
		if err != nil || slices.Contains(digests, d) {
			return err == nil, err
		}
	}
	return false, nil
}

// digest computes the digest of a file or folder. content returns the part of each file that counts.
func digest(ctx context.Context, path string, content func(io.Reader, string) (io.Reader, error)) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if !info.IsDir() {
		err = addFile(ctx, h, path, content)
	} else {
		tree := os.DirFS(path)
		err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			each := sha256.New()
			if err := addFile(ctx, each, path+"/"+name, content); err != nil {
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

func addFile(ctx context.Context, h hash.Hash, path string, content func(io.Reader, string) (io.Reader, error)) error {
	f, err := smallfile.Open(ctx, path)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := content(f, path)
	if err != nil {
		return err
	}
	_, err = io.Copy(h, r)
	return err
}

func unchanged(r io.Reader, _ string) (io.Reader, error) { return r, nil }

// metricsBegin are the first bytes of a file of metrics as package metrics writes it.
const metricsBegin = "{\n  \"step_name\": "

// settled returns a file without what differs between two runs that are the same: of metrics, JSON in which members are
// sorted, without the time and the paths of input and output.
func settled(r io.Reader, name string) (io.Reader, error) {
	buffered := bufio.NewReader(r)
	if begin, err := buffered.Peek(len(metricsBegin)); err != nil || string(begin) != metricsBegin {
		return buffered, nil // reading on has the error again
	}
	text, err := smallfile.All(buffered, name)
	if err != nil {
		return nil, err
	}
	var step, values map[string]json.RawMessage
	if json.Unmarshal(text, &step) != nil || json.Unmarshal(step["metrics"], &values) != nil {
		return bytes.NewReader(text), nil // somebody changed it, which its digest shows
	}
	delete(step, "timestamp")
	delete(values, "input_volume")
	delete(values, "output_volume")
	if step["metrics"], err = json.Marshal(values); err == nil {
		text, err = json.Marshal(step)
	}
	return bytes.NewReader(text), err
}
