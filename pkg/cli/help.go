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
	fmt.Fprintf(b, "%s - %s\n\nUsage:\n", path, c.Usage)
	if c.Run != nil {
		fmt.Fprintf(b, "  %s [flags]\n", c.synopsis(path))
	}
	if len(c.Commands) > 0 {
		fmt.Fprintf(b, "  %s COMMAND [flags]\n", path)
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(c.Description), "\n\n") {
		if paragraph != "" {
			b.WriteString("\n")
			wrap(b, "", strings.Fields(paragraph))
		}
	}
	if len(c.Commands) > 0 {
		b.WriteString("\nCommands:\n")
		var rows [][2]string
		for _, s := range c.Commands {
			rows = append(rows, [2]string{s.Name, s.Usage})
		}
		table(b, rows)
		fmt.Fprintf(b, "\n%s COMMAND --help tells more about a command.\n", path)
	}
	if len(c.Args) > 0 {
		b.WriteString("\nArguments:\n")
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
		table(b, rows)
	}
	all := c.flags()
	if c.Run == nil && len(c.Commands) > 0 {
		all = commonFlags(0)
	}
	flagSection(b, "Options", all[:len(c.Flags)])
	common := all[len(c.Flags):]
	flagSection(b, "Common options", inSection(common, ""))
	if more := inSection(common, gpuFiles); len(more) > 0 {
		flagSection(b, gpuFiles, more)
		wrap(b, "", strings.Fields("Each has a variable as well, from STRATA_COMPAT_MODE to STRATA_GDS_REGISTER; KvikIO's are honoured."))
	}
	if more := inSection(common, remoteFiles); len(more) > 0 {
		flagSection(b, remoteFiles, more)
		wrap(b, "", strings.Fields("Each has a variable as well, from STRATA_HTTP_STATUS_CODES to STRATA_HTTP_MIN_RATE; KvikIO's are honoured."))
	}
	if len(c.Examples) > 0 {
		b.WriteString("\nExamples:\n")
		for _, e := range c.Examples {
			if e.Usage != "" {
				fmt.Fprintf(b, "  # %s\n", e.Usage)
			}
			fmt.Fprintf(b, "  %s\n", e.Command)
		}
	}
	if c.alias != nil {
		b.WriteString("\n")
		wrap(b, "", strings.Fields("This is "+c.original+" under another name: "+c.alias.differences()+"."))
	} else if len(c.Aliases) > 0 {
		b.WriteString("\nAlso runs as, when started by a link of that name:\n")
		var rows [][2]string
		for i := range c.Aliases {
			rows = append(rows, [2]string{c.Aliases[i].Name, c.Aliases[i].differences()})
		}
		table(b, rows)
	}
	b.WriteString("\nExit codes: 0 done, 1 failed, 2 wrong usage, 3 bad input, 4 no usable GPU, 130/143 interrupted.\n")
	return b.Flush()
}

// inSection are the flags that stand in a section of the help.
func inSection(flags []Flag, section string) []Flag {
	return slices.DeleteFunc(slices.Clone(flags), func(f Flag) bool { return f.section != section })
}

func flagSection(b *bufio.Writer, title string, flags []Flag) {
	var rows [][2]string
	for _, f := range flags {
		if !f.Hidden {
			rows = append(rows, [2]string{f.typed(), f.Usage + f.defaultNote()})
		}
	}
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n%s:\n", title)
		table(b, rows)
	}
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
