// Package runs serves the pages that are made from run records: it reads the records of a folder, and names the
// machine.
package runs

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"strata/pkg/host"
	"strata/pkg/runrecord"
)

// Run is a run record with the path of its file.
type Run struct {
	Path string
	*runrecord.Record
}

// Read returns the records of a folder, sorted by the names of their files. A folder without records is an error.
func Read(ctx context.Context, dir string) ([]Run, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Run
	for _, name := range files {
		r, err := runrecord.Read(ctx, name)
		if err != nil {
			return nil, err
		}
		all = append(all, Run{name, r})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no run records", dir)
	}
	return all, nil
}

// Program returns the name of the program with its sub-command.
func (r Run) Program() string { return strings.TrimSpace(r.Tool + " " + r.Command) }

// Machine says on what a page was measured: cores and processor, commit and date.
func Machine() string {
	commit, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output() // a fact less
	return fmt.Sprintf("%d cores (%s), commit %s, %s", runtime.NumCPU(), host.CPUModel(), strings.TrimSpace(string(commit)), time.Now().UTC().Format("2006-01-02 15:04 MST"))
}
