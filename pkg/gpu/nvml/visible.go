package nvml

import (
	"fmt"
	"strconv"
	"strings"
)

// Unit represents one device as programs see it: a GPU, or an instance of one.
type Unit struct {
	*Device
	Instance *Instance // nil: the whole GPU
}

// ID returns the UUID by which CUDA_VISIBLE_DEVICES can name it.
func (u Unit) ID() string {
	if u.Instance != nil {
		return u.Instance.UUID
	}
	return u.UUID
}

// Title returns the unit's name.
func (u Unit) Title() string {
	if u.Instance != nil {
		return u.Instance.Name
	}
	return u.Name
}

// Space returns the unit's memory, or nil if unknown.
func (u Unit) Space() *Memory {
	if u.Instance != nil {
		return u.Instance.Memory
	}
	return u.Memory
}

// Users returns the processes with a context on the unit, or nil if unknown.
func (u Unit) Users() []Process {
	if u.Instance != nil {
		return u.Instance.Processes
	}
	return u.Processes
}

// units returns the units of a device: its instances if it has any.
func units(d *Device) []Unit {
	if len(d.Instances) == 0 {
		return []Unit{{Device: d}}
	}
	var all []Unit
	for i := range d.Instances {
		all = append(all, Unit{d, &d.Instances[i]})
	}
	return all
}

// Units returns all units of a machine, grouped by device.
func Units(devices []Device) []Unit {
	var all []Unit
	for i := range devices {
		all = append(all, units(&devices[i])...)
	}
	return all
}

// Visible returns the units that a value of CUDA_VISIBLE_DEVICES leaves, in its order. The value is a list of
// device numbers, UUIDs ("GPU-…", "MIG-…") or prefixes of them, and ends at the first entry that names no
// unit or one named before. A number is an index into devices; for a device with instances it means the
// first, as its UUID does.
func Visible(devices []Device, list string) []Unit {
	var seen []Unit
	for item := range strings.SplitSeq(list, ",") {
		u, ok := named(devices, strings.TrimSpace(item))
		if !ok {
			break
		}
		for _, s := range seen {
			if s.ID() == u.ID() {
				return seen
			}
		}
		seen = append(seen, u)
	}
	return seen
}

// named returns the unit that an item of the list names, by its number or by the beginning of its UUID. It returns
// false unless exactly one unit matches.
func named(devices []Device, item string) (Unit, bool) {
	if n, err := strconv.Atoi(item); err == nil {
		if n < 0 || n >= len(devices) {
			return Unit{}, false
		}
		return units(&devices[n])[0], true
	}
	var found []Unit
	for i := range devices {
		d := &devices[i]
		if begins(d.UUID, item, "GPU-") {
			found = append(found, units(d)[0])
		}
		for j := range d.Instances {
			s := &d.Instances[j]
			old := fmt.Sprintf("MIG-%s/%d/%d", d.UUID, s.GPU, s.Compute) // of drivers before 470
			if begins(s.UUID, item, "MIG-") || strings.EqualFold(old, item) {
				found = append(found, Unit{d, s})
			}
		}
	}
	if len(found) != 1 {
		return Unit{}, false
	}
	return found[0], true
}

// begins reports whether item is the beginning of a UUID and longer than prefix.
func begins(uuid, item, prefix string) bool {
	return len(item) > len(prefix) && len(item) <= len(uuid) && strings.HasPrefix(item, prefix) && strings.EqualFold(uuid[:len(item)], item)
}

// OrderKnown reports whether CUDA numbers devices as the library does, by their places on the bus. Unless
// CUDA_DEVICE_ORDER (order) says so, CUDA puts the fastest first, which changes nothing if all are alike and
// does not matter if list has no numbers.
func OrderKnown(devices []Device, order, list string) bool {
	if order == "PCI_BUS_ID" {
		return true
	}
	same := true
	for _, d := range devices {
		same = same && d.Name == devices[0].Name
	}
	if same {
		return true
	}
	if list == "" {
		return false
	}
	for item := range strings.SplitSeq(list, ",") {
		if _, err := strconv.Atoi(strings.TrimSpace(item)); err == nil {
			return false
		}
	}
	return true
}

// SameUUID reports whether two UUIDs denote the same device. It ignores the prefix: pkg/gpu writes "GPU-"
// before that of an instance too.
func SameUUID(a, b string) bool {
	return strings.EqualFold(number(a), number(b)) && number(a) != ""
}

func number(uuid string) string {
	uuid = strings.TrimPrefix(uuid, "GPU-")
	return strings.TrimPrefix(uuid, "MIG-")
}

// Find returns the unit with the driver's UUID and place on the bus (gpu.Info). If no UUID matches, a single
// unit at that place is returned.
func Find(devices []Device, uuid, pci string) (Unit, bool) {
	var there []Unit
	for _, u := range Units(devices) {
		if SameUUID(u.ID(), uuid) {
			return u, true
		}
		if pci != "" && u.PCI == pci {
			there = append(there, u)
		}
	}
	if len(there) == 1 {
		return there[0], true
	}
	return Unit{}, false
}
