package sif

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"strata/pkg/host"
)

// ErrArch is wrapped by errors about an image for another architecture.
var ErrArch = errors.New("image cannot run here")

// errNamespace is wrapped by errors that say why this machine cannot run a command in an unpacked root.
var errNamespace = errors.New("no user namespace")

// ErrBind is wrapped by errors that a bind causes.
var ErrBind = errors.New("bind")

// Run describes a command in the root of an image.
type Run struct {
	Root    string   // the unpacked root
	Image   string   // image name that the command sees
	Args    []string // the command; none, or flags: the image's runscript
	Binds   []Bind   // in addition to /dev, /proc, /sys, /tmp, /var/tmp, the home and working folders
	Dir     string   // working folder; "": the one of this process, if it is there
	Env     []string // KEY=VALUE, after the image's own environment
	NVIDIA  bool     // adds the GPU driver's libraries and programs
	Self    []string // restarts this program so that it calls [Inside]: its path, then arguments
	Stdin   *os.File
	Stdout  *os.File
	Stderr  *os.File
	Started func() // called when the command runs; may be nil
}

// Bind makes a file or folder of the machine visible in an image.
type Bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"` // absolute, clean
	ReadOnly bool   `json:"read_only,omitempty"`
}

// ParseBind parses "SOURCE[:TARGET[:ro|rw]]".
func ParseBind(text string) (Bind, error) {
	parts := strings.Split(text, ":")
	b := Bind{Source: parts[0]}
	if len(parts) > 3 || parts[0] == "" || len(parts) == 3 && parts[2] != "ro" && parts[2] != "rw" {
		return b, fmt.Errorf("%w %q: want SOURCE, SOURCE:TARGET or SOURCE:TARGET:ro", ErrBind, text)
	}
	b.ReadOnly = len(parts) == 3 && parts[2] == "ro"
	source, err := filepath.Abs(b.Source)
	if err != nil {
		return b, err
	}
	b.Source, b.Target = source, source
	if len(parts) > 1 {
		if b.Target = path.Clean(parts[1]); !path.IsAbs(parts[1]) || b.Target == "/" {
			return b, fmt.Errorf("%w %q: the target %q is not an absolute path below /", ErrBind, text, parts[1])
		}
	}
	return b, nil
}

// Unpack unpacks the root into a folder of the cache named by the image's SHA-256, unless it exists already.
func (i *Image) Unpack(ctx context.Context, cache string) (string, error) {
	arch, err := i.Arch()
	if err != nil {
		return "", err
	}
	if arch != runtime.GOARCH {
		return "", fmt.Errorf("%s: %w: it is for %s, this machine is %s", i.path, ErrArch, arch, runtime.GOARCH)
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(i.file, 0, i.size)); err != nil {
		return "", err
	}
	root := filepath.Join(cache, hex.EncodeToString(h.Sum(nil)))
	for _, path := range []string{cache, root} {
		if err := host.Planted(path); err != nil {
			return "", fmt.Errorf("%w: give another --cache", err)
		}
	}
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(cache, ".unpack-")
	if err != nil {
		return "", err
	}
	defer removeAll(temp)
	if err := i.extractAll(ctx, filepath.Join(temp, "root")); err != nil {
		return "", err
	}
	err = os.Rename(filepath.Join(temp, "root"), root)
	if errors.Is(err, fs.ErrExist) {
		err = nil // another process was faster
	}
	return root, err
}
