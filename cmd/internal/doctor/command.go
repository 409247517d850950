// Package doctor is the command doctor, which says what the stages find on a machine.
package doctor

import (
	"context"
	"encoding/json"

	"strata/pkg/cli"
)

// Command is doctor.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "what the stages find on this machine: GPU libraries, devices, leases",
		Description: "Lists the libraries that the GPU path opens at run time, the devices that the driver shows, who holds or\n" +
			"waits for their memory, and says what a stage would use and why. It opens each device for a moment and\n" +
			"changes nothing. A machine without a GPU is no failure: the exit code is 0.\n\n" +
			"With --json the fields are: version; libraries (name, file, version, reason); gpus (index, name, uuid,\n" +
			"memory_bytes, free_bytes, compute_capability, driver_cuda, reason, gds: whether files come straight to it,\n" +
			"gds_reason: how, or why not; hardware: what NVIDIA's management library says of it, or null);\n" +
			"management (driver_version, driver_cuda, hidden_gpus, reason); environment (the variables that decide what is found, if set); leases (dir,\n" +
			"reason, requests: gpu, bytes, waiting, pid, host, user, tool, since); uses (\"gpu\" or \"cpu\"); verdict.\n" +
			"A reason says why something cannot be used, and is empty if it can.",
		Flags: []cli.Flag{
			{Name: "json", Kind: cli.Bool, Usage: "write JSON"},
		},
		Examples: []cli.Example{
			{Command: "doctor", Usage: "for people"},
			{Command: "doctor --json | jq -r .uses", Usage: "gpu or cpu, for scripts"},
			{Command: "srun --gres=gpu:1 apptainer exec --nv strata.sif doctor", Usage: "what a job in a container would find"},
		},
		Run:      run,
		Commands: []*cli.Command{gpusCommand()},
	}
}

func run(ctx context.Context, r *cli.Run) error {
	s := examine()
	if r.Bool("json") {
		e := json.NewEncoder(r.Stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	return s.print(r.Stdout)
}
