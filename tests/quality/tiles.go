package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"strata/pkg/dtype"
	"strata/pkg/ngff"
	"strata/pkg/work"
	"strata/pkg/zarr/store"
	"strata/tests/tilescan"
)

// tileResult is how a scan of a picture was stitched.
type tileResult struct {
	kind, picture string
	full          bool
	first         bool    // of the first set of random numbers
	nominal, rms  float64 // px, after the common shift
	wrong, tiles  int     // tiles with tissue, and of these those off by more than tilescan.Wrong
	warned        string  // the warnings about the tiles
	warnings      int     // their number
	seconds       float64 // of processor time
	beside        bool    // other programs run on the same tiles
	peers         []peerTiles
}

// tryTiles cuts pictures into tiles and stitches them, two at a time.
func tryTiles(ctx context.Context, o options) ([]tileResult, error) {
	pictures := wantedPictures(o)
	if pictures == nil {
		return nil, nil
	}
	wheels, err := openPictures(ctx, filepath.Join("build", "pictures"))
	if err != nil {
		return nil, err
	}
	defer wheels.Close()
	var out []tileResult
	var cases []tilescan.Case
	seeds := uint64(1)
	if o.wants("tiles") {
		seeds = uint64(max(o.seeds, 1))
	}
	for _, c := range tilescan.Cases() {
		for seed := range seeds {
			for _, p := range pictures(&c) {
				s := c
				s.Scan = *c.Of(p, seed+1)
				cases = append(cases, s)
				out = append(out, tileResult{kind: c.Name, picture: p, full: c.Full, first: seed == 0, beside: seed == 0 && o.peers != "" && slices.Contains(besidePeers[c.Name], p)})
			}
		}
	}
	err = work.Each(ctx, 2, len(cases), func(_, k int) error {
		return out[k].try(ctx, o, filepath.Join(o.dir, fmt.Sprintf("tiles_%d", k)), cases[k], wheels)
	})
	return out, err
}

// wantedPictures returns the function that picks the pictures of a kind of scan, or nil if no scan of pictures is
// wanted.
func wantedPictures(o options) func(c *tilescan.Case) []string {
	switch {
	case o.wants("tiles"):
		return (*tilescan.Case).Pictures
	case o.wants("tiles small"):
		return func(c *tilescan.Case) []string { return smallTiles[c.Name] }
	case o.wants("tiles peers"):
		return func(c *tilescan.Case) []string { return besidePeers[c.Name] }
	}
	return nil
}

// try renders and stitches a scan in a folder of its own, which it removes.
func (r *tileResult) try(ctx context.Context, o options, dir string, c tilescan.Case, pictures *tilescan.Pictures) error {
	scan, err := c.Scan.Render(pictures)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := writeTiles(ctx, filepath.Join(dir, tilesName), &c.Scan, scan); err != nil {
		return err
	}
	if err := r.stitch(ctx, o, dir, c.Stated); err != nil {
		return fmt.Errorf("%s, %s: %w", r.kind, r.picture, err)
	}
	places, err := placesOf(filepath.Join(dir, "positions.json"))
	if err != nil {
		return err
	}
	step := float64(c.Scan.Side) * (1 - c.Stated)
	r.nominal, _, _ = scan.Misplaced(func(t int) [2]float64 {
		return [2]float64{step * float64(t/c.Scan.Tiles), step * float64(t%c.Scan.Tiles)}
	})
	r.rms, r.wrong, r.tiles = scan.Misplaced(func(t int) [2]float64 { return places[t] })
	fmt.Printf("%-42s %-22s nominal %5.1f px, found %6.2f px, %2d of %2d tiles wrong, %4.1f s, %d warnings  %.90s\n", r.kind, shortName(r.picture), r.nominal, r.rms, r.wrong, r.tiles, r.seconds, r.warnings, r.warned)
	return r.tryPeers(ctx, o, dir, &c, scan)
}

// tilesName is the name of a scan's mosaic grid in its folder.
const tilesName = "tiles.ome.zarr"

