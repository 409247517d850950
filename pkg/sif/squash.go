package sif

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrTool is wrapped by errors about a missing program.
var ErrTool = errors.New("a program is missing")

// Compressions lists the compressions of the root. Every cluster's kernel reads gzip; Zstandard needs Linux
// 4.14 or later, and a mksquashfs that supports it.
var Compressions = []string{"gzip", "zstd"}

// findTool returns the path of mksquashfs.
func findTool() (string, error) {
	tool, err := exec.LookPath("mksquashfs")
	if err != nil {
		return "", fmt.Errorf("%w: mksquashfs: install squashfs-tools (Debian and Ubuntu: apt-get install squashfs-tools)", ErrTool)
	}
	return tool, nil
}

// blockSize is the block size of the root. A program that starts in the image unpacks the blocks of its file
// that it needs: with mksquashfs's default of 128 KiB the image's largest program takes about 50 ms longer,
// and with 16 KiB the image is larger without a gain.
const blockSize = 32 << 10

// squash makes a squashfs of a folder. Owners are root, times are forced, and
// mksquashfs puts names in order, so that the same tree gives the same bytes.
func squash(ctx context.Context, tool, dir, out, compression string, threads int, at time.Time) error {
	seconds := strconv.FormatInt(at.Unix(), 10)
	args := []string{dir, out, "-noappend", "-all-root", "-no-xattrs", "-comp", compression, "-b", strconv.Itoa(blockSize),
		"-all-time", seconds, "-mkfs-time", seconds, "-no-progress", "-quiet"}
	if threads > 0 {
		args = append(args, "-processors", strconv.Itoa(threads))
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	// With both, the variable and the times, mksquashfs refuses to work.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SOURCE_DATE_EPOCH=") })
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("mksquashfs: %w: %s", err, lastLines(said.String(), 3))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}
