package main

// The lines of a runs file: each is one JSON object with one member.
type line struct {
	Facts *facts      `json:"facts,omitempty"`
	Case  *header     `json:"case,omitempty"`
	Run   *sample     `json:"run,omitempty"`
	Diff  *difference `json:"diff,omitempty"`
}

// header says what a case measures and what would be good.
type header struct {
	Name      string     `json:"name"`  // unique
	Group     string     `json:"group"` // a table of the report
	Label     string     `json:"label"` // row of the table
	Unit      string     `json:"unit"`  // "GiB/s" or "ms"
	Target    target     `json:"target"`
	Goals     []target   `json:"goals,omitempty"`      // of the page of the remote part: one for each peer
	Memory    int64      `json:"memory_mib,omitempty"` // strata may have this much resident
	Reference *reference `json:"reference,omitempty"`
}

// target is what strata should reach. Against says who the yardstick is: "C",
// "peers" (the fastest of them), another contestant, or "" for none; Ratio is
// strata's speed as a multiple of the yardstick's, at least. With Against
// "ms" Ratio is milliseconds, at most.
type target struct {
	Against string  `json:"against,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`
	// Inverse states and reports the ratio as time over time, at most.
	Inverse bool `json:"inverse,omitempty"`
}

// sample is one measurement.
type sample struct {
	Case    string  `json:"case"`
	Round   int     `json:"round"`
	Who     string  `json:"who"`
	Seconds float64 `json:"s"`
	CPU     float64 `json:"cpu_s"`
	Bytes   int64   `json:"bytes"`
	HWM     int64   `json:"hwm_kb"`
	Check   uint64  `json:"ck,omitempty"`
	Stored  int64   `json:"stored,omitempty"` // bytes of what was written
	Failed  string  `json:"failed,omitempty"`
}
