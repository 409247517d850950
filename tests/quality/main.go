// Command quality measures volumes against the ground truth of the phantoms that they are made from: the positions
// of tiles and slices, the depth of the volume, distances in it, and changes of brightness between slices; and
// slide scans whose stage recorded the positions of tiles with errors; and scans of pictures that others made.
//
//	make quality                                            # writes docs/quality.md
//	go run ./tests/quality -bin bin -only small             # what CI checks
//	go run ./tests/quality -render -page docs/quality.md    # writes the page from its sheets
//
// It fails if a measure exceeds its threshold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

// phantomCase is an acquisition: the parameters of the phantom, and the depth to which slices are kept.
type phantomCase struct {
	name, what string
	flags      string
	depth      string // micrometres below the interface
}

var phantoms = []phantomCase{
	{"small", "what CI checks", "--slices 3 --tiles 4,4 --tile 120,160,160 --rotation 0.5 --stage_scale 1.005 --jitter 0.2 --relief 3 --seed 5 --anatomy 0", "400"},
	{"easy", "a straight stage, recorded shifts that are right", "--slices 5 --tiles 4,4 --tile 120,160,160 --glitch 0 --seed 3 --anatomy 0", "400"},
	{"hard", "a stage turned by 1° and 1 % off, tiles 1 px off, recorded shifts of which one is wrong",
		"--slices 5 --tiles 5,5 --tile 120,160,160 --rotation 1 --stage_scale 1.01 --jitter 1 --glitch 0.3 --seed 11 --anatomy 0", "400"},
}

// way is a way to stack slices.
type way struct {
	name  string
	flags []string
}

var ways = []way{
	{"strata", []string{"--repair_shifts", "fix", "--blend_match", "depth"}},
	{"strata, whole", []string{"--repair_shifts", "fix", "--blend_match", "whole"}},
	{"as the reference", []string{"--overlap_search", "centre", "--repair_shifts", "off", "--blend_match", "pairwise", "--no-use_origins"}},
}

type options struct {
	bin, dir, only, page, linumpy string
	seeds                         int    // how often each scan of a picture is made, with other random numbers
	peers                         string // the Python with programs that stitch tiles; empty: they do not run
}

