package sysinfo

import (
	"slices"
	"strconv"
	"strings"
)

// Kernel is the system's kernel.
type Kernel struct {
	Release Fact[string] `json:"release"` // "6.8.0-45-generic"
	WSL     Fact[bool]   `json:"wsl"`     // Windows Subsystem for Linux
	// P2PDMA reports that transfers between PCI devices are compiled in, as cuFile needs them without
	// nvidia-fs.
	P2PDMA Fact[bool]   `json:"pci_p2pdma"`
	Line   Fact[string] `json:"command_line"`
}

func (r Root) kernel() Kernel {
	k := Kernel{Release: r.text("/proc/sys/kernel/osrelease"), Line: r.text("/proc/cmdline")}
	k.WSL = convert(k.Release, func(s string) (bool, string) {
		return strings.Contains(strings.ToLower(s), "microsoft") || strings.HasSuffix(s, "-WSL2"), ""
	})
	k.P2PDMA = r.p2pdma(k.Release)
	return k
}

// p2pdma reads the kernel's configuration, which may lie in any of three places.
func (r Root) p2pdma(release Fact[string]) Fact[bool] {
	if !release.Known() {
		return unknown[bool]("%s", release.Reason)
	}
	for _, name := range []string{"/boot/config-" + release.Value, "/lib/modules/" + release.Value + "/config", "/lib/modules/" + release.Value + "/build/.config"} {
		if b, err := r.read(name); err == nil {
			for line := range strings.Lines(string(b)) {
				if strings.TrimSpace(line) == "CONFIG_PCI_P2PDMA=y" {
					return known(true)
				}
			}
			return known(false)
		}
	}
	return unknown[bool]("there is no configuration of kernel %s in /boot or /lib/modules", release.Value)
}

// Security holds the settings that decide which modules the kernel loads.
type Security struct {
	SecureBoot Fact[bool]   `json:"secure_boot"`
	Lockdown   Fact[string] `json:"lockdown"`    // "none", "integrity" or "confidentiality"
	SigEnforce Fact[bool]   `json:"sig_enforce"` // only signed modules are loaded
}

// OnlySigned reports whether the kernel is known to refuse modules without a trusted signature.
func (s Security) OnlySigned() bool {
	return s.SigEnforce.Known() && s.SigEnforce.Value || s.Lockdown.Known() && s.Lockdown.Value != "none"
}

const secureBoot = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"

func (r Root) security() Security {
	var s Security
	switch b, err := r.read(secureBoot); {
	case err == nil && len(b) == 5: // four bytes of attributes come first
		s.SecureBoot = known(b[4] == 1)
	case err == nil:
		s.SecureBoot = unknown[bool]("the EFI variable SecureBoot has %d bytes, want 5", len(b))
	case !r.exists("/sys/firmware/efi"):
		s.SecureBoot = unknown[bool]("the machine was not started by UEFI, or this is a container")
	default:
		s.SecureBoot = unknown[bool]("%s", why("EFI variable SecureBoot", err))
	}
	s.Lockdown = convert(r.text("/sys/kernel/security/lockdown"), parseLockdown)
	s.SigEnforce = convert(r.text("/sys/module/module/parameters/sig_enforce"), yes)
	return s
}

// parseLockdown finds the word in brackets: "none [integrity] confidentiality".
func parseLockdown(text string) (string, string) {
	_, rest, _ := strings.Cut(text, "[")
	word, _, ok := strings.Cut(rest, "]")
	if !ok || !slices.Contains([]string{"none", "integrity", "confidentiality"}, word) {
		return "", "/sys/kernel/security/lockdown: " + strconv.Quote(clip(text)) + " marks none of none, integrity, confidentiality"
	}
	return word, ""
}

// yes reads a module's parameter: Y or N, 1 or 0.
func yes(text string) (bool, string) {
	switch text {
	case "Y", "y", "1":
		return true, ""
	case "N", "n", "0":
		return false, ""
	}
	return false, strconv.Quote(clip(text)) + " is not Y or N"
}
