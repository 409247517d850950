package sysinfo

import (
	"strconv"
	"strings"
)

// NvfsStats holds /proc/driver/nvidia-fs/stats as written by nvidia-fs 2.3 to 2.30. Numbers that a version
// does not count are 0.
type NvfsStats struct {
	GDS         string `json:"gds"`    // version of the package that it came with; "" if it does not say
	Format      string `json:"format"` // "4.0"
	Driver      string `json:"driver"` // "2.28.4"
	PeerDirect  bool   `json:"peer_direct"`
	IOStats     bool   `json:"io_stats"` // reads and writes are counted
	PeerIOStats bool   `json:"peer_io_stats"`
	Logging     string `json:"logging"` // "warn", "info" or "debug"

	ShadowMiB uint64 `json:"shadow_mib"` // of buffers that stand for GPU memory
	Processes uint64 `json:"processes"`

	Batches NvfsBatches `json:"batches"`
	Reads   NvfsIO      `json:"reads"`
	Writes  NvfsIO      `json:"writes"`
	Sparse  NvfsSparse  `json:"sparse_reads"`
	Mmap    NvfsMmap    `json:"mmap"`
	BAR1    NvfsBAR1    `json:"bar1_map"`
	Errors  NvfsErrors  `json:"errors"`
	Active  NvfsOps     `json:"active"`
	GPUs    []NvfsGPU   `json:"gpus"`
	Unknown []string    `json:"unknown"` // the first 16 lines that were not understood
}

// NvfsBatches counts batches of reads and writes.
type NvfsBatches struct {
	N       uint64 `json:"n"`
	OK      uint64 `json:"ok"`
	Err     uint64 `json:"err"`
	Latency uint64 `json:"submit_latency_us"`
}

// NvfsIO counts reads or writes.
type NvfsIO struct {
	N             uint64 `json:"n"`
	OK            uint64 `json:"ok"`
	Err           uint64 `json:"err"`
	MiB           uint64 `json:"mib"`
	StateErr      uint64 `json:"io_state_err"`
	Bandwidth     uint64 `json:"bandwidth_mib_s"`
	Latency       uint64 `json:"latency_us"`
	PageCache     uint64 `json:"page_cache"` // pages of the file that lay in the page cache; writes only
	PageCacheFail uint64 `json:"page_cache_fail"`
	PageCacheEIO  uint64 `json:"page_cache_eio"`
}

// NvfsSparse counts reads of files with holes.
type NvfsSparse struct {
	N     uint64 `json:"n"`
	IO    uint64 `json:"io"`
	Holes uint64 `json:"holes"`
	Pages uint64 `json:"pages"`
}

// NvfsMmap counts mappings of shadow buffers.
type NvfsMmap struct {
	N     uint64 `json:"n"`
	OK    uint64 `json:"ok"`
	Err   uint64 `json:"err"`
	Unmap uint64 `json:"munmap"`
}

// NvfsBAR1 counts mappings of GPU memory for transfers.
type NvfsBAR1 struct {
	N         uint64 `json:"n"`
	OK        uint64 `json:"ok"`
	Err       uint64 `json:"err"`
	Free      uint64 `json:"free"`
	Callbacks uint64 `json:"callbacks"`
	Active    uint64 `json:"active"`
	Delayed   uint64 `json:"delayed_frees"`
}

// NvfsErrors counts failures.
type NvfsErrors struct {
	MixedPages uint64 `json:"cpu_gpu_pages"`
	SG         uint64 `json:"sg_ext"`
	DMAMap     uint64 `json:"dma_map"`
	DMARef     uint64 `json:"dma_ref"`
}

// NvfsOps counts operations in progress.
type NvfsOps struct {
	Reads   uint64 `json:"reads"`
	Writes  uint64 `json:"writes"`
	Batches uint64 `json:"batches"`
}

// NvfsGPU describes the registered memory of a device.
type NvfsGPU struct {
	Bus        string  `json:"bus"`
	UUID       string  `json:"uuid"`
	Registered uint64  `json:"registered_mib"`
	Cache      uint64  `json:"cache_mib"`
	MaxPinned  uint64  `json:"max_pinned_mib"`
	CrossRoot  *uint64 `json:"cross_root_port_percent"` // null if peers are not counted
}

