package cufile

import (
	"fmt"
	"os"
	"strings"

	"strata/pkg/sysinfo"
)

// Variables that name files and folders to look at instead of the system's, for tests.
const (
	ModulesVariable = "STRATA_PROC_MODULES"   // instead of /proc/modules
	ReleaseVariable = "STRATA_PROC_OSRELEASE" // instead of /proc/sys/kernel/osrelease
	UdevVariable    = "STRATA_RUN_UDEV"       // instead of /run/udev
)

func place(variable, otherwise string) string {
	if path := os.Getenv(variable); path != "" {
		return path
	}
	return otherwise
}

// modules reports whether the kernel's modules can be listed: if not, cuFile 1.20 searches for them forever.
func modules() error {
	f, err := os.Open(place(ModulesVariable, "/proc/modules"))
	if err != nil {
		return unavailable("cuFile hangs where /proc/modules cannot be read: %v", err)
	}
	return f.Close()
}

// peersDriver is the first CUDA version (565) whose driver moves data between PCI devices without nvidia-fs.
const peersDriver = 12070

// Possible returns the reason why nothing on this system is known to move data straight: the kernel module nvidia-fs
// is not loaded, and PCI peer-to-peer transfers of cuFile's kind lack the kernel (Linux 6.2 or newer), the driver, of
// which the CUDA version is given, or the setting in cuFile's configuration, which is off by default. cuFile itself
// needs a second to find that out.
func Possible(driver int) error {
	list, err := os.ReadFile(place(ModulesVariable, "/proc/modules"))
	if err != nil {
		return nil // [Open] says so
	}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "nvidia_fs ") {
			return nil
		}
	}
	release, err := os.ReadFile(place(ReleaseVariable, "/proc/sys/kernel/osrelease"))
	var major, minor int
	if n, _ := fmt.Sscanf(string(release), "%d.%d", &major, &minor); err == nil && n == 2 && (major < 6 || major == 6 && minor < 2) {
		return unavailable("the kernel module nvidia-fs is not loaded, and Linux %d.%d has no PCI peer-to-peer transfers for it", major, minor)
	}
	if c := sysinfo.Live().CuFile(); !sysinfo.On(c.P2PDMA) {
		where := "cuFile's defaults"
		if c.File != "" {
			where = c.File
		}
		return unavailable("the kernel module nvidia-fs is not loaded, and PCI peer-to-peer transfers are off in %s (use_pci_p2pdma)", where)
	}
	if driver < peersDriver {
		return unavailable("the kernel module nvidia-fs is not loaded, and PCI peer-to-peer transfers need driver 565 or newer")
	}
	return nil
}

// WSL returns an error on the Windows Subsystem for Linux, where cuFile moves nothing straight whatever it
// claims; nil elsewhere.
func WSL() error {
	release, err := os.ReadFile(place(ReleaseVariable, "/proc/sys/kernel/osrelease"))
	if err != nil {
		return nil
	}
	if r := strings.ToLower(strings.TrimSpace(string(release))); strings.Contains(r, "microsoft") || strings.HasSuffix(r, "-wsl2") {
		return unavailable("GPUDirect Storage does not exist in the Windows Subsystem for Linux (kernel %s)", r)
	}
	return nil
}

// Udev returns an error if /run/udev, where cuFile looks up drives, cannot be read, as in containers started
// without it. cuFile then fails with files of local file systems.
func Udev() error {
	path := place(UdevVariable, "/run/udev")
	f, err := os.Open(path)
	if err != nil {
		return unavailable("cuFile cannot see on which drive the file lies: %v; start the container with --bind /run/udev", err)
	}
	return f.Close()
}
