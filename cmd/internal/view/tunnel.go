package view

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"strata/pkg/cli"
)

// tunnel returns the command that makes the page reachable from the reader's machine if this one runs in a SLURM
// job or is used over SSH, otherwise "".
func tunnel(port int, env func(string) string) string {
	forward := fmt.Sprintf("ssh -N -L %d:127.0.0.1:%d", port, port)
	user := env("USER")
	if user != "" {
		user += "@"
	}
	if node := env("SLURMD_NODENAME"); node != "" && env("SLURM_JOB_ID") != "" {
		if login := env("SLURM_SUBMIT_HOST"); login != "" && login != node {
			forward += " -J " + user + login
		}
		return forward + " " + user + node
	}
	c := strings.Fields(env("SSH_CONNECTION")) // the client's address and port, this machine's address and port
	if len(c) != 4 {
		return ""
	}
	if c[3] != "22" {
		forward += " -p " + c[3]
	}
	return forward + " " + user + c[2]
}

// besides is the memory that a job needs besides the buffers.
const besides = 512 << 20

// submit runs the same command line, without --slurm, in a job, and prints its output here.
func submit(ctx context.Context, r *cli.Run) error {
	srun, err := exec.LookPath("srun")
	if err != nil {
		return errors.New("--slurm: srun is not on the PATH: run view on a login node of a SLURM cluster, outside of a container")
	}
	self, err := cli.Self() // not os.Executable: the name says which program it is
	if err != nil {
		return err
	}
	args := []string{"--job-name=view", "--unbuffered", "--ntasks=1", "--cpus-per-task=" + strconv.Itoa(max(2, min(r.Options.Threads, 8))),
		fmt.Sprintf("--mem=%dM", (r.Size("mem")+besides)>>20)}
	args = append(args, self...)
	for i, a := range os.Args[1:] {
		if a == "--" {
			args = append(args, os.Args[1+i:]...)
			break
		}
		if strings.TrimLeft(a, "-") != "slurm" || !strings.HasPrefix(a, "-") {
			args = append(args, a)
		}
	}
	cmd := exec.CommandContext(ctx, srun, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Stdin, r.Stdout, r.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--slurm: the job failed: %w", err)
	}
	return nil
}
