package benchczi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	"strata/pkg/cli"
)

func runCommand() *cli.Command {
	return &cli.Command{
		Name:  "run",
		Usage: "measure reading the tiles of level 0 in many ways, and rank them",
		Description: "The ways are sequential, one tile after the other; threads, as many as --workers; batches of --batch_sizes\n" +
			"tiles, which --threads threads read and which are in memory together; and --processes, each of which opens the\n" +
			"file and returns pixels through a pipe.\n\n" +
			"Reads all tiles once, to fill the page cache (not with --cold) and to compare up to 64 of them between the ways.\n" +
			"Then measures the ways in alternation, --reps times. Each time, opens the file and decodes the tiles into reused\n" +
			"memory. The ranking is by the median; growth is the increase of resident memory.\n\n" +
			"Writes the results to benchmark_results_YYYYMMDD_HHMMSS.json: in a container to /data, else to the current\n" +
			"folder.",
		Args: fileArgument,
		Flags: flags(choosing("", "all"), []cli.Flag{
			{Name: "quick", Kind: cli.Bool, Usage: "measure only sequential reading and 4 and 8 threads, or those that --workers and the other flags name"},
			{Name: "ways", Kind: cli.Strings, Value: "LIST", Note: "all", Check: knownWay, Usage: "kinds of ways to measure: sequential, threads, batches, processes"},
			{Name: "workers", Kind: cli.Ints, Default: "1,2,4,8", Value: "N,N", Check: cli.Between(1, 1024), Usage: "numbers of threads to measure"},
			{Name: "batch_sizes", Kind: cli.Ints, Default: "10,25,50,100", Value: "N,N", Check: cli.Between(1, 1<<20), Usage: "numbers of tiles in a batch to measure"},
			{Name: "processes", Kind: cli.Ints, Default: "4,8", Value: "N,N", Check: cli.Between(1, 256), Usage: "numbers of processes to measure"},
			{Name: "reps", Kind: cli.Int, Default: "3", Check: cli.Between(1, 1000), Usage: "number of repetitions of each measurement, 1 to 1000"},
			{Name: "mosaic", Kind: cli.Bool, Usage: "also measure putting the tiles of a plane together, with 1 and 2 threads"},
			{Name: "peers", Kind: cli.Bool, Usage: "also measure aicspylibczi, pylibCZIrw, czifile and bioio-czi, where they are installed, in alternation, with 1 and 2 threads"},
			{Name: "python", Value: "FILE", Note: "that of VIRTUAL_ENV, build/venv or PATH", Usage: "Python interpreter that runs the programs of --peers"},
			{Name: "output", Short: "o", Aliases: []string{"json"}, Value: "FILE", Note: "benchmark_results_*.json", Usage: "JSON file for the results, which compare and html read"},
			{Name: "html", Value: "FILE", Usage: "also write the results to FILE as a web page with plots"},
			{Name: "serve", Kind: cli.Bool, Hidden: true, Usage: "be one of the processes"},
		}),
		Shared:   cli.Resources | cli.Outputs,
		Defaults: benchkit.FixedMem,
		Examples: []cli.Example{
			{Command: "bench-czi run scan.czi --max_tiles 100 --quick", Usage: "whether reading several tiles at a time helps"},
			{Command: "bench-czi run scan.czi --max_tiles 500 --cold", Usage: "all ways, from the storage device"},
			{Command: "bench-czi run scan.czi --quick --workers 2,16 --batch_sizes 25", Usage: "numbers of threads and batches of your own"},
			{Command: "bench-czi run scan.czi --peers --output results.json --html results.html", Usage: "beside other programs, with a page"},
		},
		Run: cli.Do(runRun),
	}
}

func runRun(ctx context.Context, r *cli.Run) error {
	if r.Bool("serve") {
		return serve(ctx, r)
	}
	s, err := look(ctx, r)
	if err != nil {
		return err
	}
	defer func() { _ = s.close() }() // it was only read
	doc := newDocument(ctx, r, s)
	json, err := r.OutputFile(resultsFile(r.String("output"), doc.System.Container != "", "/data", time.Now()))
	if err != nil {
		return err
	}
	html, err := r.OptionalFile("html")
	if err != nil {
		return err
	}
	if len(waysOf(r)) == 0 {
		return cli.Usage("--quick and --ways %s leave no way: give one of them", strings.Join(r.Strings("ways"), ","))
	}
	list, missing, stop, err := contestants(ctx, r, s, doc)
	if err != nil {
		return err
	}
	defer stop()
	total := int64(0)
	for _, c := range list {
		total += c.Result.Bytes * int64(r.Int("reps"))
	}
	task := r.Progress("read", total)
	defer task.Done()
	if err := warm(ctx, s, list[0]); err != nil {
		return err
	}
	for _, op := range []string{opTiles, opMosaic, opOpen} {
		of := slices.DeleteFunc(slices.Clone(list), func(c *benchkit.Contestant) bool { return c.Result.Name != op })
		if err := measure(ctx, s, of, r.Int("reps"), task.Add); err != nil {
			return err
		}
	}
	task.Done()
	for _, c := range list {
		doc.Results = append(doc.Results, c.Result)
	}
	doc.Results = append(doc.Results, missing...)
	doc.Advice = advise(doc)
	fmt.Fprintf(r.Stdout, "%s: %s%s\n\n", bench.Plain(s.path), s, onWhat(doc))
	err = summary(r.Stdout, doc)
	fmt.Fprintf(r.Stdout, "results: %s\n", bench.Plain(json.Path()))
	return errors.Join(err, json.Write(doc.WriteJSON), html.Write(doc.HTML))
}

