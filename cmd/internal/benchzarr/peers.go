package benchzarr

import (
	"context"
	_ "embed"
	"slices"

	"strata/cmd/internal/benchkit"
)

// peersScript is the Python script that does what a peer is asked for.
//
//go:embed peers.py
var peersScript string

var peerKinds = []benchkit.PeerKind{
	{Key: "zarr", Name: "zarr-python", Packages: "numpy zarr"},
	{Key: "zarr+zarrs", Name: "zarrs-python", Packages: "numpy zarr zarrs"},
	{Key: "tensorstore", Name: "tensorstore", Packages: "numpy tensorstore"},
	{Key: "zarr+gpu", Name: "zarr-python GPU buffers", Device: true, Packages: "numpy zarr cupy-cuda12x"},
	{Key: "kvikio", Name: "kvikio", Device: true, Packages: "numpy zarr kvikio-cu12"},
}

// request is a request to a peer.
type request struct {
	Do     string     `json:"do"`
	Array  string     `json:"array"`
	Image  int        `json:"level_of_pyramid,omitempty"`
	Format int        `json:"format"`
	Shape  []int      `json:"shape"`
	Boxes  [][2][]int `json:"boxes,omitempty"`
	Whole  bool       `json:"whole"`
	Chunks []int      `json:"chunks,omitempty"`
	Shard  []int      `json:"shard"`
	DType  string     `json:"dtype,omitempty"`
	Codec  string     `json:"codec,omitempty"`
	Level  int        `json:"level"`
	Data   string     `json:"data,omitempty"`
}

func requestOf(do string, j *Job) request {
	r := request{Do: do, Array: j.Target.Path, Image: j.Target.Level, Format: j.Target.format, Shape: j.Target.Layout.Shape, Whole: j.Boxes.Whole}
	for _, b := range j.Boxes.List {
		r.Boxes = append(r.Boxes, [2][]int{b.Start, b.Shape})
	}
	return r
}

// peer reads what a job names with another program.
type peer struct{ *benchkit.Peer }

func (p peer) Check(ctx context.Context, j *Job) (uint32, error) {
	if j.Target.zip {
		return 0, benchkit.Unablef("zip files are not read by this benchmark's script")
	}
	_, sum, err := p.Do(ctx, requestOf("check", j))
	return sum, err
}

func (p peer) Round(ctx context.Context, j *Job) (benchkit.Sample, error) {
	s, _, err := p.Do(ctx, requestOf("read", j))
	return s, err
}

// Peers holds the processes of other programs, for one number of threads and requests at a time.
type Peers struct {
	*benchkit.Peers
	python  string
	tool    Tool
	started [4]any // how
}

// Start starts the available peers that read into host memory, device memory or both, and records which are
// missing.
func (ps *Peers) Start(ctx context.Context, threads, inFlight int, host, device bool) (err error) {
	now := [4]any{threads, inFlight, host, device}
	if ps.Peers != nil && ps.List != nil && ps.started == now {
		return nil
	}
	ps.close()
	ps.started = now
	kinds := slices.DeleteFunc(slices.Clone(ps.tool.Peers), func(k benchkit.PeerKind) bool { return k.Device && !device || !k.Device && !host })
	ps.Peers, err = benchkit.StartPeers(ctx, ps.python, ps.tool.Script, kinds, threads, inFlight)
	return err
}

func (ps *Peers) close() {
	if ps.Peers != nil {
		ps.Close()
	}
}
