package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"strata/pkg/address"
	"strata/pkg/atomic"
	"strata/pkg/images"
	"strata/pkg/smallfile"
)

// standardInput is the name, in messages, of a list that is read from standard input.
const standardInput = "standard input"

// openBatch reads the list of pairs, or takes over from a process whose GPU failed.
func (r *Run) openBatch(ctx context.Context, started time.Time) (*batch, error) {
	b, err := taken()
	if b == nil && err == nil {
		b, err = r.readBatch(ctx, started)
	}
	if err != nil {
		return nil, err
	}
	b.run, b.told = r, map[string]bool{}
	for _, p := range b.Pairs {
		address.HideIn(address.Address(p.In))
		address.HideIn(address.Address(p.Out))
	}
	return b, b.check()
}

func (r *Run) readBatch(ctx context.Context, started time.Time) (*batch, error) {
	name := r.Batch()
	var in io.Reader = r.Stdin
	if name == "-" {
		name = standardInput
	} else {
		f, err := smallfile.Open(ctx, name)
		if err != nil {
			return nil, BadInput(fmt.Errorf("--batch %w", err))
		}
		defer f.Close()
		in = f
	}
	text, err := smallfile.Lines(in, name)
	if err != nil {
		return nil, BadInput(fmt.Errorf("--batch %w", err))
	}
	b := &batch{List: name, Started: started}
	b.Pairs, err = pairsIn(text, name)
	return b, err
}

// pairsIn parses a list: a pair a line, IN TAB OUT. Empty lines and those that begin with # do not count.
func pairsIn(text []byte, name string) (pairs []pair, err error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		switch {
		case len(columns) != 2:
			return nil, BadInputf("--batch %s:%d: %d columns, should be two: IN, a tab, OUT", name, number, len(columns))
		case columns[0] == "" || columns[1] == "":
			return nil, BadInputf("--batch %s:%d: an empty name: should be IN, a tab, OUT", name, number)
		case strings.ContainsRune(line, 0):
			return nil, BadInputf("--batch %s:%d: a name with a NUL character, which no file has", name, number)
		}
		pairs = append(pairs, pair{number, columns[0], columns[1]})
	}
	if pairs == nil {
		return nil, BadInputf("--batch %s: has no pairs: should have lines of IN, a tab, OUT", name)
	}
	return pairs, nil
}

// use is a path of a pair, and where it is.
type use struct {
	pair      int
	typed, at string
}

// uses are paths of pairs, by their places.
type uses map[string]use

// over returns the first place above another, or that place itself, that a path of another pair has.
func (all uses) over(u use) (use, bool) {
	for up := u.at; up != "" && up != "." && up != "/"; up = filepath.Dir(up) {
		if o, ok := all[up]; ok && o.pair != u.pair {
			return o, true
		}
	}
	return use{}, false
}

// check returns an error if an output is, contains or lies in an input or output of another pair. Otherwise the result
// of one pair could be overwritten or read by another, depending on their order.
func (b *batch) check() error {
	in, out := uses{}, uses{}
	var read, written []use
	for i, p := range b.Pairs {
		for _, path := range append(b.run.Pair(p.In, p.Out).Written(), p.Out) {
			u := use{i, path, placeOf(path)}
			if o, ok := out[u.at]; ok && o.pair == i {
				return b.wrong(u, "two of its outputs are %s", path)
			} else if ok {
				return b.wrong(u, "its output %s is that of line %d: give each pair its own", path, b.Pairs[o.pair].Line)
			}
			out[u.at] = u
			written = append(written, u)
		}
		file, key := images.Split(p.In)
		if key == "" {
			file = p.In
		}
		u := use{i, p.In, placeOf(file)}
		in[u.at] = u
		read = append(read, u)
	}
	for _, u := range written {
		if o, ok := out.over(u); ok {
			return b.wrong(u, "its output %s lies inside output %s of line %d", u.typed, o.typed, b.Pairs[o.pair].Line)
		}
		if o, ok := in.over(u); ok {
			return b.wrong(u, "its output %s is or lies inside the input %s of line %d", u.typed, o.typed, b.Pairs[o.pair].Line)
		}
	}
	for _, u := range read {
		if o, ok := out.over(u); ok {
			return b.wrong(u, "its input %s lies inside the output %s of line %d", u.typed, o.typed, b.Pairs[o.pair].Line)
		}
	}
	return nil
}

// wrong returns the error of a path of a pair.
func (b *batch) wrong(u use, format string, args ...any) error {
	return BadInputf("--batch %s:%d: "+format, append([]any{b.List, b.Pairs[u.pair].Line}, args...)...)
}

// placeOf returns the place that a path or an address names, in a normalised spelling.
func placeOf(path string) string {
	switch urlScheme(path) {
	case "":
		return atomic.Place(path)
	case "s3":
		return filepath.Clean("s3:/" + bucketPlace(path))
	}
	return path
}
