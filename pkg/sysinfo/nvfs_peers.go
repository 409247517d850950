package sysinfo

import (
	"strconv"
	"strings"
)

// NvfsPeer is a line of /proc/driver/nvidia-fs/peer_distance: the distance of a disk or network card from a
// GPU.
type NvfsPeer struct {
	GPU      string `json:"gpu"`
	Peer     string `json:"peer"`
	Rank     uint64 `json:"rank"`     // lower is nearer
	Distance uint64 `json:"distance"` // hops; at least 0x80 if the path crosses the root complex
	Width    uint64 `json:"width"`    // PCIe lanes of the peer
	Gen      uint64 `json:"gen"`      // PCIe generation of the peer
	NUMA     uint64 `json:"numa"`
	Count    uint64 `json:"count"` // transfers between the two
	Class    string `json:"class"` // "nvme" or "network"
}

// NvfsAffinity is a line of peer_affinity: a GPU's transfers by distance.
type NvfsAffinity struct {
	GPU       string   `json:"gpu"`
	Counts    []uint64 `json:"counts"`     // by distance, starting with 1
	CrossRoot uint64   `json:"cross_root"` // over the root complex
}

// parseNvfsPeers parses a table whose first line names the columns, which differ between versions.
func parseNvfsPeers(text string) []NvfsPeer {
	list := []NvfsPeer{}
	var columns []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if columns == nil {
			if words[0] != "gpu" {
				return list
			}
			columns = words
			continue
		}
		if len(words) != len(columns) || len(list) == mostNames {
			continue
		}
		var p NvfsPeer
		numeric := map[string]*uint64{"peerrank": &p.Rank, "p2pdist": &p.Distance, "link": &p.Width, "gen": &p.Gen, "numa": &p.NUMA, "np2p": &p.Count}
		ok := true
		for i, c := range columns {
			switch {
			case c == "gpu":
				p.GPU = canonicalBus(words[i])
			case c == "peer":
				p.Peer = canonicalBus(words[i])
			case c == "class":
				p.Class = words[i]
			case numeric[c] != nil:
				n, err := strconv.ParseUint(words[i], 0, 64)
				*numeric[c], ok = n, ok && err == nil
			}
		}
		if ok {
			list = append(list, p)
		}
	}
	return list
}

// parseNvfsAffinity reads lines "GPU :0000:be:00.0 :0 0 1 … 7", the last number being that over the root complex.
func parseNvfsAffinity(text string) []NvfsAffinity {
	list := []NvfsAffinity{}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "GPU :")
		i := strings.LastIndexByte(rest, ':')
		if !ok || i < 0 || len(list) == mostNames {
			continue
		}
		a := NvfsAffinity{GPU: canonicalBus(rest[:i]), Counts: []uint64{}}
		for word := range strings.FieldsSeq(rest[i+1:]) {
			n, err := strconv.ParseUint(word, 10, 64)
			if err != nil {
				ok = false
				break
			}
			a.Counts = append(a.Counts, n)
		}
		if n := len(a.Counts); ok && n > 0 {
			a.CrossRoot, a.Counts = a.Counts[n-1], a.Counts[:n-1]
			list = append(list, a)
		}
	}
	return list
}
