package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// LICENSE names its owner: the appendix of the Apache License has fields in brackets for it.
func TestLicenceNamesItsOwner(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "\n   Copyright 2026 The strata authors\n") || strings.Contains(string(text), "[yyyy]") {
		t.Error("LICENSE does not name the owner")
	}
}
