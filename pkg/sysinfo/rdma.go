package sysinfo

import (
	"strings"
)

// RDMA lists network cards for remote direct memory access.
type RDMA struct {
	Devices []RDMADevice `json:"devices"`
}

// RDMADevice is a port of a card.
type RDMADevice struct {
	Name  string `json:"name"` // "mlx5_0"
	Port  string `json:"port"`
	State string `json:"state"` // "ACTIVE"
	Rate  string `json:"rate"`  // "200 Gb/sec (4X HDR)"
	Layer string `json:"layer"` // "InfiniBand", "Ethernet"
}

func (r Root) rdma() RDMA {
	x := RDMA{Devices: []RDMADevice{}}
	const dir = "/sys/class/infiniband/"
	for _, name := range r.list(dir) {
		for _, port := range r.list(dir + name + "/ports") {
			at := dir + name + "/ports/" + port
			_, state, _ := strings.Cut(r.text(at+"/state").Value, ":")
			x.Devices = append(x.Devices, RDMADevice{
				Name: name, Port: port, State: strings.TrimSpace(state), Rate: r.text(at + "/rate").Value, Layer: r.text(at + "/link_layer").Value,
			})
		}
	}
	return x
}
