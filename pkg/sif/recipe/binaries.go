package recipe

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/sif"
	"strata/pkg/sif/spdx"
)

// licence names the owner of strata and where the text of its licence is, which base-files has.
const licence = `Copyright 2026 The strata authors

Strata is licensed under the Apache License, version 2.0, whose text is in
/usr/share/common-licenses/Apache-2.0. The Go modules that its programs are
built from, and all other parts of this image, are listed in sbom.spdx.json;
the licences of these modules are in modules.txt.
`

// stdlib is the name of Go's standard library in the bill.
const stdlib = "stdlib"

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkBinaries returns the faults of the binaries and links.
func (r *Recipe) checkBinaries() error {
	if len(r.Binaries) == 0 {
		return fmt.Errorf("%w: no binaries: name the programs to put into the image", ErrRecipe)
	}
	if len(r.Links) > 0 && len(r.Binaries) != 1 {
		return fmt.Errorf("%w: links need one binary, which is many in one, not %d", ErrRecipe, len(r.Binaries))
	}
	var names []string
	for _, file := range r.Binaries {
		names = append(names, filepath.Base(file))
		f, err := elf.Open(file)
		if err != nil {
			if _, e := os.Stat(file); e != nil {
				return fmt.Errorf("%w: %s: no such file", ErrRecipe, file)
			}
			return fmt.Errorf("%w: %s: not an ELF program: %w", ErrRecipe, file, err)
		}
		machine := f.Machine
		f.Close()
		if machine != machines[r.Arch] {
			return fmt.Errorf("%w: %s is a program for %v, the image is for %s", ErrRecipe, file, machine, r.Arch)
		}
	}
	for _, name := range r.Links {
		if name == "" || strings.ContainsAny(name, "/ \t") || name == "." || name == ".." {
			return fmt.Errorf("%w: %q is not the name of a link", ErrRecipe, name)
		}
	}
	names = append(names, r.Links...)
	slices.Sort(names)
	for i := range names[1:] {
		if names[i] == names[i+1] {
			return fmt.Errorf("%w: two programs are called %s", ErrRecipe, names[i])
		}
	}
	return nil
}

// addBinaries copies the binaries and makes the links. It lists the modules that
// the binaries were built from.
func (r *Recipe) addBinaries(root *sif.Root) ([]spdx.Package, error) {
	versions := map[string]spdx.Package{}
	for _, file := range r.Binaries {
		name := binDir + "/" + filepath.Base(file)
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		err = root.Write(name, 0o755, f)
		f.Close()
		if err != nil {
			return nil, err
		}
		for _, link := range r.Links {
			if err := root.Symlink(filepath.Base(file), binDir+"/"+link); err != nil {
				return nil, err
			}
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			continue // not built with Go
		}
		for _, p := range modulesOf(info) {
			versions[p.PURL] = p
		}
	}
	out := make([]spdx.Package, 0, len(versions))
	for _, p := range versions {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b spdx.Package) int { return strings.Compare(a.PURL, b.PURL) })
	if err := root.WriteText(docDir+"/copyright", 0o644, licence); err != nil {
		return nil, err
	}
	return out, r.addModules(root, out)
}

// modulesOf lists the modules that a program was built from.
func modulesOf(info *buildinfo.BuildInfo) []spdx.Package {
	var out []spdx.Package
	add := func(name, version string) {
		out = append(out, spdx.Package{Name: name, Version: version, Kind: "LIBRARY", PURL: "pkg:golang/" + name + "@" + version})
	}
	add(stdlib, strings.TrimPrefix(info.GoVersion, "go"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(m.Path, m.Version)
	}
	return out
}

// Modules lists the modules that a Go program was built from, with their licences, and returns the licence
// texts. It fails for a module whose licence is unknown.
func Modules(program string) (parts []spdx.Package, texts string, err error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, "", err
	}
	parts = modulesOf(info)
	here, err := licences(parts)
	if err != nil {
		return nil, "", err
	}
	for _, p := range parts {
		if len(p.Licences) == 0 {
			return nil, "", fmt.Errorf("%s: module %s %s: its licence is not in pkg/sif/recipe/modules.txt", program, p.Name, p.Version)
		}
	}
	return parts, writeModules("Licences of the Go modules in strata.\n", here), nil
}
