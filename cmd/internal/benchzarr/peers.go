package benchzarr

import (
	"context"
	_ "embed"
	"errors"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
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

type answer struct {
	S, CPU float64
	HWM    int64
	CK     uint32
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
		return 0, &benchkit.PeerError{Text: "zip files are not read by this benchmark's script"}
	}
	var a answer
	err := p.Ask(ctx, requestOf("check", j), &a)
	return a.CK, err
}

func (p peer) Round(ctx context.Context, j *Job) (Sample, error) {
	var a answer
	err := p.Ask(ctx, requestOf("read", j), &a)
	return Sample{Seconds: a.S, CPU: a.CPU, Peak: a.HWM}, err
}

// Peers holds the processes of other programs, for one number of threads and requests at a time.
type Peers struct {
	python  string
	tool    Tool
	List    []*benchkit.Peer
	Missing []bench.Result // without names and axes
	started [4]any         // how
}

// Start starts the available peers that read into host memory, device memory or both, and records which are
// missing.
func (ps *Peers) Start(ctx context.Context, threads, inFlight int, host, device bool) error {
	now := [4]any{threads, inFlight, host, device}
	if ps.List != nil && ps.started == now {
		return nil
	}
	ps.close()
	ps.started, ps.Missing = now, nil
	for _, kind := range ps.tool.Peers {
		if kind.Device && !device || !kind.Device && !host {
			continue
		}
		p, err := benchkit.StartPeer(ctx, ps.python, ps.tool.Script, kind, threads, inFlight)
		var failed *benchkit.PeerError
		switch {
		case errors.As(err, &failed):
			ps.Missing = append(ps.Missing, bench.Result{Who: kind.Name, Reason: failed.Text})
		case err != nil:
			return err
		default:
			ps.List = append(ps.List, p)
		}
	}
	return nil
}

func (ps *Peers) close() {
	for _, p := range ps.List {
		p.Close()
	}
	ps.List = nil
}

// software returns the programs that took part.
func (ps *Peers) software() []bench.Software {
	var out []bench.Software
	for _, p := range ps.List {
		out = append(out, bench.Software{Name: p.Kind.Name, Version: p.Version})
	}
	return out
}
