package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"strata/pkg/dtype"
	"strata/pkg/gpu"
	"strata/pkg/gpu/kernels"
	"strata/pkg/gpu/nvcomp"
)

// start holds the times in seconds of the steps before the first kernel runs. They are measured in a process that
// does nothing else.
type start struct {
	Init        float64 `json:"init"`         // the driver's library, cuInit, and what it says of its devices
	Context     float64 `json:"context"`      // the device's context
	MachineCode float64 `json:"machine_code"` // unpacking and loading the kernels
	Driver      string  `json:"compiled"`     // why the driver compiles kernels instead; "" if it does not
	FirstKernel float64 `json:"first_kernel"` // a small kernel, and waiting for it
	Open        float64 `json:"open"`         // the sum of these
	NVCOMP      float64 `json:"nvcomp"`       // opening nvCOMP and trying it
	Compile     float64 `json:"compile"`      // of one kernel by the driver, where it does not remember it: the median
}

func measureStarts(_ context.Context, _ *settings, r *record) (err error) {
	var t start
	from := time.Now()
	lap := func(v *float64) {
		now := time.Now()
		*v, from = now.Sub(from).Seconds(), now
	}
	list, err := gpu.Devices()
	if err != nil {
		return err
	}
	lap(&t.Init)
	d, err := gpu.Open(list[0], gpu.Limits{Memory: 64 << 20, Pinned: 64 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	lap(&t.Context)
	t.Driver = gpu.Reason(kernels.Compiled(d))
	lap(&t.MachineCode)
	s, err := d.Stream()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	m, err := d.Memory().Get(4096)
	if err != nil {
		return err
	}
	defer m.Release()
	s.Zero(m.Span)
	if err := kernels.FromFloat32(s, m.From(2048, 512), m.From(0, 1024), dtype.Uint16, 256); err != nil {
		return err
	}
	if err := s.Wait(); err != nil {
		return err
	}
	lap(&t.FirstKernel)
	t.Open = t.Init + t.Context + t.MachineCode + t.FirstKernel
	if lib, err := nvcomp.Open(d); err != nil {
		r.NVCOMP = err.Error()
	} else {
		r.NVCOMP = lib.Version()
	}
	lap(&t.NVCOMP)
	var all []float64
	names := kernels.Names()
	for i := 0; i < len(names); i += max(1, len(names)/20) {
		from = time.Now()
		if err := kernels.Compile(d, names[i]); err != nil {
			return err
		}
		all = append(all, time.Since(from).Seconds())
	}
	slices.Sort(all)
	t.Compile = all[len(all)/2]
	r.GPU, r.Driver, r.Start = list[0], list[0].Driver.String(), &t
	r.figure("init", t.Init)
	r.figure("context", t.Context)
	r.figure("jit", t.Compile)
	if t.Driver == "" {
		r.figure("cubin", t.MachineCode/float64(len(names)))
	}
	return nil
}
