package sysinfo

import (
	"strings"
)

// RDMA lists network cards for remote direct memory access, and tells whether their drivers come from OFED.
type RDMA struct {
	OFED    Fact[string] `json:"ofed"` // "24.10-1.1.4": MLNX_OFED or DOCA; the kernel's own drivers have none
	Devices []RDMADevice `json:"devices"`
}

// RDMADevice is a port of a card.
type RDMADevice struct {
	Name     string `json:"name"` // "mlx5_0"
	Port     string `json:"port"`
	State    string `json:"state"` // "ACTIVE"
	Rate     string `json:"rate"`  // "200 Gb/sec (4X HDR)"
	Layer    string `json:"layer"` // "InfiniBand", "Ethernet"
	Firmware string `json:"firmware"`
}

func (r Root) rdma() RDMA {
	x := RDMA{OFED: r.ofed(), Devices: []RDMADevice{}}
	const dir = "/sys/class/infiniband/"
	for _, name := range r.list(dir) {
		firmware := r.text(dir + name + "/fw_ver").Value
		for _, port := range r.list(dir + name + "/ports") {
			at := dir + name + "/ports/" + port
			_, state, _ := strings.Cut(r.text(at+"/state").Value, ":")
			x.Devices = append(x.Devices, RDMADevice{
				Name: name, Port: port, State: strings.TrimSpace(state), Rate: r.text(at + "/rate").Value, Layer: r.text(at + "/link_layer").Value, Firmware: firmware,
			})
		}
	}
	return x
}

// ofed reads the version of the driver's module, which is OFED's, and what OFED's own script would print.
func (r Root) ofed() Fact[string] {
	if f := r.text("/sys/module/mlx5_core/version"); f.Known() && strings.Contains(f.Value, "-") {
		return f
	}
	if b, err := r.read("/usr/bin/ofed_info"); err == nil {
		for line := range strings.Lines(string(b)) {
			for _, mark := range []string{"MLNX_OFED_LINUX-", "OFED-internal-", "DOCA-OFED-"} {
				if _, rest, ok := strings.Cut(line, mark); ok {
					if n := strings.IndexFunc(rest, func(c rune) bool { return !strings.ContainsRune("0123456789.-", c) }); n > 0 {
						return known(strings.TrimRight(rest[:n], "-."))
					}
				}
			}
		}
	}
	if !r.exists("/sys/module/mlx5_core") {
		return unknown[string]("there is no Mellanox driver (mlx5_core)")
	}
	return unknown[string]("the Mellanox driver is the kernel's own")
}
