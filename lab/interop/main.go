// Command interop exchanges arrays with other programs through a folder:
//
//	interop write DIR BIN    writes arrays, groups and images of all kinds, and their contents;
//	                         images also by the stages built in the folder BIN
//	interop check LOCATION   reads what the peers wrote into LOCATION (a folder or a web address)
//
// peers.py is the other side: it reads the output of write with every peer, and writes the input of check. run.sh
// runs both sides against each other.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
)

func main() {
	if len(os.Args) != map[bool]int{true: 4, false: 3}[len(os.Args) > 1 && os.Args[1] == "write"] {
		fmt.Fprintln(os.Stderr, "usage: interop write DIR BIN | interop check LOCATION")
		os.Exit(2)
	}
	ctx := context.Background()
	var err error
	switch os.Args[1] {
	case "write":
		err = write(ctx, os.Args[2], os.Args[3])
	case "check":
		err = check(ctx, os.Args[2])
	default:
		err = fmt.Errorf("unknown command %q: want write or check", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

// manifest lists the contents of a folder for its readers.
type manifest struct {
	Arrays []array `json:"arrays"`
	Groups []group `json:"groups"`
	Images []image `json:"images"`
}

// array is an array and its content.
type array struct {
	Path   string `json:"path"`
	Group  string `json:"group"`  // what the case tests: one line of the report each
	Writer string `json:"writer"` // who wrote it
	Format int    `json:"format"`
	DType  string `json:"dtype"` // format 3 name
	Shape  []int  `json:"shape"`
	Values string `json:"values"` // file with all elements: C order, little-endian

	Codecs         []string       `json:"codecs"` // names as in the metadata, filters too
	Order          string         `json:"order"`
	BigEndian      bool           `json:"big_endian"`
	Sharded        bool           `json:"sharded"`
	Attributes     map[string]any `json:"attributes"`
	DimensionNames []*string      `json:"dimension_names"`
}

// group is a hierarchy.
type group struct {
	Path         string         `json:"path"`
	Group        string         `json:"group"`
	Writer       string         `json:"writer"`
	Format       int            `json:"format"`
	Attributes   map[string]any `json:"attributes"`
	Members      []string       `json:"members"` // paths of all nodes below
	Consolidated bool           `json:"consolidated"`
}

// image is an OME-Zarr image.
type image struct {
	Path    string      `json:"path"`
	Group   string      `json:"group"`
	Writer  string      `json:"writer"`
	Version string      `json:"version"` // of OME-NGFF
	Name    string      `json:"name"`
	Axes    []string    `json:"axes"`
	Units   []string    `json:"units"`  // of each axis, "" when it has none
	Scales  [][]float64 `json:"scales"` // of each level, finest first
	// Translations has an empty element for each level without one.
	Translations [][]float64 `json:"translations"`
	// Object means that the image shows an object at the same place on every level.
	Object    bool      `json:"object,omitempty"`
	Shapes    [][]int   `json:"shapes"`
	DType     string    `json:"dtype"`
	Values    []string  `json:"values"`     // of each level
	VoxelSize []float64 `json:"voxel_size"` // µm, of the spatial axes
}

// tally counts the outcomes of cases by group and prints one line for each.
type tally struct {
	passed, failed map[string]int
}

func newTally() *tally { return &tally{map[string]int{}, map[string]int{}} }

func (t *tally) add(group, path string, err error) {
	if err == nil {
		t.passed[group]++
		return
	}
	t.failed[group]++
	fmt.Printf("FAIL %s: %s: %v\n", group, path, err)
}

// report prints the lines and reports whether all cases passed.
func (t *tally) report() error {
	groups := map[string]bool{}
	for g := range t.passed {
		groups[g] = true
	}
	for g := range t.failed {
		groups[g] = true
	}
	names := make([]string, 0, len(groups))
	for g := range groups {
		names = append(names, g)
	}
	sort.Strings(names)
	passed, failed := 0, 0
	for _, g := range names {
		passed += t.passed[g]
		failed += t.failed[g]
		fmt.Printf("%-60s %4d passed, %d failed\n", g, t.passed[g], t.failed[g])
	}
	fmt.Printf("total: %d passed, %d failed\n", passed, failed)
	switch {
	case failed > 0:
		return fmt.Errorf("%d cases failed", failed)
	case passed == 0:
		return fmt.Errorf("no case was tried")
	}
	return nil
}
