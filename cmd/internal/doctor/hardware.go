package doctor

import (
	"fmt"
	"strings"

	"strata/pkg/gpu"
	"strata/pkg/gpu/nvml"
	"strata/pkg/units"
)

// management is the management library's information about the machine, as --json writes it.
type management struct {
	Driver string `json:"driver_version"`
	CUDA   string `json:"driver_cuda"`
	Hidden int    `json:"hidden_gpus"` // those of other jobs
	Reason string `json:"reason"`      // why it says nothing
}

// hardware is its information about a device; null if there is none.
type hardware struct {
	PCI         string     `json:"pci"`
	BAR1        *int64     `json:"bar1_bytes"`
	BAR1Free    *int64     `json:"bar1_free_bytes"`
	Mode        string     `json:"compute_mode"`
	ECC         *onOff     `json:"ecc"`
	MIG         *onOff     `json:"mig"`
	Instances   []instance `json:"instances"`
	Link        *link      `json:"pcie"`
	Utilization *int       `json:"utilization_percent"`
	Persistence *bool      `json:"persistence"`
	Power       *float64   `json:"power_watts"`
	Temperature *int       `json:"temperature_celsius"`
	Processes   *int       `json:"processes"`
	Notes       []string   `json:"notes"` // what could be better
}

type onOff struct {
	Now  bool `json:"now"`
	Next bool `json:"next"` // after the next restart
}

type instance struct {
	Name    string `json:"name"`
	UUID    string `json:"uuid"`
	GPU     int    `json:"gpu_instance"`
	Compute int    `json:"compute_instance"`
	Memory  *int64 `json:"memory_bytes"`
	Free    *int64 `json:"free_bytes"`
}

type link struct {
	Generation     int `json:"generation"`
	MostGeneration int `json:"max_generation"`
	Width          int `json:"width"`
	MostWidth      int `json:"max_width"`
}

// addHardware adds the management library's information about the listed devices. Devices that the driver does not
// offer are listed with the driver's reason.
func (s *state) addHardware() {
	facts, err := nvml.Read()
	if s.Management.Reason = gpu.Reason(err); err != nil {
		return
	}
	s.Management.Driver, s.Management.CUDA, s.Management.Hidden = facts.Driver, cudaText(facts.CUDA), facts.Hidden
	if len(s.GPUs) == 0 && s.noDevices != "" {
		for i, u := range nvml.Units(facts.Devices) {
			d := device{Index: i, Name: u.Title(), UUID: u.ID(), Reason: s.noDevices, StraightReason: s.noDevices, Hardware: hardwareOf(u)}
			if u.Reason != "" {
				d.Reason = u.Reason
			}
			if u.Compute > 0 {
				d.Compute = fmt.Sprintf("%d.%d", u.Compute/10, u.Compute%10)
			}
			if m := u.Space(); m != nil {
				d.Memory, d.Free = m.Total, m.Free
			}
			d.Driver = cudaText(facts.CUDA)
			s.GPUs = append(s.GPUs, d)
		}
		return
	}
	for i := range s.GPUs {
		if u, ok := nvml.Find(facts.Devices, s.GPUs[i].UUID, s.GPUs[i].pci); ok {
			s.GPUs[i].Hardware = hardwareOf(u)
		}
	}
}

func hardwareOf(u nvml.Unit) *hardware {
	h := &hardware{PCI: u.PCI, Mode: string(u.Mode), ECC: (*onOff)(u.ECC), MIG: (*onOff)(u.MIG), Link: (*link)(u.Link), Persistence: u.Persistence,
		Power: u.Power, Temperature: u.Temperature, Instances: []instance{}, Notes: []string{}}
	h.BAR1, h.BAR1Free = total(u.BAR1)
	for _, part := range u.Instances {
		i := instance{Name: part.Name, UUID: part.UUID, GPU: part.GPU, Compute: part.Compute}
		i.Memory, i.Free = total(part.Memory)
		h.Instances = append(h.Instances, i)
	}
	if u.Utilization != nil {
		h.Utilization = &u.Utilization.GPU
	}
	if users := u.Users(); users != nil {
		n := len(users)
		h.Processes = &n
	}
	h.note()
	return h
}

func total(m *nvml.Memory) (all, free *int64) {
	if m == nil {
		return nil, nil
	}
	return &m.Total, &m.Free
}

// note records what could be improved.
func (h *hardware) note() {
	add := func(format string, args ...any) { h.Notes = append(h.Notes, fmt.Sprintf(format, args...)) }
	if l := h.Link; l != nil && l.Width > 0 && l.Width < l.MostWidth {
		add("it has %d of the %d lanes that its slot offers: other cards share them, or the card is not seated properly", l.Width, l.MostWidth)
	}
	if h.ECC != nil && h.ECC.Now != h.ECC.Next {
		add("ECC will be %s after a restart", onText(h.ECC.Next))
	}
	if h.MIG != nil && h.MIG.Now != h.MIG.Next {
		add("MIG will be %s after a reset", onText(h.MIG.Next))
	}
	if h.Persistence != nil && !*h.Persistence {
		add("persistence is off: the driver starts it anew for every program that finds it unused (systemctl enable --now nvidia-persistenced)")
	}
}

func onText(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// lines returns text for people: facts in one line, then what could be improved.
func (h *hardware) lines() []string {
	if h == nil {
		return nil
	}
	var facts []string
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format, args...)) }
	if h.PCI != "" {
		add("at %s", h.PCI)
	}
	if l := h.Link; l != nil {
		text := fmt.Sprintf("PCI Express %s x%s", orUnknown(l.MostGeneration), orUnknown(l.MostWidth))
		if l.Generation > 0 && l.Width > 0 && (l.Generation != l.MostGeneration || l.Width != l.MostWidth) {
			text += fmt.Sprintf(" (now %d x%d)", l.Generation, l.Width)
		}
		add("%s", text)
	}
	if h.BAR1 != nil {
		add("BAR1 %s", units.FormatSize(*h.BAR1))
	}
	if h.Mode != "" {
		add("compute mode %s", h.Mode)
	}
	if h.ECC != nil {
		add("ECC %s", onText(h.ECC.Now))
	}
	if h.MIG != nil {
		text := "MIG " + onText(h.MIG.Now)
		if h.MIG.Now {
			text += ", " + units.Count(len(h.Instances), "instance")
		}
		add("%s", text)
	}
	if h.Processes != nil {
		add("%s", units.Count(*h.Processes, "process"))
	}
	if h.Utilization != nil {
		add("%d%% busy", *h.Utilization)
	}
	if h.Temperature != nil {
		add("%d °C", *h.Temperature)
	}
	if h.Power != nil {
		add("%.0f W", *h.Power)
	}
	var all []string
	if len(facts) > 0 {
		all = []string{strings.Join(facts, ", ")}
	}
	for _, n := range h.Notes {
		all = append(all, "note: "+n)
	}
	return all
}

func orUnknown(n int) string {
	if n == 0 {
		return "?"
	}
	return fmt.Sprint(n)
}
