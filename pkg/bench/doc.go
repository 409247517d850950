// Package bench is what benchmarks have in common: results with their repeats,
// a document of them with the facts of the machine, and what is made of it: JSON,
// a table, a page with plots, plots alone, and the comparison of two documents.
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
// A result is told apart by its name (what was done), its axes (how) and who did
// it. What two programs did under the same name and axes stands side by side in
// tables and plots, with the ratio of ours to theirs.
package bench
