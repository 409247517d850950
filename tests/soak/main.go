// Command soak attacks the built programs for a given number of tries and counts what was lost. Each campaign
// breaks one thing repeatedly: it kills programs at random moments, fills disks, damages inputs, or cuts
// connections. A try fails if a promise of README.md does not hold afterwards.
//
//	make soak                                   # an hour or more; writes docs/reliability.md
//	go run ./tests/soak -bin bin -kills 100     # a short look
//
// A failure names its campaign, try and seed; -only, -seed and -try repeat it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options holds the command line.
type options struct {
	bin, json, page, only string
	kills, full, hostile  int
	fuzz                  time.Duration
	seed                  uint64
	number                int
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder of the programs")
	flag.IntVar(&o.kills, "kills", 1000, "programs to kill, locally; a tenth of it again on a server")
	flag.IntVar(&o.full, "full", 200, "runs on a disk that fills up")
	flag.IntVar(&o.hostile, "hostile", 2000, "runs on damaged inputs")
	flag.DurationVar(&o.fuzz, "fuzz", time.Minute, "time for each fuzz target; 0: none")
	flag.StringVar(&o.only, "only", "", "run the campaigns whose name contains this")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of all random choices")
	flag.IntVar(&o.number, "try", -1, "with -only: the number of the one try to make; its folder is kept")
	flag.StringVar(&o.json, "json", "", "file for the results")
	flag.StringVar(&o.page, "page", "", "page whose table is replaced")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	lost, err := soak(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	if lost > 0 {
		fmt.Fprintf(os.Stderr, "soak: %d tries broke a promise\n", lost)
		os.Exit(1)
	}
}

// soak runs all campaigns and returns the number of failed tries.
func soak(ctx context.Context, o options) (lost int, err error) {
	dir, err := os.MkdirTemp("", "strata-soak-")
	if err != nil {
		return 0, err
	}
	if o.number < 0 {
		defer os.RemoveAll(dir)
	}
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return 0, err
	}
	f, err := makeFixtures(ctx, bin, dir)
	if err != nil {
		return 0, fmt.Errorf("prepare: %w", err)
	}
	all, stop, err := campaigns(ctx, f, o)
	if err != nil {
		return 0, err
	}
	defer stop()
	var results []result
	for _, c := range all {
		if c.tries == 0 || !strings.Contains(c.name, o.only) {
			continue
		}
		r := c.run(ctx, o)
		if ctx.Err() != nil {
			return lost, ctx.Err()
		}
		lost += r.Lost
		results = append(results, r)
	}
	if strings.Contains(flippedName, o.only) && o.number < 0 {
		r, err := f.flipBits(ctx)
		if err != nil {
			return lost, err
		}
		lost += r.Lost
		results = append(results, r)
	}
	if o.fuzz > 0 && o.only == "" {
		r, err := fuzzAll(ctx, o.fuzz)
		if err != nil {
			return lost, err
		}
		lost += r.Lost
		results = append(results, r)
	}
	return lost, report(o, results)
}

// campaign tries to break one promise.
type campaign struct {
	name    string // what happens to the programs
	promise string // what must hold afterwards
	tries   int
	try     func(ctx context.Context, dir string, r *rand.Rand) (what string, err error) // in an empty folder
	dir     string
}

// result counts the outcomes of a campaign.
type result struct {
	Name     string         `json:"name"`
	Promise  string         `json:"promise"`
	Tries    int            `json:"tries"`
	Lost     int            `json:"lost"`
	Outcomes map[string]int `json:"outcomes"` // number of tries by outcome
	Failures []string       `json:"failures,omitempty"`
	Seconds  float64        `json:"seconds"`
	Flipped  []flipped      `json:"flipped,omitempty"`
}

// maxFailures is the maximum number of recorded failures of a campaign.
const maxFailures = 20

// run runs all tries of the campaign. A try's number and the seed determine its choices.
func (c campaign) run(ctx context.Context, o options) result {
	started := time.Now()
	res := result{Name: c.name, Promise: c.promise, Outcomes: map[string]int{}}
	for n := range c.tries {
		if ctx.Err() != nil {
			break
		}
		if o.number >= 0 && o.number != n {
			continue
		}
		dir, err := os.MkdirTemp(c.dir, "try-")
		var what string
		if err == nil {
			what, err = c.try(ctx, dir, rand.New(rand.NewPCG(o.seed, uint64(n))))
			if o.number < 0 {
				os.RemoveAll(dir)
			}
		}
		res.Tries++
		if err == nil {
			res.Outcomes[what]++
		} else if ctx.Err() == nil {
			res.Lost++
			text := fmt.Sprintf("try %d: %v", n, err)
			fmt.Fprintf(os.Stderr, "%s: %s\n", c.name, text)
			if len(res.Failures) < maxFailures {
				res.Failures = append(res.Failures, text)
			}
		}
	}
	res.Seconds = time.Since(started).Seconds()
	fmt.Printf("%s: %d tries, %d lost, %.0f s %v\n", res.Name, res.Tries, res.Lost, res.Seconds, res.Outcomes)
	return res
}

// report writes the results as JSON and into the page.
func report(o options, results []result) error {
	if o.json != "" {
		text, err := json.MarshalIndent(results, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(o.json, append(text, '\n'), 0o666); err != nil {
			return err
		}
	}
	if o.page == "" {
		return nil
	}
	return writePage(o, results)
}