// wants reports whether a case should be run.
func (o *options) wants(name string) bool {
	if o.only == "" {
		return !strings.HasSuffix(name, "small")
	}
	return strings.Contains(","+o.only+",", ","+name+",")
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder of the programs")
	flag.StringVar(&o.dir, "dir", "build/quality", "folder for the phantoms and their volumes")
	flag.StringVar(&o.only, "only", "", "phantoms and scans, separated by commas: small, easy, hard, bad slices, tissue, tiles…; all but small")
	flag.StringVar(&o.page, "page", "", "page whose table is replaced")
	flag.StringVar(&o.linumpy, "linumpy", "", "folder of linumpy, with its environment in .venv, to run beside the programs on raw tiles")
	flag.IntVar(&o.seeds, "seeds", 1, "how often to make each scan of a picture, with other random numbers; 'tiles small' and 'tiles peers' make one")
	again := flag.Bool("render", false, "write the page from the sheets beside it, and measure nothing")
	peers := flag.Bool("peers", false, "also run ASHLAR, m2stitch and multiview-stitcher on some scans of pictures; -only 'tiles peers' names just these, and -only folder stitches folders of TIFF tiles with them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *peers {
		o.peers, err = environment(ctx, "build/venv-tiles", "tests/quality/requirements-tiles.txt")
	}
	switch {
	case err != nil:
	case *again:
		err = render(o.page)
	default:
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quality:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	var results []result
	for _, c := range phantoms {
		if !o.wants(c.name) {
			continue
		}
		r, err := try(ctx, o, c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		results = append(results, r...)
	}
	aligned, err := tryRaws(ctx, o)
	if err != nil {
		return err
	}
	bad, err := tryBad(ctx, o)
	if err != nil {
		return fmt.Errorf("%s: %w", badName, err)
	}
	stitched, err := tryScans(ctx, o)
	if err != nil {
		return err
	}
	found, err := tryTiles(ctx, o)
	if err != nil {
		return err
	}
	folders, err := tryFolders(ctx, o)
	if err != nil {
		return err
	}
	tables := map[string]string{}
	if folders != nil {
		tables["folder"] = folderTable(folders)
	}
	if bad != nil {
		tables[badName] = badTable(bad)
	}
	if results != nil {
		tables["quality"] = table(results)
	}
	if aligned != nil {
		tables["raw"] = rawTable(aligned)
	}
	if stitched != nil {
		tables["scans"] = scanTable(stitched)
	}
	if found != nil {
		tables["tiles"] = tileTable(found)
	}
	if t := peerTable(found); t != "" {
		tables["tile peers"] = t
	}
	fmt.Print(tables["quality"], tables["raw"], tables[badName], tables["scans"], tables["tiles"], tables["tile peers"], tables["folder"])
	if !o.wants("tiles") {
		delete(tables, "tiles") // the page has a table of all
	}
	if o.page != "" {
		if err := writePage(o.page, tables); err != nil {
			return err
		}
	}
	return errors.Join(check(results), checkRaws(aligned), checkBad(bad), checkScans(stitched), checkTiles(found))
}

// prepare generates a phantom and processes it with all stages. It returns its truth, the folder of the phantom, and
// that of the results.
func prepare(ctx context.Context, o options, c phantomCase) (t *truth, input, results string, err error) {
	dir := filepath.Join(o.dir, c.name)
	if err := os.RemoveAll(dir); err != nil {
		return nil, "", "", err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, "", "", err
	}
	input, results = filepath.Join(dir, "phantom"), filepath.Join(dir, "results")
	args := append([]string{input, "--truth_slices", "--quiet"}, strings.Fields(c.flags)...)
	if err := command(ctx, nil, filepath.Join(o.bin, "phantom"), args...); err != nil {
		return nil, "", "", err
	}
	if err := command(ctx, []string{"DEPTH=" + c.depth}, "scripts/steps.sh", "none", input, results); err != nil {
		return nil, "", "", err
	}
	t, err = readTruth(input)
	return t, input, results, err
}

// stack stacks slices without blending, which shows where each slice lies, and with it, which shows how bright.
func stack(ctx context.Context, o options, volume, slices, shifts string, flags []string) (plain, blended string, err error) {
	plain, blended = volume+"_plain.ome.zarr", volume+"_blended.ome.zarr"
	args := append([]string{slices, shifts, plain, "--moving_z_first_index", "2", "--pyramid_resolutions", "1", "--quiet", "--no-use_gpu"}, flags...)
	if err := command(ctx, nil, filepath.Join(o.bin, "stack"), args...); err != nil {
		return "", "", err
	}
	args[2] = blended
	return plain, blended, command(ctx, nil, filepath.Join(o.bin, "stack"), append(args, "--blend")...)
}

// try processes a phantom, stacks it in each way, and measures the result.
func try(ctx context.Context, o options, c phantomCase) (out []result, err error) {
	t, mosaics, chain, err := prepare(ctx, o, c)
	if err != nil {
		return nil, err
	}
	for _, w := range ways {
		r := result{Phantom: c.name, Way: w.name}
		plain, blended, err := stack(ctx, o, filepath.Join(o.dir, c.name, strings.ReplaceAll(w.name, " ", "_")),
			filepath.Join(chain, "slices"), filepath.Join(mosaics, "shifts_xy.csv"), w.flags)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(r.tiles(t, filepath.Join(chain, "stitch")), r.geometry(ctx, t, plain), r.brightness(ctx, t, blended)); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func command(ctx context.Context, env []string, name string, args ...string) error {
	fmt.Println(filepath.Base(name), strings.Join(args, " "))
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	c.Stderr = os.Stderr
	return c.Run()
}
