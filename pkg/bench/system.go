package bench

import (
	"context"
	"os"
	"runtime"
	"strings"

	"strata/pkg/gpu"
	"strata/pkg/host"
	"strata/pkg/sysinfo"
)

// System holds the facts of the machine that numbers depend on. Unknown ones are "" or 0.
type System struct {
	Host      string      `json:"host"`
	Platform  string      `json:"platform"` // "linux/amd64"
	OS        string      `json:"os"`       // "Debian GNU/Linux 12"
	Kernel    string      `json:"kernel"`
	CPU       string      `json:"cpu"`
	Cores     int         `json:"cores"`  // that the process may use, logical ones
	Memory    int64       `json:"memory"` // bytes
	Limits    host.Limits `json:"cgroup_limits"`
	Load      string      `json:"load"`      // the system's before the run: of 1, 5 and 15 minutes
	Container string      `json:"container"` // "docker"; "" if in none
	Job       string      `json:"slurm_job"`
	Places    []Place     `json:"places"` // that files were measured in
	GPU       *GPU        `json:"gpu"`    // null: none was measured
	Driver    string      `json:"nvidia_driver"`
	NvidiaFS  string      `json:"nvidia_fs"`
	CuFile    string      `json:"cufile"`   // where the library lies
	Software  []Software  `json:"software"` // other programs that took part
}

// Place describes where files lie.
type Place struct {
	Path    string   `json:"path"`
	Type    string   `json:"type"`   // of the file system: "ext4", "nfs4"
	Source  string   `json:"source"` // "/dev/md0", "server:/export"
	Point   string   `json:"mount_point"`
	Options []string `json:"options"`
	Drives  []string `json:"drives"` // "nvme0n1 Samsung …"; none for file systems without a device
	Direct  *bool    `json:"direct"` // whether files are read past the page cache; null: unknown
	Reason  string   `json:"reason"` // why no more is known
}

// GPU is the device that was measured.
type GPU struct {
	Name   string `json:"name"`
	UUID   string `json:"uuid"`
	Memory int64  `json:"memory"`
	Driver string `json:"driver"` // newest CUDA that the driver knows, "12.4"
}

// Software is a program and its version.
type Software struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// GPUOf describes a device.
func GPUOf(i gpu.Info) *GPU {
	return &GPU{Name: i.Name, UUID: i.UUID, Memory: i.Memory, Driver: i.Driver.String()}
}

// ReadSystem reads the facts of this machine, and of the places that hold the measured files. It runs no
// program and changes nothing.
func ReadSystem(ctx context.Context, paths ...string) System {
	s := System{Platform: runtime.GOOS + "/" + runtime.GOARCH, CPU: host.CPUModel(), Cores: runtime.NumCPU(), Memory: host.Memory(), Limits: host.CgroupLimits(), Places: []Place{}, Software: []Software{}}
	s.Host, _ = os.Hostname()
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		s.Load = strings.Join(strings.Fields(string(text))[:min(3, len(strings.Fields(string(text))))], " ")
	}
	for i, path := range append([]string{""}, paths...) {
		m := sysinfo.Read(ctx, sysinfo.Live(), sysinfo.Options{Path: path, NoTools: true})
		if i == 0 {
			s.machine(m)
		} else if m.Path != nil {
			s.Places = append(s.Places, placeOf(m.Path))
		}
	}
	return s
}

func (s *System) machine(m *sysinfo.Machine) {
	s.OS, s.Kernel, s.Container = m.Distribution.Name, m.Kernel.Release.Value, m.Container.Kind
	s.Driver, s.NvidiaFS, s.CuFile = m.Driver.Version.Value, m.NvidiaFS.Version.Value, m.CuFile.Library
	if m.Job != nil {
		s.Job = m.Job.ID
	}
}

func placeOf(p *sysinfo.Path) Place {
	out := Place{Path: p.Name, Type: p.Mount.Type, Source: p.Mount.Source, Point: p.Mount.Point, Options: append([]string{}, p.Mount.Options...), Drives: []string{}, Reason: p.Reason}
	if p.Direct.Known() {
		out.Direct = &p.Direct.Value
	}
	if p.Block != nil {
		for _, b := range p.Block.Drives() {
			name := b.Name
			if b.NVMe != nil && b.NVMe.Model != "" {
				name += " " + strings.TrimSpace(b.NVMe.Model)
			}
			out.Drives = append(out.Drives, name)
		}
	}
	return out
}