// warm reads the tiles once to fill the page cache, unless they should be cold.
func warm(ctx context.Context, s *scan, by *benchkit.Contestant) error {
	if s.cold {
		return nil
	}
	_, err := by.Round(ctx)
	var little *benchkit.Unable
	if errors.As(err, &little) {
		return cli.MemoryError("%s: %w", s.path, little)
	}
	return err
}

// newDocument returns the document of a run, without results.
func newDocument(ctx context.Context, r *cli.Run, s *scan) *bench.Document {
	doc := bench.New(tool, cli.Version(), append([]string{tool}, os.Args[1:]...))
	if s.far {
		doc.System = bench.ReadSystem(ctx)
	} else {
		doc.System = bench.ReadSystem(ctx, s.path)
	}
	doc.Image = &s.image
	for _, name := range []string{"max_tiles", "channel", "scene"} {
		value := "all"
		if r.IsSet(name) || name == "max_tiles" && r.Int(name) > 0 {
			value = strconv.Itoa(r.Int(name))
		}
		doc.Setting = append(doc.Setting, bench.Axis{Name: name, Value: value})
	}
	doc.Setting = append(doc.Setting, bench.Axis{Name: "threads", Value: strconv.Itoa(r.Options.Threads)}, bench.Axis{Name: "cold", Value: strconv.FormatBool(s.cold)})
	return doc
}

// resultsFile returns the file for the results: the named one, or one named by the time, which is beside the data
// inside a container.
func resultsFile(named string, container bool, data string, now time.Time) string {
	if named != "" {
		return named
	}
	folder := ""
	if info, err := os.Stat(data); container && err == nil && info.IsDir() {
		folder = data
	}
	for n := 1; ; n++ {
		name := "benchmark_results_" + now.Format("20060102_150405")
		if n > 1 { // a second run within a second
			name += "_" + strconv.Itoa(n)
		}
		path := filepath.Join(folder, name+".json")
		if _, err := os.Lstat(path); err != nil || n == 1000 {
			return path
		}
	}
}

// contestants returns all ways of all operations, strata's first, and what is missing of the other programs'. stop
// ends those programs.
func contestants(ctx context.Context, r *cli.Run, s *scan, doc *bench.Document) (list []*benchkit.Contestant, missing []bench.Result, stop func(), err error) {
	im := &s.image
	add := func(op, who string, w way, x reader) {
		c := s.contestant(bench.Result{Name: op, Who: who, Axes: axes(s, op, w), Bytes: im.Bytes, Pixels: im.Pixels, Ops: int64(im.TilesRead)}, x)
		switch op {
		case opMosaic:
			c.Result.Bytes = composer{scan: s}.bytes()
			c.Result.Pixels, c.Result.Ops = c.Result.Bytes/int64(s.file.SubBlock(s.tiles[0]).Pixels.Bytes()), 0
		case opOpen:
			c.Result.Bytes, c.Result.Pixels, c.Result.Ops = 0, 0, int64(s.file.Len())
		}
		list = append(list, c)
	}
	ways := waysOf(r)
	if r.Bool("peers") {
		for _, n := range []int{1, 2} {
			if w := (way{threaded, n}); !slices.Contains(ways, w) {
				ways = append(ways, w)
			}
		}
	}
	for _, w := range ways {
		add(opTiles, bench.Strata, w, &loader{scan: s, way: w, threads: r.Options.Threads, mem: r.Options.Mem / 2})
	}
	if r.Bool("mosaic") {
		for _, n := range []int{1, 2} {
			add(opMosaic, bench.Strata, way{threaded, n}, composer{s, n, r.Options.Mem})
		}
	}
	add(opOpen, bench.Strata, way{threaded, 1}, opener{s})
	stop = func() {}
	if !r.Bool("peers") {
		return list, nil, stop, nil
	}
	python, err := benchkit.FindPython(r.String("python"))
	if err != nil {
		return nil, nil, nil, err
	}
	var all []*benchkit.Peers
	stop = func() {
		for _, ps := range all {
			ps.Close()
		}
	}
	for _, n := range []int{1, 2} {
		ps, err := benchkit.StartPeers(ctx, python, peersScript, peerKinds, n, 0)
		if err != nil {
			stop()
			return nil, nil, nil, err
		}
		if n == 1 {
			doc.System.Software = append(doc.System.Software, ps.Software()...)
		}
		all = append(all, ps)
		for _, op := range []string{opTiles, opMosaic, opOpen} {
			if op == opMosaic && !r.Bool("mosaic") || op == opOpen && n > 1 {
				continue
			}
			for _, p := range ps.List {
				add(op, p.Kind.Name, way{threaded, n}, peer{p, s, op})
			}
			missing = append(missing, ps.Missing(op, axes(s, op, way{threaded, n}))...)
		}
	}
	return list, missing, stop, nil
}

// axes returns a way in the form of results.
func axes(s *scan, op string, w way) bench.Axes {
	var a bench.Axes
	if op != opOpen {
		a = append(a, bench.Axis{Name: "way", Value: w.String()})
	}
	files := "warm"
	if s.cold {
		files = "cold"
	}
	return append(a, bench.Axis{Name: "cache", Value: files})
}

// fastest returns the measured results of an operation, the fastest first.
func fastest(list []bench.Result, op string) []bench.Result {
	out := slices.DeleteFunc(slices.Clone(list), func(x bench.Result) bool { return x.Name != op || !x.Measured() })
	slices.SortStableFunc(out, func(a, b bench.Result) int { return cmp.Compare(a.Median(), b.Median()) })
	return out
}
