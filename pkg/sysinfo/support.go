package sysinfo

import "strings"

// Listing tells whether something is on NVIDIA's support list for GPUDirect Storage (Release Notes, MLNX_OFED/DOCA and
// File System Requirements; nvidia-fs ChangeLog; 2026-09).
type Listing struct {
	Listed bool   `json:"listed"`
	Note   string `json:"note"`
}

// Listings holds the listings of the machine's parts.
type Listings struct {
	Distribution Listing `json:"distribution"`
	Kernel       Listing `json:"kernel"`
}

// distributions that MLNX_OFED or DOCA and GDS are released for, with the oldest version of each.
var distributions = map[string][]string{
	"ubuntu": {"18.04", "20.04", "22.04", "24.04", "26.04"},
	"rhel":   {"8.4", "9", "10"},
	"rocky":  {"8", "9"},
}

func listDistribution(d Distribution) Listing {
	var l Listing
	versions, ok := distributions[d.ID]
	switch {
	case d.Reason != "":
		l.Note = d.Reason
	case !ok:
		l.Note = "listed are Ubuntu, RHEL and Rocky Linux; elsewhere GDS may work, untested by NVIDIA"
	case d.ID == "ubuntu":
		for _, v := range versions {
			l.Listed = l.Listed || v == d.Version
		}
		if !l.Listed {
			l.Note = "listed are the releases " + strings.Join(versions, ", ")
		}
	default:
		for _, v := range versions {
			major, _, _ := strings.Cut(v, ".")
			have, _, _ := strings.Cut(d.Version, ".")
			l.Listed = l.Listed || major == have && !versionLess(d.Version, v)
		}
		if !l.Listed {
			l.Note = "listed are the releases from " + strings.Join(versions, ", ")
		}
	}
	return l
}

// newestKernel is up to which kernel a version of nvidia-fs builds, newest first.
var newestKernel = [][2]string{{"2.29", "7.0"}, {"2.28", "6.17"}, {"2.26", "6.14"}, {"2.25", "6.11"}, {"2.19", "6.6"}, {"2.17", "6.2"}}

// KernelOf returns the newest kernel on which a version of nvidia-fs is known to build, or "" for older
// versions.
func KernelOf(nvfs string) string {
	for _, row := range newestKernel {
		if !versionLess(nvfs, row[0]) {
			return row[1]
		}
	}
	return ""
}

func listKernel(release Fact[string]) Listing {
	var l Listing
	switch {
	case !release.Known():
		l.Note = release.Reason
	case versionLess(release.Value, "4.15"):
		l.Note = "nvidia-fs needs 4.15 or newer"
	case len(numbers(release.Value)) > 1 && versionLess(newestKernel[0][1], majorMinor(release.Value)):
		l.Note = "nvidia-fs " + newestKernel[0][0] + " is known to build up to " + newestKernel[0][1]
	default:
		l.Listed = true
	}
	return l
}

// majorMinor returns "6.8" of "6.8.0-45-generic".
func majorMinor(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	return major + "." + rest[:digits(rest)]
}

// P2PDMA's list of GPUs is short, those of Grace machines among them, which use the link to the processor; nvidia-fs
// serves data-centre and professional cards from Pascal on.
var p2pGPUs = []string{"A100", "A40", "L4", "L40S", "H100", "H200", "B100", "B200", "B300", "GH200", "GB200", "GB300"}

// ListGPU looks up a GPU on NVIDIA's list by its name (nvidia-fs README and Overview; GPUDirect Storage Troubleshooting
// Guide, P2PDMA Supported GPUs; 2026-09).
func ListGPU(model string) Listing {
	var l Listing
	words := strings.FieldsFunc(model, func(c rune) bool { return c == ' ' || c == '-' || c == '_' })
	has := func(names ...string) bool {
		for _, w := range words {
			for _, n := range names {
				if strings.EqualFold(w, n) {
					return true
				}
			}
		}
		return false
	}
	professional := has("Tesla", "Quadro", "P4", "P6", "P40", "P100", "V100", "V100S", "T4", "A2", "A10", "A10G", "A16", "A30", "A800", "H800", "H20", "L2", "L20", "L40") ||
		has("RTX") && (hasSeries(words, 'A') || has("Ada", "PRO", "6000", "5000", "4000", "8000"))
	switch {
	case model == "":
		l.Note = "the GPU's name is not known"
	case has("GeForce", "GTX", "TITAN"):
		l.Note = "GDS serves data-centre and professional cards, not GeForce"
	case has(p2pGPUs...):
		l.Listed, l.Note = true, "by nvidia-fs and by P2PDMA"
	case professional:
		l.Listed, l.Note = true, "by nvidia-fs, not by P2PDMA"
	default:
		l.Note = "it is not a card that the table has"
	}
	return l
}

// hasSeries finds a word such as A6000.
func hasSeries(words []string, letter byte) bool {
	for _, w := range words {
		if len(w) >= 4 && w[0] == letter && digits(w[1:]) == len(w)-1 {
			return true
		}
	}
	return false
}
