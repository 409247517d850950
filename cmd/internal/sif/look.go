package sif

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"strata/pkg/cli"
	"strata/pkg/sif"
)

func listCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "list the objects in an image file",
		Args:  []cli.Arg{imageArg},
		Flags: []cli.Flag{{Name: "json", Kind: cli.Bool, Usage: "print JSON: id, type, name, group, linked, offset, size and detail of each object"}},
		Examples: []cli.Example{
			{Command: "sif list strata.sif", Usage: "definition, metadata, root, signatures"},
		},
		Run: cli.Do(onImage(runList)),
	}
}

func runList(_ context.Context, r *cli.Run, image *sif.Image) error {
	objects := image.Objects()
	if r.Bool("json") {
		return writeJSON(r.Stdout, objects)
	}
	w := tabwriter.NewWriter(r.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTYPE\tGROUP\tLINK\tOFFSET\tSIZE\tWHAT")
	for _, o := range objects {
		link := "-"
		if o.Linked != 0 {
			link = strconv.Itoa(int(o.Linked))
		}
		if o.LinkGroup {
			link = "group " + link
		}
		group := "-"
		if o.Group != 0 {
			group = strconv.Itoa(int(o.Group))
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%d\t%s\n", o.ID, o.Type, group, link, o.Offset, o.Size, cmp.Or(o.Detail, printable(o.Name)))
	}
	return w.Flush()
}

// printable returns a name without characters that could control a terminal.
func printable(text string) string {
	return strings.TrimFunc(strconv.Quote(text), func(r rune) bool { return r == '"' })
}

func inspectCommand() *cli.Command {
	return &cli.Command{
		Name:        "inspect",
		Usage:       "show the labels, scripts and definition of an image",
		Description: "Prints the labels, or the parts that flags select. --json prints the document of apptainer inspect --json --all.",
		Args:        []cli.Arg{imageArg},
		Flags: []cli.Flag{
			{Name: "labels", Short: "l", Kind: cli.Bool, Usage: "print the labels, one per line; this is the default"},
			{Name: "environment", Short: "e", Kind: cli.Bool, Usage: "print the scripts that set the environment"},
			{Name: "runscript", Short: "r", Kind: cli.Bool, Usage: "print the script that runs if no command is given"},
			{Name: "test", Short: "t", Kind: cli.Bool, Usage: "print the test script"},
			{Name: "helpfile", Kind: cli.Bool, Aliases: []string{"help_text"}, Usage: "print the help text of the image"},
			{Name: "deffile", Short: "d", Kind: cli.Bool, Usage: "print the definition file"},
			{Name: "json", Kind: cli.Bool, Usage: "print all parts as JSON"},
		},
		Examples: []cli.Example{
			{Command: "sif inspect strata.sif", Usage: "version, commit, date"},
			{Command: "sif inspect strata.sif --deffile > again.def", Usage: "recover the definition file"},
		},
		Run: cli.Do(onImage(runInspect)),
	}
}

func runInspect(_ context.Context, r *cli.Run, image *sif.Image) error {
	m, err := image.Inspect()
	if err != nil {
		return err
	}
	if r.Bool("json") {
		text, err := m.JSON()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(r.Stdout, "%s\n", text)
		return err
	}
	var parts []string
	asked := false
	add := func(flag, text string) {
		if r.Bool(flag) {
			asked = true
			if text != "" {
				parts = append(parts, strings.TrimRight(text, "\n")+"\n")
			}
		}
	}
	environment := ""
	for _, name := range slices.Sorted(maps.Keys(m.Environment)) {
		environment += m.Environment[name]
	}
	add("labels", labelLines(m.Labels))
	add("environment", environment)
	add("runscript", m.Runscript)
	add("test", m.Test)
	add("helpfile", m.Help)
	add("deffile", m.Definition)
	if !asked {
		arch, err := image.Arch()
		if err != nil {
			return err
		}
		parts = []string{"architecture: " + arch + "\n" + labelLines(m.Labels)}
	}
	_, err = io.WriteString(r.Stdout, strings.Join(parts, "\n"))
	return err
}

func labelLines(labels map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%s: %s\n", key, labels[key])
	}
	return b.String()
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
