package doctor

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"strata/pkg/bench"
	"strata/pkg/units"
)

// purpose lists the purposes of the libraries, in the order of the list of libraries.
var purpose = []string{
	"the driver", "reads files straight into a device; without it they come through the host",
	"decodes on a device; without it the host does",
}

// print writes the state for people. On a machine without a GPU, GPUs and the ways to them take one line unless
// all is set.
func (s *state) print(w io.Writer, all bool) error {
	var b strings.Builder
	gpus := all || s.driver || len(s.GPUs) > 0 || hasGPU(s.Machine)
	s.printChecks(&b, theMachine)
	s.printChecks(&b, thePath)
	if gpus {
		s.printLibraries(&b)
		s.printGPUs(&b)
		s.printChecks(&b, theStorage)
	} else {
		fmt.Fprintln(&b, "GPUs: none (-v: what was looked at)")
	}
	if len(s.Environment) > 0 {
		fmt.Fprintln(&b, "environment")
		for _, name := range variables {
			if v, ok := s.Environment[name]; ok {
				fmt.Fprintf(&b, "  %s=%s\n", name, bench.Plain(v))
			}
		}
	}
	if (gpus || len(s.Leases.Requests) > 0) && s.Root == "/" {
		s.printLeases(&b)
	}
	if gpus || s.Reading.Path != "" {
		fmt.Fprintf(&b, "%s\n", bench.Plain(s.Reading.text()))
	}
	if s.Reading.Next != "" {
		fmt.Fprintf(&b, "  next: %s\n", bench.Plain(s.Reading.Next))
	}
	fmt.Fprintf(&b, "%s\n", bench.Plain(s.Verdict))
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *state) printLibraries(b *strings.Builder) {
	if len(s.Libraries) > 0 {
		fmt.Fprintln(b, "libraries")
	}
	for i, l := range s.Libraries {
		fmt.Fprintf(b, "  %s: %s\n", bench.Plain(l.Name), purpose[i])
		if l.Reason != "" {
			fmt.Fprintf(b, "     not usable: %s\n", bench.Plain(l.Reason))
		} else {
			fmt.Fprintf(b, "     version %s, %s\n", l.Version, bench.Plain(l.File))
		}
	}
}

func (s *state) printGPUs(b *strings.Builder) {
	fmt.Fprintln(b, "GPUs")
	if s.noDevices != "" {
		fmt.Fprintf(b, "  none: %s\n", bench.Plain(s.noDevices))
	}
	for i := range s.GPUs {
		s.printGPU(b, &s.GPUs[i])
	}
	switch m := s.Management; {
	case m.Reason != "" && s.Libraries[0].Reason == "": // else there is no driver
		fmt.Fprintf(b, "  not known: their place on the bus, modes and users: %s\n", bench.Plain(m.Reason))
	case m.Hidden > 0:
		fmt.Fprintf(b, "  %s of other jobs\n", units.Count(m.Hidden, "GPU"))
	}
}

func (s *state) printGPU(b *strings.Builder, d *device) {
	fmt.Fprintf(b, "  %d: %s  %s", d.Index, bench.Plain(d.Name), bench.Plain(d.UUID))
	if s.Root == "/" {
		fmt.Fprintf(b, "  compute capability %s, driver for CUDA %s", cmp.Or(d.Compute, "unknown"), cmp.Or(d.Driver, "unknown"))
	}
	b.WriteByte('\n')
	for _, line := range d.Hardware.lines() {
		fmt.Fprintf(b, "     %s\n", bench.Plain(line))
	}
	if d.Reason != "" {
		fmt.Fprintf(b, "     not usable: %s\n", bench.Plain(d.Reason))
		return
	}
	if d.Memory > 0 {
		fmt.Fprintf(b, "     %s of %s free\n", units.FormatSize(d.Free), units.FormatSize(d.Memory))
	}
	if d.Straight {
		fmt.Fprintf(b, "     files reach it directly: %s\n", bench.Plain(d.StraightReason))
	} else if s.Root == "/" {
		fmt.Fprintf(b, "     files reach it through host memory: %s\n", bench.Plain(d.StraightReason))
	}
}

func (s *state) printLeases(b *strings.Builder) {
	fmt.Fprintf(b, "leases of GPU memory in %s\n", bench.Plain(s.Leases.Dir))
	switch {
	case s.Leases.Reason != "":
		fmt.Fprintf(b, "  cannot be kept: %s\n", bench.Plain(s.Leases.Reason))
	case len(s.Leases.Requests) == 0:
		fmt.Fprintln(b, "  none")
	}
	for _, q := range s.Leases.Requests {
		state := "holds"
		if q.Waiting {
			state = "waits for"
		}
		who := "an unknown process"
		if q.PID > 0 {
			who = fmt.Sprintf("%s (process %d of %s on %s)", q.Tool, q.PID, q.User, q.Host)
		}
		fmt.Fprintf(b, "  %s: %s %s %s", q.GPU, who, state, units.FormatSize(q.Bytes))
		if q.Since != nil {
			fmt.Fprintf(b, ", since %s", q.Since.Local().Format("2006-01-02 15:04:05"))
		}
		b.WriteByte('\n')
	}
}
