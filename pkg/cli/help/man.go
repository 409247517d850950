package help

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"strata/pkg/cli/flags"
	"strata/pkg/cli/release"
)

// Man prints the page of a program in the manual, in the language of troff (man(7)), with what its help and that of its
// sub-commands say. It has no date, so that the same program always prints the same bytes.
func Man(w io.Writer, c *flags.Command) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, ".TH %s 1 \"\" \"strata %s\" \"User Commands\"\n.SH NAME\n%s \\- %s\n", strings.ToUpper(c.Name), release.Version(), c.Name, roff(c.Usage))
	manSections(b, ".SH", sections(c, c.Name))
	for _, sub := range c.Commands {
		if c.IsGroup() {
			continue
		}
		path := c.Name + " " + sub.Name
		fmt.Fprintf(b, ".SH %s\n%s.\n", quoteRoff(path), roff(sub.Usage))
		manSections(b, ".SS", sections(sub, path))
	}
	if c.IsGroup() {
		b.WriteString(".SH SEE ALSO\n")
		for i, sub := range c.Commands {
			if i > 0 {
				b.WriteString(",\n")
			}
			fmt.Fprintf(b, ".BR %s (1)", roff(sub.Name))
		}
		b.WriteString("\n")
	}
	return b.Flush()
}

// manSections prints sections of help, each below a macro.
func manSections(b *bufio.Writer, macro string, sections []section) {
	for i, s := range sections {
		title := s.title
		switch {
		case i == 0:
			title = "Synopsis"
		case i == 1 && title == "":
			title = "Description"
		}
		if title == "" {
			b.WriteString(".PP\n")
		} else {
			fmt.Fprintf(b, "%s %s\n", macro, quoteRoff(strings.ToUpper(title)))
		}
		if len(s.lines) > 0 {
			b.WriteString(".nf\n")
			for _, line := range s.lines {
				b.WriteString(literal(line) + "\n")
			}
			b.WriteString(".fi\n")
		}
		for _, row := range s.rows {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", literal(strings.TrimSpace(row[0])), roff(row[1]))
		}
		if s.text != "" {
			if len(s.rows) > 0 {
				b.WriteString(".PP\n")
			}
			b.WriteString(roff(s.text) + "\n")
		}
	}
}

// roff returns text as troff takes it for text: a line that begins with a dot or a quote would be a request.
func roff(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), `\`, `\e`)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r) // in which encoding the page is read is not known
		}
	}
	return b.String()
}

// literal is roff for what is typed: a dash is no hyphen, and may be copied.
func literal(text string) string {
	return strings.NewReplacer("-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(roff(text))
}

// quoteRoff returns an argument of a macro.
func quoteRoff(text string) string { return `"` + strings.ReplaceAll(literal(text), `"`, `\(dq`) + `"` }
