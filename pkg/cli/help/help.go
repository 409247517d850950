// Package help prints what a program says of itself, made of the description of its command: its help, a screen of it,
// a page of the manual, and what a shell needs to complete its flags.
package help

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"strata/pkg/cli/flags"
)

// helpWidth is the width that descriptions are wrapped to.
const helpWidth = 100

// Print prints the whole help of a command that is started by path.
func Print(w io.Writer, c *flags.Command, path string) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s - %s\n", path, c.Usage)
	for _, s := range sections(c, path) {
		b.WriteString("\n")
		if s.title != "" {
			b.WriteString(s.title + ":\n")
		}
		for _, line := range s.lines {
			b.WriteString("  " + line + "\n")
		}
		table(b, s.rows)
		if s.text != "" {
			wrap(b, "", strings.Fields(s.text))
		}
	}
	return b.Flush()
}

// section is a part of a command's help, as a page of text or of the manual shows it.
type section struct {
	title string      // "" for a paragraph between sections
	lines []string    // as typed
	rows  [][2]string // names, and what they are
	text  string      // a paragraph, below
}

// sections returns the help of a command below its first line.
func sections(c *flags.Command, path string) []section {
	usage := section{title: "Usage"}
	if c.Run != nil {
		usage.lines = append(usage.lines, c.Synopsis(path)+" [flags]")
	}
	if c.Shared&flags.Pairs != 0 {
		usage.lines = append(usage.lines, path+" --"+flags.BatchFlag+" FILE [flags]")
	}
	if len(c.Commands) > 0 {
		usage.lines = append(usage.lines, path+" COMMAND [flags]")
	}
	out := []section{usage}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(c.Description), "\n\n") {
		if paragraph != "" {
			out = append(out, section{text: paragraph})
		}
	}
	if len(c.Commands) > 0 {
		out = append(out, section{title: "Commands", rows: commandRows(c)}, section{text: path + " COMMAND --help describes a command."})
	}
	if len(c.Args) > 0 {
		out = append(out, section{title: "Arguments", rows: argumentRows(c)})
	}
	out = append(out, flagSections(c)...)
	if len(c.Examples) > 0 {
		var lines []string
		for _, e := range c.Examples {
			if e.Usage != "" {
				lines = append(lines, "# "+e.Usage)
			}
			lines = append(lines, e.Typed(path))
		}
		out = append(out, section{title: "Examples", lines: lines})
	}
	if alias := c.Alias(); alias != nil {
		out = append(out, section{text: "This is " + c.Tool() + " under another name: " + alias.Differences() + "."})
	} else if len(c.Aliases) > 0 {
		var rows [][2]string
		for i := range c.Aliases {
			rows = append(rows, [2]string{c.Aliases[i].Name, c.Aliases[i].Differences()})
		}
		out = append(out, section{title: "Also runs as, when started by a link of that name", rows: rows})
	}
	return append(out, section{text: "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input, 4 no usable GPU, 130/143 interrupted."})
}

// commandRows describes the sub-commands.
func commandRows(c *flags.Command) [][2]string {
	var rows [][2]string
	for _, s := range c.Commands {
		rows = append(rows, [2]string{s.Name, s.Usage})
	}
	return rows
}

// argumentRows describes the positional arguments.
func argumentRows(c *flags.Command) [][2]string {
	var rows [][2]string
	for _, a := range c.Args {
		name, usage := a.Name, a.Usage
		if a.Many {
			name += "..."
		}
		if a.Optional {
			usage += " (optional)"
		}
		rows = append(rows, [2]string{name, usage})
	}
	return rows
}

// flagSections describes the flags: the command's own, then common ones.
func flagSections(c *flags.Command) []section {
	all := c.All()
	var out []section
	add := func(title string, of []flags.Flag, text string) {
		s := section{title: title, text: text}
		for i := range of {
			if f := &of[i]; !f.Hidden {
				s.rows = append(s.rows, [2]string{typed(f), f.Usage + defaultNote(f)})
			}
		}
		if len(s.rows) > 0 {
			out = append(out, s)
		}
	}
	add("Options", all[:len(c.Flags)], "")
	common := all[len(c.Flags):]
	for _, s := range flags.Sections() {
		add(s.Title, slices.DeleteFunc(slices.Clone(common), func(f flags.Flag) bool { return f.Section != s.Title }), s.Text)
	}
	return out
}

// typed is how a flag stands in the help: "-j, --threads N", "--[no-]use_gpu".
func typed(f *flags.Flag) string {
	text := "    "
	if f.Short != "" {
		text = "-" + f.Short + ", "
	}
	if f.Kind == flags.Bool && f.Default == "true" {
		text += "--[no-]" + f.Name
	} else {
		text += "--" + f.Name
	}
	if p := f.Placeholder(); p != "" {
		text += " " + p
	}
	return text
}

func defaultNote(f *flags.Flag) string {
	switch {
	case f.Note != "":
		return " (default: " + f.Note + ")"
	case f.Kind == flags.Bool && f.Default == "true":
		return " (default: on)"
	case f.Kind == flags.Bool || f.Default == "":
		return ""
	}
	return " (default: " + f.Default + ")"
}

// table prints rows in two columns; a long left cell has its line for itself.
func table(b *bufio.Writer, rows [][2]string) {
	const widest = 32
	left := 0
	for _, r := range rows {
		if n := len(r[0]); n <= widest {
			left = max(left, n)
		}
	}
	indent := strings.Repeat(" ", left+4)
	for _, r := range rows {
		words := strings.Fields(r[1])
		if len(r[0]) > widest {
			fmt.Fprintf(b, "  %s\n%s", r[0], indent)
		} else {
			fmt.Fprintf(b, "  %-*s  ", left, r[0])
		}
		wrap(b, indent, words)
	}
}

// wrap prints words in lines of at most helpWidth; the first line begins
// where the cursor stands, behind as much as indent.
func wrap(b *bufio.Writer, indent string, words []string) {
	column := len(indent)
	for i, w := range words {
		if i > 0 {
			if column+1+len(w) > helpWidth {
				b.WriteString("\n" + indent)
				column = len(indent)
			} else {
				b.WriteByte(' ')
				column++
			}
		}
		b.WriteString(w)
		column += len(w)
	}
	b.WriteByte('\n')
}
