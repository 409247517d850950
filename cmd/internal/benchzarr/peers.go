package benchzarr

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"strata/pkg/bench"
	"strata/pkg/cli"
)

// peersScript does what a peer is asked for.
//
//go:embed peers.py
var peersScript string

// PeerKind is another program that reads and writes Zarr.
type PeerKind struct {
	Key, Name string // what the script and results call it
	Device    bool   // it reads into a device's memory
	Packages  string // of PyPI, that the script imports for it
}

var peerKinds = []PeerKind{
	{"zarr", "zarr-python", false, "numpy zarr"},
	{"zarr+zarrs", "zarrs-python", false, "numpy zarr zarrs"},
	{"tensorstore", "tensorstore", false, "numpy tensorstore"},
	{"zarr+gpu", "zarr-python GPU buffers", true, "numpy zarr cupy-cuda12x"},
	{"kvikio", "kvikio", true, "numpy zarr kvikio-cu12"},
}

// PeerError is what a peer says it cannot do.
type PeerError struct{ Text string }

func (e *PeerError) Error() string { return e.Text }

// Peer is the process of another program.
type Peer struct {
	Kind    PeerKind
	version string

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
}

// findPython finds the Python of the peers: the one that is named, or that of an environment: the
// active one, the one that strata's own scripts make, or the system's.
func findPython(named string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", cli.Usage("flag --python: %s is no program: want the path of a Python that has the other programs", named)
		}
		return path, nil
	}
	var places []string
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		places = append(places, env)
	}
	places = append(places, filepath.Join("build", "venv"))
	if self, err := os.Executable(); err == nil {
		places = append(places, filepath.Join(filepath.Dir(filepath.Dir(self)), "build", "venv"))
	}
	for _, p := range places {
		if path, err := exec.LookPath(filepath.Join(p, "bin", "python")); err == nil {
			return filepath.Abs(path)
		}
	}
	if path, err := exec.LookPath("python3"); err == nil {
		return path, nil
	}
	return "", errors.New("there is no Python: none in VIRTUAL_ENV, build/venv or PATH; name one by --python")
}

// startPeer starts a peer and asks it for its version. A program that is not installed is a
// *peerError.
func startPeer(ctx context.Context, python, script string, kind PeerKind, threads, inFlight int) (*Peer, error) {
	p := &Peer{Kind: kind}
	p.cmd = exec.CommandContext(ctx, python, "-c", script, kind.Key, strconv.Itoa(threads), strconv.Itoa(inFlight))
	p.cmd.Stderr = &limited{w: &p.errors, n: 64 << 10}
	p.cmd.WaitDelay = 5 * time.Second
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, &PeerError{fmt.Sprintf("%s cannot be started: %v", python, err)}
	}
	var hello struct{ Version, Missing string }
	err = p.Ask(ctx, map[string]any{"do": "hello"}, &hello)
	if err == nil && hello.Missing != "" {
		err = &PeerError{fmt.Sprintf("%s: install it with %s -m pip install %s", hello.Missing, bench.Quote(python), kind.Packages)}
	}
	if err != nil {
		p.close()
		return nil, err
	}
	p.version = hello.Version
	return p, nil
}

// limited passes so many bytes on and drops the rest.
type limited struct {
	w io.Writer
	n int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.n)
	l.n -= n
	_, err := l.w.Write(b[:n])
	return len(b), err
}

// Ask sends a request and reads the answer.
func (p *Peer) Ask(ctx context.Context, request, answer any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	_, err = p.in.Write(append(text, '\n'))
	var line []byte
	if err == nil {
		line, err = p.out.ReadBytes('\n')
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		p.close()
		return &PeerError{"ended: " + lastLine(p.errors.String(), p.cmd.ProcessState.String())}
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(line, &failed); err != nil {
		return &PeerError{fmt.Sprintf("answered %.80q", line)}
	}
	if failed.Error != "" {
		return &PeerError{failed.Error}
	}
	return json.Unmarshal(line, answer)
}

func lastLine(text, otherwise string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return otherwise
}

func (p *Peer) close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// request is what a peer is asked for an array.
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

func (p *Peer) request(do string, j *Job) request {
	r := request{Do: do, Array: j.Target.Path, Image: j.Target.Level, Format: j.Target.format, Shape: j.Target.Layout.Shape, Whole: j.Boxes.Whole}
	for _, b := range j.Boxes.List {
		r.Boxes = append(r.Boxes, [2][]int{b.Start, b.Shape})
	}
	return r
}

func (p *Peer) Check(ctx context.Context, j *Job) (uint32, error) {
	if j.Target.zip {
		return 0, &PeerError{"zip files are not read by this benchmark's script"}
	}
	var a answer
	err := p.Ask(ctx, p.request("check", j), &a)
	return a.CK, err
}

func (p *Peer) Round(ctx context.Context, j *Job) (Sample, error) {
	var a answer
	err := p.Ask(ctx, p.request("read", j), &a)
	return Sample{Seconds: a.S, CPU: a.CPU, Peak: a.HWM}, err
}

// Peers are the processes of other programs, for one number of threads and requests at a time.
type Peers struct {
	python  string
	tool    Tool
	List    []*Peer
	Missing []bench.Result // without names and axes
	started [4]any         // how
}

// Start starts those that there are, of those who read into the host's memory, a device's, or
// both, and notes what is missing of the others.
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
		p, err := startPeer(ctx, ps.python, ps.tool.Script, kind, threads, inFlight)
		var failed *PeerError
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
		p.close()
	}
	ps.List = nil
}

// software is who took part.
func (ps *Peers) software() []bench.Software {
	var out []bench.Software
	for _, p := range ps.List {
		out = append(out, bench.Software{Name: p.Kind.Name, Version: p.version})
	}
	return out
}
