package qc

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"strata/pkg/colormap"
	"strata/pkg/oct/stitch"
	"strata/pkg/oct/stitch/affine"
	"strata/pkg/webpage"
)

// PairMap is a drawing of the tiles of a slice and of their pairs, coloured by their residual.
type PairMap struct {
	Name, Note string
	Seams      template.HTML // to look at, marked with their places
	Width      int           // px, at most
	SVG        template.HTML
}

const (
	// pairTips is the number of pairs up to which each has a tooltip; of more, only marks have.
	pairTips = 300
	// pairLines is the number of pairs up to which each is drawn; of more, only those with a mark are, up to mostMarks.
	pairLines, mostMarks = 5000, 1000
	// cellSide is the distance of tiles in a drawing, and cellPixels the largest on the page in px.
	cellSide, cellPixels = 20, 40
)

// residualClasses are the upper limits in px of the classes of residuals; larger ones have a class of their own. Good
// pairs have a few tenths of a pixel.
var residualClasses = [...]float64{0.1, 0.2, 0.5, 1, 2, 5}

// residualColors are the colours of the classes: a part of a perceptually uniform map that stands out from a dark
// ground.
var residualColors = sync.OnceValue(func() (out []string) {
	m, err := colormap.ByName("viridis")
	if err != nil {
		panic(err) // our own table
	}
	n := len(residualClasses)
	for i := range n + 1 {
		c := m.At(0.34 + 0.66*float64(i)/float64(n))
		out = append(out, fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B))
	}
	return out
})

// agrees adds what is known of the pairs, and draws them.
func (f *Facts) agrees(s *stitch.Result) {
	a := s.Agreement()
	if a == nil {
		return
	}
	f.set("Pairs used", fmt.Sprintf("%d of %d", a.Votes, a.Compared))
	note := fmt.Sprintf("%d of %s used", a.Votes, webpage.Plural(a.Compared, "pair"))
	if a.Spread > 0 {
		f.number("Spread, px", a.Spread)
		note += ", spread " + webpage.Short(a.Spread) + " px"
	}
	if a.Rules == affine.RulesReference {
		f.set("Estimated", affine.ByReference)
		note += ", " + affine.ByReference
	}
	if a.Unplaced > 0 {
		f.set("Tiles unplaced", strconv.Itoa(a.Unplaced))
	}
	if len(a.Rejected) > 0 {
		var parts []string
		for _, reason := range slices.SortedFunc(maps.Keys(a.Rejected), func(x, y string) int {
			return cmp.Or(a.Rejected[y]-a.Rejected[x], cmp.Compare(x, y))
		}) {
			parts = append(parts, fmt.Sprintf("%s: %d", reason, a.Rejected[reason]))
		}
		f.set("Pairs rejected", strings.Join(parts, "; "))
		note += "; " + strings.Join(parts, "; ")
	}
	if slices.ContainsFunc(s.Pairs, func(p stitch.TilePair) bool { return p.Residual != nil }) {
		f.seams = doubtful(s)
		f.pairs = &PairMap{Name: f.Name, Note: note, Width: cellPixels * s.Grid[1], SVG: drawPairs(s)}
	}
}

