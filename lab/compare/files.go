package main

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	kvikio = "KvikIO"
	inC    = "C"
)

// fileCase is a row of the page about files.
type fileCase struct {
	name, group, label string
	piece              int
	flags              string // COLD SYNC SHIFT, of lab/gds-floor.c; C's memory always lies right
	unit               string
	kvikio, c          float64 // goals: strata's speed in multiples of theirs
	most               float64 // goal: milliseconds
	who                []fileProgram
}

// fileProgram is a program with its name for the operation.
type fileProgram struct{ who, op string }

// Offsets of memory in its page: numpy's, and that of C and of Go.
const (
	inPage  = "16"
	atStart = "0"
)

func fileCases() []fileCase {
	return []fileCase{
		{name: "read/warm", group: "fileread", label: "in the page cache", flags: "0 0", kvikio: 1.3, c: 0.95, who: []fileProgram{
			{strata, "read"}, {strata + ", mapped", "mmap"}, {inC, "read"}, {inC + ", mapped", "mmap"}, {kvikio, "read"}, {kvikio + ", mapped", "mmap"}}},
		{name: "read/cold", group: "fileread", label: "not in the page cache", flags: "1 0", kvikio: 1.3, c: 0.95, who: []fileProgram{
			{strata, "direct"}, {strata + ", through the cache", "read"}, {inC, "read"}, {inC + ", mapped", "mmap"}, {inC + ", direct", "direct"},
			{kvikio, "read"}, {kvikio + ", direct", "direct"}}},
		{name: "read/unaligned", group: "fileread", label: "not in the page cache, memory at byte 16 of a page", flags: "1 0 16", kvikio: 1.3, who: []fileProgram{
			{strata, "direct"}, {inC, "read"}, {inC + ", direct", "direct"}, {kvikio, "read"}, {kvikio + ", direct", "direct"}}},
		{name: "read/tasks", group: "fileread", label: "not in the page cache, 64 KiB at a time, past the page cache", piece: 64 << 10, flags: "1 0", kvikio: 1.3, c: 0.95, who: []fileProgram{
			{strata, "direct"}, {inC + ", direct", "direct"}, {kvikio + ", direct", "direct"}}},
		{name: "files", group: "fileread", label: "in files of 1 MiB, in the page cache", piece: 1 << 20, flags: "0 0", kvikio: 1.3, who: []fileProgram{
			{strata, "files"}, {inC, "files"}, {kvikio, "files"}}},
		{name: "write", group: "filewrite", label: "until the call returns", flags: "0 0", kvikio: 1.5, who: []fileProgram{
			{strata, "write"}, {strata + ", through the cache", "write-cached"}, {inC, "write"}, {inC + ", direct", "write-direct"}, {kvikio, "write"}, {kvikio + ", through the cache", "write-cached"}}},
		{name: "write/synced", group: "filewrite", label: "until it is on the device", flags: "0 1", kvikio: 1.5, c: 0.95, who: []fileProgram{
			{strata, "write"}, {strata + ", through the cache", "write-cached"}, {inC, "write"}, {inC + ", direct", "write-direct"}, {kvikio, "write"}, {kvikio + ", through the cache", "write-cached"}}},
		{name: "write/unaligned", group: "filewrite", label: "until it is on the device, memory at byte 16 of a page", flags: "0 1 16", kvikio: 1.5, who: []fileProgram{
			{strata, "write"}, {inC, "write"}, {inC + ", direct", "write-direct"}, {kvikio, "write"}}},
		{name: "calls", group: "filecalls", label: "100 000 × 4 KiB, one after the other", piece: 4096, flags: "0 0", unit: "ms", kvikio: 1.3, most: 200, who: []fileProgram{
			{strata, "calls"}, {inC, "calls"}, {kvikio, "calls"}}},
	}
}

// fileUnits returns the cases of the file layer, on a file of the given size.
func (p *plan) fileUnits(bytes int64) []unit {
	var all []unit
	for _, c := range fileCases() {
		u := unit{header: header{Name: c.name, Group: c.group, Label: c.label, Unit: cmp.Or(c.unit, "GiB/s")}, reads: filepath.Join(p.data, "file")}
		if c.name == "files" {
			u.reads = filepath.Join(p.data, "files")
		}
		if c.kvikio > 0 {
			i := slices.IndexFunc(c.who, func(w fileProgram) bool { return strings.HasPrefix(w.who, kvikio) })
			u.Targets = append(u.Targets, target{Against: c.who[i].who, Ratio: c.kvikio})
		}
		if c.c > 0 {
			u.Targets = append(u.Targets, target{Against: bestInC, Ratio: c.c})
		}
		if c.most > 0 {
			u.Targets = append(u.Targets, target{Against: absolute, Ratio: c.most})
		}
		for _, w := range c.who {
			f := strings.Fields(c.flags)
			cold, sync, shift := f[0], f[1], atStart
			if len(f) > 2 {
				shift = f[2]
			}
			var program []string
			var env []string
			switch {
			case strings.HasPrefix(w.who, strata):
				program = []string{p.tool("gds")}
			case strings.HasPrefix(w.who, inC):
				program, shift = []string{p.tool("gds-floor")}, atStart
			case p.kvikio == "":
				continue
			default:
				program, env = []string{p.kvikio, "lab/gds-kvikio.py"}, p.kvikioEnv()
				shift = inPage
			}
			path := u.reads
			if strings.HasPrefix(w.op, "write") {
				path = filepath.Join(p.out, "written")
			}
			u.who = append(u.who, contestant{who: w.who, env: env,
				argv: append(program, w.op, path, strconv.FormatInt(bytes, 10), "2", strconv.Itoa(cmp.Or(c.piece, 4<<20)), "4", cold, sync, shift)})
		}
		all = append(all, u)
	}
	return all
}

// kvikioEnv returns the environment for KvikIO: a library of the driver if there is none, and the content to
// write.
func (p *plan) kvikioEnv() []string {
	env := []string{"FILES_CONTENT=" + filepath.Join(p.data, "file")}
	if p.noCUDA != "" {
		env = append(env, "LD_LIBRARY_PATH="+p.noCUDA)
	}
	return env
}

// fileVersions returns the versions of the peers for files.
func (p *plan) fileVersions(ctx context.Context) string {
	v := firstLine(output(ctx, "cc", "--version"))
	if p.kvikio == "" {
		return v
	}
	return v + "; " + output(ctx, p.kvikio, "-c", "import sys, importlib.metadata as m\n"+
		"print('Python ', sys.version.split()[0], ', KvikIO ', m.version('kvikio-cu12'), ', numpy ', m.version('numpy'), sep='')")
}

func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}
