package deb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of what a control file may claim.
const (
	maxLine   = 1 << 20
	maxStanza = 4 << 20
)

// Stanza maps the field names of one paragraph of a control file to their values. Continuation lines are
// joined by line feeds.
type Stanza map[string]string

// readStanzas calls each with every paragraph of a control file.
func readStanzas(r io.Reader, each func(Stanza) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	s, last, size, n := Stanza{}, "", 0, 0
	flush := func() error {
		if len(s) == 0 {
			return nil
		}
		done := s
		s, last, size = Stanza{}, "", 0
		return each(done)
	}
	for lines.Scan() {
		n++
		line := lines.Text()
		if size += len(line); size > maxStanza {
			return fmt.Errorf("line %d: paragraph of more than %d bytes", n, maxStanza)
		}
		switch {
		case strings.TrimSpace(line) == "":
			if err := flush(); err != nil {
				return err
			}
		case line[0] == '#':
		case line[0] == ' ' || line[0] == '\t':
			if last == "" {
				return fmt.Errorf("line %d: goes on with a field that did not begin", n)
			}
			s[last] += "\n" + strings.TrimRight(line[1:], " \t\r")
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok || name == "" || strings.ContainsAny(name, " \t") {
				return fmt.Errorf("line %d: %.40q is not NAME: VALUE", n, line)
			}
			if _, twice := s[name]; twice {
				return fmt.Errorf("line %d: field %s stands twice in its paragraph", n, name)
			}
			last = name
			s[name] = strings.TrimSpace(value)
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return fmt.Errorf("line %d: longer than %d bytes", n+1, maxLine)
		}
		return err
	}
	return flush()
}
