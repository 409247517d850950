package tilefiles

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// file is a file that the pattern matches.
type file struct {
	path string // below the root
	Fields
}

// mostFiles bounds the files that are looked at.
const mostFiles = 20_000_000

// walk finds the files that a pattern matches.
type walk struct {
	ctx     context.Context
	root    string
	pattern *Pattern
	files   []file
	seen    int // files and folders
	others  int
	near    nearest
}

// folder looks into a folder at a depth; at is its path below the root and f its numbers.
func (w *walk) folder(depth int, at string, f Fields) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	dir := filepath.Join(w.root, filepath.FromSlash(at))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if w.seen += len(entries); w.seen > mostFiles {
		return fmt.Errorf("%s: more than %d files", w.root, mostFiles)
	}
	parts, last := w.pattern.levels[depth], depth == len(w.pattern.levels)-1
	for _, e := range entries {
		name := e.Name()
		g := f
		far, ok := matchLevel(parts, name, &g)
		folder := e.IsDir()
		if ok && e.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			folder = info.IsDir()
		}
		inside := path.Join(at, name)
		if ok {
			if err := printable(dir, name); err != nil {
				return err
			}
		}
		switch {
		case ok && last && !folder:
			w.files = append(w.files, file{inside, g})
		case ok && !last && folder:
			if err := w.folder(depth+1, inside, g); err != nil {
				return err
			}
		default:
			if w.others++; len(w.files) == 0 {
				w.near.add(inside, depth, far)
			}
		}
	}
	return nil
}

// printable returns an error for a name whose characters would garble messages and commands.
func printable(dir, name string) error {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%s: the name %q has a control character: rename it", dir, name)
	}
	return nil
}

// mostNear is the number of names that are shown if none matches.
const mostNear = 3

// nearest holds the names that match the most of a pattern.
type nearest struct {
	names []string
	score [2]int
}

// add takes note of a name of which so many parts match at a depth.
func (n *nearest) add(name string, depth, far int) {
	score := [2]int{depth, far}
	if c := cmp.Or(score[0]-n.score[0], score[1]-n.score[1]); c > 0 {
		n.names, n.score = nil, score
	} else if c < 0 {
		return
	}
	if len(n.names) < mostNear {
		n.names = append(n.names, name)
	}
}

// Find finds the files below root that a pattern matches, and arranges them. Files that none of the options can
// arrange are errors: a pattern that matches nothing, a tile twice, two grids in one folder, an index with gaps, a grid
// that does not have so many tiles. Places without a tile, and files that are missing in a tile, are a warning.
//
// Numbers of rows and columns count from the smallest that the folder has, or from 0 or 1 if Options.Grid says how many
// there are.
func Find(ctx context.Context, root string, p *Pattern, opt Options) (*Set, error) {
	if err := opt.check(p); err != nil {
		return nil, err
	}
	m, err := Match(ctx, root, p)
	if err != nil {
		return nil, err
	}
	return m.Arrange(ctx, opt)
}

// Matches are the files below a folder that a pattern matches. They can be arranged several times, one after the other.
type Matches struct {
	walk
}

// Pattern returns the pattern.
func (m *Matches) Pattern() *Pattern { return m.pattern }

// Match finds the files below root that a pattern matches.
func Match(ctx context.Context, root string, p *Pattern) (*Matches, error) {
	m := &Matches{walk{ctx: ctx, root: root, pattern: p}}
	return m, m.folder(0, "", Fields{})
}

// MatchNames returns those of names, paths of files below root, that a pattern matches.
func MatchNames(root string, p *Pattern, names []string) (*Matches, error) {
	m := &Matches{walk{root: root, pattern: p, seen: len(names)}}
	for _, name := range names {
		f, ok := p.Match(name)
		if !ok {
			m.others++
			continue
		}
		if err := printable(root, name); err != nil {
			return nil, err
		}
		m.files = append(m.files, file{name, f})
	}
	return m, nil
}

