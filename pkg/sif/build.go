package sif

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sylabs/sif/v2/pkg/sif"
)

// Architectures lists the architectures of images by Go's names.
var Architectures = []string{"amd64", "arm64"}

// launch makes an image a program where run-singularity is on the PATH.
const launch = "#!/usr/bin/env run-singularity\n"

// Build describes how to make an image.
type Build struct {
	Definition  *Definition
	Arch        string            // Go's name
	Time        time.Time         // of all files and of the image: SOURCE_DATE_EPOCH
	Labels      map[string]string // in addition to those of the definition, which take precedence
	Compression string            // "gzip" or "zstd"
	Threads     int               // of mksquashfs; 0: its own choice
	Temp        string            // folder for the root until it is packed; "": the system's

	// Populate fills the root for a definition with "Bootstrap: strata". Mount points exist already; files
	// that the definition copies come later.
	Populate func(ctx context.Context, r *Root) error
	// Finish is called with the complete root. It may be nil.
	Finish func(r *Root) error
}

// Write builds the image into a new file. Errors caused by the definition, or by a file that it names, wrap
// [ErrDefinition]; a missing mksquashfs wraps [ErrTool].
func (b *Build) Write(ctx context.Context, out string) error {
	if err := b.Definition.Check(); err != nil {
		return err
	}
	tool, err := findTool()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp(b.Temp, "sif-build-")
	if err != nil {
		return err
	}
	defer removeAll(temp)
	dir, packed := filepath.Join(temp, "root"), filepath.Join(temp, "root.squashfs")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := NewRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := b.fill(ctx, root); err != nil {
		return err
	}
	if err := squash(ctx, tool, dir, packed, b.Compression, b.Threads, b.Time); err != nil {
		return err
	}
	return b.pack(root, packed, out)
}

// fill makes the root.
func (b *Build) fill(ctx context.Context, root *Root) error {
	if err := skeleton(root); err != nil {
		return err
	}
	if b.Definition.Bootstrap() == Strata {
		if b.Populate == nil {
			return fmt.Errorf("%w %s: Bootstrap: strata needs the recipe, which is not here", ErrDefinition, b.Definition.Name)
		}
		if err := b.Populate(ctx, root); err != nil {
			return err
		}
	}
	if err := b.copyFiles(root); err != nil {
		return err
	}
	labels, err := b.Definition.Labels()
	if err != nil {
		return err
	}
	all := map[string]string{"org.label-schema.schema-version": "1.0"}
	maps.Copy(all, b.Labels)
	maps.Copy(all, labels)
	if err := describe(root, b.Definition, all); err != nil {
		return err
	}
	if b.Finish != nil {
		return b.Finish(root)
	}
	return nil
}

// copyFiles copies the files that %files lists.
func (b *Build) copyFiles(root *Root) error {
	lines, err := b.Definition.Files()
	if err != nil {
		return err
	}
	for _, line := range lines {
		sources := []string{line.Source}
		if _, err := os.Stat(line.Source); err != nil {
			if sources, err = filepath.Glob(line.Source); err != nil || len(sources) == 0 {
				return b.Definition.errorf(line.Line, "%s: no such file or folder", line.Source)
			}
		}
		slices.Sort(sources)
		for _, source := range sources {
			name := line.Destination
			switch {
			case name == "":
				if name, err = filepath.Abs(source); err != nil {
					return err
				}
			case len(sources) > 1 || strings.HasSuffix(name, "/") || root.isDir(name):
				name = path.Join(name, filepath.Base(source))
			}
			if err := root.Copy(source, name); err != nil {
				return b.Definition.errorf(line.Line, "%s: %v", source, plain(err))
			}
		}
	}
	return nil
}

func (r *Root) isDir(name string) bool {
	info, err := r.root.Stat(local(name))
	return err == nil && info.IsDir()
}

// plain returns an error without the operation and path that the os package puts in front of it.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// pack writes the image file: the definition, the metadata that inspect prints, and the root file system.
func (b *Build) pack(root *Root, packed, out string) error {
	metadata, err := inspectJSON(root, b.Definition)
	if err != nil {
		return err
	}
	f, err := os.Open(packed)
	if err != nil {
		return err
	}
	defer f.Close()
	var parts []sif.DescriptorInput
	add := func(t sif.DataType, r io.Reader, opts ...sif.DescriptorInputOpt) {
		d, e := sif.NewDescriptorInput(t, r, opts...)
		parts, err = append(parts, d), errors.Join(err, e)
	}
	add(sif.DataDeffile, strings.NewReader(b.Definition.Text))
	add(sif.DataGenericJSON, bytes.NewReader(metadata), sif.OptObjectName(metadataName))
	add(sif.DataPartition, f, sif.OptPartitionMetadata(sif.FsSquash, sif.PartPrimSys, b.Arch))
	if err != nil {
		return err
	}
	image, err := sif.CreateContainerAtPath(out, sif.OptCreateDeterministic(), sif.OptCreateWithTime(b.Time),
		sif.OptCreateWithLaunchScript(launch), sif.OptCreateWithDescriptors(parts...))
	if err != nil {
		return err
	}
	if err := image.UnloadContainer(); err != nil {
		return err
	}
	return os.Chmod(out, 0o755)
}

// removeAll removes a folder, also one with folders that cannot be written to.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
