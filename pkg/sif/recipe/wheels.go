package recipe

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"strata/pkg/sif"
	"strata/pkg/sif/spdx"
)

//go:embed wheels.lock
var wheelsLock []byte

// maxLibrary is the maximum size of one file of a wheel in bytes.
const maxLibrary = 1 << 30

// Wheel is a package of the Python package index.
type Wheel struct {
	Name    string
	Version string
	SHA256  string // hex
}

// Wheels lists Python wheels and their sources.
type Wheels struct {
	List []Wheel  // nil: those of this version of the program
	Dir  string   // a folder where they are kept, and looked for first; "": nothing is kept
	Pip  []string // the command that downloads them; nil: pip3, which knows the index from its own settings
}

// readWheels reads a list of wheels: lines "wheel NAME VERSION SHA256".
func readWheels(r io.Reader) ([]Wheel, error) {
	var out []Wheel
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 4 || f[0] != "wheel" || len(f[3]) != 64 || strings.HasPrefix(f[1], "-") {
			return nil, fmt.Errorf("line %d: %.60q: want wheel, a name, a version and a SHA-256", n, lines.Text())
		}
		out = append(out, Wheel{f[1], f[2], f[3]})
	}
	return out, lines.Err()
}

// fetch finds the wheels' files, in the order of the list.
func (w *Wheels) fetch(ctx context.Context, list []Wheel, temp string) ([]string, error) {
	dir := w.Dir
	if dir == "" {
		dir = temp
	}
	if files, missing := find(dir, list); missing == nil {
		return files, nil
	}
	pip := w.Pip
	if pip == nil {
		if _, err := exec.LookPath("pip3"); err != nil {
			return nil, fmt.Errorf("%w: pip3: install python3-pip (Debian and Ubuntu: apt-get install python3-pip), or give a folder with the wheels", sif.ErrTool)
		}
		pip = []string{"pip3"}
	}
	var wanted bytes.Buffer
	for _, one := range list {
		fmt.Fprintf(&wanted, "%s==%s --hash=sha256:%s\n", one.Name, one.Version, one.SHA256)
	}
	file := filepath.Join(temp, "wheels.txt")
	if err := os.WriteFile(file, wanted.Bytes(), 0o600); err != nil {
		return nil, err
	}
	args := append(pip[1:len(pip):len(pip)], "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes", "--only-binary=:all:",
		"--platform=manylinux_2_28_x86_64", "--platform=manylinux_2_24_x86_64", "--platform=manylinux2014_x86_64", "--dest="+dir, "--requirement="+file)
	cmd := exec.CommandContext(ctx, pip[0], args...)
	if said, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		return nil, fmt.Errorf("%s download: %w: %s", pip[0], err, strings.Join(lines[max(0, len(lines)-3):], "; "))
	}
	files, missing := find(dir, list)
	if missing != nil {
		return nil, fmt.Errorf("%s download: no file with the SHA-256 %s of %s %s in %s", pip[0], missing.SHA256, missing.Name, missing.Version, dir)
	}
	return files, nil
}

// find looks for the wheels in a folder by their sums; it returns the first
// that is not there.
func find(dir string, list []Wheel) (files []string, missing *Wheel) {
	for i, w := range list {
		pattern := strings.ReplaceAll(w.Name, "-", "_") + "-" + w.Version + "-*.whl"
		names, _ := filepath.Glob(filepath.Join(escapePattern(dir), pattern))
		found := ""
		for _, name := range names {
			if sum, err := sumOf(name); err == nil && sum == w.SHA256 {
				found = name
			}
		}
		if found == "" {
			return nil, &list[i]
		}
		files = append(files, found)
	}
	return files, nil
}

// escapePattern makes a pattern that matches just the name.
func escapePattern(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// addWheels puts the libraries of the wheels where the loader finds them, and
// their licences into their folders of documents.
func (r *Recipe) addWheels(ctx context.Context, root *sif.Root, temp string) ([]spdx.Package, error) {
	source := r.Wheels
	if source == nil {
		source = &Wheels{}
	}
	list := source.List
	if list == nil {
		var err error
		if list, err = readWheels(bytes.NewReader(wheelsLock)); err != nil {
			return nil, fmt.Errorf("wheels.lock: %w", err)
		}
	}
	files, err := source.fetch(ctx, list, temp)
	if err != nil {
		return nil, err
	}
	var bill []spdx.Package
	var lock strings.Builder
	for i, w := range list {
		if err := unpackWheel(root, files[i], w.Name); err != nil {
			return nil, fmt.Errorf("wheel %s %s: %w", w.Name, w.Version, err)
		}
		bill = append(bill, spdx.Package{Name: w.Name, Version: w.Version, SHA256: w.SHA256, Kind: "LIBRARY", Licences: []string{"NVIDIA-SDK"},
			Texts: "/usr/share/doc/" + w.Name, PURL: "pkg:pypi/" + w.Name + "@" + w.Version})
		fmt.Fprintf(&lock, "wheel %s %s %s\n", w.Name, w.Version, w.SHA256)
	}
	return bill, root.WriteText(WheelsFile, 0o644, lock.String())
}

// unpackWheel takes libraries and licences out of a wheel.
func unpackWheel(root *sif.Root, file, name string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	libraries, licences := 0, 0
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		base := path.Base(f.Name)
		var to string
		switch parts := strings.Split(f.Name, "/"); {
		case len(parts) == 4 && parts[0] == "nvidia" && strings.HasPrefix(parts[2], "lib") && strings.HasPrefix(base, "lib") && strings.Contains(base, ".so"):
			to = "/usr/lib/x86_64-linux-gnu/" + base
			libraries++
		case len(parts) == 3 && strings.HasSuffix(parts[0], ".dist-info") && strings.HasPrefix(parts[1], "licenses"):
			to = "/usr/share/doc/" + name + "/" + base
			licences++
		default:
			continue
		}
		if f.UncompressedSize64 > maxLibrary {
			return fmt.Errorf("%s: %d bytes", f.Name, f.UncompressedSize64)
		}
		if err := copyMember(root, f, to); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if libraries == 0 || licences == 0 {
		return fmt.Errorf("%d libraries and %d licences in it: want both", libraries, licences)
	}
	return nil
}

func copyMember(root *sif.Root, f *zip.File, to string) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	return root.Write(to, 0o644, r)
}
