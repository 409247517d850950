package sysinfo

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Recording holds the files that were read of a machine, enough to read the same facts elsewhere. Of the
// process's environment it keeps only variables that describe the machine.
type Recording struct {
	mu    sync.Mutex
	files map[string][]byte // content, by the name without links below the root folder
	links map[string]string // symbolic links' targets
	seen  map[string]bool   // what was there without being read: true for folders
}

// Recorded returns the same root folder together with a recording of everything that is read through it.
func (r Root) Recorded() (Root, *Recording) {
	r.keep = &Recording{files: map[string][]byte{}, links: map[string]string{}, seen: map[string]bool{}}
	return r, r.keep
}

func (k *Recording) file(name string, content []byte) {
	if k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.files[name] = content
	}
}

func (k *Recording) link(name, target string) {
	if k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.links[name] = target
	}
}

func (k *Recording) found(name string, folder bool) {
	if k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.seen[name] = k.seen[name] || folder
	}
}

// recordEnviron records the variables that describe the machine.
func (r Root) recordEnviron(env map[string]string) {
	if r.keep == nil {
		return
	}
	name, err := r.resolve("/proc/self/environ")
	if err != nil {
		name = "/proc/self/environ"
	}
	var lines []string
	for variable, value := range env {
		for _, prefix := range []string{"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "KUBERNETES_SERVICE_HOST", "container", "SLURM_JOB_", "SLURM_STEP_GPUS", "GPU_DEVICE_ORDINAL",
			"CUDA_VISIBLE_DEVICES", "CUFILE_", "KVIKIO_", "STRATA_", "LD_LIBRARY_PATH"} {
			if strings.HasPrefix(variable, prefix) {
				lines = append(lines, variable+"="+value+"\x00")
				break
			}
		}
	}
	slices.Sort(lines)
	r.keep.file(name[1:], []byte(strings.Join(lines, "")))
}

// Write writes the recording into a folder for [At].
func (k *Recording) Write(dir string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, folder := range k.seen {
		if !folder {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o777); err != nil {
			return err
		}
	}
	for name, content := range k.files {
		if err := writeNew(filepath.Join(dir, name), content); err != nil {
			return err
		}
	}
	for name, target := range k.links {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			return err
		}
		if err := os.Symlink(target, at); err != nil {
			return err
		}
	}
	for name := range k.seen {
		at := filepath.Join(dir, name)
		if _, err := os.Lstat(at); err == nil {
			continue
		}
		if err := writeNew(at, nil); err != nil {
			return err
		}
	}
	return nil
}

func writeNew(at string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// lstat returns a file's kind, noted if it is kept.
func (r Root) lstat(name string) (fs.FileInfo, error) {
	info, err := os.Lstat(filepath.Join(r.dir, name))
	if err == nil && info.Mode()&fs.ModeSymlink == 0 {
		r.keep.found(name, info.IsDir())
	}
	return info, err
}