// parseNvfsStats reads lines "Name : key=value key=value"; a line that begins with white space goes on with the
// one before it, as documents show long lines.
func parseNvfsStats(text string) *NvfsStats {
	s := &NvfsStats{GPUs: []NvfsGPU{}, Unknown: []string{}}
	counters := map[string]map[string]*uint64{
		"Batches": {"n": &s.Batches.N, "ok": &s.Batches.OK, "err": &s.Batches.Err, "Avg-Submit-Latency(usec)": &s.Batches.Latency},
		"Reads": {"n": &s.Reads.N, "ok": &s.Reads.OK, "err": &s.Reads.Err, "readMiB": &s.Reads.MiB, "io_state_err": &s.Reads.StateErr,
			"Bandwidth(MiB/s)": &s.Reads.Bandwidth, "Avg-Latency(usec)": &s.Reads.Latency},
		"Writes": {"n": &s.Writes.N, "ok": &s.Writes.OK, "err": &s.Writes.Err, "writeMiB": &s.Writes.MiB, "io_state_err": &s.Writes.StateErr,
			"Bandwidth(MiB/s)": &s.Writes.Bandwidth, "Avg-Latency(usec)": &s.Writes.Latency,
			"pg-cache": &s.Writes.PageCache, "pg-cache-fail": &s.Writes.PageCacheFail, "pg-cache-eio": &s.Writes.PageCacheEIO},
		"Sparse Reads": {"n": &s.Sparse.N, "io": &s.Sparse.IO, "holes": &s.Sparse.Holes, "pages": &s.Sparse.Pages},
		"Mmap":         {"n": &s.Mmap.N, "ok": &s.Mmap.OK, "err": &s.Mmap.Err, "munmap": &s.Mmap.Unmap},
		"Bar1-map": {"n": &s.BAR1.N, "ok": &s.BAR1.OK, "err": &s.BAR1.Err, "free": &s.BAR1.Free, "callbacks": &s.BAR1.Callbacks,
			"active": &s.BAR1.Active, "delay-frees": &s.BAR1.Delayed},
		"Error": {"cpu-gpu-pages": &s.Errors.MixedPages, "sg-ext": &s.Errors.SG, "dma-map": &s.Errors.DMAMap, "dma-ref": &s.Errors.DMARef},
		"Ops":   {"Read": &s.Active.Reads, "Write": &s.Active.Writes, "BatchIO": &s.Active.Batches},
	}
	var at map[string]*uint64 // what a line that goes on adds to
	var gpu *NvfsGPU
	for line := range strings.Lines(text) {
		body := strings.TrimSpace(line)
		name, value, _ := strings.Cut(body, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case body == "":
			continue
		case strings.HasPrefix(body, "GPU "):
			at, gpu = nil, nil
			if len(s.GPUs) < mostNames {
				g, rest := parseNvfsGPU(body)
				s.GPUs = append(s.GPUs, g)
				gpu = &s.GPUs[len(s.GPUs)-1]
				at = gpu.counters()
				s.count(at, gpu, rest)
			}
		case counters[name] != nil:
			at, gpu = counters[name], nil
			s.count(at, nil, value)
		case name == "GDS Version":
			s.GDS = clip(value)
		case strings.HasPrefix(body, "NVFS statistics(ver"):
			s.Format = strings.TrimSuffix(value, ")")
		case strings.HasPrefix(body, "NVFS Driver(version"):
			s.Driver = strings.ReplaceAll(strings.TrimSuffix(value, ")"), ":", ".")
		case name == "Mellanox PeerDirect Supported":
			s.PeerDirect = value == "True"
		case name == "IO stats":
			first, peers, _ := strings.Cut(value, ",")
			s.IOStats = strings.TrimSpace(first) == "Enabled"
			_, peers, _ = strings.Cut(peers, ":")
			s.PeerIOStats = strings.TrimSpace(peers) == "Enabled"
		case name == "Logging level":
			s.Logging = clip(value)
		case strings.HasPrefix(name, "Active Shadow-Buffer"):
			s.set(&s.ShadowMiB, body, value)
		case name == "Active Process":
			s.set(&s.Processes, body, value)
		case at != nil && (line[0] == ' ' || line[0] == '\t') && strings.Contains(body, "="):
			s.count(at, gpu, body)
		default:
			s.unknown(body)
		}
	}
	return s
}

// count takes words key=value.
func (s *NvfsStats) count(into map[string]*uint64, gpu *NvfsGPU, text string) {
	for word := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(word, "=")
		if gpu != nil && key == "cross_root_port(%)" {
			var n uint64
			if s.set(&n, word, value) {
				gpu.CrossRoot = &n
			}
			continue
		}
		if to := into[key]; to != nil {
			s.set(to, word, value)
		} else {
			s.unknown(word)
		}
	}
}

func (s *NvfsStats) set(to *uint64, whole, value string) bool {
	n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
	if err != nil {
		s.unknown(whole)
		return false
	}
	*to = n
	return true
}

func (s *NvfsStats) unknown(text string) {
	if len(s.Unknown) < 16 {
		s.Unknown = append(s.Unknown, clip(text))
	}
}

func (g *NvfsGPU) counters() map[string]*uint64 {
	return map[string]*uint64{"Registered_MiB": &g.Registered, "Cache_MiB": &g.Cache, "max_pinned_MiB": &g.MaxPinned}
}

// parseNvfsGPU reads "GPU 0000:be:00.0  uuid:87e5c586-… : Registered_MiB=0 …" up to the counters.
func parseNvfsGPU(line string) (g NvfsGPU, rest string) {
	rest = strings.TrimSpace(strings.TrimPrefix(line, "GPU "))
	g.Bus, rest, _ = strings.Cut(rest, " ")
	g.Bus = canonicalBus(g.Bus)
	rest = strings.TrimSpace(rest)
	if u, ok := strings.CutPrefix(rest, "uuid:"); ok {
		u, rest, _ = strings.Cut(u, " ")
		g.UUID = "GPU-" + u
		rest = strings.TrimSpace(rest)
	}
	return g, strings.TrimPrefix(rest, ":")
}
