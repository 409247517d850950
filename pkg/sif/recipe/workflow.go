package recipe

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"strata/pkg/sif"
)

// shareDir is the folder with the workflow for its engine. The menu takes it from there if a user has the
// image but no source tree.
const shareDir = "/usr/share/strata"

// Workflow lists the files and folders of the source tree that go to /usr/share/strata, under the same names.
var Workflow = []string{
	"nextflow/README.md",
	"nextflow/conf",
	"nextflow/lib",
	"nextflow/main.nf",
	"nextflow/modules",
	"nextflow/nextflow.config",
	"nextflow/nextflow_schema.json",
	"nextflow/params",
	"scripts/need.sh",
	"scripts/nextflow-pom.xml",
	"scripts/nextflow.sh",
}

// guides lists the interactive scripts of the source tree, which run programs. They go to /usr/local/bin.
var guides = []string{
	"apptainer/benchmark_czi.sh",
	"apptainer/profile_czi.sh",
}

// fromSource maps the files and folders that come from the source tree to their places in the image.
func fromSource() map[string]string {
	places := map[string]string{}
	for _, name := range Workflow {
		places[name] = path.Join(shareDir, name)
	}
	for _, name := range guides {
		places[name] = path.Join(binDir, path.Base(name))
	}
	return places
}

// checkWorkflow reports missing files of the workflow and the guides.
func (r *Recipe) checkWorkflow() error {
	if r.Source == "" {
		return nil
	}
	for _, name := range slices.Concat(Workflow, guides) {
		if _, err := os.Stat(filepath.Join(r.Source, name)); err != nil {
			return fmt.Errorf("%w: %s: no source tree: it has no %s", ErrRecipe, r.Source, name)
		}
	}
	return nil
}

// addWorkflow copies them. Permissions are the usual ones, so that they do not
// depend on how the tree was checked out.
func (r *Recipe) addWorkflow(root *sif.Root) error {
	if r.Source == "" {
		return nil
	}
	for name, place := range fromSource() {
		err := filepath.WalkDir(filepath.Join(r.Source, name), func(file string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			below, err := filepath.Rel(filepath.Join(r.Source, name), file)
			if err != nil {
				return err
			}
			to := path.Join(place, filepath.ToSlash(below))
			if e.IsDir() {
				return root.Mkdir(to, 0o755)
			}
			return addFile(root, file, to)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func addFile(root *sif.Root, file, to string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if info.Mode()&0o100 != 0 {
		perm = 0o755
	}
	return root.Write(to, perm, f)
}
