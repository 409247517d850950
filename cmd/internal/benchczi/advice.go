package benchczi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strata/pkg/bench"
	"strata/pkg/units"
)

// worth is the speed-up from which a way is worth a change.
const worth = 1.05

// advise names the best way, its band, the likely reason, and the results of other programs.
func advise(doc *bench.Document) []string {
	ranked := fastest(doc.Results, opTiles)
	ours := slices.DeleteFunc(slices.Clone(ranked), func(x bench.Result) bool { return x.Who != bench.Strata })
	base := slices.IndexFunc(ours, func(x bench.Result) bool { return x.Axes.Get("way") == sequential })
	if base < 0 || doc.Image == nil {
		return nil
	}
	var out []string
	best, seq := ours[0], ours[base]
	if gain := seq.Median() / best.Median(); gain < worth {
		out = append(out, fmt.Sprintf("no way is clearly faster than sequential reading: %s Mpx/s", bench.Ratio(seq.PixelRate()/1e6)))
	} else {
		out = append(out, fmt.Sprintf("the fastest way is %s: %s times as fast as sequential reading", best.Axes.Get("way"), bench.Ratio(gain)))
	}
	out = append(out, fmt.Sprintf("throughput: %s Mpx/s: %s", bench.Ratio(best.PixelRate()/1e6), throughput.grade(best.PixelRate()/1e6)))
	out = append(out, readBand.perTile("read, one after the other", seq.Median()/float64(max(seq.Ops, 1))))
	out = append(out, threadAdvice(doc, seq, ours)...)
	out = append(out, batchAdvice(ours)...)
	if doc.Image.TilesRead == doc.Image.Tiles {
		return append(out, beside(doc)...)
	}
	out = append(out, fmt.Sprintf("all %s of level 0 would take %s", counted(doc.Image.Tiles), bench.Time(best.Median()/float64(max(best.Ops, 1))*float64(doc.Image.Tiles))))
	return append(out, beside(doc)...)
}

// threadAdvice explains what threads gain, and what may limit them.
func threadAdvice(doc *bench.Document, seq bench.Result, ours []bench.Result) []string {
	i := slices.IndexFunc(ours, func(x bench.Result) bool {
		return strings.HasPrefix(x.Axes.Get("way"), threaded+" ") && x.Axes.Get("way") != (way{threaded, 1}).String()
	})
	if i < 0 {
		return nil
	}
	gain := seq.Median() / ours[i].Median()
	out := []string{fmt.Sprintf("threads bring %s times the speed: %s", bench.Ratio(gain), speedUp.grade(gain))}
	if gain < speedUp.moderate {
		out = append(out, whyNot(doc, seq))
	} else if waits := 1 - seq.CPU/seq.Median(); waits > 0.3 {
		out = append(out, fmt.Sprintf("one thread waits for the file %.0f%% of the time: read ahead (prefetch) while tiles are computed", 100*waits))
	}
	out = append(out, fewer(ours, ours[i])...)
	if p := slices.IndexFunc(ours, func(x bench.Result) bool { return strings.HasPrefix(x.Axes.Get("way"), separate+" ") }); p >= 0 && ours[p].Median() < ours[i].Median()/worth {
		out = append(out, fmt.Sprintf("%s are faster than threads here (%s times): more memory, %s, is the price", ours[p].Axes.Get("way"), bench.Ratio(ours[i].Median()/ours[p].Median()), units.FormatSize(ours[p].RSS)))
	}
	return out
}

// fewer says that more threads than the fastest number, or processes, cost time.
func fewer(ours []bench.Result, best bench.Result) (out []string) {
	slowest := func(kind string, least int) (x bench.Result, found bool) {
		for _, r := range ours { // the fastest first
			if n, ok := numberOf(r, kind); ok && n > least {
				x, found = r, true
			}
		}
		return x, found
	}
	n, _ := numberOf(best, threaded)
	if x, found := slowest(threaded, n); found && x.Median() > worth*best.Median() {
		out = append(out, fmt.Sprintf("more than %d workers cost time: %s take %s times as long", n, x.Axes.Get("way"), bench.Ratio(x.Median()/best.Median())))
	}
	if x, found := slowest(separate, 0); found && x.Median() > worth*best.Median() {
		out = append(out, fmt.Sprintf("threads in place of processes: %s take %s times as long, since each opens the file and sends pixels through a pipe",
			x.Axes.Get("way"), bench.Ratio(x.Median()/best.Median())))
	}
	return out
}

