package benchczi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	"strata/pkg/cli"
)

func quickCommand() *cli.Command {
	return &cli.Command{
		Name:  "quick",
		Usage: "find out in seconds whether reading several tiles at a time helps",
		Description: "Reads 4 tiles on 4 threads, as a unit test would; then 100 tiles one after the other and on 8 threads, in turn up to\n" +
			"15 times within a few seconds.\n" +
			"Drops a local file from the page cache before each; with --no-cold, reads it into the cache before.",
		Args:     fileArgument,
		Flags:    flags(cold(choosing("100", "")), benchkit.Reporting()),
		Shared:   cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-czi quick scan.czi", Usage: "as a scan is read for the first time"},
			{Command: "bench-czi quick scan.czi --no-cold", Usage: "from memory"},
		},
		Run: cli.Do(runQuick),
	}
}

// cold makes cold files the default.
func cold(list []cli.Flag) []cli.Flag {
	for i := range list {
		if list[i].Name == "cold" {
			list[i].Default = "true"
		}
	}
	return list
}

// fewTiles is the number of tiles that a unit test reads.
const fewTiles = 4

func runQuick(ctx context.Context, r *cli.Run) error {
	s, err := look(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }() // it was only read
	json, html, err := benchkit.Outputs(r)
	if err != nil {
		return err
	}
	doc := newDocument(ctx, r, s)
	few := *s
	few.limit(fewTiles)
	var list []*benchkit.Contestant
	for _, x := range []struct {
		s *scan
		w way
	}{{&few, way{threaded, fewTiles}}, {s, way{sequential, 1}}, {s, way{threaded, 8}}} {
		l := &loader{scan: x.s, way: x.w, threads: r.Options.Threads, mem: r.Options.Mem / 2}
		list = append(list, s.contestant(bench.Result{Name: counted(len(x.s.tiles)), Who: bench.Strata, Axes: axes(s, opTiles, x.w),
			Bytes: x.s.image.Bytes, Pixels: x.s.image.Pixels, Ops: int64(len(x.s.tiles))}, l))
	}
	if err := warm(ctx, s, list[1]); err != nil {
		return err
	}
	if err := measure(ctx, s, list[:1], 1, func(int64) {}); err != nil {
		return err
	}
	tile := list[0].Result.Median() / float64(max(list[0].Result.Ops, 1))
	if err := measure(ctx, s, list[1:], rounds(2*tile*float64(len(s.tiles))), func(int64) {}); err != nil {
		return err
	}
	for _, c := range list {
		doc.Results = append(doc.Results, c.Result)
	}
	doc.Advice = recommend(doc)
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s%s\n\n", bench.Plain(s.path), s, onWhat(doc))
	rows := [][]string{}
	for _, x := range doc.Results {
		row := []string{x.Name, x.Axes.Get("way"), "–", "", "", "", bench.Plain(strings.Trim(x.Reason+"; "+x.Note, "; "))}
		if x.Measured() {
			row[2], row[3], row[4], row[5] = bench.Time(x.Median()), bench.Time(x.Median()/float64(x.Ops)), bench.Ratio(x.OpsRate()), bench.Ratio(x.PixelRate()/1e6)
		}
		rows = append(rows, row)
	}
	heads := []bench.Head{{Name: "read"}, {Name: "way"}, {Name: "time", Right: true}, {Name: "a tile", Right: true}, {Name: "tiles/s", Right: true}, {Name: "Mpx/s", Right: true}, {Name: ""}}
	dropEmpty(&heads, rows)
	bench.WriteTable(&b, heads, rows)
	return errors.Join(advice(r.Stdout, &b, doc), json.Write(doc.WriteJSON), html.Write(doc.HTML))
}

// rounds returns how often tiles are read one after the other and on 8 threads, in turn: as often as a few seconds
// allow, so that a repeated test gives the same advice.
func rounds(each float64) int {
	const most, seconds = 15, 4
	return max(1, min(most, int(seconds/max(each, 1e-3))))
}

// limit keeps the first n tiles.
func (s *scan) limit(n int) {
	s.tiles = s.tiles[:min(n, len(s.tiles))]
	s.image.TilesRead, s.image.Bytes, s.image.Pixels = len(s.tiles), 0, 0
	for _, i := range s.tiles {
		sb := s.file.SubBlock(i)
		s.image.Bytes += int64(sb.Bytes())
		s.image.Pixels += int64(sb.StoredWidth) * int64(sb.StoredHeight)
	}
}

// recommend says whether threads help, how long the file takes, and what to do.
func recommend(doc *bench.Document) []string {
	few, seq, par := doc.Results[0], doc.Results[1], doc.Results[2]
	if slices.ContainsFunc(doc.Results, func(x bench.Result) bool { return !x.Measured() }) {
		return []string{"not all could be measured"}
	}
	gain := seq.Median() / par.Median()
	each := min(seq.Median(), par.Median()) / float64(par.Ops)
	out := []string{
		fmt.Sprintf("8 threads are %s times as fast as one: %s", bench.Ratio(gain), speedUp.grade(gain)),
		readBand.perTile("read, one after the other", seq.Median()/float64(seq.Ops)),
		fmt.Sprintf("all %s of level 0: %s one after the other, %s on 8 threads", counted(doc.Image.Tiles), bench.Time(seq.Median()/float64(seq.Ops)*float64(doc.Image.Tiles)), bench.Time(par.Median()/float64(par.Ops)*float64(doc.Image.Tiles))),
	}
	if first := few.Median() / float64(few.Ops); first > 2*each {
		out = append(out, fmt.Sprintf("%d tiles alone take %s each, opening the file included: a test of few tiles says little of the whole", few.Ops, bench.Time(first)))
	}
	switch {
	case bench.Overlap(seq, par):
		out = append(out, "recommendation: read tiles one after the other: the times of one thread and of 8 overlap; bench-czi run measures longer")
	case gain >= speedUp.moderate:
		out = append(out, "recommendation: read several tiles at a time; bench-czi run says how many")
	case gain >= worth:
		out = append(out, "recommendation: reading several tiles at a time helps a little; "+whyNot(doc, seq))
	default:
		out = append(out, "recommendation: read tiles one after the other; "+whyNot(doc, seq))
	}
	return out
}