// Span returns the length of the longest range of a token's numbers in a slice.
func (m *Matches) Span(t Token) int64 {
	type span struct{ low, high int64 }
	spans := map[int64]span{}
	most := int64(1)
	for i := range m.files {
		id, v := m.files[i].Whole[SliceToken], m.files[i].Whole[t]
		s, there := spans[id]
		if !there {
			s = span{v, v}
		}
		s = span{min(s.low, v), max(s.high, v)}
		spans[id] = s
		most = max(most, s.high-s.low+1)
	}
	return most
}

// Arrange arranges the files as [Find] does.
func (m *Matches) Arrange(ctx context.Context, opt Options) (*Set, error) {
	if err := opt.check(m.pattern); err != nil {
		return nil, err
	}
	if len(m.files) == 0 {
		return nil, m.nothing()
	}
	s := &Set{Root: m.root, Pattern: m.pattern, Options: opt, Files: len(m.files), Others: m.others}
	if err := s.arrange(ctx, m.files); err != nil {
		return nil, err
	}
	s.warnMissing()
	return s, nil
}

// given is an option and whether it is set.
type given struct {
	name string
	set  bool
}

// check reports options that contradict each other or the pattern.
func (o *Options) check(p *Pattern) error {
	if g := o.Grid; g != [2]int{} && (min(g[0], g[1]) < 1 || max(g[0], g[1]) > mostLine || g[0]*g[1] > mostPlaces) {
		return badOption("grid", "%d,%d: want rows and columns, at least 1 and together at most %d places", g[0], g[1], mostPlaces)
	}
	switch o.Axes {
	case "", "zyx", "cyx", "yx":
	default:
		return badOption("axes", "%q: want zyx, cyx or yx", o.Axes)
	}
	if p.Single() {
		for _, f := range []given{{"grid", o.Grid != [2]int{}}, {"start", o.Start != TopLeft}} {
			if f.set {
				return badOption(f.name, "is about tiles, which the pattern %s does not tell apart", p)
			}
		}
	}
	if p.Has(Index) {
		return nil
	}
	for _, f := range []given{{"order", o.Columns}, {"snake", o.Snake}} {
		if f.set {
			return badOption(f.name, "is about {index}, which the pattern %s does not have", p)
		}
	}
	return nil
}

// nothing returns the error for a pattern that no file matches; it quotes the names that come nearest.
func (w *walk) nothing() error {
	if len(w.near.names) == 0 {
		return badOption("pattern", "%q matches none of %d names in %s", w.pattern.text, w.seen, w.root)
	}
	var names []string
	for _, n := range w.near.names {
		names = append(names, Name(n))
	}
	more := ""
	if w.others > len(names) {
		more = " …"
	}
	return badOption("pattern", "%q matches none of %d names in %s, which has %s%s", w.pattern.text, w.seen, w.root, strings.Join(names, ", "), more)
}

// Name returns the name of a file for a message: quoted if it has characters that a terminal does not show.
func Name(name string) string {
	if q := strconv.Quote(name); len(q) != len(name)+2 || strings.ContainsAny(name, " ,;") {
		if !strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
			return "'" + name + "'"
		}
		return q
	}
	return name
}

// spaced returns numbers from the smallest to the largest that are equally spaced and contain all of v.
func spaced(v []int64) ([]int64, error) {
	if len(v) < 2 {
		return v, nil
	}
	step := int64(0)
	for i := 1; i < len(v); i++ {
		step = gcd(v[i]-v[i-1], step)
	}
	n := (v[len(v)-1]-v[0])/step + 1
	if n > int64(sparse*len(v)+few) {
		return nil, fmt.Errorf("%d numbers from %d to %d: a number in a name is wrong", len(v), v[0], v[len(v)-1])
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = v[0] + int64(i)*step
	}
	return out, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// numbers returns the numbers that a token has in files, in increasing order; nil without the token.
func (s *Set) numbers(files []file, t Token) (out []int64) {
	if !s.Pattern.Has(t) {
		return nil
	}
	seen := map[int64]bool{}
	for i := range files {
		if v := files[i].Whole[t]; !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
