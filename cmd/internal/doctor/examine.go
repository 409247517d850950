package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"strata/pkg/cli"
	"strata/pkg/cli/stage"
	"strata/pkg/filelayer"
	"strata/pkg/gpu"
	"strata/pkg/gpu/cost"
	"strata/pkg/gpu/lease"
	"strata/pkg/gpu/nvml"
	"strata/pkg/jpeg"
	"strata/pkg/jpeg2000"
	"strata/pkg/settings"
	"strata/pkg/sysinfo"
	"strata/pkg/work"
)

// state holds the findings, as --json writes them.
type state struct {
	Version     string            `json:"version"`
	Root        string            `json:"root"` // "/" is this machine
	Libraries   []library         `json:"libraries"`
	GPUs        []device          `json:"gpus"`
	Management  management        `json:"management"`
	Environment map[string]string `json:"environment"`
	Leases      leases            `json:"leases"`
	Machine     *sysinfo.Machine  `json:"machine"`
	Checks      []check           `json:"checks"`
	Reading     reading           `json:"reading"`
	Uses        string            `json:"uses"`
	Verdict     string            `json:"verdict"`

	noDevices string // why there are none
	driver    bool   // there is one, usable or not
	outlook   string // end of the verdict: for what stages use a GPU that can be used

	place, fileSystem string // whose disk is examined
}

type library struct {
	Name    string `json:"name"`
	File    string `json:"file"`
	Version string `json:"version"`
	Reason  string `json:"reason"`
}

type device struct {
	Index   int    `json:"index"`
	Name    string `json:"name"`
	UUID    string `json:"uuid"`
	Memory  int64  `json:"memory_bytes"`
	Free    int64  `json:"free_bytes"`
	Compute string `json:"compute_capability"`
	Driver  string `json:"driver_cuda"`
	Reason  string `json:"reason"`

	Straight       bool   `json:"gds"`
	StraightReason string `json:"gds_reason"`

	Hardware *hardware `json:"hardware"`
	pci      string
}

type leases struct {
	Dir      string    `json:"dir"`
	Reason   string    `json:"reason"`
	Requests []request `json:"requests"`
}

type request struct {
	GPU     string     `json:"gpu"`
	Bytes   int64      `json:"bytes"`
	Waiting bool       `json:"waiting"`
	PID     int        `json:"pid"`
	Host    string     `json:"host"`
	User    string     `json:"user"`
	Tool    string     `json:"tool"`
	Since   *time.Time `json:"since"`
}

// variables lists the environment variables that affect the findings; they are shown if they are set.
var variables = append([]string{"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "STRATA_LIBCUDA", "STRATA_LIBCUFILE", "STRATA_LIBNVCOMP", nvml.Variable, jpeg.Variable, jpeg2000.Variable, "STRATA_LEASE_DIR", cost.Variable,
	"CUFILE_ENV_PATH_JSON", "CUFILE_FORCE_COMPAT_MODE", "CUFILE_LOGFILE_PATH"}, settings.Variables()...)

// target names the machine and the path to examine.
type target struct {
	root  string // "/", or the folder of a recorded machine
	path  string // "" for none
	tools bool   // NVIDIA's programs may be run

	record string // folder where what is read is recorded; "" for none
}

// examine examines everything.
func examine(ctx context.Context, t target) (*state, error) {
	s := &state{Version: cli.Version(), Root: t.root, Libraries: []library{}, GPUs: []device{}, Environment: map[string]string{}, Leases: leases{Requests: []request{}}, place: cmp.Or(t.path, ".")}
	o := sysinfo.Options{Path: t.path, NoTools: !t.tools}
	root := sysinfo.Live()
	if t.root != "/" {
		var err error
		if root, err = sysinfo.At(t.root); err != nil {
			return nil, cli.BadInput(err)
		}
	}
	var recording *sysinfo.Recording
	if t.record != "" {
		root, recording = root.Recorded()
	}
	if t.root != "/" {
		s.Machine = sysinfo.Read(ctx, root, o)
		s.remember(func(name string) (string, bool) { v, ok := s.Machine.Environment[name]; return v, ok })
		s.recorded()
	} else {
		// The facts do not wait for the driver, nor it for them.
		facts := work.Async(func() *sysinfo.Machine { return sysinfo.Read(ctx, root, o) })
		s.live()
		s.Machine = facts()
		if p := s.Machine.Path; p != nil {
			s.fileSystem = p.Mount.Type
		} else {
			s.fileSystem = fileSystemOf(ctx, s.place)
		}
	}
	if recording != nil {
		if err := recording.Write(t.record); err != nil {
			return nil, err
		}
	}
	s.decide()
	s.Reading = judge(s.situation())
	s.Checks = s.check()
	return s, nil
}

