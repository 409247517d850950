// Package recipe assembles the project's own image: unpacked and reduced Debian packages of pinned versions,
// the project's binaries, and a bill of materials.
//
//	r := &recipe.Recipe{Arch: "amd64", Lock: lock, Mirror: mirror, Binaries: []string{"bin/aip"}, …}
//	build := sif.Build{Definition: recipe.Definition(), Populate: r.Populate, …}
//
// Nothing is installed: the packages' scripts do not run, and setup.go does the parts of their work that the
// image needs. The same lock and the same binaries give the same bytes.
package recipe

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"strata/pkg/sif"
	"strata/pkg/sif/deb"
)

// ErrRecipe is wrapped by errors that the arguments cause: binaries, links, locks that do not fit together.
var ErrRecipe = errors.New("recipe")

// Recipe fills a root.
type Recipe struct {
	Arch     string // as Go names it
	Lock     *deb.Lock
	Mirror   *deb.Mirror
	Binaries []string // files that come to /usr/local/bin
	Links    []string // names that lead to the one binary, if it is many in one
	Source   string   // source tree: [Workflow] goes to /usr/share/strata, [guides] to /usr/local/bin; "": none
	NVIDIA   bool     // NVIDIA's libraries for GPUDirect Storage and decompression, from PyPI
	Wheels   *Wheels  // where they come from
	Version  string   // of the project
	Commit   string   // it was built from; may be ""
	Time     time.Time
	Warn     func(format string, args ...any)
}

// Places in the image.
const (
	binDir     = "/usr/local/bin"
	docDir     = "/usr/share/doc/strata"
	BillFile   = docDir + "/sbom.spdx.json" // the bill of materials
	LockFile   = docDir + "/packages.lock"  // the Debian packages
	WheelsFile = docDir + "/wheels.lock"    // NVIDIA's
)

//go:embed strata.def
var definition []byte

// Definition returns the definition file of the image.
func Definition() *sif.Definition {
	d, err := sif.ParseDefinition("strata.def", bytes.NewReader(definition))
	if err != nil {
		panic(err) // a test reads it
	}
	return d
}

//go:embed bookworm-amd64.lock
var lockAMD64 []byte

//go:embed bookworm-arm64.lock
var lockARM64 []byte

// Lock returns the pinned packages of this version of the program.
func Lock(arch string) (*deb.Lock, error) {
	text := map[string][]byte{"amd64": lockAMD64, "arm64": lockARM64}[arch]
	if text == nil {
		return nil, fmt.Errorf("%w: no packages are known for %s: want %v", ErrRecipe, arch, sif.Architectures)
	}
	return deb.ReadLock(bytes.NewReader(text))
}

// Check reports faults of the recipe before anything is fetched.
func (r *Recipe) Check() error {
	if r.Lock.Arch != r.Arch { // Debian's names of the two are Go's
		return fmt.Errorf("%w: the lock file is for %s, the image for %s", ErrRecipe, r.Lock.Arch, r.Arch)
	}
	for _, name := range Packages {
		if r.Lock.Package(name) == nil {
			return fmt.Errorf("%w: package %s is not in the lock file: renew it with sif lock", ErrRecipe, name)
		}
	}
	if r.NVIDIA && r.Arch != "amd64" {
		return fmt.Errorf("%w: NVIDIA's libraries are taken for amd64 only, the image is for %s", ErrRecipe, r.Arch)
	}
	if err := r.checkWorkflow(); err != nil {
		return err
	}
	return r.checkBinaries()
}

// Populate fills the root of an image.
func (r *Recipe) Populate(ctx context.Context, root *sif.Root) error {
	if err := r.Check(); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "sif-recipe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	bill, err := r.addPackages(ctx, root, temp)
	if err != nil {
		return err
	}
	if err := setUp(root); err != nil {
		return err
	}
	if r.NVIDIA {
		parts, err := r.addWheels(ctx, root, temp)
		if err != nil {
			return err
		}
		bill = append(bill, parts...)
	}
	modules, err := r.addBinaries(root)
	if err != nil {
		return err
	}
	if err := r.addWorkflow(root); err != nil {
		return err
	}
	if err := r.writeBill(root, slices.Concat(bill, modules)); err != nil {
		return err
	}
	return checkLibraries(root)
}
