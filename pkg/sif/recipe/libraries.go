package recipe

import (
	"debug/elf"
	"errors"
	"fmt"
	"path"
	"strings"

	"strata/pkg/sif"
)

// driver are libraries that come from the machine where the image runs.
var driver = []string{"libcuda.so.1", "libnvidia-ml.so.1"}

// checkLibraries checks that all libraries which programs and libraries of the
// image name are in it.
func checkLibraries(root *sif.Root) error {
	names, err := root.Files()
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, name := range driver {
		there[name] = true
	}
	for _, name := range names {
		if strings.Contains(path.Base(name), ".so") {
			there[path.Base(name)] = true
		}
	}
	var errs []error
	for _, name := range names {
		needed, err := neededBy(root, name)
		if err != nil {
			return err
		}
		for _, library := range needed {
			if !there[library] {
				errs = append(errs, fmt.Errorf("%s needs %s, which no package of the image has", name, library))
			}
		}
	}
	return errors.Join(errs...)
}

// neededBy lists the libraries that an ELF file names; none for other files.
func neededBy(root *sif.Root, name string) ([]string, error) {
	if _, err := root.Readlink(name); err == nil {
		return nil, nil
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	magic := make([]byte, 4)
	if n, _ := f.ReadAt(magic, 0); n < 4 || string(magic) != elf.ELFMAG {
		return nil, nil
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return e.ImportedLibraries()
}
