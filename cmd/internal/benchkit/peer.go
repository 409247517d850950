package benchkit

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"strata/pkg/bench"
	"strata/pkg/cli"
)

// asked is the Python module with which the scripts of peers answer requests.
//
//go:embed asked.py
var asked string

// PeerKind describes a peer: another program that reads and writes Zarr.
type PeerKind struct {
	Key, Name string // its name in the script and in results
	Device    bool   // it reads into a device's memory
	Packages  string // PyPI packages that the script imports for it
}

// A Peer is the running process of another program.
type Peer struct {
	Kind    PeerKind
	Version string

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
}

// FindPython returns the Python interpreter for the peers: the named one, or that of the active environment, of
// the one that strata's scripts create, or of the system.
func FindPython(named string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", cli.Usage("flag --python: %s is not a program: want the path of a Python interpreter that has the peer programs", named)
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
	return "", errors.New("there is no Python in VIRTUAL_ENV, build/venv or PATH: name one with --python")
}

// StartPeer starts script, which answers with the module asked, for a peer and asks it for its version. If the
// peer is not installed, the error is [Unable]. The caller must Close the peer.
func StartPeer(ctx context.Context, python, script string, kind PeerKind, threads, inFlight int) (*Peer, error) {
	p := &Peer{Kind: kind}
	p.cmd = exec.CommandContext(ctx, python, "-c", "import sys, types\nasked = sys.modules['asked'] = types.ModuleType('asked')\nexec("+literal(asked)+", asked.__dict__)\n"+script, kind.Key, strconv.Itoa(threads), strconv.Itoa(inFlight))
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
		return nil, Unablef("%s cannot be started: %v", python, err)
	}
	var hello struct{ Version, Missing string }
	err = p.ask(ctx, map[string]any{"do": "hello"}, &hello)
	if err == nil && hello.Missing != "" {
		err = Unablef("%s: install it with %s -m pip install %s", hello.Missing, bench.Quote(python), kind.Packages)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	p.Version = hello.Version
	return p, nil
}

// literal quotes text for Python, which accepts JSON's syntax.
func literal(text string) string {
	b, _ := json.Marshal(text) // of a string
	return string(b)
}

// limited passes on a limited number of bytes and drops the rest.
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

// ask sends a request and reads the answer.
func (p *Peer) ask(ctx context.Context, request, answer any) error {
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
		p.Close()
		return Unablef("ended: %s", lastLine(p.errors.String(), p.cmd.ProcessState.String()))
	}
	var failed struct{ Error string }
	if err := json.Unmarshal(line, &failed); err != nil {
		return Unablef("answered %.80q", line)
	}
	if failed.Error != "" {
		return Unablef("%s", failed.Error)
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

// Close ends the process.
func (p *Peer) Close() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// Do sends a request to read or write something. It returns what that took and the checksum of what was read.
func (p *Peer) Do(ctx context.Context, request any) (s Sample, sum uint32, err error) {
	var a struct {
		S, CPU float64
		HWM    int64
		CK     uint32
	}
	err = p.ask(ctx, request, &a)
	return Sample{Seconds: a.S, CPU: a.CPU, Peak: a.HWM}, a.CK, err
}

// Peers holds the processes of several programs.
type Peers struct {
	List    []*Peer
	missing []bench.Result // without names and axes
}

// StartPeers starts the available peers and records the missing ones. The caller must Close them.
func StartPeers(ctx context.Context, python, script string, kinds []PeerKind, threads, inFlight int) (*Peers, error) {
	ps := &Peers{}
	for _, kind := range kinds {
		p, err := StartPeer(ctx, python, script, kind, threads, inFlight)
		var unable *Unable
		switch {
		case errors.As(err, &unable):
			ps.missing = append(ps.missing, bench.Result{Who: kind.Name, Reason: unable.Error()})
		case err != nil:
			ps.Close()
			return nil, err
		default:
			ps.List = append(ps.List, p)
		}
	}
	return ps, nil
}

// Missing returns the results, of this name and axes, of the programs that are missing.
func (ps *Peers) Missing(name string, axes bench.Axes) []bench.Result {
	out := slices.Clone(ps.missing)
	for i := range out {
		out[i].Name, out[i].Axes = name, axes
	}
	return out
}

// Software returns the programs that take part.
func (ps *Peers) Software() []bench.Software {
	var out []bench.Software
	for _, p := range ps.List {
		out = append(out, bench.Software{Name: p.Kind.Name, Version: p.Version})
	}
	return out
}

// Close ends the processes.
func (ps *Peers) Close() {
	for _, p := range ps.List {
		p.Close()
	}
	ps.List = nil
}
