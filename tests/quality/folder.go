package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"strata/pkg/oct/stitch"
	"strata/tests/tilescan"
)

// folderRounds says how often each program goes from a folder to an image; figures are medians.
const folderRounds = 3

// folderScans are the folders: pictures, reflected at their borders, in tiles as large as those of a camera.
var folderScans = []tilescan.Scan{
	{Picture: "ihc.png", Tiles: 6, Side: 1024, Overlap: 0.1, Jitter: 5, Noise: 0.02, Vignette: 0.2, Seed: 1, Reflect: true},
	{Picture: "gravel.png", Tiles: 4, Side: 2048, Overlap: 0.1, Jitter: 5, Noise: 0.02, Vignette: 0.2, Seed: 2, Reflect: true},
}

// folderResult holds what a program made of a folder of TIFF tiles.
type folderResult struct {
	scan    *tilescan.Scan
	program string
	makes   string
	seconds []float64 // by the clock
	memory  int64     // the most of a round, bytes
	rms     float64
	wrong   int
	gaveUp  bool
}

// tryFolders goes from folders of TIFF tiles to images with strata and other programs, alternating.
func tryFolders(ctx context.Context, o options) (out []folderResult, err error) {
	if !o.wants("folder") || o.peers == "" {
		return nil, nil
	}
	pictures, err := openPictures(ctx, filepath.Join("build", "pictures"))
	if err != nil {
		return nil, err
	}
	defer pictures.Close()
	for k := range folderScans {
		found, err := tryFolder(ctx, o, &folderScans[k], pictures)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func tryFolder(ctx context.Context, o options, s *tilescan.Scan, pictures *tilescan.Pictures) ([]folderResult, error) {
	dir := filepath.Join(o.dir, "folder")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	scan, err := s.Render(pictures)
	if err != nil {
		return nil, err
	}
	if err := writeTiles(ctx, filepath.Join(dir, tilesName), s, scan); err != nil {
		return nil, err
	}
	script, tiles, overlap := "tests/quality/peers_folder.py", filepath.Join(dir, "tiles"), fmt.Sprint(s.Overlap)
	if err := command(ctx, nil, o.peers, script, "cut", filepath.Join(dir, tilesName), tiles); err != nil {
		return nil, err
	}
	positions := filepath.Join(dir, "positions.json")
	results := []folderResult{{program: "strata", makes: "OME-Zarr"}, {program: "ASHLAR", makes: "OME-TIFF"}, {program: "m2stitch", makes: "places only"}}
	commands := []*exec.Cmd{
		exec.Command(filepath.Join(o.bin, "stitch"), tiles, filepath.Join(dir, "out.ome.zarr"), "--pattern", "r{row}_c{col}.tif", "--overlap", overlap, "--estimate",
			"--save_positions", positions, "--overwrite", "--quiet", "--no-use_gpu"),
		exec.Command(o.peers, script, "ashlar", tiles, overlap, filepath.Join(dir, "out.ome.tif")),
		exec.Command(o.peers, script, "m2stitch", tiles, overlap, "none"),
	}
	for range folderRounds {
		for k, c := range commands {
			r := &results[k]
			r.scan = s
			places, err := r.run(ctx, c)
			if err == nil && k == 0 {
				places, err = placesOf(positions)
			}
			if r.gaveUp {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s, a folder of %d tiles: %w", r.program, s.Tiles*s.Tiles, err)
			}
			if len(places) != len(scan.Places) {
				return nil, fmt.Errorf("%s, a folder of %d tiles: %d places", r.program, len(scan.Places), len(places))
			}
			r.rms, r.wrong, _ = scan.Misplaced(func(t int) [2]float64 { return places[t] })
		}
	}
	return results, nil
}

// run runs a program once, and returns the places that it prints.
func (r *folderResult) run(ctx context.Context, c *exec.Cmd) ([][2]float64, error) {
	cmd := exec.CommandContext(ctx, c.Path, c.Args[1:]...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, time.Second
	cmd.Env = append(os.Environ(), "MPLBACKEND=agg")
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, said.String())
	}
	r.seconds = append(r.seconds, time.Since(begin).Seconds())
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.memory = max(r.memory, u.Maxrss<<10)
	}
	if out.Len() == 0 {
		return nil, nil
	}
	var found peerTiles
	err := json.Unmarshal(out.Bytes(), &found)
	if r.gaveUp = err == nil && found.Told; r.gaveUp {
		fmt.Println(r.program, "gave up:", found.Said)
	}
	return found.Positions, err
}

// placesOf returns the places (y, x) in px that stitch saved.
func placesOf(name string) (out [][2]float64, err error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var s stitch.Result
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, err
	}
	for _, t := range s.Tiles {
		out = append(out, t.Position)
	}
	return out, nil
}

// folderTable returns a row for each folder and program, as Markdown.
func folderTable(results []folderResult) string {
	if results == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString("| TIFF files | program | makes | time | strata is faster by | memory | error, px | wrong tiles |\n|---|---|---|---:|---:|---:|---:|---:|\n")
	var ours float64
	for _, r := range results {
		slices.Sort(r.seconds)
		t := r.seconds[len(r.seconds)/2]
		ratio := ""
		if r.program == "strata" {
			ours = t
		} else {
			ratio = fmt.Sprintf("%.1f", t/ours)
		}
		found := fmt.Sprintf("%.2f | %d", r.rms, r.wrong)
		if r.gaveUp {
			found = "gave up |"
		}
		fmt.Fprintf(&b, "| %d of %d², %s | %s | %s | %.2f s | %s | %d MiB | %s |\n", r.scan.Tiles*r.scan.Tiles, r.scan.Side, shortName(r.scan.Picture),
			r.program, r.makes, t, ratio, r.memory>>20, found)
	}
	return b.String()
}
