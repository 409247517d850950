package zarrtool

import (
	"fmt"
	"strings"
	"testing"

	"strata/tests/clitest"
	"strata/tests/czicorpus"
)

// TestCZICorpus reads every sub-block and plane of the CZI corpus by zarr-tool cat, and what is broken.
func TestCZICorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	program := clitest.Program(t, "zarr-tool")
	for _, c := range czicorpus.Files(t) {
		file := czicorpus.Write(t, c.Name)
		check := func(e czicorpus.Expect, args ...string) {
			h, b, err := catPage(t, program, file, args...)
			if err != nil {
				t.Errorf("%s %v: %v", c.Name, args, err)
				return
			}
			if fmt.Sprint(h.Shape) != fmt.Sprint(e.Shape) || h.Type.Typestr() != e.DType {
				t.Errorf("%s %v: %v of %s, want %v of %s", c.Name, args, h.Shape, h.Type, e.Shape, e.DType)
			}
			e.Compare(t, fmt.Sprint(c.Name, args), b)
		}
		for i, s := range c.SubBlocks {
			if i%5 == 0 { // package czistore has read all
				check(s.Expect, "--subblock", fmt.Sprint(i))
			}
		}
		for _, w := range c.Composites {
			p := w.Args.Plane
			if w.Args.Zoom != 0 || strings.HasPrefix(w.Name, "roi") || p["Z"]+p["T"] > 1 {
				continue
			}
			args := []string{"--plane", fmt.Sprintf("%d,%d,%d", p["C"], p["Z"], p["T"])}
			if w.Args.Scene != nil {
				args = append(args, "--scene", fmt.Sprint(*w.Args.Scene))
			}
			check(w.Expect, args...)
		}
	}
	for _, c := range czicorpus.Negatives(t) {
		if !strings.HasPrefix(c.Must, "open fails") && !strings.Contains(c.Must, "tile fails") && !strings.Contains(c.Must, "error") || strings.Contains(c.Must, "metadata") {
			continue
		}
		_, _, err := catPage(t, program, czicorpus.Write(t, c.Name), "--plane", "0,0,0")
		switch optional := strings.Contains(c.Must, " or "); {
		case err == nil && optional:
		case err == nil:
			t.Errorf("%s (%s) was read", c.Name, c.Why)
		case exitOf(err) != 3 || strings.Count(err.Error(), "\n") != 1:
			t.Errorf("%s (%s): %v, want code 3 and one line", c.Name, c.Why, err)
		}
	}
}
