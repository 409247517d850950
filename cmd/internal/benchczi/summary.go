package benchczi

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/bench"
	"strata/pkg/units"
)

// summary writes the ranked summary, the other operations, and the advice.
func summary(w io.Writer, doc *bench.Document) error {
	var b strings.Builder
	for i, op := range []string{opTiles, opMosaic, opOpen} {
		ranked := append(fastest(doc.Results, op), notMeasured(doc.Results, op)...)
		if len(ranked) == 0 {
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(map[string]string{opTiles: "tiles, the fastest way first\n", opMosaic: "a plane put together\n", opOpen: "open the file, read its directory and where tiles lie\n"}[op])
		table(&b, ranked, op)
	}
	return advice(w, &b, doc)
}

// advice writes a text and the advice of a document below it.
func advice(w io.Writer, b *strings.Builder, doc *bench.Document) error {
	b.WriteByte('\n')
	for _, a := range doc.Advice {
		fmt.Fprintf(b, "%s\n", bench.Plain(a))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// counted returns a number of tiles in words.
func counted(n int) string {
	if n == 1 {
		return "1 tile"
	}
	return fmt.Sprintf("%d tiles", n)
}

func notMeasured(list []bench.Result, op string) []bench.Result {
	return slices.DeleteFunc(slices.Clone(list), func(x bench.Result) bool { return x.Name != op || x.Measured() })
}

// table writes the results of one operation, the measured ones first.
func table(b *strings.Builder, ranked []bench.Result, op string) {
	heads := []bench.Head{{Name: "", Right: true}, {Name: "way"}, {Name: "who"}, {Name: "time", Right: true}, {Name: "speed-up", Right: true}, {Name: "Mpx/s", Right: true},
		{Name: "MB/s", Right: true}, {Name: "tiles/s", Right: true}, {Name: "CPU", Right: true}, {Name: "growth", Right: true}, {Name: "peak", Right: true}, {Name: ""}}
	base := 0.0
	for _, x := range ranked {
		if x.Who == bench.Strata && x.Axes.Get("way") == sequential {
			base = x.Median()
		}
	}
	var rows [][]string
	for i, x := range ranked {
		row := []string{strconv.Itoa(i + 1), x.Axes.Get("way"), x.Who, "–", "", "", "", "", "", "", "", bench.Plain(strings.TrimPrefix(x.Reason+"; "+x.Note, "; "))}
		row[11] = strings.TrimSuffix(row[11], "; ")
		if !x.Measured() {
			row[0] = ""
			rows = append(rows, row)
			continue
		}
		row[3] = bench.Time(x.Median())
		if base > 0 {
			row[4] = bench.Ratio(base/x.Median()) + "×"
		}
		if x.Bytes > 0 {
			row[5], row[6] = bench.Ratio(x.PixelRate()/1e6), bench.Ratio(x.Rate()/1e6)
		}
		if op == opTiles {
			row[7] = bench.Ratio(x.OpsRate())
		}
		if x.CPU > 0 {
			row[8] = bench.Time(x.CPU)
		}
		if x.Grown > 0 {
			row[9] = units.FormatSize(x.Grown)
		}
		if x.RSS > 0 {
			row[10] = units.FormatSize(x.RSS)
		}
		rows = append(rows, row)
	}
	if !slices.ContainsFunc(ranked, func(x bench.Result) bool { return x.Who != bench.Strata }) {
		for _, row := range rows {
			row[2] = ""
		}
	}
	dropEmpty(&heads, rows)
	bench.WriteTable(b, heads, rows)
}

// dropEmpty removes columns that are empty in all rows.
func dropEmpty(heads *[]bench.Head, rows [][]string) {
	for i := len(*heads) - 1; i >= 0; i-- {
		if slices.ContainsFunc(rows, func(r []string) bool { return r[i] != "" }) {
			continue
		}
		*heads = slices.Delete(*heads, i, i+1)
		for k := range rows {
			rows[k] = slices.Delete(rows[k], i, i+1)
		}
	}
}

// onWhat names the file system.
func onWhat(doc *bench.Document) string {
	if p := doc.System.Places; len(p) > 0 && p[0].Type != "" {
		return ", on " + bench.Plain(p[0].Type)
	}
	return ""
}
