package spdx

import (
	"slices"
	"strings"

	"strata/pkg/pattern"
)

// known are Debian's short names of licences, in lower case, and SPDX's. Those
// of the GNU licences with their versions are made by gnu.
var known = map[string]string{
	"expat": "MIT", "mit": "MIT", "x11": "X11", "isc": "ISC", "zlib": "Zlib", "0bsd": "0BSD", "bsl-1.0": "BSL-1.0",
	"bsd-2-clause": "BSD-2-Clause", "bsd-2": "BSD-2-Clause", "bsd-3-clause": "BSD-3-Clause", "bsd-3": "BSD-3-Clause",
	"bsd-4-clause": "BSD-4-Clause", "bsd-4-clause-uc": "BSD-4-Clause-UC",
	"apache-2.0": "Apache-2.0", "mpl-2.0": "MPL-2.0", "mpl-1.1": "MPL-1.1", "cc0-1.0": "CC0-1.0", "cc0": "CC0-1.0",
	"artistic": "Artistic-1.0-Perl", "artistic-2.0": "Artistic-2.0", "unicode": "Unicode-DFS-2016", "openldap-2.8": "OLDAP-2.8",
	"ncsa": "NCSA", "bzip2-1.0.6": "bzip2-1.0.6", "fsful": "FSFUL", "fsfullr": "FSFULLR", "fsfap": "FSFAP", "unlicense": "Unlicense",
}

var gnu = pattern.Lazy(`^(a?gpl|lgpl|gfdl)(?:-v?|v)([0-9])(?:\.([0-9]))?(\+|-only|-or-later)?$`)

// identifier returns the SPDX identifier of a licence that Debian calls name, or "".
func identifier(name string) string {
	lower := strings.ToLower(name)
	if id, ok := known[lower]; ok {
		return id
	}
	m := gnu().FindStringSubmatch(lower)
	if m == nil {
		return ""
	}
	minor, suffix := m[3], "-only"
	if minor == "" {
		minor = "0"
	}
	if m[4] == "+" || m[4] == "-or-later" {
		suffix = "-or-later"
	}
	full := strings.ToUpper(m[1]) + "-" + m[2] + "." + minor
	if !slices.Contains([]string{"GPL-1.0", "GPL-2.0", "GPL-3.0", "LGPL-2.0", "LGPL-2.1", "LGPL-3.0", "AGPL-1.0", "AGPL-3.0", "GFDL-1.1", "GFDL-1.2", "GFDL-1.3"}, full) {
		return ""
	}
	return full + suffix
}

var junction = pattern.Lazy(`(?i)(?:,\s*|\s+)(and/or|and|or)\s+|,\s*`)

// expression joins a package's licences to an SPDX expression. Names that SPDX
// does not have become references, which are noted in extra.
func expression(p Package, extra map[string]*extracted) string {
	var parts []string
	for _, text := range p.Licences {
		if part := one(text, p, extra); part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	switch len(parts) {
	case 0:
		return none
	case 1:
		return strings.TrimSuffix(strings.TrimPrefix(parts[0], "("), ")")
	}
	return strings.Join(parts, " AND ")
}

// one converts a line such as "GPL-2+ or Artistic, and Expat" to an SPDX expression. If it has both "and" and
// "or", their precedence is only in the file's text, so all licences must be taken together.
func one(text string, p Package, extra map[string]*extracted) string {
	operator := " AND "
	joints := junction().FindAllStringSubmatch(text, -1)
	if len(joints) > 0 && !slices.ContainsFunc(joints, func(m []string) bool { return !strings.EqualFold(m[1], "or") && m[1] != "" }) &&
		slices.ContainsFunc(joints, func(m []string) bool { return m[1] != "" }) {
		operator = " OR "
	}
	var ids []string
	for _, name := range junction().Split(text, -1) {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		id := identifier(name)
		if id == "" {
			id = "LicenseRef-" + idOf(name)
			if extra[id] == nil {
				extra[id] = &extracted{ID: id, Name: name, Text: "See " + p.Texts}
			}
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > 1 {
		return "(" + strings.Join(ids, operator) + ")"
	}
	return strings.Join(ids, "")
}
