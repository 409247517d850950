package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"strata/pkg/cli"
	"strata/pkg/gds"
	"strata/pkg/gds/settings"
	"strata/pkg/gpu"
	"strata/pkg/gpu/lease"
	"strata/pkg/gpu/nvml"
)

// state is what was found, as --json writes it.
type state struct {
	Version     string            `json:"version"`
	Libraries   []library         `json:"libraries"`
	GPUs        []device          `json:"gpus"`
	Management  management        `json:"management"`
	Environment map[string]string `json:"environment"`
	Leases      leases            `json:"leases"`
	Uses        string            `json:"uses"`
	Verdict     string            `json:"verdict"`

	noDevices string // why there are none
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

// variables decide what is found; they are shown where they are set.
var variables = append([]string{"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "STRATA_LIBCUDA", "STRATA_LIBCUFILE", "STRATA_LIBNVCOMP", nvml.Variable, "STRATA_LEASE_DIR",
	"CUFILE_ENV_PATH_JSON", "CUFILE_FORCE_COMPAT_MODE", "CUFILE_LOGFILE_PATH"}, settings.Variables()...)

// examine looks at everything.
func examine() *state {
	s := &state{Version: cli.Version(), GPUs: []device{}, Environment: map[string]string{}}
	for _, name := range variables {
		if v, ok := os.LookupEnv(name); ok {
			s.Environment[name] = v
		}
	}
	for _, l := range gpu.Libraries() {
		s.Libraries = append(s.Libraries, library(l))
	}
	list, err := gpu.Devices()
	s.noDevices = reason(err)
	for _, info := range list {
		s.GPUs = append(s.GPUs, try(info))
	}
	s.addHardware()
	s.Leases = listLeases()
	s.decide()
	return s
}

// try opens a device, which is the only way to know that it can be: it may be
// another's alone, or broken.
func try(info gpu.Info) device {
	d := device{
		Index: info.Index, Name: info.Name, UUID: info.UUID, Memory: info.Memory, pci: info.PCI,
		Compute: fmt.Sprintf("%d.%d", info.Compute/10, info.Compute%10), Driver: info.Driver.String(),
	}
	g, err := gpu.Open(info, gpu.Limits{})
	if err != nil {
		d.Reason = reason(err)
		return d
	}
	d.Free, err = g.Free()
	d.Straight, d.StraightReason = straight(g)
	d.Reason = reason(errors.Join(err, g.Close()))
	return d
}

// straight tells whether files go straight to the device, and how, or why not.
func straight(g *gpu.Device) (bool, string) {
	s, err := settings.Environment()
	switch {
	case err != nil:
		return false, reason(err)
	case s.Compat == settings.On:
		return false, "STRATA_COMPAT_MODE or KVIKIO_COMPAT_MODE is on"
	}
	return gds.Available(g)
}

// reason is an error in one line, without what every such error begins with.
func reason(err error) string {
	if err == nil {
		return ""
	}
	var no *gpu.Unavailable
	if errors.As(err, &no) {
		return no.Reason
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

func listLeases() leases {
	l := leases{Dir: lease.DefaultDir(), Requests: []request{}}
	list, err := lease.List(l.Dir)
	if l.Reason = reason(err); err != nil {
		return l
	}
	l.Reason = reason(lease.Check(l.Dir))
	for _, e := range list {
		q := request{GPU: e.UUID, Bytes: e.Bytes, Waiting: e.Waiting, PID: e.Holder.PID, Host: e.Holder.Host, User: e.Holder.User, Tool: e.Holder.Tool}
		if !e.Holder.Since.IsZero() {
			q.Since = &e.Holder.Since
		}
		l.Requests = append(l.Requests, q)
	}
	return l
}

// decide says what a stage would use.
func (s *state) decide() {
	var usable, broken []string
	for _, d := range s.GPUs {
		if d.Reason == "" {
			usable = append(usable, fmt.Sprintf("%d (%s)", d.Index, d.Name))
		} else {
			broken = append(broken, fmt.Sprintf("GPU %d: %s", d.Index, d.Reason))
		}
	}
	switch {
	case s.noDevices != "":
		s.Uses, s.Verdict = "cpu", "stages use the CPU, because there is no usable GPU: "+s.noDevices
	case len(usable) == 0:
		s.Uses, s.Verdict = "cpu", "stages use the CPU, because there is no usable GPU: "+strings.Join(broken, "; ")
	case len(usable) == 1:
		s.Uses, s.Verdict = "gpu", "stages that can compute on a GPU use GPU "+usable[0]
	default:
		s.Uses, s.Verdict = "gpu", "stages that can compute on a GPU use one of GPUs "+strings.Join(usable, ", ")
	}
}
