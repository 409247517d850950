package sysinfo

import (
	"context"
	"strata/pkg/work"
)

// Machine holds all facts of a machine.
type Machine struct {
	Kernel       Kernel       `json:"kernel"`
	Distribution Distribution `json:"distribution"`
	Security     Security     `json:"security"`
	Container    Container    `json:"container"`
	Job          *Job         `json:"job"` // null outside of SLURM
	Limits       Limits       `json:"limits"`
	Driver       Driver       `json:"driver"`
	NvidiaFS     NvidiaFS     `json:"nvidia_fs"`
	CuFile       CuFile       `json:"cufile"`
	PCI          PCI          `json:"pci"`
	IOMMU        IOMMU        `json:"iommu"`
	RDMA         RDMA         `json:"rdma"`
	Listed       Listings     `json:"listed"`
	Tools        Tools        `json:"tools"`
	Path         *Path        `json:"path"` // null unless one was asked for

	// Environment is the environment of the process, recorded for a recorded machine.
	Environment map[string]string `json:"-"`
}

// Options select what to read.
type Options struct {
	Path    string // path to locate; "": none
	NoTools bool   // do not run NVIDIA's programs
}

// Read reads a machine's facts. It changes nothing, and for a recorded machine it runs no program.
func Read(ctx context.Context, r Root, o Options) *Machine {
	tools := work.Async(func() Tools { return r.tools(ctx, o) })

	env := r.environ()
	m := &Machine{Environment: env, Kernel: r.kernel(), Distribution: r.distribution(), Security: r.security(), Container: r.container(env), Job: job(env), Limits: r.limits()}
	m.Driver = r.driver(m.Kernel.Release)
	m.NvidiaFS = r.nvidiaFS(m.Kernel.Release)
	m.CuFile = r.cuFile(env)
	m.PCI = r.pci()
	m.IOMMU = r.iommu(m.Kernel, m.PCI)
	m.RDMA = r.rdma()
	m.Listed = Listings{Distribution: listDistribution(m.Distribution), Kernel: listKernel(m.Kernel.Release)}
	if o.Path != "" {
		m.Path = r.path(o.Path)
	}
	m.Tools = tools()
	return m
}
