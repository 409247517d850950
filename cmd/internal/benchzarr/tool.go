package benchzarr

import (
	"strata/cmd/internal/benchkit"
	"strata/pkg/cli"
)

// Tool describes a program that measures arrays as bench-zarr does: its own backends, and the programs that stand beside it.
type Tool struct {
	Name   string              // of the command
	Peers  []benchkit.PeerKind // the other programs
	Script string              // Python that does what a peer is asked for, as peers.py does
	Tiles  bool                // results count the chunks that are read, which are tiles
	// Lenient lets a run go on without a peer that reads other elements, which its result says.
	Lenient bool

	// Backends are all that --vary backend=all means; those that cannot be used are in the results with the reason. Nil: those of
	// bench-zarr that can be used.
	Backends []string
	// Can reports whether a backend does an operation; nil: all do. Results have no rows of those that do not.
	Can func(backend, op string) bool
	// Floors are backends that make no array of what they read: advice leaves them out.
	Floors []string
	// Reader makes what reads by a backend of the tool's own; nil if s has none of them.
	Reader func(r *cli.Run, s Setting) Reader
}

// zarrTool is bench-zarr itself.
var zarrTool = Tool{Name: "bench-zarr", Peers: peerKinds, Script: peersScript}