// stitch stitches the mosaic grid in a folder, and keeps what is warned of its tiles. Warnings of other things, as of
// the levels that the pyramid lacks, do not count; nor may --quiet be given, which hides them all.
func (r *tileResult) stitch(ctx context.Context, o options, dir string, overlap float64) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(o.bin, "stitch"), filepath.Join(dir, tilesName), filepath.Join(dir, "out.ome.zarr"), "--overlap", fmt.Sprint(overlap),
		"--estimate", "--save_positions", filepath.Join(dir, "positions.json"), "--log_format", "json", "--progress", "none", "--no-use_gpu", "--threads", "1", "--n_levels", "0")
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	r.seconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	var texts []string
	for line := range strings.Lines(said.String()) {
		var entry struct{ Level, Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			return fmt.Errorf("a line of the log is no JSON: %s", line)
		}
		if _, text, ok := strings.Cut(entry.Message, tilesName+"/0: "); ok && entry.Level == "warn" {
			texts = append(texts, text)
		}
	}
	r.warned, r.warnings = strings.Join(texts, "; "), len(texts)
	return nil
}

// writeTiles writes a mosaic grid whose chunks are the tiles.
func writeTiles(ctx context.Context, path string, s *tilescan.Scan, scan *tilescan.Rendered) error {
	shape := s.Shape()
	w, err := ngff.Create(ctx, store.Folder(path), "", ngff.ImageSpec{Format: 3, Shape: shape, Chunks: []int{shape[0], s.Side, s.Side}, DType: dtype.Float32,
		Axes: ngff.SpaceAxes("zyx", "micrometer"), Scale: []float64{1, 1, 1}})
	if err != nil {
		return err
	}
	if err := w.WriteTile(ctx, []int{0, 0, 0}, shape, dtype.Bytes(scan.Pixels)); err != nil {
		return err
	}
	return w.Close(ctx)
}

// tileTable returns a row for each kind of scan, as Markdown.
func tileTable(results []tileResult) string {
	var b strings.Builder
	b.WriteString("| scan | scans | nominal, px | found, px: median | worst | wrong tiles of the worst | with wrong tiles | warned of | processor time |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	all, allBad, allTold := len(results), 0, 0
	for len(results) > 0 {
		n := slices.IndexFunc(results, func(r tileResult) bool { return r.kind != results[0].kind })
		if n < 0 {
			n = len(results)
		}
		var found []float64
		worst, nominal, seconds, bad, told := results[0], 0.0, 0.0, 0, 0
		for _, r := range results[:n] {
			found = append(found, r.rms)
			nominal, seconds = max(nominal, r.nominal), seconds+r.seconds/float64(n)
			if r.rms > worst.rms {
				worst = r
			}
			if r.wrong > 0 {
				bad++
				if r.warned != "" {
					told++
				}
			}
		}
		allBad, allTold = allBad+bad, allTold+told
		slices.Sort(found)
		warned := ""
		if bad > 0 {
			warned = fmt.Sprint(told)
		}
		fmt.Fprintf(&b, "| %s | %d | %.1f | %.2f | %.2f | %d of %d | %d | %s | %.1f s |\n", results[0].kind, n, nominal, found[n/2], worst.rms, worst.wrong, worst.tiles, bad, warned, seconds)
		results = results[n:]
	}
	fmt.Fprintf(&b, "| *all* | %d | | | | | %d | %d | |\n", all, allBad, allTold)
	return b.String()
}

// mostMissed is the part of the full scans that may be over tilescan.MostRMS with further random numbers; with the
// first none may.
const mostMissed = 0.05

// mostWorse is by how much, in px, places may be worse than nominal ones: by what tiles of little texture add.
const mostWorse = 0.5

// checkTiles returns an error that names the scans over their limits.
func checkTiles(results []tileResult) (err error) {
	over := func(r tileResult, format string, args ...any) error {
		return fmt.Errorf("tiles, %s, %s: %s", r.kind, shortName(r.picture), fmt.Sprintf(format, args...))
	}
	var missed []error
	further := 0.0
	for _, r := range results {
		if r.wrong > 0 && r.warned == "" {
			err = errors.Join(err, over(r, "%d of %d tiles are off by more than %d px without a warning", r.wrong, r.tiles, tilescan.Wrong))
		}
		if r.rms > r.nominal+mostWorse {
			err = errors.Join(err, over(r, "off by %.2f px, nominal places by %.2f", r.rms, r.nominal))
		}
		if r.full && tilescan.Hidden[[2]string{r.kind, r.picture}] == "" {
			lost := r.rms > tilescan.MostRMS
			is := over(r, "off by %.2f px, must be at most %d", r.rms, tilescan.MostRMS)
			switch {
			case lost && r.first:
				err = errors.Join(err, is)
			case lost:
				missed = append(missed, is)
			}
			if !r.first {
				further++
			}
		}
	}
	if float64(len(missed)) > mostMissed*further {
		err = errors.Join(err, errors.Join(missed...))
	}
	return err
}
