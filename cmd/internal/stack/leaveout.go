package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"strata/pkg/cli"
	"strata/pkg/oct/slicefiles"
	"strata/pkg/oct/stack"
	"strata/pkg/registration"
	"strata/pkg/webpage"
)

// Where the overlaps of interpolated slices come from.
const (
	overlapExpected = "expected"
	overlapMeasured = "measured"
)

// leaveOut returns the slices that are stacked: with --leave_out_excluded those that the table does not exclude, and
// those that were interpolated in the place of such. It notes how often the blade cut between these: once before each
// slice, also before one that is left out, whether it is in the folder or not, but not before one that was scanned
// twice.
func leaveOut(r *cli.Run, files []slicefiles.File, in *stack.Input) (kept []slicefiles.File, err error) {
	if !r.Bool("leave_out_excluded") {
		return files, nil
	}
	if in.Config == nil {
		return nil, cli.Usage("--leave_out_excluded: name the table that excludes slices: --slice_config FILE")
	}
	there := map[int]slicefiles.File{}
	ids := map[int]bool{}
	for _, f := range files {
		there[f.ID], ids[f.ID] = f, true
	}
	excluded := func(id int) bool {
		c, known := in.Config[id]
		return known && !c.Use && (!c.Interpolated || c.Fault == registration.FaultDuplicate)
	}
	for id := range in.Config {
		if excluded(id) {
			ids[id] = true
		}
	}
	in.Cuts = map[int]int{}
	cuts, apart := 0, false
	var told []string
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		fault := in.Config[id].Fault
		if fault != registration.FaultDuplicate {
			cuts++
		}
		f, present := there[id]
		if excluded(id) {
			in.LeftOut = append(in.LeftOut, id)
			text := fmt.Sprint(id)
			if fault != "" {
				text += " (" + fault + ")"
			}
			told = append(told, text)
			apart = apart || present
			continue
		}
		if len(kept) > 0 && cuts != 1 {
			in.Cuts[id] = cuts
		}
		if len(kept) > 0 && apart {
			in.Apart = append(in.Apart, id)
		}
		cuts, apart = 0, false
		kept = append(kept, f)
	}
	if len(kept) == 0 {
		return nil, cli.BadInputf("%s: excludes all %d slices of %s: none is left to stack", r.String("slice_config"), len(files), r.Arg("SLICES_DIR"))
	}
	if told != nil {
		r.Warn("%s left out, which %s excludes: %s", webpage.Plural(len(told), "slice"), r.String("slice_config"), strings.Join(told, ", "))
	}
	return kept, nil
}
