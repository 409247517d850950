package deb

import (
	"fmt"
	"strings"
)

// Relation names a package that another needs, possibly in certain versions.
type Relation struct {
	Name    string
	Op      string // "", "<<", "<=", "=", ">=" or ">>"
	Version string // with Op
}

// ParseRelations parses the value of a field such as Depends: groups that must all be met, each by one of its
// alternatives.
func ParseRelations(text string) ([][]Relation, error) {
	var groups [][]Relation
	for group := range strings.SplitSeq(text, ",") {
		if group = strings.TrimSpace(group); group == "" {
			continue
		}
		var alternatives []Relation
		for one := range strings.SplitSeq(group, "|") {
			r, err := parseRelation(strings.TrimSpace(one))
			if err != nil {
				return nil, err
			}
			alternatives = append(alternatives, r)
		}
		groups = append(groups, alternatives)
	}
	return groups, nil
}

// parseRelation parses "libc6", "libc6:any", "libc6 (>= 2.36)"; restrictions to
// architectures and build profiles stand in source packages only.
func parseRelation(text string) (Relation, error) {
	name, condition, versioned := strings.Cut(text, "(")
	name, _, _ = strings.Cut(strings.TrimSpace(name), ":")
	r := Relation{Name: name}
	if !validName(name) {
		return r, fmt.Errorf("%.60q is not NAME or NAME (OP VERSION)", text)
	}
	if !versioned {
		return r, nil
	}
	condition, ok := strings.CutSuffix(strings.TrimSpace(condition), ")")
	for _, op := range []string{"<<", "<=", ">=", ">>", "="} {
		if version, found := strings.CutPrefix(condition, op); ok && found {
			r.Op, r.Version = op, strings.TrimSpace(version)
			if r.Version != "" {
				return r, nil
			}
		}
	}
	return r, fmt.Errorf("%.60q is not NAME or NAME (OP VERSION)", text)
}

// allows reports whether a version meets the relation.
func (r Relation) allows(version string) bool {
	c := CompareVersions(version, r.Version)
	switch r.Op {
	case "<<":
		return c < 0
	case "<=":
		return c <= 0
	case "=":
		return c == 0
	case ">=":
		return c >= 0
	case ">>":
		return c > 0
	}
	return true
}

// metBy reports whether a package meets the relation, itself or by what it provides.
func (r Relation) metBy(p *Package) bool {
	if p.Name == r.Name {
		return r.allows(p.Version)
	}
	for _, v := range p.provides {
		if v.Name == r.Name && (r.Op == "" || v.Op == "=" && r.allows(v.Version)) {
			return true
		}
	}
	return false
}

func (r Relation) String() string {
	if r.Op == "" {
		return r.Name
	}
	return r.Name + " (" + r.Op + " " + r.Version + ")"
}
