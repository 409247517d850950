package recipe

import (
	"bufio"
	_ "embed"
	"fmt"
	"strings"

	"strata/pkg/sif"
	"strata/pkg/sif/spdx"
)

// ModulesFile names the file with the licences of the Go modules in the programs.
const ModulesFile = docDir + "/modules.txt"

// modulesText has the licences of all modules of the project's programs, as
// their authors ship them. A test compares it with the modules themselves and
// writes it anew: go test ./pkg/sif/recipe -run Modules -update.
//
//go:embed modules.txt
var modulesText string

// moduleLicence is a licence's text with its module.
type moduleLicence struct {
	modules  []string // PATH VERSION; the standard library is called stdlib
	licences []string // SPDX's names, all of which hold
	text     string
}

// readModules reads what writeModules writes: lines "module PATH VERSION
// LICENCE…", one for each module with the text that follows, indented by two.
func readModules(file string) ([]moduleLicence, error) {
	var out []moduleLicence
	var text strings.Builder
	flush := func() {
		if len(out) > 0 && text.Len() > 0 {
			out[len(out)-1].text = strings.TrimRight(text.String(), "\n") + "\n"
		}
		text.Reset()
	}
	s := bufio.NewScanner(strings.NewReader(file))
	for n := 1; s.Scan(); n++ {
		switch line := s.Text(); {
		case strings.HasPrefix(line, "module "):
			f := strings.Fields(line)
			if len(f) < 4 {
				return nil, fmt.Errorf("modules.txt: line %d: want module PATH VERSION LICENCE", n)
			}
			if text.Len() > 0 || len(out) == 0 {
				flush()
				out = append(out, moduleLicence{licences: f[3:]})
			}
			last := &out[len(out)-1]
			last.modules = append(last.modules, f[1]+" "+f[2])
		case line == "" && text.Len() == 0: // before a text
		case line == "" || strings.HasPrefix(line, "  "):
			text.WriteString(strings.TrimPrefix(line, "  ") + "\n")
		case strings.HasPrefix(line, "#") && len(out) == 0:
		default:
			return nil, fmt.Errorf("modules.txt: line %d: want module, or a text that is indented by two", n)
		}
	}
	flush()
	return out, s.Err()
}

// writeModules inverts readModules, after a first line.
func writeModules(first string, list []moduleLicence) string {
	var b strings.Builder
	b.WriteString(first)
	for _, l := range list {
		b.WriteString("\n")
		for _, m := range l.modules {
			b.WriteString("module " + m + " " + strings.Join(l.licences, " ") + "\n")
		}
		b.WriteString("\n")
		for line := range strings.Lines(l.text) {
			if line != "\n" {
				line = "  " + line
			}
			b.WriteString(line)
		}
	}
	return b.String()
}

// licences gives modules their licences, and returns the texts of these.
func licences(parts []spdx.Package) ([]moduleLicence, error) {
	all, err := readModules(modulesText)
	if err != nil {
		return nil, err
	}
	var here []moduleLicence
	for _, l := range all {
		found := moduleLicence{licences: l.licences, text: l.text}
		for i := range parts {
			p := &parts[i]
			name := p.Name + " " + p.Version
			for _, m := range l.modules {
				path, _, _ := strings.Cut(m, " ")
				if m == name || path == stdlib && p.Name == stdlib { // its licence is that of every version
					p.Licences, p.Texts = l.licences, ModulesFile
					found.modules = append(found.modules, name)
				}
			}
		}
		if len(found.modules) > 0 {
			here = append(here, found)
		}
	}
	return here, nil
}

// addModules gives the modules of the bill their licences, and puts the texts
// into the image. What is not known stays without, with a warning.
func (r *Recipe) addModules(root *sif.Root, parts []spdx.Package) error {
	here, err := licences(parts)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if len(p.Licences) == 0 && r.Warn != nil {
			r.Warn("module %s %s: its licence is not known: the bill of materials says so", p.Name, p.Version)
		}
	}
	if len(here) == 0 {
		return nil
	}
	return root.WriteText(ModulesFile, 0o644, writeModules("Licences of the Go modules in the programs of this image.\n", here))
}
