package cli

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// helpWidth is the width that descriptions are wrapped to.
const helpWidth = 100

// printHelp prints the help of a command.
func printHelp(w io.Writer, c *Command, path string) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%s - %s\n", path, c.Usage)
	for _, s := range c.sections(path) {
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
func (c *Command) sections(path string) []section {
	usage := section{title: "Usage"}
	if c.Run != nil {
		usage.lines = append(usage.lines, c.synopsis(path)+" [flags]")
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
		out = append(out, section{title: "Commands", rows: c.commandRows()}, section{text: path + " COMMAND --help describes a command."})
	}
	if len(c.Args) > 0 {
		out = append(out, section{title: "Arguments", rows: c.argumentRows()})
	}
	out = append(out, c.flagSections()...)
	if len(c.Examples) > 0 {
		var lines []string
		for _, e := range c.Examples {
			if e.Usage != "" {
				lines = append(lines, "# "+e.Usage)
			}
			lines = append(lines, e.typed(path))
		}
		out = append(out, section{title: "Examples", lines: lines})
	}
	if c.alias != nil {
		out = append(out, section{text: "This is " + c.original + " under another name: " + c.alias.differences() + "."})
	} else if len(c.Aliases) > 0 {
		var rows [][2]string
		for i := range c.Aliases {
			rows = append(rows, [2]string{c.Aliases[i].Name, c.Aliases[i].differences()})
		}
		out = append(out, section{title: "Also runs as, when started by a link of that name", rows: rows})
	}
	return append(out, section{text: "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input, 4 no usable GPU, 130/143 interrupted."})
}

// commandRows describes the sub-commands.
func (c *Command) commandRows() [][2]string {
	var rows [][2]string
	for _, s := range c.Commands {
		rows = append(rows, [2]string{s.Name, s.Usage})
	}
	return rows
}

// argumentRows describes the positional arguments.
func (c *Command) argumentRows() [][2]string {
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
func (c *Command) flagSections() []section {
	all := c.flags()
	if c.Run == nil && len(c.Commands) > 0 {
		all = commonFlags(0)
	}
	common := all[len(c.Flags):]
	var out []section
	add := func(title string, flags []Flag, text string) {
		s := section{title: title, text: text}
		for _, f := range flags {
			if !f.Hidden {
				s.rows = append(s.rows, [2]string{f.typed(), f.Usage + f.defaultNote()})
			}
		}
		if len(s.rows) > 0 {
			out = append(out, s)
		}
	}
	add("Options", all[:len(c.Flags)], "")
	add(inOut, inSection(common, inOut), "")
	add(resources, inSection(common, resources), "")
	add(onGPUs, inSection(common, onGPUs), "")
	add(gpuFiles, inSection(common, gpuFiles), "Environment variables set the same, such as STRATA_COMPAT_MODE for --compat_mode. KvikIO's variables work, too.")
	add(remoteFiles, inSection(common, remoteFiles), "Environment variables set the same, such as STRATA_HTTP_TIMEOUT for --http_timeout. KvikIO's variables work, too.")
	add(general, inSection(common, general), "")
	return out
}

// The sections of the help that common flags stand in, beside [gpuFiles] and [remoteFiles].
const (
	inOut     = "Input and output options"
	resources = "Resource options"
	onGPUs    = "GPU options"
	general   = "General options"
)

// inSection returns the flags that stand in a section of the help.
func inSection(flags []Flag, section string) []Flag {
	return slices.DeleteFunc(slices.Clone(flags), func(f Flag) bool { return f.section != section })
}

// typed is how a flag stands in the help: "-j, --threads N", "--[no-]use_gpu".
func (f *Flag) typed() string {
	text := "    "
	if f.Short != "" {
		text = "-" + f.Short + ", "
	}
	if f.Kind == Bool && f.Default == "true" {
		text += "--[no-]" + f.Name
	} else {
		text += "--" + f.Name
	}
	if p := f.placeholder(); p != "" {
		text += " " + p
	}
	return text
}

func (f *Flag) defaultNote() string {
	switch {
	case f.Note != "":
		return " (default: " + f.Note + ")"
	case f.Kind == Bool && f.Default == "true":
		return " (default: on)"
	case f.Kind == Bool || f.Default == "":
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
