package start

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"strata/pkg/atomic"
	"strata/pkg/cli"
	"strata/pkg/survey"
)

// params is the file of parameters, which is in place before a preview is shown.
type params struct {
	path  string // "": none is written
	note  string // why
	group *atomic.Group
	out   *atomic.Output
}

// paramsFile begins the file of parameters. It is never in the folder that is looked at.
func paramsFile(r *cli.Run, folder string) (*params, error) {
	dir, given := r.String("out"), r.IsSet("out")
	if !given && r.Bool("json") {
		return &params{}, nil
	}
	if !given {
		dir = "."
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, cli.Usage("--out %s: is not a folder: make it first", dir)
	}
	p := &params{path: filepath.Join(dir, "params.yml"), group: atomic.NewGroup(atomic.Options{Overwrite: r.Options.Overwrite, Sync: r.Options.Sync, Warn: r.Warn})}
	if err := p.group.Input(folder); err != nil {
		return nil, err
	}
	var err error
	p.out, err = p.group.File(p.path, nil)
	switch {
	case err == nil:
		return p, nil
	case !given && inside(dir, folder):
		p.group.Abort()
		return &params{note: "the current folder is the one that was looked at: --out DIR writes params.yml elsewhere"}, nil
	case !given && errors.Is(err, atomic.ErrExists):
		p.group.Abort()
		return &params{note: p.path + " exists and stays as it is: --overwrite replaces it, --out DIR writes elsewhere"}, nil
	case errors.Is(err, os.ErrPermission):
		return nil, err
	}
	return nil, cli.Usage("%w", err)
}

// inside reports whether a folder is another one, or lies in it.
func inside(dir, folder string) bool {
	a, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	b, err := os.Stat(folder)
	for err == nil {
		if info, err := os.Stat(a); err == nil && os.SameFile(info, b) {
			return true
		}
		up := filepath.Dir(a)
		if up == a {
			return false
		}
		a = up
	}
	return false
}

// Abort removes what is not complete.
func (p *params) Abort() {
	if p.group != nil {
		p.group.Abort()
	}
}

// write writes the parameters of the first finding that the workflow takes; without one there is no file.
func (p *params) write(r *cli.Run, found []*survey.Finding) error {
	if p.out == nil {
		return nil
	}
	f := found[0]
	if len(f.Params) == 0 {
		p.Abort()
		p.path, p.out = "", nil
		return nil
	}
	err := p.out.Write(func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "# nextflow run nextflow/main.nf -params-file params.yml\n# Written by strata start: %s. All parameters: nextflow run nextflow/main.nf --help\n", f.What); err != nil {
			return err
		}
		for _, x := range f.Params {
			value, err := json.Marshal(x.Value) // which is YAML
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%s: %s\n", x.Name, value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return p.group.Commit()
}
