package benchtile

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
	"strata/pkg/zarr"
)

// cachedSource is a program that makes views from cached tiles, which it reads with libtiff or pread.
//
//go:embed cpp/cached.cpp
var cachedSource []byte

// peerProgram is another program that streams views: see docs/bench-tile.md.
type peerProgram struct{ name, path, reason string }

// peers lists the requested programs.
type peers struct {
	list []peerProgram
	tmp  string // of what is compiled; "": nothing is
}

// findPeers compiles programs where needed. A program that is not available is listed with the reason.
func findPeers(ctx context.Context, r *cli.Run) (*peers, error) {
	p := &peers{}
	for _, text := range r.Strings("peer") {
		name, path, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, cli.Usage("flag --peer %s: want NAME=PROGRAM", text)
		}
		found, err := exec.LookPath(path)
		if err != nil {
			return nil, cli.Usage("flag --peer %s: %w", text, err)
		}
		p.list = append(p.list, peerProgram{name: name, path: found})
	}
	if r.Bool("peers") {
		if err := p.compile(ctx, r.String("cxx")); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

func (p *peers) close() {
	if p.tmp != "" {
		_ = os.RemoveAll(p.tmp) // of the run's own
	}
}

// compile compiles the program with libtiff, or without it if that is missing.
func (p *peers) compile(ctx context.Context, cxx string) (err error) {
	if p.tmp, err = os.MkdirTemp("", "bench-tile-"); err != nil {
		return err
	}
	source, out := filepath.Join(p.tmp, "cached.cpp"), filepath.Join(p.tmp, "cached")
	if err := os.WriteFile(source, cachedSource, 0o600); err != nil {
		return err
	}
	var reason string
	for _, more := range [][]string{{"-DWITH_TIFF", "-ltiff"}, nil} {
		text, err := exec.CommandContext(ctx, cxx, append([]string{"-std=c++17", "-O3", "-o", out, source, "-pthread"}, more...)...).CombinedOutput()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil {
			p.list = append(p.list, peerProgram{name: "tiles in a cache (C++)", path: out})
			return nil
		}
		if reason = err.Error(); len(text) > 0 {
			reason = cxx + ": " + firstLine(text)
		}
	}
	p.list = append(p.list, peerProgram{name: "tiles in a cache (C++)", reason: reason})
	return nil
}

func firstLine(text []byte) string {
	first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return first
}

// contestants returns the programs for a plan; those that cannot serve it have a reason.
func (p *peers) contestants(plan plan) (list []*contestant) {
	if p == nil || len(p.list) == 0 {
		return nil
	}
	request, err := request(plan)
	for _, x := range p.list {
		reason := x.reason
		if reason == "" && err != nil {
			reason = err.Error()
		}
		if reason != "" {
			list = append(list, newContestant(x.name, nil, reason))
			continue
		}
		list = append(list, newContestant(x.name, &peer{program: x, plan: plan, request: request}, ""))
	}
	return list
}

// peer is another program, which streams once in each process.
type peer struct {
	program peerProgram
	plan    plan
	request string
}

// answer is the output of a program.
type answer struct {
	Seconds  float64 `json:"seconds"`
	CPU      float64 `json:"cpu"`
	Resident int64   `json:"resident"`
	Views    int     `json:"views"`
	Check    string  `json:"check"`
}

func (p *peer) close() error { return nil }

func (p *peer) round(ctx context.Context, checked bool) (out benchkit.Sample, s delivery, err error) {
	cmd := exec.CommandContext(ctx, p.program.path)
	op := p.plan.op
	if checked {
		op = "check"
	}
	cmd.Stdin = strings.NewReader(p.request + "op " + op + "\nend\n")
	var said, text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &text
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return out, s, context.Cause(ctx)
		}
		return out, s, benchkit.Unablef("%s", strings.TrimSpace(firstLine(text.Bytes())+" ("+err.Error()+")"))
	}
	var a answer
	if err := json.Unmarshal(said.Bytes(), &a); err != nil {
		return out, s, benchkit.Unablef("cannot parse its answer: %v", err)
	}
	out, s.views = benchkit.Sample{Seconds: a.Seconds, CPU: a.CPU, Peak: a.Resident}, a.Views
	if a.Seconds <= 0 {
		return out, s, benchkit.Unablef("its answer has no time")
	}
	if checked {
		if s.check, err = strconv.ParseUint(a.Check, 10, 64); err != nil {
			return out, s, benchkit.Unablef("its answer has no checksum")
		}
	}
	view := p.plan.src.DType().Size()
	for a, n := range p.plan.tile {
		view *= n + 2*p.plan.radii[a]
	}
	s.bytes = int64(view) * int64(s.views)
	return out, s, nil
}

// request returns the request to a program, with a line for each item; see docs/bench-tile.md.
func request(p plan) (string, error) {
	shape := p.src.Shape(p.level)
	switch {
	case len(shape) != 2:
		return "", fmt.Errorf("it reads images of two axes, not of %d", len(shape))
	case p.border != "zero":
		return "", errors.New("it supports only the border zero")
	case p.op != opNone && p.op != opSum:
		return "", errors.New("it supports only the operators none and sum")
	case p.order != "naive":
		return "", errors.New("it supports only the order naive")
	}
	for a, n := range p.src.TileShape(p.level) {
		if p.tile[a] != n {
			return "", errors.New("it supports only the stored tiles")
		}
	}
	tiles, err := p.src.where()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	ordered := 0
	if p.ordered {
		ordered = 1
	}
	copies := p.copyThreads
	if copies == 0 {
		copies = p.threads
	}
	fmt.Fprintf(&b, "shape %d %d\ntile %d %d\nelement %d\nradius %d %d\nthreads %d\ncopy_threads %d\ncache %d\nviews %d\nordered %d\n",
		shape[0], shape[1], p.tile[0], p.tile[1], p.src.DType().Size(), p.radii[0], p.radii[1], p.threads, copies, p.cache, p.views, ordered)
	return b.String() + tiles, nil
}

// rawTiles describes the positions of an array's tiles in memory order: a line "file OFFSET PATH" for each, in C
// order.
func rawTiles(ctx context.Context, a *zarr.Array) (string, error) {
	if len(a.Codecs()) > 0 || a.Order() != 'C' || a.Shard() != nil {
		return "", errors.New("it supports no codecs and no shards, and these tiles are encoded")
	}
	chunks, bytes := a.Chunks(), int64(a.DType().Size())
	for d, n := range a.Shape() {
		if n < chunks[d] {
			return "", errors.New("it reads no image smaller than a tile")
		}
		bytes *= int64(chunks[d])
	}
	var b strings.Builder
	err := a.Located(ctx, a.Bounds(), func(f *zarr.ChunkFile, list []zarr.Located) error {
		for _, c := range list {
			if f == nil || c.Size != bytes {
				return fmt.Errorf("it cannot fill tiles, and the one at %v is not stored", c.Start)
			}
			path, base := f.Path()
			path, err := filepath.Abs(path)
			if err == nil {
				_, err = os.Stat(path)
			}
			if err != nil || strings.Contains(path, "\n") {
				return fmt.Errorf("it reads files, and %s is not a file", path)
			}
			fmt.Fprintf(&b, "file %d %s\n", base+c.Offset, path)
		}
		return nil
	})
	return b.String(), err
}
