// Package doctor is the command doctor, which says what the stages find on a machine.
package doctor

import (
	"context"
	"encoding/json"
	"os"

	"strata/pkg/cli"
)

// Command is doctor.
func Command() *cli.Command {
	return &cli.Command{
		Name:  "doctor",
		Usage: "what the stages find on this machine: GPUs, GPUDirect Storage, leases, and how reads come to a GPU",
		Description: "Lists the libraries that the GPU path opens at run time, the devices that the driver shows, what the machine\n" +
			"says of itself in /proc, /sys and /etc (kernel, container, limits, nvidia-fs, cuFile's configuration, RAID, PCI\n" +
			"Express, IOMMU, RDMA), and who holds or waits for a device's memory. Then it says how a read of PATH comes to a\n" +
			"GPU, the fact that decides it and what to do for a better way, and which GPU a stage would use. It opens each\n" +
			"device for a moment and changes nothing. A machine without a GPU is no failure: the exit code is 0. Marks are ok, !\n" +
			"(something to look at) and – (not there, or not known).\n\n" +
			"Where gdscheck and nvidia-smi are installed they are run, each for 2 s at most (--no-tools: not). With --root it\n" +
			"looks at a folder where the files of another machine were recorded, and asks no driver and no program; what\n" +
			"they printed there is read from outputs/gdscheck and outputs/nvidia-smi. --record makes such a folder: it holds what\n" +
			"doctor reads (names of mounts and servers too, of the environment only what concerns GPUs, containers and SLURM).\n\n" +
			"With --json the fields are: version; root; libraries (name, file, version, reason); gpus (index, name, uuid,\n" +
			"memory_bytes, free_bytes, compute_capability, driver_cuda, reason, gds: whether files come straight to it,\n" +
			"gds_reason: how, or why not; hardware: what NVIDIA's management library says of it, or null);\n" +
			"management (driver_version, driver_cuda, hidden_gpus, reason); environment (the variables that decide what is\n" +
			"found, if set); leases (dir, reason, requests: gpu, bytes, waiting, pid, host, user, tool, since); machine (kernel,\n" +
			"distribution, security, container, job, limits, driver, nvidia_fs, cufile, pci, iommu, rdma, listed, tools, path:\n" +
			"a fact in it is value and reason, and null is not known); checks (section, name, mark, text, next); reading (path,\n" +
			"backend: \"gds\", \"bounce\" or \"host\"; rule, because, next); uses (\"gpu\" or \"cpu\"); verdict.\n" +
			"A reason says why something cannot be used or is not known, and is empty if it can or is. docs/doctor.md has all of them.",
		Args: []cli.Arg{{Name: "PATH", Usage: "a file or folder that is to be read", Optional: true}},
		Flags: []cli.Flag{
			{Name: "json", Kind: cli.Bool, Usage: "write JSON"},
			{Name: "root", Kind: cli.String, Default: "/", Value: "DIR", Usage: "folder of a recorded machine"},
			{Name: "record", Kind: cli.String, Value: "DIR", Usage: "record what is read in a new folder, which --root looks at elsewhere"},
			{Name: "tools", Kind: cli.Bool, Default: "true", Usage: "run gdscheck and nvidia-smi where they are installed"},
		},
		Examples: []cli.Example{
			{Command: "doctor /data", Usage: "how reads of /data come to a GPU, and why not by a better way"},
			{Command: "doctor /data --record node7 && tar czf node7.tgz node7", Usage: "for somebody else to look at: doctor --root node7 /data"},
			{Command: "doctor --json | jq -r .uses", Usage: "gpu or cpu, for scripts"},
			{Command: "srun --gres=gpu:1 apptainer exec --nv strata.sif doctor", Usage: "what a job in a container would find"},
		},
		Run:      run,
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
		out, err := r.OutputFolder(dir)
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
	return s.print(r.Stdout)
}
