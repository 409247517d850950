package sif

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"strata/pkg/pattern"
)

// ErrDefinition is wrapped by errors about a definition file.
var ErrDefinition = errors.New("definition file")

// Sources of a definition's root.
const (
	Scratch = "scratch" // an empty one, with mount points
	Strata  = "strata"  // the recipe of this project
)

// maxDefinition is the maximum length of a definition file in bytes.
const maxDefinition = 4 << 20

// Definition is a parsed definition file. [Definition.Check] reports what cannot be built here.
type Definition struct {
	Name     string // of the file
	Text     string // all of it
	Header   []Keyword
	Sections []Section
}

// Keyword is a line "Key: value" of the header.
type Keyword struct {
	Name  string // in lower case
	Value string
	Line  int
}

// Section is the text under a line "%name arguments".
type Section struct {
	Name  string // "runscript"
	Args  string // behind the name
	Line  int    // of that line
	Lines []string
}

// Text returns the section's lines, less empty ones at the end.
func (s *Section) Text() string {
	text := strings.TrimRight(strings.Join(s.Lines, "\n"), " \t\n")
	if text == "" {
		return ""
	}
	return text + "\n"
}

var sectionLine = pattern.Lazy(`^%([A-Za-z]+)(?:\s+(.*))?$`)

// ParseDefinition parses a definition file. Errors name the line.
func ParseDefinition(name string, r io.Reader) (*Definition, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxDefinition+1))
	if err != nil {
		return nil, err
	}
	d := &Definition{Name: name, Text: string(text)}
	if len(text) > maxDefinition || bytes.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("%s: not a %w: it holds zero bytes or is longer than %d bytes", name, ErrDefinition, maxDefinition)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxDefinition+2)
	var section *Section
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		trimmed := strings.TrimSpace(line)
		switch m := sectionLine().FindStringSubmatch(line); {
		case m != nil:
			d.Sections = append(d.Sections, Section{Name: strings.ToLower(m[1]), Args: strings.TrimSpace(m[2]), Line: n})
			section = &d.Sections[len(d.Sections)-1]
		case section != nil && len(trimmed) > 10 && strings.EqualFold(trimmed[:10], "bootstrap:"):
			return nil, d.errorf(n, "a second Bootstrap: images of several stages are not built here")
		case section != nil:
			section.Lines = append(section.Lines, line)
		case trimmed == "" || trimmed[0] == '#':
		default:
			key, value, ok := strings.Cut(trimmed, ":")
			key = strings.ToLower(strings.TrimSpace(key))
			if !ok || key == "" || strings.ContainsAny(key, " \t%") {
				return nil, d.errorf(n, "%.40q is neither KEY: VALUE nor %%SECTION", trimmed)
			}
			if d.header(key) != nil {
				return nil, d.errorf(n, "%s stands twice", key)
			}
			d.Header = append(d.Header, Keyword{key, strings.TrimSpace(value), n})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if d.Bootstrap() == "" {
		return nil, fmt.Errorf("%s: not a %w: no line says Bootstrap", name, ErrDefinition)
	}
	return d, nil
}

func (d *Definition) errorf(line int, format string, args ...any) error {
	return fmt.Errorf("%w %s: line %d: %s", ErrDefinition, d.Name, line, fmt.Sprintf(format, args...))
}

func (d *Definition) header(key string) *Keyword {
	for i := range d.Header {
		if d.Header[i].Name == key {
			return &d.Header[i]
		}
	}
	return nil
}

// Bootstrap returns the source of the root, in lower case.
func (d *Definition) Bootstrap() string {
	if k := d.header("bootstrap"); k != nil {
		return strings.ToLower(k.Value)
	}
	return ""
}

// Section returns the section with the given name, or nil.
func (d *Definition) Section(name string) *Section {
	for i := range d.Sections {
		if d.Sections[i].Name == name {
			return &d.Sections[i]
		}
	}
	return nil
}

// Script returns the text of a section, or "" if it does not exist.
func (d *Definition) Script(name string) string {
	if s := d.Section(name); s != nil {
		return s.Text()
	}
	return ""
}

// sections that can be built here.
var sections = []string{"environment", "files", "help", "labels", "runscript", "startscript", "test"}

// Check returns an error that lists, with line numbers, the parts of a definition that cannot be built here.
func (d *Definition) Check() error {
	var errs []error
	if k := d.header("bootstrap"); d.Bootstrap() != Scratch && d.Bootstrap() != Strata {
		errs = append(errs, d.errorf(k.Line, "Bootstrap: %s is not supported: want scratch or strata", k.Value))
	}
	for _, k := range d.Header {
		if k.Name != "bootstrap" {
			errs = append(errs, d.errorf(k.Line, "keyword %s is not supported: Bootstrap takes no others here", k.Name))
		}
	}
	seen := map[string]bool{}
	for i := range d.Sections {
		s := &d.Sections[i]
		switch {
		case !slices.Contains(sections, s.Name):
			errs = append(errs, d.errorf(s.Line, "%%%s is not supported: want one of %%%s", s.Name, strings.Join(sections, ", %")))
		case s.Args != "":
			errs = append(errs, d.errorf(s.Line, "%%%s %s is not supported: %%%s takes no arguments here", s.Name, s.Args, s.Name))
		case seen[s.Name] && s.Name != "files":
			errs = append(errs, d.errorf(s.Line, "%%%s stands twice", s.Name))
		}
		seen[s.Name] = true
	}
	if _, err := d.Labels(); err != nil {
		errs = append(errs, err)
	}
	if _, err := d.Files(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Labels returns the lines "KEY VALUE" of %labels.
func (d *Definition) Labels() (map[string]string, error) {
	labels := map[string]string{}
	s := d.Section("labels")
	if s == nil {
		return labels, nil
	}
	for i, line := range s.Lines {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		cut := strings.IndexAny(line, " \t")
		if cut < 0 {
			return nil, d.errorf(s.Line+1+i, "label %.40q has no value: want KEY VALUE", line)
		}
		labels[line[:cut]] = strings.TrimSpace(line[cut:])
	}
	return labels, nil
}

// FileLine is a line "SOURCE [DESTINATION]" of %files.
type FileLine struct {
	Source      string // on this machine; may be a pattern
	Destination string // in the image; "" is the source's own path
	Line        int
}

// Files returns the lines of %files that copy from this machine. Words with spaces are quoted as in a shell.
func (d *Definition) Files() ([]FileLine, error) {
	var out []FileLine
	for i := range d.Sections {
		s := &d.Sections[i]
		if s.Name != "files" || s.Args != "" {
			continue
		}
		for j, line := range s.Lines {
			n := s.Line + 1 + j
			words, err := splitWords(line)
			switch {
			case err != nil:
				return nil, d.errorf(n, "%v", err)
			case len(words) == 0:
				continue
			case len(words) > 2 || words[0] == "":
				return nil, d.errorf(n, "%.60q is not SOURCE [DESTINATION]: put quotes around names with spaces", strings.TrimSpace(line))
			}
			f := FileLine{Source: words[0], Line: n}
			if len(words) == 2 {
				f.Destination = words[1]
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// splitWords splits a line into words as a shell does: quotes and backslashes,
// but nothing is expanded. A "#" begins a comment.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == '\'':
			word.WriteByte(c)
		case c == '\\':
			if i++; i == len(line) {
				return nil, errors.New("a backslash at the end")
			}
			if quote == '"' && line[i] != '"' && line[i] != '\\' {
				word.WriteByte('\\')
			}
			word.WriteByte(line[i])
			inWord = true
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == '#' && !inWord:
			return words, nil
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
