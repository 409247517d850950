package spdx

import (
	"testing"
	"time"
)

func TestExpression(t *testing.T) {
	for _, c := range []struct {
		want     string
		licences []string
	}{
		{"NOASSERTION", nil},
		{"MIT", []string{"Expat"}},
		{"GPL-3.0-or-later", []string{"GPL-3+"}},
		{"GPL-2.0-only AND LGPL-2.1-or-later", []string{"GPL-2", "LGPL-2.1+"}},
		{"GPL-2.0-or-later OR Artistic-1.0-Perl", []string{"GPL-2+ or Artistic"}},
		{"GPL-2.0-or-later AND MIT", []string{"GPL-2+, and Expat"}},
		{"(BSD-3-Clause OR GPL-2.0-only) AND GFDL-1.3-or-later AND LicenseRef-public-domain", []string{"BSD-3-clause or GPL-2", "GFDL-1.3+", "public-domain"}},
		{"GPL-2.0-only AND MIT AND Zlib", []string{"GPL-2 or Expat and zlib"}},
		{"LicenseRef-GPL-9-", []string{"GPL-9+"}},
		{"LicenseRef-GPL-3--with-Autoconf-exception", []string{"GPL-3+ with Autoconf exception"}},
	} {
		extra := map[string]*extracted{}
		if got := expression(Package{Licences: c.licences, Texts: "/x"}, extra); got != c.want {
			t.Errorf("%q: %s, want %s", c.licences, got, c.want)
		}
		for id, x := range extra {
			if x.ID != id || x.Text != "See /x" {
				t.Errorf("%+v", x)
			}
		}
	}
}

func TestSameBytes(t *testing.T) {
	write := func(version string) string {
		text, err := Write("sif-1", time.Unix(5, 0), Package{Name: "image"}, []Package{{Name: "a", Version: version, Licences: []string{"odd one", "other"}}, {Name: "b"}})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if first, second := write("1"), write("1"); first != second {
		t.Error("the same parts give different bytes")
	}
	if write("1") == write("2") {
		t.Error("other parts give the same bytes")
	}
}
