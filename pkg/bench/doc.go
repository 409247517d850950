// Package bench holds the common parts of the benchmarks: results with repeats, a document of them with facts
// about the machine, and its forms as JSON, table, page with plots, single plots, and comparison of two
// documents.
//
//	d := bench.New("bench-io", version, os.Args)
//	d.System = bench.ReadSystem(ctx, path)
//	usage := bench.Begin()
//	began := time.Now()
//	… move bytes …
//	r := bench.Result{Name: "read", Axes: bench.Axes{{"threads", "2"}}, Who: bench.Strata, Bytes: n}
//	r.Seconds = append(r.Seconds, time.Since(began).Seconds())
//	r.CPU, r.RSS = usage.End()
//	d.Results = append(d.Results, r)
//	err := d.WriteJSON(w) // or Table, HTML
//
// A result is identified by its name (what was done), its axes (how) and who did it. Results of two programs
// with the same name and axes stand side by side in tables and plots, with the ratio of ours to theirs.
package bench