// numberOf returns the number of a way of a kind, as 4 of "threads 4".
func numberOf(x bench.Result, kind string) (n int, ok bool) {
	text, ok := strings.CutPrefix(x.Axes.Get("way"), kind+" ")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}

// batchAdvice names the smallest batches that are about as fast as the fastest ones, if those take more memory.
func batchAdvice(ours []bench.Result) []string {
	var small, large bench.Result
	least, most := 0, 0
	fastest := 0.0
	for _, x := range ours { // the fastest first
		n, ok := numberOf(x, batched)
		if !ok {
			continue
		}
		if fastest == 0 {
			fastest = x.Median()
		}
		if x.Median() <= worth*fastest && (least == 0 || n < least) {
			small, least = x, n
		}
		if n > most {
			large, most = x, n
		}
	}
	if least == 0 || least == most || small.RSS == 0 || large.RSS < small.RSS+small.RSS/4 {
		return nil
	}
	return []string{fmt.Sprintf("batches of %d are enough: %s in memory, %s with %s, which take %s times as long", least, units.FormatSize(small.RSS), units.FormatSize(large.RSS),
		large.Axes.Get("way"), bench.Ratio(large.Median()/small.Median()))}
}

// whyNot explains why threads gain little over sequential reading.
func whyNot(doc *bench.Document, seq bench.Result) string {
	busy := seq.CPU / max(seq.Median(), 1e-9) // share of the time in which one thread computes
	cores := doc.System.Cores
	if l := doc.System.Limits.CPUs; l != nil && *l < float64(cores) {
		cores = int(*l + 0.5)
	}
	switch {
	case cores < 2:
		return "this process may use one processor only: ask for more (srun --cpus-per-task)"
	case busy < 0.5:
		return "one thread waits for the file most of the time, and several do not make it come faster" + network(doc)
	case seq.Median() < 0.01:
		return "all of it takes " + bench.Time(seq.Median()) + ": too little to be shared"
	case seqMemory(doc):
		return "tiles are stored raw and come at the speed of memory: little is left to share"
	}
	return fmt.Sprintf("one thread computes %.0f%% of the time, on %d processors: what other programs run beside this one?", 100*min(busy, 1), cores)
}

// seqMemory reports whether no tile has to be decoded.
func seqMemory(doc *bench.Document) bool {
	return len(doc.Image.Compression) == 1 && doc.Image.Compression[0] == "none"
}

// networks lists file systems whose files come over a network or from a host.
var networks = []string{"nfs", "lustre", "gpfs", "mmfs", "beegfs", "fhgfs", "cifs", "smb", "ceph", "glusterfs", "afs", "wekafs", "9p", "virtiofs", "fuse.sshfs", "fuse.rclone", "scatefs"}

// network returns advice if the file is on another machine, otherwise "".
func network(doc *bench.Document) string {
	if p := doc.System.Places; len(p) > 0 && overNetwork(p[0].Type) {
		return fmt.Sprintf(": the file lies on a network file system (%s): copy it to a local disk first", bench.Plain(p[0].Type))
	}
	return ""
}

func overNetwork(kind string) bool {
	return slices.ContainsFunc(networks, func(n string) bool { return kind == n || strings.HasPrefix(kind, n) })
}

// beside compares strata with the fastest of the other programs at equal numbers of threads.
func beside(doc *bench.Document) []string {
	var out []string
	for _, op := range []string{opTiles, opMosaic, opOpen} {
		var order []string
		ours := map[string]bench.Result{}
		others := map[string]bench.Result{}
		for _, x := range fastest(doc.Results, op) {
			k := x.Axes.Get("way")
			by := others
			if x.Who == bench.Strata {
				by = ours
			}
			if _, ok := by[k]; !ok {
				by[k] = x
				if x.Who != bench.Strata {
					order = append(order, k)
				}
			}
		}
		slices.Sort(order)
		for _, k := range order {
			o, ok := ours[k]
			if p := others[k]; ok {
				out = append(out, fmt.Sprintf("%s: strata is %s times as fast as %s, the fastest of the others", strings.TrimSuffix(op+", "+k, ", "), bench.Ratio(p.Median()/o.Median()), p.Who))
			}
		}
	}
	return out
}
