package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/gpu"
	"strata/pkg/gpu/lease"
	"strata/pkg/gpu/nvml"
	"strata/pkg/units"
)

// gpusCommand returns the command "doctor gpus".
func gpusCommand() *cli.Command {
	return &cli.Command{
		Name:  "gpus",
		Usage: "list GPUs with their free memory and leases, or pick the best one",
		Description: "Lists the GPUs, or GPU instances (MIG), that CUDA_VISIBLE_DEVICES leaves: the free memory, the part of it that\n" +
			"other processes have leased but not yet taken, the processes that wait, and why a GPU cannot be used. NVIDIA's\n" +
			"management library answers this without using memory of a GPU; without that library each GPU is opened for a\n" +
			"moment.\n\n" +
			"--select_best prints one line, the UUID of the GPU with the most available memory; among equals, the one for\n" +
			"which fewest processes wait, then the first. If no GPU can be used, the exit code is 4.\n\n" +
			"--json writes the fields source (\"nvml\" or \"driver\"); driver_version; driver_cuda; reason: why there are no\n" +
			"GPUs; leases_reason: why leases are unknown; best: a UUID; gpus (index, name, uuid, pci, memory_bytes,\n" +
			"free_bytes, promised_bytes, available_bytes, leases and waiting: numbers of processes; compute_mode; processes:\n" +
			"a number, or null if unknown; parent: the GPU of an instance; usable; reason). With --select_best it writes one\n" +
			"element of gpus.",
		Flags: []cli.Flag{
			{Name: "select_best", Kind: cli.Bool, Usage: "print only the UUID of the best GPU; exit with code 4 if there is none"},
			{Name: "min_memory", Kind: cli.Size, Usage: "treat GPUs with less available memory than this as unusable"},
			{Name: "json", Kind: cli.Bool, Usage: "print JSON instead of text"},
		},
		Examples: []cli.Example{
			{Command: "doctor gpus", Usage: "the table"},
			{Command: "CUDA_VISIBLE_DEVICES=$(doctor gpus --select_best --min_memory 8GiB) || exit", Usage: "pick the best GPU of a node, in a script"},
			{Command: "doctor gpus --json | jq '[.gpus[] | select(.usable)] | length'", Usage: "number of usable GPUs"},
		},
		Run: cli.Do(runGPUs),
	}
}

