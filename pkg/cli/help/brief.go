package help

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"strata/pkg/cli/flags"
)

// The size of a screen that the help of -h fits.
const (
	screenLines = 24
	screenWidth = 80
)

// mostExamples limits the examples of -h.
const mostExamples = 2

// Brief prints the help of -h: usage, arguments, the command's own options in a few words each, two examples. What does
// not fit on a screen is left to --help.
func Brief(w io.Writer, c *flags.Command, path string) error {
	lines := []string{few(path+" - "+c.Usage, screenWidth), ""}
	before := "Usage: "
	if c.Run != nil {
		lines = append(lines, before+c.Synopsis(path)+" [flags]")
		before = strings.Repeat(" ", len(before))
	}
	if len(c.Commands) > 0 {
		lines = append(lines, before+path+" COMMAND [flags]")
	}
	var end []string
	if examples := briefExamples(c, path); len(examples) > 0 {
		end = append([]string{"", "Examples:"}, examples...)
	}
	end = append(end, "", "All options: "+path+" --help")
	if len(c.Commands) > 0 {
		end[len(end)-1] = "More: " + path + " COMMAND -h, " + path + " --help"
	}
	lines = append(lines, briefWords(c, screenLines-len(lines)-len(end))...)
	if options := briefOptions(c, screenLines-len(lines)-len(end)-2); len(options) > 0 {
		lines = append(append(lines, "", "Options:"), options...)
	}
	b := bufio.NewWriter(w)
	for _, line := range append(lines, end...) {
		b.WriteString(line + "\n")
	}
	return b.Flush()
}

// briefWords describes the arguments and the sub-commands in so many lines, and only names the last sub-commands where
// these are too few.
func briefWords(c *flags.Command, room int) (lines []string) {
	commands := commandRows(c)
	for described := len(commands); ; described-- {
		var others []string
		for _, r := range commands[described:] {
			others = append(others, r[0])
		}
		lines = append(columns(append(argumentRows(c), commands[:described]...)), listed("and ", others)...)
		if len(lines) <= room || described == 0 {
			return lines
		}
	}
}

// briefExamples returns examples, of those that fit on a line if there are enough.
func briefExamples(c *flags.Command, path string) []string {
	var short, long []string
	for _, e := range c.Examples {
		if line := "  " + e.Typed(path); utf8.RuneCountInString(line) <= screenWidth {
			short = append(short, line)
		} else {
			long = append(long, line)
		}
	}
	all := append(short, long...)
	return all[:min(len(all), max(1, min(len(short), mostExamples)))]
}

// briefOptions describes the command's own options in so many lines: one for each, and where these are too few, only
// the names of the last, as many as fit.
func briefOptions(c *flags.Command, room int) []string {
	own := slices.DeleteFunc(slices.Clone(c.All()[:len(c.Flags)]), func(f flags.Flag) bool { return f.Hidden })
	short := slices.ContainsFunc(own, func(f flags.Flag) bool { return f.Short != "" })
	var rows [][2]string
	for _, f := range own {
		if f.Value == "" && len(f.Placeholder()) > screenWidth/4 {
			f.Value = "NAME" // the choices are too long for a column
		}
		name := typed(&f)
		if !short {
			name = strings.TrimSpace(name)
		}
		rows = append(rows, [2]string{name, f.Usage})
	}
	described, named := len(own), len(own)
	for {
		var others []string
		for _, f := range own[described:named] {
			others = append(others, "--"+f.Name)
		}
		if named < len(own) {
			others = append(others, fmt.Sprintf("… %d more", len(own)-named))
		}
		lines := append(columns(rows[:described]), listed("and ", others)...)
		switch {
		case len(lines) <= room || named == 0:
			return lines
		case described > room/2:
			described--
		default:
			named = max(0, named-1)
			described = min(described, named)
		}
	}
}

// listed wraps names in lines of a screen's width.
func listed(before string, names []string) (lines []string) {
	for i, name := range names {
		if i < len(names)-1 {
			name += ","
		}
		switch last := len(lines) - 1; {
		case last < 0:
			lines = append(lines, "  "+before+name)
		case len(lines[last])+1+len(name) > screenWidth:
			lines = append(lines, "  "+name)
		default:
			lines[last] += " " + name
		}
	}
	return lines
}

// columns returns rows of two columns, each on one line.
func columns(rows [][2]string) (lines []string) {
	const widest = 32
	left := 0
	for _, r := range rows {
		if n := utf8.RuneCountInString(r[0]); n <= widest {
			left = max(left, n)
		}
	}
	for _, r := range rows {
		line := fmt.Sprintf("  %-*s  ", left, r[0])
		lines = append(lines, strings.TrimRight(line+few(r[1], screenWidth-utf8.RuneCountInString(line)), " "))
	}
	return lines
}

// few shortens a text to a width: to its first clauses if they say enough, else behind a word.
func few(text string, width int) string {
	const enough = 12
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	clause, colon, word := 0, 0, 0
	for i := range min(len(runes), max(width, 0)) {
		switch {
		case runes[i] == ';', runes[i] == '(' && i > 0 && runes[i-1] == ' ':
			clause = i
		case runes[i] == ':' && runes[min(i+1, len(runes)-1)] == ' ':
			colon = i
		case runes[i] == ' ':
			word = i
		}
	}
	for _, end := range []int{clause, colon} { // what follows a colon may belong to a clause of its own: "…; 0: none"
		if end >= enough {
			return strings.TrimRight(string(runes[:end]), " ")
		}
	}
	if word == 0 {
		return ""
	}
	return strings.TrimRight(string(runes[:word]), " ,;:(") + "…"
}
