// Command size writes what the program consists of, and what its start costs, into docs/size.md (make size).
//
//	go run ./lab/size BINARY
//
// BINARY has its symbols (go build without -s): functions and data are counted by them. GODEBUG=inittrace=1 observes
// the start.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"slices"
	"strconv"
	"strings"

	"strata/tests/regions"
)

// page has the regions of the figures.
const page = "docs/size.md"

// part holds the costs of one module or, for strata itself, of one part of the tree.
type part struct {
	Name  string
	Bytes int64   // of functions and data, without the tables that Go keeps of them
	Init  float64 // milliseconds of the initialisation of its packages
	Heap  int64   // bytes that they allocate
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: size BINARY")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary string) error {
	parts := map[string]*part{}
	of := func(pkg string) *part {
		name := moduleOf(pkg)
		if parts[name] == nil {
			parts[name] = &part{Name: name}
		}
		return parts[name]
	}
	if err := addSymbols(binary, of); err != nil {
		return err
	}
	const starts = 5
	for range starts {
		c := exec.CommandContext(ctx, binary, "--version")
		c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var trace bytes.Buffer
		c.Stderr = &trace
		if err := c.Run(); err != nil {
			return fmt.Errorf("%s --version: %w", binary, err)
		}
		addInits(trace.Bytes(), starts, of)
	}
	texts, err := measured(binary, parts)
	if err != nil {
		return err
	}
	return regions.Write(page, page, texts)
}

// addSymbols counts the functions and data of a binary. Zeroed memory takes no room in the file.
func addSymbols(binary string, of func(string) *part) error {
	f, err := elf.Open(binary)
	if err != nil {
		return err
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		return fmt.Errorf("%s: %w: build it without -s", binary, err)
	}
	for _, s := range symbols {
		if i := int(s.Section); i < len(f.Sections) && f.Sections[i].Type == elf.SHT_PROGBITS {
			of(packageOf(s.Name)).Bytes += int64(s.Size)
		}
	}
	return nil
}

// addInits reads lines of "init PACKAGE @0.1 ms, 0.02 ms clock, 512 bytes, 3 allocs".
func addInits(trace []byte, starts int, of func(string) *part) {
	lines := bufio.NewScanner(bytes.NewReader(trace))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 9 || f[0] != "init" {
			continue
		}
		p := of(f[1])
		if ms, err := strconv.ParseFloat(f[4], 64); err == nil {
			p.Init += ms / float64(starts)
		}
		if n, err := strconv.ParseInt(f[7], 10, 64); err == nil {
			p.Heap += n / int64(starts)
		}
	}
}

// packageOf returns the package of a symbol: what stands before the first dot behind the last slash, outside brackets.
func packageOf(symbol string) string {
	for _, prefix := range []string{"type:.eq.", "type:.hash.", "go:itab.*", "go:itab."} {
		symbol = strings.TrimPrefix(symbol, prefix)
	}
	if i := strings.IndexAny(symbol, "[(,"); i >= 0 {
		symbol = symbol[:i]
	}
	at := strings.LastIndex(symbol, "/") + 1
	if dot := strings.Index(symbol[at:], "."); dot >= 0 {
		return strings.ReplaceAll(symbol[:at+dot], "%2e", ".")
	}
	return symbol
}

// moduleOf returns the name by which a package is counted.
func moduleOf(pkg string) string {
	steps := strings.Split(pkg, "/")
	switch {
	case strings.HasPrefix(pkg, "go:") || strings.HasPrefix(pkg, "type:"):
		return "tables of the compiler: strings, types, embedded files"
	case steps[0] == "strata" && len(steps) > 2:
		return path.Join(steps[:3]...)
	case strings.Contains(steps[0], "."):
		return path.Join(steps[:min(len(steps), 3)]...)
	}
	return "Go's runtime and standard library"
}

// measured returns the regions of the page.
func measured(binary string, parts map[string]*part) (map[string]string, error) {
	info, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	var known, small int64
	var all, shown []*part
	for _, p := range parts {
		all, known = append(all, p), known+p.Bytes
	}
	slices.SortFunc(all, func(a, b *part) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	const least, slow = 250e3, 0.1 // bytes, milliseconds
	for _, p := range all {
		if p.Bytes >= least || p.Init >= slow {
			shown = append(shown, p)
		} else {
			small += p.Bytes
		}
	}
	mb := func(n int64) string { return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) }
	rows := strings.Builder{}
	rows.WriteString("| part | MB in the file | start, ms | allocated at the start, kB |\n|---|---:|---:|---:|\n")
	for _, p := range shown {
		fmt.Fprintf(&rows, "| %s | %s | %.2f | %.0f |\n", p.Name, mb(p.Bytes), p.Init, float64(p.Heap)/1e3)
	}
	fmt.Fprintf(&rows, "| %d smaller parts | %s | | |\n| Go's tables of lines and stacks, types, strings, names | %s | | |\n", len(all)-len(shown), mb(small), mb(info.Size()-known))
	return map[string]string{"file": mb(info.Size()) + " MB", "parts": rows.String()}, nil
}
