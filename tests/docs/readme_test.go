package docs

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestGlossary fails for a term that is out of order or explained twice.
func TestGlossary(t *testing.T) {
	var terms []string
	for _, m := range regexp.MustCompile(`(?m)^\*\*([^*]+)\*\*`).FindAllStringSubmatch(text(t, "docs/glossary.md"), -1) {
		terms = append(terms, strings.ToLower(m[1]))
	}
	if len(terms) < 30 || !slices.IsSorted(terms) || len(slices.Compact(slices.Clone(terms))) != len(terms) {
		t.Errorf("%d terms in docs/glossary.md, which should be in order: %q", len(terms), terms)
	}
}

// TestReadme fails for a README that is too long, that is silent about GPUs as long as none has been tried, or that
// says that nothing is published in other words than docs/install.md.
func TestReadme(t *testing.T) {
	readme, install := text(t, "README.md"), text(t, "docs/install.md")
	if n := strings.Count(readme, "\n"); n > 200 {
		t.Errorf("README.md has %d lines, should have 200 at most", n)
	}
	untried := strings.Contains(text(t, "docs/gpu-verified.md"), "not yet run")
	if says := strings.Contains(readme, "not yet verified on real hardware"); says != untried {
		t.Errorf("README.md says that GPUs are not verified: %v, docs/gpu-verified.md: %v", says, untried)
	}
	const unpublished = "**Nothing is published yet"
	if strings.Contains(readme, unpublished) != strings.Contains(install, unpublished) {
		t.Error("README.md and docs/install.md disagree on what is published")
	}
}

// TestCitation fails for a CITATION.cff that lacks what its format requires, or is of another version than
// CHANGELOG.md.
func TestCitation(t *testing.T) {
	citation := text(t, "CITATION.cff")
	for _, key := range []string{"cff-version", "message", "title", "authors", "license"} {
		if !strings.Contains("\n"+citation, "\n"+key+":") {
			t.Errorf("CITATION.cff has no %s", key)
		}
	}
	release := regexp.MustCompile(`(?m)^## \[?([0-9][^] \n]*)`).FindStringSubmatch(text(t, "CHANGELOG.md"))
	if release == nil || !strings.Contains(citation, "\nversion: "+release[1]+"\n") {
		t.Errorf("CITATION.cff is not of version %q, the newest in CHANGELOG.md", release)
	}
}
