package stage

import (
	"context"
	"errors"

	"strata/pkg/cli"
	"strata/pkg/cli/record"
	"strata/pkg/gpu"
)

// GPU is the accelerator of stages: the device that --gpu names, else the first.
func GPU(ctx context.Context, o *cli.Options) (cli.Device, error) {
	d, err := open(o)
	if err != nil {
		var no *gpu.Unavailable
		if errors.As(err, &no) {
			return nil, errors.New(no.Reason)
		}
		return nil, err
	}
	return &device{d}, nil
}

func open(o *cli.Options) (*gpu.Device, error) {
	list, err := gpu.Devices()
	if err != nil {
		return nil, err
	}
	if list, err = gpu.Choose(list, o.GPU); err != nil {
		return nil, err
	}
	return gpu.Open(list[0], gpu.Limits{Memory: o.GPUMem, Pinned: o.Mem})
}

// device is a GPU as the command line sees it.
type device struct{ *gpu.Device }

// Record is what the run record says of the device.
func (d *device) Record() (record.GPU, int64) {
	up, down, _ := d.Traffic()
	return record.GPU{
		Name: d.Info.Name, UUID: d.Info.UUID, Driver: d.Info.Driver.String(), BytesToDevice: up, BytesFromDevice: down,
	}, d.Memory().Peak()
}