func runGPUs(_ context.Context, r *cli.Run) error {
	l := listGPUs()
	if least := r.Size("min_memory"); least > 0 {
		l.demand(least)
	}
	best := l.best()
	if best != nil {
		l.Best = best.UUID
	}
	switch {
	case r.Bool("select_best") && best == nil:
		return cli.GPUFailure(errors.New(l.none()))
	case r.Bool("select_best") && r.Bool("json"):
		return writeJSON(r.Stdout, best)
	case r.Bool("select_best"):
		_, err := fmt.Fprintln(r.Stdout, best.UUID)
		return err
	case r.Bool("json"):
		return writeJSON(r.Stdout, l)
	}
	return l.print(r.Stdout)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// gpuList is the result of "doctor gpus", as --json writes it.
type gpuList struct {
	Source       string    `json:"source"`
	Version      string    `json:"driver_version"`
	CUDA         string    `json:"driver_cuda"`
	Reason       string    `json:"reason"`
	LeasesReason string    `json:"leases_reason"`
	Best         string    `json:"best"`
	GPUs         []*oneGPU `json:"gpus"`
}

type oneGPU struct {
	Index     int    `json:"index"`
	Name      string `json:"name"`
	UUID      string `json:"uuid"`
	PCI       string `json:"pci"`
	Memory    int64  `json:"memory_bytes"`
	Free      int64  `json:"free_bytes"`
	Promised  int64  `json:"promised_bytes"`
	Available int64  `json:"available_bytes"`
	Leases    int    `json:"leases"`
	Waiting   int    `json:"waiting"`
	Mode      string `json:"compute_mode"`
	Processes *int   `json:"processes"`
	Parent    string `json:"parent"`
	Usable    bool   `json:"usable"`
	Reason    string `json:"reason"`

	users []nvml.Process
}

// listGPUs lists the GPUs by the management library, or else by the driver.
func listGPUs() *gpuList {
	l := &gpuList{Source: "nvml", GPUs: []*oneGPU{}}
	facts, err := nvml.Read()
	if err == nil && len(facts.Devices) > 0 {
		l.fromNVML(facts)
	} else {
		l.fromDriver(err)
	}
	for i, g := range l.GPUs {
		g.Index = i
	}
	l.addLeases()
	return l
}

// fromNVML fills the list without creating a context on any device.
func (l *gpuList) fromNVML(f *nvml.Facts) {
	l.Version, l.CUDA = f.Driver, cudaText(f.CUDA)
	driver := gpu.DriverLibrary()
	visible := visibleUnits(f.Devices)
	for _, u := range visible {
		l.GPUs = append(l.GPUs, fromUnit(u, driver.Reason))
	}
	if len(visible) == 0 {
		l.Reason = "CUDA_VISIBLE_DEVICES names none of the GPUs that are there"
	}
}

func cudaText(v gpu.Version) string {
	if v == 0 {
		return ""
	}
	return v.String()
}

// visibleUnits returns the units that programs would find, in the driver's order. If that order cannot be derived
// (CUDA sorts different GPUs by its own rules), it asks the driver, which creates no context either.
func visibleUnits(devices []nvml.Device) []nvml.Unit {
	list, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if !nvml.OrderKnown(devices, os.Getenv("CUDA_DEVICE_ORDER"), list) {
		if infos, err := gpu.Devices(); err == nil {
			return inOrder(devices, infos, !set)
		}
	}
	if set {
		return nvml.Visible(devices, list)
	}
	return nvml.Units(devices)
}

// inOrder returns the units that the driver shows, followed by the others if all are wanted: the driver shows at
// most one instance.
func inOrder(devices []nvml.Device, infos []gpu.Info, all bool) []nvml.Unit {
	var order []nvml.Unit
	has := func(u nvml.Unit) bool {
		return slices.ContainsFunc(order, func(o nvml.Unit) bool { return o.ID() == u.ID() })
	}
	for _, info := range infos {
		if u, ok := nvml.Find(devices, info.UUID, info.PCI); ok && !has(u) {
			order = append(order, u)
		}
	}
	for _, u := range nvml.Units(devices) {
		if all && !has(u) {
			order = append(order, u)
		}
	}
	return order
}

// fromUnit describes a unit; noDriver is the reason why the driver's library cannot be used, if it cannot.
func fromUnit(u nvml.Unit, noDriver string) *oneGPU {
	g := &oneGPU{Name: u.Title(), UUID: u.ID(), PCI: u.PCI, Mode: string(u.Mode), users: u.Users()}
	if u.Instance != nil {
		g.Parent = u.UUID
	}
	if m := u.Space(); m != nil {
		g.Memory, g.Free = m.Total, m.Free
	}
	if g.users != nil {
		n := len(g.users)
		g.Processes = &n
	}
	g.Reason = whyNot(u, noDriver)
	g.Usable = g.Reason == ""
	return g
}

// whyNot returns the reason why programs cannot use a unit, as far as that can be known without trying.
func whyNot(u nvml.Unit, noDriver string) string {
	info := gpu.Info{Name: u.Title(), Compute: u.Compute}
	switch err := info.Usable(); {
	case u.Reason != "":
		return u.Reason
	case noDriver != "":
		return "the driver's library cannot be used: " + noDriver
	case u.Compute > 0 && err != nil:
		return gpu.Reason(err)
	case u.Mode == nvml.Prohibited:
		return "its compute mode is prohibited (an administrator changes that: nvidia-smi -c 0)"
	case u.Mode == nvml.ExclusiveProcess && len(u.Users()) > 0:
		return "its compute mode is exclusive process, and a process uses it"
	case u.MIG != nil && u.MIG.Now && u.Instance == nil:
		return "MIG is on, but there are no instances (an administrator makes them: nvidia-smi mig -cgi … -C)"
	case u.Space() == nil:
		return "the management library does not report its memory"
	}
	return ""
}

// fromDriver fills the list by opening each device; noNVML is the reason why the management library is not used.
func (l *gpuList) fromDriver(noNVML error) {
	l.Source = "driver"
	infos, err := gpu.Devices()
	if l.Reason = gpu.Reason(err); err != nil {
		var no *nvml.Unavailable
		if errors.As(noNVML, &no) && gpu.DriverLibrary().Reason == "" {
			l.Reason += "; " + no.Reason // it says more than the driver does
		}
		return
	}
	for _, info := range infos {
		l.CUDA = cudaText(info.Driver)
		g := &oneGPU{Name: info.Name, UUID: info.UUID, PCI: info.PCI, Memory: info.Memory}
		d, err := gpu.Open(info, gpu.Limits{})
		if err == nil {
			g.Free, err = d.Free()
			err = errors.Join(err, d.Close())
		}
		g.Reason = gpu.Reason(err)
		g.Usable = err == nil
		l.GPUs = append(l.GPUs, g)
	}
}

// addLeases adds promised memory: what processes have leased and, as far as that can be told, not yet taken, since
// what they have taken is no longer free.
func (l *gpuList) addLeases() {
	entries, err := lease.List("")
	l.LeasesReason = gpu.Reason(err)
	here, _ := os.Readlink("/proc/self/ns/pid")
	for _, g := range l.GPUs {
		for _, e := range entries {
			switch {
			case !nvml.SameUUID(e.UUID, g.UUID):
			case e.Waiting:
				g.Waiting++
			default:
				g.Leases++
				taken := int64(0)
				for _, p := range g.users {
					if p.PID == e.Holder.PID && e.Holder.Namespace == here && here != "" {
						taken = p.Used
					}
				}
				g.Promised += min(max(e.Bytes-taken, 0), g.Memory)
			}
		}
		g.Available = max(g.Free-g.Promised, 0)
	}
}

// demand removes GPUs with less memory available.
func (l *gpuList) demand(least int64) {
	for _, g := range l.GPUs {
		if g.Usable && g.Available < least {
			g.Usable = false
			g.Reason = fmt.Sprintf("it has %s available, %s are requested", units.FormatSize(g.Available), units.FormatSize(least))
		}
	}
}

// best returns the usable GPU with most memory available, or nil.
func (l *gpuList) best() *oneGPU {
	var usable []*oneGPU
	for _, g := range l.GPUs {
		if g.Usable {
			usable = append(usable, g)
		}
	}
	if len(usable) == 0 {
		return nil
	}
	return slices.MinFunc(usable, func(a, b *oneGPU) int {
		return cmp.Or(-cmp.Compare(a.Available, b.Available), a.Waiting-b.Waiting, a.Index-b.Index)
	})
}

// none returns the reason why there is no best GPU.
func (l *gpuList) none() string {
	reasons := []string{}
	for _, g := range l.GPUs {
		reasons = append(reasons, fmt.Sprintf("GPU %d: %s", g.Index, g.Reason))
	}
	if len(reasons) == 0 {
		reasons = []string{l.Reason}
	}
	return "no usable GPU: " + bench.Plain(strings.Join(reasons, "; "))
}

func (l *gpuList) print(w io.Writer) error {
	var b strings.Builder
	if len(l.GPUs) == 0 {
		fmt.Fprintf(&b, "none: %s\n", bench.Plain(l.Reason))
	}
	for _, g := range l.GPUs {
		fmt.Fprintf(&b, "%d: %s  %s\n", g.Index, bench.Plain(g.Name), bench.Plain(g.UUID))
		if g.Reason != "" {
			fmt.Fprintf(&b, "     not usable: %s\n", bench.Plain(g.Reason))
		}
		if g.Memory > 0 && g.Free+g.Available > 0 || g.Usable {
			fmt.Fprintf(&b, "     %s available: %s of %s free", units.FormatSize(g.Available), units.FormatSize(g.Free), units.FormatSize(g.Memory))
			if g.Leases > 0 {
				fmt.Fprintf(&b, ", %s of that promised (%s)", units.FormatSize(g.Promised), units.Count(g.Leases, "lease"))
			}
			if g.Waiting > 0 {
				fmt.Fprintf(&b, ", %d waiting", g.Waiting)
			}
			if g.Processes != nil {
				fmt.Fprintf(&b, "; in use by %s", units.Count(*g.Processes, "process"))
			}
			b.WriteByte('\n')
		}
	}
	if l.LeasesReason != "" {
		fmt.Fprintf(&b, "leases are not known: %s\n", bench.Plain(l.LeasesReason))
	}
	if best := l.best(); best != nil {
		fmt.Fprintf(&b, "best: %d (%s)\n", best.Index, bench.Plain(best.UUID))
	} else if len(l.GPUs) > 0 {
		fmt.Fprintln(&b, "best: none is usable")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
