package recipe

import (
	"bytes"
	"errors"
	"io/fs"
	"net/url"

	"strata/pkg/sif"
	"strata/pkg/sif/deb"
	"strata/pkg/sif/spdx"
)

// packageBill lists the Debian packages, with the licences that their copyright
// files name.
func (r *Recipe) packageBill(root *sif.Root) ([]spdx.Package, error) {
	var out []spdx.Package
	for _, p := range r.packages() {
		file := "/usr/share/doc/" + p.Name + "/copyright"
		text, err := root.Read(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		out = append(out, spdx.Package{
			Name: p.Name, Version: p.Version, SHA256: p.SHA256, Kind: "LIBRARY", Licences: deb.Licences(text), Texts: file,
			PURL: "pkg:deb/debian/" + url.PathEscape(p.Name) + "@" + url.QueryEscape(p.Version) + "?arch=" + p.Arch + "&distro=" + r.Lock.Suite,
		})
	}
	return out, nil
}

// writeBill writes the bill of materials into the image.
func (r *Recipe) writeBill(root *sif.Root, parts []spdx.Package) error {
	version := r.Version
	if r.Commit != "" {
		version += " (" + r.Commit + ")"
	}
	text, err := spdx.Write("sif-"+r.Version, r.Time,
		spdx.Package{Name: "strata", Version: version, Licences: []string{"Apache-2.0"}, Kind: "CONTAINER"}, parts)
	if err != nil {
		return err
	}
	return root.Write(BillFile, 0o644, bytes.NewReader(text))
}
