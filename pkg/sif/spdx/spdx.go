// Package spdx writes a bill of materials: the packages in an image, with versions and licences. The form is
// SPDX 2.3 as JSON.
package spdx

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Package is a part of an image.
type Package struct {
	Name     string
	Version  string
	Location string   // where it comes from; "" is not known
	SHA256   string   // of the fetched file, hex; may be ""
	PURL     string   // package URL: "pkg:deb/debian/bash@5.2"
	Licences []string // Debian's short names or SPDX expressions; none is not known
	Texts    string   // where the licences' texts are, for those that SPDX has no name of
	Kind     string   // "APPLICATION", "LIBRARY", …
}

type document struct {
	Version   string         `json:"spdxVersion"`
	License   string         `json:"dataLicense"`
	ID        string         `json:"SPDXID"`
	Name      string         `json:"name"`
	Namespace string         `json:"documentNamespace"`
	Creation  creation       `json:"creationInfo"`
	Packages  []element      `json:"packages"`
	Relations []relationship `json:"relationships"`
	Extracted []extracted    `json:"hasExtractedLicensingInfos,omitempty"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type element struct {
	Name      string     `json:"name"`
	ID        string     `json:"SPDXID"`
	Version   string     `json:"versionInfo,omitempty"`
	Location  string     `json:"downloadLocation"`
	Analyzed  bool       `json:"filesAnalyzed"`
	Concluded string     `json:"licenseConcluded"`
	Declared  string     `json:"licenseDeclared"`
	Copyright string     `json:"copyrightText"`
	Purpose   string     `json:"primaryPackagePurpose,omitempty"`
	Checksums []checksum `json:"checksums,omitempty"`
	Refs      []external `json:"externalRefs,omitempty"`
}

type checksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type external struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

type extracted struct {
	ID   string `json:"licenseId"`
	Text string `json:"extractedText"`
	Name string `json:"name"`
}

const none = "NOASSERTION"

// Write returns the bill of materials of an image: whole is the image itself, parts are its packages. The
// same arguments give the same bytes.
func Write(tool string, at time.Time, whole Package, parts []Package) ([]byte, error) {
	d := document{Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: whole.Name,
		Creation: creation{at.UTC().Format(time.RFC3339), []string{"Tool: " + tool}}}
	names := map[string]*extracted{}
	add := func(p Package, id string) {
		e := element{Name: p.Name, ID: id, Version: p.Version, Location: p.Location, Concluded: none, Copyright: none, Purpose: p.Kind}
		if e.Location == "" {
			e.Location = none
		}
		e.Declared = expression(p, names)
		if p.SHA256 != "" {
			e.Checksums = []checksum{{"SHA256", p.SHA256}}
		}
		if p.PURL != "" {
			e.Refs = []external{{"PACKAGE-MANAGER", "purl", p.PURL}}
		}
		d.Packages = append(d.Packages, e)
	}
	add(whole, "SPDXRef-Image")
	d.Relations = []relationship{{d.ID, "DESCRIBES", "SPDXRef-Image"}}
	for i, p := range parts {
		id := fmt.Sprintf("SPDXRef-%d-%s", i+1, idOf(p.Name))
		add(p, id)
		d.Relations = append(d.Relations, relationship{"SPDXRef-Image", "CONTAINS", id})
	}
	for _, x := range names {
		d.Extracted = append(d.Extracted, *x)
	}
	slices.SortFunc(d.Extracted, func(a, b extracted) int { return strings.Compare(a.ID, b.ID) })
	content, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	d.Namespace = "https://spdx.org/spdxdocs/" + idOf(whole.Name) + "-" + hex.EncodeToString(sum[:16])
	text, err := json.MarshalIndent(d, "", " ")
	return append(text, '\n'), err
}

// idOf returns a name with only the characters that SPDX allows in identifiers.
func idOf(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, name)
}
