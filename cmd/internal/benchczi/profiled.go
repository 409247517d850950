package benchczi

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/bench"
	"strata/pkg/host"
	"strata/pkg/units"
)

// total returns the time of all phases.
func (p *profile) total() (sum float64) {
	for _, s := range p.phases {
		sum += s
	}
	return sum
}

// mean returns the mean and the deviation of a time over the tiles.
func (p *profile) mean(of func(tileTime) float64) (mean, deviation float64) {
	n := float64(len(p.tiles))
	for _, t := range p.tiles {
		mean += of(t) / n
	}
	for _, t := range p.tiles {
		deviation += (of(t) - mean) * (of(t) - mean) / n
	}
	return mean, math.Sqrt(deviation)
}

// Times of a tile.
var ofTile = []struct {
	name string
	of   func(tileTime) float64
}{
	{"I/O", func(t tileTime) float64 { return t.io }},
	{"decoding", func(t tileTime) float64 { return t.decode }},
	{"read", tileTime.read},
	{"stitch", func(t tileTime) float64 { return t.stitch }},
}

// print writes the measurements for people.
func (p *profile) print(w io.Writer, doc *bench.Document, every, slowest int) error {
	var b strings.Builder
	found := ""
	if p.cached >= 0 {
		found = fmt.Sprintf("; %.0f%% of the file were in the page cache", 100*p.cached)
	}
	fmt.Fprintf(&b, "%s: %s%s%s\n\n", bench.Plain(p.scan.path), p.scan, onWhat(doc), found)
	p.printPhases(&b)
	b.WriteString("\neach tile\n")
	var rows [][]string
	for _, x := range ofTile {
		mean, deviation := p.mean(x.of)
		times := make([]float64, len(p.tiles))
		for i, t := range p.tiles {
			times[i] = x.of(t)
		}
		slices.Sort(times)
		at := func(q float64) string { return bench.Time(times[int(q*float64(len(times)-1))]) }
		rows = append(rows, []string{x.name, bench.Time(mean), bench.Time(deviation), at(0.5), at(0.9), at(1)})
	}
	bench.WriteTable(&b, []bench.Head{{Name: ""}, {Name: "mean", Right: true}, {Name: "deviation", Right: true}, {Name: "p50", Right: true}, {Name: "p90", Right: true}, {Name: "most", Right: true}}, rows)
	var list []tileTime
	for i := 0; i < len(p.tiles); i += every {
		list = append(list, p.tiles[i])
	}
	fmt.Fprintf(&b, "\n%s\n", map[bool]string{true: "all tiles", false: fmt.Sprintf("every %s tile", ordinal(every))}[every == 1])
	p.printTiles(&b, list)
	if slowest > 0 {
		by := slices.Clone(p.tiles)
		slices.SortStableFunc(by, func(a, b tileTime) int { return cmp.Compare(b.read()+b.stitch, a.read()+a.stitch) })
		b.WriteString("\nthe slowest tiles\n")
		p.printTiles(&b, by[:min(slowest, len(by))])
	}
	return advice(w, &b, doc)
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

func (p *profile) printPhases(b *strings.Builder) {
	total := p.total()
	var rows [][]string
	for _, name := range []string{phaseOpen, phaseDirectory, phaseMetadata, phaseBoxes, phaseIO, phaseDecode, phaseStitch, phaseFinalise} {
		row := []string{name, bench.Time(p.phases[name]), fmt.Sprintf("%.1f %%", 100*p.phases[name]/total), ""}
		switch {
		case name == phaseFinalise && !p.finalise:
			row[1], row[2], row[3] = "–", "", "no colours to put into order"
		case name == phaseMetadata && p.noMeta != "":
			row[3] = bench.Plain(p.noMeta)
		case name == phaseStitch && !p.canvas.whole():
			row[3] = fmt.Sprintf("%d × %d pixels of the mosaic's %d × %d at a time", p.canvas.columns, p.canvas.rows, p.canvas.box.Dx(), p.canvas.box.Dy())
		}
		rows = append(rows, row)
	}
	rows = append(rows, []string{"all", bench.Time(total), "", ""})
	heads := []bench.Head{{Name: "phase"}, {Name: "time", Right: true}, {Name: "share", Right: true}, {Name: ""}}
	dropEmpty(&heads, rows)
	bench.WriteTable(b, heads, rows)
}

func (p *profile) printTiles(b *strings.Builder, list []tileTime) {
	heads := []bench.Head{{Name: "tile", Right: true}, {Name: "scene", Right: true}, {Name: "channel", Right: true}, {Name: "M", Right: true}, {Name: "x", Right: true}, {Name: "y", Right: true},
		{Name: "stored", Right: true}, {Name: "I/O", Right: true}, {Name: "decoding", Right: true}, {Name: "stitch", Right: true}}
	var rows [][]string
	for _, t := range list {
		sb := p.scan.file.SubBlock(t.n)
		row := []string{strconv.Itoa(t.n), strconv.Itoa(sb.S), strconv.Itoa(sb.C), strconv.Itoa(sb.M), strconv.Itoa(sb.Rect.Min.X), strconv.Itoa(sb.Rect.Min.Y),
			units.FormatSize(int64(t.stored)), bench.Time(t.io), bench.Time(t.decode), bench.Time(t.stitch)}
		rows = append(rows, row)
	}
	bench.WriteTable(b, heads, rows)
}

// Limits of advice.
const (
	most      = 0.6     // of the time is what bounds a run
	uneven    = 0.5     // deviation of the tiles' times as a share of their mean
	smallTile = 1 << 17 // pixels, 362 × 362
	overhead  = 0.2     // of the time, and 5 ms, before the first tile is much
)

// advise explains the numbers.
func (p *profile) advise(doc *bench.Document) []string {
	read, deviation := p.mean(tileTime.read)
	io, _ := p.mean(ofTile[0].of)
	decode, _ := p.mean(ofTile[1].of)
	stitch, _ := p.mean(ofTile[3].of)
	im := &p.scan.image
	each := read + stitch
	before := p.phases[phaseOpen] + p.phases[phaseDirectory] + p.phases[phaseMetadata] + p.phases[phaseBoxes]
	speed := float64(im.Pixels) / float64(len(p.tiles)) / each / 1e6
	out := []string{
		readBand.perTile("read", read),
		stitchBand.perTile("stitch", stitch),
		fmt.Sprintf("throughput: %s Mpx/s: %s", bench.Ratio(speed), throughput.grade(speed)),
	}
	estimate := fmt.Sprintf("all %s of level 0: about %s on one thread", counted(im.Tiles), bench.Time(before+each*float64(im.Tiles)))
	gain := 0.0
	if p.threads > 0 {
		gain = p.alone / p.threads
		estimate += fmt.Sprintf(", %s on 8", bench.Time(before+each/gain*float64(im.Tiles)))
		out = append(out, fmt.Sprintf("8 threads read %s times as fast as one: %s", bench.Ratio(gain), speedUp.grade(gain)))
	}
	out = append(out, estimate)
	switch {
	case io > most*each:
		out = append(out, fmt.Sprintf("I/O-bound: %.0f%% of a tile's time is waiting for its bytes: read several tiles at a time%s", 100*io/each, network(doc)))
	case decode > most*each && gain >= speedUp.moderate:
		out = append(out, fmt.Sprintf("decode-bound: %.0f%% of a tile's time is decoding %s: read on several threads", 100*decode/each, strings.Join(im.Compression, " and ")))
	case decode > most*each:
		out = append(out, fmt.Sprintf("decode-bound: %.0f%% of a tile's time is decoding %s: convert the file once (zarr-tool import) where it is read often", 100*decode/each, strings.Join(im.Compression, " and ")))
	case stitch > most*each:
		out = append(out, fmt.Sprintf("bound by memory: %.0f%% of a tile's time is copying it: is the machine swapping?", 100*stitch/each))
	default:
		out = append(out, fmt.Sprintf("I/O takes %.0f%%, decoding %.0f%%, copying %.0f%% of a tile's time: none of them stands out", 100*io/each, 100*decode/each, 100*stitch/each))
	}
	return append(out, p.more(doc, read, deviation, before, each)...)
}

// more returns advice on unusual findings.
func (p *profile) more(doc *bench.Document, read, deviation, before, each float64) (out []string) {
	im := &p.scan.image
	if p.cached > 0.5 {
		out = append(out, fmt.Sprintf("%.0f%% of the file were in the page cache: --cold measures what its first reader waits for", 100*p.cached))
	}
	if deviation > uneven*read && len(p.tiles) > 1 {
		out = append(out, "tiles differ much in their times: some may come from a cache, or are stored otherwise; the slowest stand above")
	}
	if n := im.Pixels / int64(len(p.tiles)); n < smallTile {
		out = append(out, fmt.Sprintf("small tiles: %d pixels each on average, so that what each tile costs besides its pixels weighs more", n))
	}
	if before > 0.005 && before > overhead*(before+each*float64(im.Tiles)) {
		out = append(out, fmt.Sprintf("opening the file takes %s, which no thread makes shorter: keep it open", bench.Time(before)))
	}
	memory := host.Memory()
	if l := host.CgroupLimits().Memory; l != nil && (memory == 0 || *l < memory) {
		memory = *l
	}
	whole := float64(im.Bytes) / float64(len(p.tiles)) * float64(im.Tiles)
	if memory > 0 && whole > 0.8*float64(memory) {
		out = append(out, fmt.Sprintf("memory: all tiles have %s, this machine or job %s: read them in parts (--max_tiles, or a region at a time)", units.FormatSize(int64(whole)), units.FormatSize(memory)))
	}
	if p.scan.far {
		out = append(out, "the file lies on a server: each tile is two requests, which several threads send at the same time")
	}
	return out
}
