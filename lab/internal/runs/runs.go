// Package runs serves the pages that are made from run records: it reads the records of a folder, fills the form of a page and writes it.
package runs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"strata/pkg/host"
	"strata/pkg/record"
)

// Run is a run record with the path of its file.
type Run struct {
	Path string
	*record.Record
}

// Read returns the records of a folder, sorted by the names of their files. A folder without records is an error.
func Read(ctx context.Context, dir string) ([]Run, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var all []Run
	for _, name := range files {
		r, err := record.Read(ctx, name)
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

// Fill replaces the placeholders of a form: pairs of a placeholder and its text, besides {{CPU}}, {{CORES}}, {{COMMIT}} and {{DATE}}.
func Fill(form string, pairs ...string) string {
	commit, _ := exec.Command("git", "rev-parse", "--short", "HEAD").Output() // a fact less
	return strings.NewReplacer(append(pairs, "{{CPU}}", host.CPUModel(), "{{CORES}}", strconv.Itoa(runtime.NumCPU()),
		"{{COMMIT}}", strings.TrimSpace(string(commit)), "{{DATE}}", time.Now().UTC().Format("2006-01-02 15:04 MST"))...).Replace(form)
}

// Write writes a page to a file, or to standard output if path is empty.
func Write(path, text string) error {
	if path == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return os.WriteFile(path, []byte(text), 0o666)
}