// drawPairs draws the tiles of a slice at their places in the grid, and a line for each pair.
func drawPairs(s *stitch.Result) template.HTML {
	within := func(t [2]int) bool { return min(t[0], t[1]) >= 0 && t[0] < s.Grid[0] && t[1] < s.Grid[1] }
	all, large := len(s.Pairs) <= pairLines, signSize(s.Grid)
	var lines [lineLooks]pairPath
	var signs, halos pairPath
	n := 0
	for i := range s.Pairs {
		p := &s.Pairs[i]
		mark := slices.Index(marked, p.Reason)
		if !within(p.Tiles[0]) || !within(p.Tiles[1]) || !all && (mark < 0 || n == mostMarks) {
			continue
		}
		tip := ""
		if len(s.Pairs) <= pairTips {
			tip = tipOf(p)
		}
		from, to := p.Tiles[0], p.Tiles[1]
		y, x, dy, dx := centre(from[0]), centre(from[1]), cellSide*(to[0]-from[0]), cellSide*(to[1]-from[1])
		lines[lookOf(p, mark)].add(linePath(x, y, dx, dy), tip)
		if mark >= 0 {
			n++
			path := sign(mark, x+dx/2, y+dy/2, large)
			signs.add(path, tipOf(p))
			halos.add(path, "")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="Pairs of tiles by their residual">`, cellSide*max(s.Grid[1], 0), cellSide*max(s.Grid[0], 0))
	for look := range lines {
		lines[look].write(&b, lineStyle(look))
	}
	if all {
		var tiles [len(tileClasses)]pairPath
		for _, t := range s.Tiles {
			if within(t.Tile) {
				tiles[tileClass(t)].add(tilePath(centre(t.Tile[1]), centre(t.Tile[0])), "")
			}
		}
		for kind, class := range tileClasses {
			tiles[kind].write(&b, class)
		}
	}
	halos.write(&b, signStyle("halo", large))
	signs.write(&b, signStyle("mark", large))
	b.WriteString(`</svg>`)
	return template.HTML(b.String()) // all text in it was escaped, all numbers are ours
}

// centre returns where the middle of a tile is drawn.
func centre(index int) int { return cellSide*index + cellSide/2 }

// linePath draws a line from a point.
func linePath(x, y, dx, dy int) string {
	switch {
	case dy == 0:
		return fmt.Sprintf("M%d %dh%d", x, y, dx)
	case dx == 0:
		return fmt.Sprintf("M%d %dv%d", x, y, dy)
	}
	return fmt.Sprintf("M%d %dl%d %d", x, y, dx, dy)
}

// tipOf says what is known of a pair.
func tipOf(p *stitch.TilePair) string {
	tip := fmt.Sprintf("tiles %d, %d and %d, %d: ", p.Tiles[0][0], p.Tiles[0][1], p.Tiles[1][0], p.Tiles[1][1])
	switch {
	case p.Residual == nil:
		return tip + p.Reason
	case !p.Used:
		tip += p.Reason + ", "
	}
	return tip + "residual " + webpage.Short(*p.Residual) + " px, correlation " + webpage.Short(p.Correlation)
}

// A line has the colour of the class of its residual, or is unused where that says nothing.
const (
	unusedLine = len(residualClasses) + 1
	lineLooks  = unusedLine + 1
)

// lookOf returns the look of a pair's line; mark is its mark, or -1.
func lookOf(p *stitch.TilePair, mark int) int {
	if p.Residual == nil || !p.Used && mark < 0 {
		return unusedLine
	}
	class, _ := slices.BinarySearch(residualClasses[:], *p.Residual)
	return class
}

// lineStyle returns the attributes of lines of a look.
func lineStyle(look int) string {
	if look == unusedLine {
		return `class="unused"`
	}
	return `class="pair" stroke="` + residualColors()[look] + `"`
}

// tileClasses are the attributes of tiles in a drawing: of those that pairs place, other ones, and empty ones.
var tileClasses = [...]string{`class="tile"`, `class="tile alone"`, `class="tile empty"`}

// tileClass returns which of the classes a tile has.
func tileClass(t stitch.TilePlan) int {
	switch {
	case t.Empty:
		return 2
	case !t.Used:
		return 1
	}
	return 0
}

// tilePath draws a tile around a point.
func tilePath(x, y int) string { return fmt.Sprintf("M%d %dh8v8h-8z", x-4, y-4) }

// marked are the reasons that a drawing marks: with a cross, and with a lozenge.
var marked = []string{stitch.Outlier, stitch.TooFar}

// sign returns the path of a mark around a point, in a size.
func sign(mark, x, y, size int) string {
	if r := 4 * size; mark == 0 {
		return fmt.Sprintf("M%d %dl%d %dm0-%dl-%d %d", x-r, y-r, 2*r, 2*r, 2*r, 2*r, 2*r)
	}
	r := 5 * size
	return fmt.Sprintf("M%d %dl%d %dl-%d %dl-%d-%dz", x, y-r, r, r, r, r, r, r)
}

// signSize returns the factor by which marks are enlarged: the page shows drawings of many tiles in the same width.
func signSize(grid [2]int) int { return 1 + max(grid[0], grid[1])/20 }

// signStyle returns the attributes of marks in a size, or of the dark line around them.
func signStyle(class string, size int) string {
	width := 2.2
	if class == "halo" {
		width = 5
	}
	return fmt.Sprintf(`class="%s" stroke-width="%s"`, class, webpage.Num(width*float64(size)))
}

// pairPath collects the lines of one look: each line with a tooltip in a path of its own, the others in a single path.
type pairPath struct{ tipped, plain strings.Builder }

func (p *pairPath) add(path, tip string) {
	if tip == "" {
		p.plain.WriteString(path)
		return
	}
	fmt.Fprintf(&p.tipped, `<path d="%s"><title>%s</title></path>`, path, html.EscapeString(tip))
}

// write writes a group with attributes, if there is anything in it.
func (p *pairPath) write(b *strings.Builder, attributes string) {
	if p.tipped.Len()+p.plain.Len() == 0 {
		return
	}
	b.WriteString("<g " + attributes + ">" + p.tipped.String())
	if p.plain.Len() > 0 {
		b.WriteString(`<path d="` + p.plain.String() + `"/>`)
	}
	b.WriteString("</g>")
}

// PairMaps returns the drawings of pairs.
func (r *Report) PairMaps() (out []*PairMap) {
	for _, f := range r.Stitch {
		if f.pairs != nil {
			out = append(out, f.pairs)
		}
	}
	return out
}

// FirstPairMaps returns the drawings of pairs that are shown at once.
func (r *Report) FirstPairMaps() []*PairMap {
	return inTheOpen(r.PairMaps(), fewPictures, firstPictures)
}

// OtherPairMaps returns the drawings of pairs that are shown on demand.
func (r *Report) OtherPairMaps() []*PairMap { return r.PairMaps()[len(r.FirstPairMaps()):] }

// PairLegend returns the key of the drawings of pairs.
func (r *Report) PairLegend() template.HTML {
	var b strings.Builder
	key := func(text, path, attributes string) {
		b.WriteString(`<span class="key"><svg viewBox="0 0 20 14" aria-hidden="true">`)
		var l pairPath
		l.add(path, "")
		l.write(&b, attributes)
		fmt.Fprintf(&b, `</svg>%s</span> `, html.EscapeString(text))
	}
	for i, limit := range residualClasses {
		key(fmt.Sprintf("up to %g px", limit), "M0 7h20", lineStyle(i))
	}
	key("more", "M0 7h20", lineStyle(len(residualClasses)))
	key("not used", "M0 7h20", lineStyle(unusedLine))
	for i, reason := range marked {
		key(reason, sign(i, 10, 7, 1), signStyle("mark", 1))
	}
	for i, text := range [...]string{"tile", "tile that no pair places", "empty tile"} {
		key(text, tilePath(10, 7), tileClasses[i])
	}
	return template.HTML(b.String()) // escaped above
}
