package main

// The lines of a runs file: each is one JSON object with one member.
type line struct {
	Facts *facts      `json:"facts,omitempty"`
	Case  *header     `json:"case,omitempty"`
	Run   *sample     `json:"run,omitempty"`
	Diff  *difference `json:"diff,omitempty"`
}

// header describes what a case measures and its targets.
type header struct {
	Name    string   `json:"name"`  // unique
	Group   string   `json:"group"` // a table of the report
	Label   string   `json:"label"` // row of the table
	Unit    string   `json:"unit"`  // "GiB/s", "s" or "ms"
	Targets []target `json:"targets,omitempty"`
	Memory  int64    `json:"memory_mib,omitempty"` // strata may have this much resident
	Input   int64    `json:"input,omitempty"`      // bytes of the files that are read, as stored
}

// target states a ratio that strata should reach. Against names the yardstick: a contestant, "peers" (the fastest of
// the others) or "best of C"; Ratio is the minimum of strata's speed in multiples of the yardstick's. With Against
// "ms" or "MiB resident", Ratio is a maximum in that unit, with "busy cores" and "efficiency" a minimum.
type target struct {
	Who     string  `json:"who,omitempty"` // whose; "": strata's
	Against string  `json:"against,omitempty"`
	Ratio   float64 `json:"ratio,omitempty"`
	// Inverse states and reports the ratio as time over time, a maximum.
	Inverse bool `json:"inverse,omitempty"`
}

// Yardsticks of targets besides the contestants.
const (
	anyPeer    = "peers"
	absolute   = "ms"
	resident   = "MiB resident"
	busy       = "busy cores"     // processor time over wall time
	efficiency = "efficiency"     // speed in multiples of one thread's, over the number of threads
	anyProgram = "other programs" // the fastest of those that are no yardstick themselves
	bestInC    = "best of C"      // the fastest of what C does with a file
)

// sample is one measurement.
type sample struct {
	Case    string  `json:"case"`
	Round   int     `json:"round"`
	Who     string  `json:"who"`
	First   float64 `json:"first_s,omitempty"` // the process's first repetition, where others followed
	Seconds float64 `json:"s"`
	CPU     float64 `json:"cpu_s"`
	Bytes   int64   `json:"bytes"`
	HWM     int64   `json:"hwm_kb"`
	Check   uint64  `json:"ck,omitempty"`
	Stored  int64   `json:"stored,omitempty"`  // bytes of what was written
	Workers int     `json:"workers,omitempty"` // that computed at a time, by the run record
	Failed  string  `json:"failed,omitempty"`
}

// difference describes how far strata's result and another program's lie apart.
type difference struct {
	Case   string  `json:"case"`
	Who    string  `json:"who"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
	Range  float64 `json:"range"`            // largest magnitude
	Far    float64 `json:"far"`              // share of voxels further apart than a thousandth of it
	Shapes [][]int `json:"shapes,omitempty"` // when these differ
}