// live queries the libraries, the driver and the leases of this machine.
func (s *state) live() {
	s.remember(os.LookupEnv)
	for _, l := range gpu.Libraries() {
		s.Libraries = append(s.Libraries, library(l))
	}
	list, err := gpu.Devices()
	s.noDevices = gpu.Reason(err)
	var no *gpu.Unavailable
	s.driver = !errors.As(err, &no) || !no.NoDriver
	for _, info := range list {
		s.GPUs = append(s.GPUs, try(info))
	}
	s.outlook = outlookOf(list, s.GPUs)
	s.addHardware()
	s.Leases = listLeases()
}

// recorded adds the GPUs shown by the files of a recorded machine.
func (s *state) recorded() {
	const unasked = "a recorded machine is not asked"
	s.Leases.Reason = unasked
	for i, g := range s.Machine.Driver.GPUs {
		s.GPUs = append(s.GPUs, device{Index: i, Name: g.Model, UUID: g.UUID, StraightReason: unasked})
	}
	if len(s.GPUs) == 0 && s.Machine.Tools.SMI.Known() {
		for i, g := range s.Machine.Tools.SMI.Value {
			s.GPUs = append(s.GPUs, device{Index: i, Name: g.Name, UUID: g.UUID, Memory: g.TotalMiB << 20, Free: (g.TotalMiB - g.UsedMiB) << 20, StraightReason: unasked})
		}
	}
	if m := s.Machine; len(s.GPUs) == 0 {
		switch {
		case len(m.PCI.GPUs) > 0:
			s.noDevices = fmt.Sprintf("there is a GPU of NVIDIA (%s), but its driver is not loaded", m.PCI.GPUs[0].Bus)
		case m.Driver.Version.Known():
			s.noDevices = "the driver has no GPU"
		default:
			s.noDevices = "this machine has no GPU of NVIDIA"
		}
	}
}

// remember stores the variables that are set.
func (s *state) remember(look func(name string) (string, bool)) {
	for _, name := range variables {
		if v, ok := look(name); ok {
			s.Environment[name] = v
		}
	}
}

// situation returns the facts on which the verdict on reads is based.
func (s *state) situation() *situation {
	if s.Root != "/" {
		return recorded(s.Machine)
	}
	x := &situation{m: s.Machine, noGPU: s.noGPU()}
	for _, d := range s.GPUs {
		if d.Reason == "" {
			x.model = d.Name
			x.answer = &answer{d.Straight, d.StraightReason}
			break
		}
	}
	if len(s.Libraries) > cuFileLibrary {
		x.library = s.Libraries[cuFileLibrary].Reason
	}
	switch set, err := settings.Environment(); {
	case err != nil:
		x.settings = gpu.Reason(err)
	case set.Compat == settings.On:
		x.settings = compatOn
	}
	return x
}

// recorded returns the situation of a recorded machine.
func recorded(m *sysinfo.Machine) *situation {
	s := &state{Machine: m}
	s.recorded()
	x := &situation{m: m, noGPU: s.noGPU()}
	if len(s.GPUs) > 0 {
		x.model = s.GPUs[0].Name
	}
	if m.CuFile.Library == "" {
		x.library = "libcufile.so.0 is not where packages put it"
	}
	switch set, err := settings.FromEnv(func(name string) (string, bool) { v, ok := m.Environment[name]; return v, ok }); {
	case err != nil:
		x.settings = gpu.Reason(err)
	case set.Compat == settings.On:
		x.settings = compatOn
	}
	return x
}

