package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"strata/tests/tilescan"
)

// tilePeers are programs that stitch tiles, as peers_tiles.py calls them, and their names.
var tilePeers = []struct{ program, name string }{{"ashlar", "ASHLAR"}, {"m2stitch", "m2stitch"}, {"multiview-stitcher", "multiview-stitcher"}}

// peerTiles is where one of them put tiles.
type peerTiles struct {
	Positions [][2]float64 // (y, x) in px
	Told      bool         // it said that something is amiss
	Said      string
	Seconds   float64 // of processor time

	rms   float64
	wrong int
}

// besidePeers names the kinds and pictures on which they run: they take long.
var besidePeers = map[string][]string{
	"base": {"ihc.png", "gravel.png", "brick.png"},
	"6 × 6 tiles, overlap 30 %, stated 20 %": {"ihc.png"},
	"3 × 3 tiles, overlap 8 %, stated 20 %":  {"ihc.png"},
	"jitter 5 px":                            {"ihc.png"},
	"backlash 6 px":                          {"ihc.png"},
	"rows slipped by 12 px":                  {"ihc.png"},
	"one slip of 25 px, overlap 20 %":        {"ihc.png"},
	"rotation 1°":                            {"ihc.png"},
	"noise 20 %":                             {"ihc.png"},
	"40 % empty":                             {"ihc.png"},
	"80 % empty":                             {"ihc.png"},
	"80 % empty, columns, vignette":          {"ihc.png"},
	"end of a specimen, 3":                   {"ihc.png"},
	"hard":                                   {"ihc.png", "retina.jpg"},
	"hard, overlap 5 %":                      {"ihc.png"},
	"hard, 40 % empty":                       {"ihc.png"},
	"hard, 80 % empty":                       {"ihc.png"},
	"3-D, middle slice, speckle":             {tilescan.Brain},
	"3-D, end slice, speckle":                {tilescan.Brain},
}

// tryPeers runs the other programs on the tiles in a folder.
func (r *tileResult) tryPeers(ctx context.Context, o options, dir string, c *tilescan.Case, scan *tilescan.Rendered) error {
	if !r.beside {
		return nil
	}
	for _, p := range tilePeers {
		cmd := exec.CommandContext(ctx, o.peers, "tests/quality/peers_tiles.py", p.program, fmt.Sprint(c.Stated), filepath.Join(dir, tilesName))
		cmd.WaitDelay = time.Second // processes that a killed program leaves hold its output open
		cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MPLBACKEND=agg")
		out, err := cmd.Output()
		if err != nil {
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				err = fmt.Errorf("%w: %s", err, failed.Stderr)
			}
			return fmt.Errorf("%s, %s, %s: %w", p.name, r.kind, r.picture, err)
		}
		var found peerTiles
		if err := json.Unmarshal(out, &found); err != nil {
			return fmt.Errorf("%s, %s, %s: %w", p.name, r.kind, r.picture, err)
		}
		if len(found.Positions) != len(scan.Places) {
			return fmt.Errorf("%s, %s, %s: %d places of %d tiles", p.name, r.kind, r.picture, len(found.Positions), len(scan.Places))
		}
		found.rms, found.wrong, _ = scan.Misplaced(func(t int) [2]float64 { return found.Positions[t] })
		fmt.Printf("%-42s %-22s %s: %.2f px, %d tiles wrong, %.1f s  %.90s\n", r.kind, r.picture, p.name, found.rms, found.wrong, found.Seconds, found.Said)
		r.peers = append(r.peers, found)
	}
	return nil
}

// peerTable returns a row for each scan on which other programs ran, as Markdown; it is empty if none did.
func peerTable(results []tileResult) string {
	var b strings.Builder
	b.WriteString("| scan | picture | tiles | nominal | strata |")
	for _, p := range tilePeers {
		b.WriteString(" " + p.name + " |")
	}
	b.WriteString("\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	n := 0
	seconds := make([]float64, 1+len(tilePeers))
	silent := make([]int, 1+len(tilePeers))
	for _, r := range results {
		if r.peers == nil {
			continue
		}
		n++
		fmt.Fprintf(&b, "| %s | %s | %d | %.1f |", r.kind, shortName(r.picture), r.tiles, r.nominal)
		ours := peerTiles{rms: r.rms, wrong: r.wrong, Told: r.warned != "", Seconds: r.seconds}
		for k, p := range append([]peerTiles{ours}, r.peers...) {
			told := ""
			if p.Told {
				told = ", told"
			} else if p.wrong > 0 {
				silent[k]++
			}
			seconds[k] += p.Seconds
			fmt.Fprintf(&b, " %.2f / %d%s |", p.rms, p.wrong, told)
		}
		b.WriteString("\n")
	}
	if n == 0 {
		return ""
	}
	b.WriteString("| *scans with wrong tiles, and not a word* | | | |")
	for _, v := range silent {
		fmt.Fprintf(&b, " %d of %d |", v, n)
	}
	b.WriteString("\n| *processor time, mean* | | | |")
	for _, v := range seconds {
		fmt.Fprintf(&b, " %.1f s |", v/float64(n))
	}
	return b.String() + "\n"
}

// shortName returns the name of a picture without the end of its file's name; the volume has a long one.
func shortName(picture string) string {
	name, _, _ := strings.Cut(picture, ".")
	if name == strings.TrimSuffix(tilescan.Brain, ".nii.gz") {
		return "MNI152"
	}
	return name
}
