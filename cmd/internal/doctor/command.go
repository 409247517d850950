// Package doctor implements the command doctor, which reports what the stages can use on a machine.
package doctor

import (
	"context"
	"encoding/json"
	"os"

	"strata/pkg/cli"
)

// Command returns the command doctor.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "report what the stages find on this machine: GPUs, drivers, GPUDirect Storage, leases",
		Description: "Lists the libraries that the GPU path opens, the GPUs that the driver shows, the facts that /proc, /sys and /etc\n" +
			"give about the machine (kernel, container, limits, nvidia-fs, cuFile's configuration, RAID, PCI Express, IOMMU,\n" +
			"RDMA), and the processes that hold or wait for GPU memory. Then reports how a read of PATH reaches a GPU, which\n" +
			"fact decides that, what would make it faster, and which GPU a stage would use.\n\n" +
			"Changes nothing, but opens each GPU for a moment. The exit code is 0 even without a GPU. Marks: ok; ! look at\n" +
			"this; – absent or unknown.\n\n" +
			"Runs gdscheck and nvidia-smi where they are installed, each for at most 2 s (not with --no-tools). --record\n" +
			"copies what doctor reads to a folder; --root examines such a folder on another machine, without asking a driver\n" +
			"or a program. The folder contains names of mounts and servers, and of the environment only variables that\n" +
			"concern GPUs, containers and SLURM.\n\n" +
			"--json writes the fields version; root; libraries (name, file, version, reason); gpus (index, name, uuid,\n" +
			"memory_bytes, free_bytes, compute_capability, driver_cuda, reason, gds: whether files reach it straight,\n" +
			"gds_reason: how, or why not; hardware: the report of NVIDIA's management library, or null); management\n" +
			"(driver_version, driver_cuda, hidden_gpus, reason); environment (the variables that decide what is found, if\n" +
			"set); leases (dir, reason, requests: gpu, bytes, waiting, pid, host, user, tool, since); machine (kernel,\n" +
			"distribution, security, container, job, limits, driver, nvidia_fs, cufile, pci, iommu, rdma, listed, tools,\n" +
			"path: each fact has a value and a reason; null is unknown); checks (section, name, mark, text, next); reading\n" +
			"(path, backend: \"gds\", \"bounce\" or \"host\"; rule, because, next); uses (\"gpu\" or \"cpu\"); verdict. A reason says\n" +
			"why something is unusable or unknown; otherwise it is empty. docs/doctor.md describes all fields.",
		Args: []cli.Arg{{Name: "PATH", Usage: "file or folder whose reads are examined", Optional: true}},
		Flags: []cli.Flag{
			{Name: "json", Kind: cli.Bool, Usage: "print JSON instead of text"},
			{Name: "root", Kind: cli.String, Default: "/", Value: "DIR", Usage: "examine the machine recorded in this folder by --record, instead of this one"},
			{Name: "record", Kind: cli.String, Value: "DIR", Usage: "copy everything that is read to this new folder, for --root on another machine"},
			{Name: "tools", Kind: cli.Bool, Default: "true", Usage: "run gdscheck and nvidia-smi if they are installed"},
		},
		Examples: []cli.Example{
			{Command: "doctor /data", Usage: "how reads of /data reach a GPU, and what prevents a faster way"},
			{Command: "doctor /data --record node7 && tar czf node7.tgz node7", Usage: "for somebody else to examine, by doctor --root node7 /data"},
			{Command: "doctor --json | jq -r .uses", Usage: "gpu or cpu, for scripts"},
			{Command: "srun --gres=gpu:1 apptainer exec --nv strata.sif doctor", Usage: "what a job in a container finds"},
		},
		Run:      cli.Do(run),
		Commands: []*cli.Command{gpusCommand(), benchCommand()},
	}
}

func run(ctx context.Context, r *cli.Run) error {
	t := target{root: r.String("root"), path: r.Arg("PATH"), tools: r.Bool("tools")}
	if t.path != "" && t.root == "/" {
		if _, err := os.Stat(t.path); err != nil {
			return cli.BadInput(err)
		}
	}
	if dir := r.String("record"); dir != "" {
		out, err := r.OutputFolder(dir, nil)
		if err != nil {
			return err
		}
		t.record = out.Work()
	}
	s, err := examine(ctx, t)
	if err != nil {
		return err
	}
	if r.Bool("json") {
		e := json.NewEncoder(r.Stdout)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(s)
	}
	return s.print(r.Stdout, r.Options.Verbose)
}
