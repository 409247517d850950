package gpu

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// busFolder is the folder where the system describes devices by their places on the bus; tests use another.
var busFolder = "/sys/bus/pci/devices"

// numaNode returns the NUMA node of host memory to which a device is attached, or -1 if there is only one node or it is
// unknown.
func numaNode(pci string) int {
	text, err := os.ReadFile(filepath.Join(busFolder, pci, "numa_node"))
	if err != nil {
		return -1
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || node < 0 || node >= 1024 {
		return -1
	}
	return node
}

// place asks for pages of a node for memory that has none yet. Where the system does not let us, or the
// node has no more, it takes others.
func place(b []byte, node int) {
	if node < 0 || len(b) == 0 {
		return
	}
	const preferred = 1 // MPOL_PREFERRED
	var nodes [1024 / 64]uint64
	nodes[node/64] = 1 << (node % 64)
	_, _, _ = unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), preferred,
		uintptr(unsafe.Pointer(&nodes)), uintptr(len(nodes)*64+1), 0)
}
