package registration

import "io"

// SliceConfig says whether a slice's transform can be trusted, and why not.
type SliceConfig struct {
	Use          bool
	AutoExcluded bool
	Fault        string // what slices assess found; "": nothing
	Interpolated bool   // made from the slices beside it
}

// Skip reports whether only the motors place the slice.
func (c SliceConfig) Skip() bool { return !c.Use || c.AutoExcluded }

// ReadSliceConfig reads a slice configuration by slice number: column slice_id, and optionally use (default
// true), auto_excluded, interpolated (default false) and fault. A duplicate slice is an error.
func ReadSliceConfig(r io.Reader, name string) (map[int]SliceConfig, error) {
	t, err := openTable(r, name, "slice_id")
	if err != nil {
		return nil, err
	}
	out := map[int]SliceConfig{}
	lines := map[int]int{}
	for {
		ok, err := t.next()
		if err != nil || !ok {
			return out, err
		}
		id, err := t.id("slice_id")
		if err != nil {
			return nil, err
		}
		var c SliceConfig
		if c.Use, err = t.truth("use", true); err != nil {
			return nil, err
		}
		if c.AutoExcluded, err = t.truth("auto_excluded", false); err != nil {
			return nil, err
		}
		c.Interpolated, _ = t.truth(Interpolated, false) // what says neither is no decision
		c.Fault = t.text(Fault)
		if err := t.repeated(lines, id); err != nil {
			return nil, err
		}
		out[id] = c
	}
}
