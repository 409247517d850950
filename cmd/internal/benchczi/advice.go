package benchczi

import (
	"fmt"
	"slices"
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
	}
	if p := slices.IndexFunc(ours, func(x bench.Result) bool { return strings.HasPrefix(x.Axes.Get("way"), separate+" ") }); p >= 0 && ours[p].Median() < ours[i].Median()/worth {
		out = append(out, fmt.Sprintf("%s are faster than threads here (%s times): more memory, %s, is the price", ours[p].Axes.Get("way"), bench.Ratio(ours[i].Median()/ours[p].Median()), units.FormatSize(ours[p].RSS)))
	}
	return out
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