// cuFileLibrary is the index of cuFile among the libraries.
const cuFileLibrary = 1

const compatOn = "STRATA_COMPAT_MODE or KVIKIO_COMPAT_MODE is on"

// try opens a device, which is the only way to find out whether that is possible: it may be in exclusive use, or
// broken.
func try(info gpu.Info) device {
	d := device{
		Index: info.Index, Name: info.Name, UUID: info.UUID, Memory: info.Memory, pci: info.PCI,
		Compute: fmt.Sprintf("%d.%d", info.Compute/10, info.Compute%10), Driver: info.Driver.String(),
	}
	g, err := gpu.Open(info, gpu.Limits{})
	if err != nil {
		d.Reason = gpu.Reason(err)
		return d
	}
	d.Free, err = g.Free()
	d.Straight, d.StraightReason = straight(g)
	d.Reason = gpu.Reason(errors.Join(err, g.Close()))
	return d
}

// straight reports whether files go directly to the device, and how, or why not.
func straight(g *gpu.Device) (bool, string) {
	s, err := settings.Environment()
	switch {
	case err != nil:
		return false, gpu.Reason(err)
	case s.Compat == settings.On:
		return false, compatOn
	}
	return filelayer.Available(g)
}

func listLeases() leases {
	l := leases{Dir: lease.DefaultDir(), Requests: []request{}}
	list, err := lease.List(l.Dir)
	if l.Reason = gpu.Reason(err); err != nil {
		return l
	}
	l.Reason = gpu.Reason(lease.Check(l.Dir))
	for _, e := range list {
		q := request{GPU: e.UUID, Bytes: e.Bytes, Waiting: e.Waiting, PID: e.Holder.PID, Host: e.Holder.Host, User: e.Holder.User, Tool: e.Holder.Tool}
		if !e.Holder.Since.IsZero() {
			q.Since = &e.Holder.Since
		}
		l.Requests = append(l.Requests, q)
	}
	return l
}

// usable returns the GPUs that can be used, and the reasons why the others cannot.
func (s *state) usable() (usable, broken []string) {
	for _, d := range s.GPUs {
		if d.Reason == "" {
			usable = append(usable, fmt.Sprintf("%d (%s)", d.Index, d.Name))
		} else {
			broken = append(broken, fmt.Sprintf("GPU %d: %s", d.Index, d.Reason))
		}
	}
	return usable, broken
}

// noGPU returns the reason why no GPU can be used, or "" if one can.
func (s *state) noGPU() string {
	usable, broken := s.usable()
	switch {
	case s.noDevices != "":
		return s.noDevices
	case len(usable) == 0:
		return strings.Join(broken, "; ")
	}
	return ""
}

// decide determines what a stage would use.
func (s *state) decide() {
	usable, _ := s.usable()
	switch why := s.noGPU(); {
	case why != "":
		s.Uses, s.Verdict = "cpu", "stages use the CPU, because there is no usable GPU: "+why
	case len(usable) == 1:
		s.Uses, s.Verdict = "gpu", "stages use GPU "+usable[0]+s.outlook
	default:
		s.Uses, s.Verdict = "gpu", "stages use one of GPUs "+strings.Join(usable, ", ")+s.outlook
	}
}

// outlookOf returns for what stages use the GPUs that can be used, as the end of the verdict.
func outlookOf(list []gpu.Info, found []device) string {
	var usable []gpu.Info
	for i, info := range list {
		if found[i].Reason == "" {
			usable = append(usable, info)
		}
	}
	if usable == nil {
		return ""
	}
	text, err := stage.Outlook(runtime.GOMAXPROCS(0), usable)
	if err != nil {
		return ": " + err.Error() // a variable; every stage says so
	}
	return " " + text
}
