package benchczi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"strata/cmd/internal/benchkit"
	"strata/pkg/bench"
	"strata/pkg/cli"
	"strata/pkg/host"
	"strata/pkg/mem"
	"strata/pkg/work"
)

// A child is this program, started anew: it opens the file itself, is told numbers of sub-blocks through a pipe, four
// bytes each, and returns their pixels through another, each behind its length, eight bytes. When the first pipe ends
// it returns what it used (childUsage) and ends. A parent that is gone, whatever ended it, is the end of that pipe,
// too.

// share is the number of tiles in a request to a child.
const share = 8

// childUsage holds the resources that a child used.
type childUsage struct {
	CPU         float64
	Peak, Grown int64
}

// child is the parent's end of a child process.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	pipe   io.Closer // out's
	out    *bufio.Reader
	errors bytes.Buffer
}

func (s *scan) start(ctx context.Context, memory int64) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self)}
	c.cmd.Args = []string{tool, "run", "--serve", "--quiet", "--threads", "1", "--mem", fmt.Sprint(memory),
		"--http_max_attempts", strconv.Itoa(s.http.Attempts), "--http_timeout", s.http.Timeout.String(), "--http_min_rate", fmt.Sprint(s.http.MinRate)}
	for _, n := range s.http.Statuses {
		c.cmd.Args = append(c.cmd.Args, "--http_status_codes="+strconv.Itoa(n))
	}
	c.cmd.Args = append(c.cmd.Args, "--", s.path)
	c.cmd.Stderr = &c.errors
	c.cmd.WaitDelay = 5 * time.Second
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.pipe, c.out = out, bufio.NewReaderSize(out, 16)
	return c, c.cmd.Start()
}

// end closes the pipes, waits for the child and returns its error in its own words.
func (c *child) end(ctx context.Context) error {
	_, _ = c.in.Close(), c.pipe.Close() // one that writes ends, too
	err := c.cmd.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	text, _, _ := strings.Cut(strings.TrimSpace(c.errors.String()), "\n")
	text = strings.TrimPrefix(text, tool+": ")
	if text == "" {
		text = err.Error()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == cli.ExitBadInput {
		return cli.BadInputf("%s", text)
	}
	return fmt.Errorf("a process that reads tiles: %s", text)
}

// ask requests tiles from the child and reads their pixels.
func (c *child) ask(tiles []int, buf []byte, take func(i int, pixels []byte)) error {
	var request []byte
	for _, i := range tiles {
		request = binary.LittleEndian.AppendUint32(request, uint32(i))
	}
	if _, err := c.in.Write(request); err != nil {
		return err
	}
	for i := range tiles {
		n, err := c.length(int64(len(buf)))
		if err == nil {
			_, err = io.ReadFull(c.out, buf[:n])
		}
		if err != nil {
			return err
		}
		take(i, buf[:n])
	}
	return nil
}

func (c *child) length(most int64) (int64, error) {
	var b [8]byte
	if _, err := io.ReadFull(c.out, b[:]); err != nil {
		return 0, err
	}
	n := int64(binary.LittleEndian.Uint64(b[:]))
	if n < 0 || n > most {
		return 0, fmt.Errorf("announced %d bytes, at most %d are a tile", n, most)
	}
	return n, nil
}

// usage lets the child end and returns the resources that it used.
func (c *child) usage() (u childUsage, err error) {
	if err := c.in.Close(); err != nil {
		return u, err
	}
	return u, binary.Read(c.out, binary.LittleEndian, &u)
}

// processes reads tiles with n processes.
func (l *loader) processes(ctx context.Context, n int, tiles []int, take taker) (used benchkit.Sample, err error) {
	bufs, err := mem.Alloc(n * l.scan.largest)
	if err != nil {
		return used, err
	}
	defer mem.Free(bufs)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	list, failed := make([]*child, 0, n), make([]bool, n)
	for range n {
		c, err := l.scan.start(within, l.mem)
		if err != nil {
			return used, end(ctx, cancel, list, failed, err)
		}
		list = append(list, c)
	}
	var mu sync.Mutex
	err = work.Each(within, n, (len(tiles)+share-1)/share, func(worker, i int) error {
		from := i * share
		err := list[worker].ask(tiles[from:min(from+share, len(tiles))], bufs[worker*l.scan.largest:][:l.scan.largest], func(i int, pixels []byte) {
			if take != nil {
				mu.Lock()
				defer mu.Unlock()
				take(from+i, pixels)
			}
		})
		failed[worker] = err != nil
		return err
	})
	for i := 0; i < n && err == nil; i++ {
		var u childUsage
		u, err = list[i].usage()
		failed[i] = err != nil
		used.CPU, used.Peak, used.Grown = used.CPU+u.CPU, used.Peak+u.Peak, used.Grown+u.Grown
	}
	return used, end(ctx, cancel, list, failed, err)
}

// end waits for all children, and kills them after a failure. A child's own message says more than the broken
// pipe.
func end(ctx context.Context, kill func(), list []*child, failed []bool, err error) error {
	for i, c := range list {
		if failed[i] && ctx.Err() == nil {
			if said := c.end(ctx); said != nil {
				err = said
			}
		}
	}
	if err != nil {
		kill()
	}
	for _, c := range list {
		if c.cmd.ProcessState != nil {
			continue
		}
		if e := c.end(ctx); err == nil {
			err = e
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// serve runs in the child.
func serve(ctx context.Context, r *cli.Run) (err error) {
	begun := host.Resident()
	s := newScan(r, r.Arg("FILE"))
	f, closing, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closing()) }()
	var pixels []byte
	var number [4]byte
	in := bufio.NewReaderSize(r.Stdin, 4*share)
	for {
		if _, err := io.ReadFull(in, number[:]); err == io.EOF {
			return binary.Write(r.Stdout, binary.LittleEndian, childUsage{bench.CPUTime().Seconds(), host.PeakResident(), max(host.PeakResident()-begun, 0)})
		} else if err != nil {
			return err
		}
		i := int(binary.LittleEndian.Uint32(number[:]))
		if i >= f.Len() {
			return cli.BadInputf("%s: has %d sub-blocks, none with the number %d", s.path, f.Len(), i)
		}
		n := f.SubBlock(i).Bytes()
		if 8+n > cap(pixels) {
			pixels = make([]byte, 8+n)
		}
		pixels = pixels[:8+n]
		binary.LittleEndian.PutUint64(pixels, uint64(n))
		if err := f.ReadSubBlock(ctx, i, pixels[8:]); err != nil {
			return cli.BadInput(err)
		}
		if _, err := r.Stdout.Write(pixels); err != nil {
			return err
		}
	}
}
