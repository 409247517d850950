// Package debtest makes Debian packages and archives for tests.
package debtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

	"strata/pkg/sif/deb"
)

// File is a file of a package: a folder if Name ends in a slash, a symbolic link if Link is set, a hard link
// if Same is set.
type File struct {
	Name string // "./usr/bin/x"
	Text string
	Mode int64 // 0: 0644, of folders 0755
	Link string
	Same string
}

// Package describes a package to make.
type Package struct {
	Name, Version, Arch string
	Fields              string // more lines of its control file
	Files               []File
	Ext                 string // of its members: ".xz" (the default), ".gz", ".zst", ".tar" for none
}

// Bytes returns the package's file.
func (p Package) Bytes() []byte {
	ext := p.Ext
	if ext == "" {
		ext = ".xz"
	}
	suffix := ext
	if ext == ".tar" {
		suffix = ""
	}
	control := pack(ext, []File{{Name: "./control", Text: p.control()}})
	data := pack(ext, append([]File{{Name: "./"}}, p.Files...))
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, m := range []struct {
		name string
		data []byte
	}{{"debian-binary", []byte("2.0\n")}, {"control.tar" + suffix, control}, {"data.tar" + suffix, data}} {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, 0, 0, 0, "100644", len(m.data))
		b.Write(m.data)
		if len(m.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

func (p Package) control() string {
	text := "Package: " + p.Name + "\nVersion: " + p.Version + "\nArchitecture: " + p.Arch + "\n"
	if p.Fields != "" {
		text += strings.TrimSpace(p.Fields) + "\n"
	}
	return text + "Description: for a test\n of more than a line\n"
}

func pack(ext string, files []File) []byte {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.Name, Mode: f.Mode, Size: int64(len(f.Text)), Typeflag: tar.TypeReg, Format: tar.FormatGNU}
		switch {
		case strings.HasSuffix(f.Name, "/"):
			h.Typeflag, h.Size = tar.TypeDir, 0
		case f.Link != "":
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.Link, 0
		case f.Same != "":
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, f.Same, 0
		}
		if h.Mode == 0 {
			h.Mode = 0o644
			if h.Typeflag == tar.TypeDir {
				h.Mode = 0o755
			}
		}
		must(t.WriteHeader(h))
		if h.Size > 0 {
			_, err := io.WriteString(t, f.Text)
			must(err)
		}
	}
	must(t.Close())
	return Compress(ext, b.Bytes())
}

// Compress compresses with the method of a file name extension.
func Compress(ext string, plain []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch ext {
	case ".xz":
		w, err = xz.NewWriter(&out)
	case ".gz":
		w = gzip.NewWriter(&out)
	case ".zst":
		w, err = zstd.NewWriter(&out)
	default:
		return plain
	}
	must(err)
	_, err = w.Write(plain)
	must(err)
	must(w.Close())
	return out.Bytes()
}

// Archive is an archive with one suite.
type Archive struct {
	Key   *openpgp.Entity
	files map[string][]byte // by path, without the archive's name
	index map[string]string // Packages, by archive
}

// NewArchive returns an empty archive, signed by a key of its own.
func NewArchive() *Archive {
	key, err := openpgp.NewEntity("archive of a test", "", "archive@example.org", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	must(err)
	return &Archive{Key: key, files: map[string][]byte{}, index: map[string]string{}}
}

// Add puts a package into the named archive, "debian" or "debian-security", and returns its entry for a lock
// file.
func (a *Archive) Add(archive string, p Package) *deb.Package {
	body := p.Bytes()
	sum := sha256.Sum256(body)
	q := &deb.Package{Name: p.Name, Version: p.Version, Arch: p.Arch, Archive: archive, Size: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
	_, noEpoch, found := strings.Cut(p.Version, ":")
	if !found {
		noEpoch = p.Version
	}
	q.File = "pool/main/" + p.Name[:1] + "/" + p.Name + "/" + p.Name + "_" + noEpoch + "_" + p.Arch + ".deb"
	a.files[archive+"/"+q.File] = body
	a.index[archive] += fmt.Sprintf("%sFilename: %s\nSize: %d\nSHA256: %s\n\n", p.control(), q.File, q.Size, q.SHA256)
	return q
}

// Remove removes a package's file from an archive; the snapshot still has it.
func (a *Archive) Remove(q *deb.Package) {
	a.files["snapshot/"+q.Archive+"/"+q.File] = a.files[q.Archive+"/"+q.File]
	delete(a.files, q.Archive+"/"+q.File)
}

// Replace changes the file at a path such as "debian/pool/…".
func (a *Archive) Replace(path string, body []byte) { a.files[path] = body }

// Publish makes the indices and Release files of a suite, compressed as the extension says.
func (a *Archive) Publish(suite, arch, ext string) {
	for archive, suites := range map[string][]string{deb.Main: {suite, suite + "-updates"}, deb.Security: {suite + "-security"}} {
		for i, s := range suites {
			plain := a.index[archive]
			if i > 0 {
				plain = "" // updates: none
			}
			suffix := ext
			if ext == ".tar" {
				suffix = ""
			}
			name := "main/binary-" + arch + "/Packages" + suffix
			packed := Compress(ext, []byte(plain))
			sum := sha256.Sum256(packed)
			a.files[archive+"/dists/"+s+"/"+name] = packed
			release := fmt.Sprintf("Suite: %s\nDate: Mon, 01 Jan 2024 00:00:00 UTC\nSHA256:\n %s %d %s\n", s, hex.EncodeToString(sum[:]), len(packed), name)
			var signed bytes.Buffer
			w, err := clearsign.Encode(&signed, a.Key.PrivateKey, nil)
			must(err)
			_, err = io.WriteString(w, release)
			must(err)
			must(w.Close())
			a.files[archive+"/dists/"+s+"/InRelease"] = signed.Bytes()
		}
	}
}

// ServeHTTP serves the archives at /debian and /debian-security, and a snapshot
// archive at /snapshot.
func (a *Archive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/")
	if parts := strings.SplitN(path, "/", 4); len(parts) == 4 && parts[0] == "snapshot" {
		if _, err := time.Parse("20060102T150405Z", parts[2]); err != nil {
			http.Error(w, "no such time", http.StatusNotFound)
			return
		}
		path = parts[0] + "/" + parts[1] + "/" + parts[3]
	}
	body, ok := a.files[path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(body)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
