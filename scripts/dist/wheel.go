package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"
)

// project is the name of the Python package: the name strata is taken.
const project = "strata-microscopy"

// platforms maps systems to the platform tags of wheels. Go 1.26 needs macOS 12; on Linux the program needs glibc,
// but no symbol of a particular version.
var platforms = map[string]string{
	"linux/amd64": "manylinux2014_x86_64.manylinux_2_17_x86_64", "linux/arm64": "manylinux2014_aarch64.manylinux_2_17_aarch64",
	"darwin/amd64": "macosx_12_0_x86_64", "darwin/arm64": "macosx_12_0_arm64",
}

// launcher starts strata as one of its programs. Wheels cannot contain links; pipx links to the launcher.
const launcher = "#!/bin/sh\nexec \"$(dirname -- \"$(readlink -f -- \"$0\")\")/strata\" %s \"$@\"\n"

// wheel returns the name and content of a Python wheel that puts the programs on the PATH.
func (r *release) wheel(t tree, system, arch string) (name string, content []byte, err error) {
	platform := platforms[system+"/"+arch]
	if platform == "" {
		return "", nil, fmt.Errorf("target %s/%s: no wheels are made for it", system, arch)
	}
	stem := strings.ReplaceAll(project, "-", "_") + "-" + r.version
	info, scripts, data := stem+".dist-info/", stem+".data/scripts/", stem+".data/data/"
	var files []entry
	for _, e := range t {
		switch {
		case e.link != "" && strings.HasPrefix(e.name, "bin/"):
			program := strings.TrimPrefix(e.name, "bin/")
			files = append(files, entry{name: scripts + program, mode: 0o755, data: fmt.Appendf(nil, launcher, program)})
		case e.link != "":
			files = append(files, copies(t, e, data)...)
		case e.name == "bin/strata":
			files = append(files, entry{name: scripts + "strata", mode: 0o755, data: e.data})
		case strings.HasPrefix(e.name, "share/doc/strata/"):
			files = append(files, entry{name: info + "licenses/" + strings.TrimPrefix(e.name, "share/doc/strata/"), mode: e.mode, data: e.data})
		default:
			files = append(files, entry{name: data + e.name, mode: e.mode, data: e.data})
		}
	}
	var tags strings.Builder
	for tag := range strings.SplitSeq(platform, ".") {
		tags.WriteString("Tag: py3-none-" + tag + "\n")
	}
	files = append(files,
		entry{name: info + "METADATA", mode: 0o644, data: fmt.Appendf(nil, "Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: serial-sectioning OCT microscopy, from mosaic grids to one volume\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: modules.txt\nRequires-Python: >=3.7\nDescription-Content-Type: text/plain\n\n%s", project, r.version, r.wheelNote())},
		entry{name: info + "WHEEL", mode: 0o644, data: []byte("Wheel-Version: 1.0\nGenerator: strata-dist\nRoot-Is-Purelib: false\n" + tags.String())})
	content, err = zipOf(sorted(files), info+"RECORD", r.at)
	return stem + "-py3-none-" + platform + ".whl", content, err
}

// wheelNote is the description of the wheel's project.
func (r *release) wheelNote() string {
	return fmt.Sprintf(`Programs that stream OME-Zarr images of any size in bounded memory.

"strata NAME" starts each program. The environment's bin folder also gets a program of each name. While the environment is active, and
wherever pipx links to them, these come before other programs of the same name. Debian has such programs named %s.
`, r.takenBy())
}

// copies returns the files of the folder that a link leads to, as files below the link. The link to the programs has
// none: those of a wheel lie where the environment has its scripts.
func copies(t tree, link entry, below string) []entry {
	folder := path.Join(path.Dir(link.name), link.link) + "/"
	var all []entry
	for _, e := range t {
		if rest, ok := strings.CutPrefix(e.name, folder); ok && folder != "bin/" {
			all = append(all, entry{name: below + link.name + "/" + rest, mode: e.mode, data: e.data})
		}
	}
	return all
}

// zipOf returns a zip archive that ends with a record of its files' digests.
func zipOf(t tree, record string, at time.Time) ([]byte, error) {
	var list strings.Builder
	for _, e := range t {
		sum := sha256.Sum256(e.data)
		fmt.Fprintf(&list, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.data))
	}
	list.WriteString(record + ",,\n")
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zip.Deflate, func(to io.Writer) (io.WriteCloser, error) { return flate.NewWriter(to, level) })
	for _, e := range append(t, entry{name: record, mode: 0o644, data: []byte(list.String())}) {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.ExternalAttrs = uint32(0o100000|e.mode) << 16
		h.CreatorVersion = 3 << 8 // Unix: for the mode
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
