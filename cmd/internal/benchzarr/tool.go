package benchzarr

import (
	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
)

// Tool describes a program that measures arrays like bench-zarr: its own backends, and the programs that it is
// compared with.
type Tool struct {
	Name   string              // of the command
	Peers  []benchkit.PeerKind // the other programs
	Script string              // Python that does what a peer is asked for, as peers.py does
	Tiles  bool                // results count the chunks that are read, which are tiles
	// Lenient lets a run continue without a peer that reads other elements; its result says so.
	Lenient bool

	// Backends lists the backends of --vary backend=all; those that cannot be used are in the results with the reason.
	// Nil: the usable ones of bench-zarr.
	Backends []string
	// Can reports whether a backend supports an operation; nil: all do. Results have no rows for unsupported ones.
	Can func(backend, op string) bool
	// Floors lists backends that do not make an array of what they read: advice ignores them.
	Floors []string
	// Reader returns a reader for a backend of the tool, or nil if s has none of them.
	Reader func(r *cli.Run, s Setting) Reader
}

// zarrTool describes bench-zarr itself.
var zarrTool = Tool{Name: "bench-zarr", Peers: peerKinds, Script: peersScript}
