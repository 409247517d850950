package sysinfo

import (
	"os"
	"slices"
	"strings"
)

// Container tells whether the process runs in a container.
type Container struct {
	Kind string `json:"kind"` // "apptainer", "docker", "podman", "kubernetes", "lxc", "systemd-nspawn", "container"; "" if in none
	By   string `json:"by"`   // what shows it
	// Udev: cuFile reads in /run/udev on which devices files lie.
	Udev Fact[int] `json:"udev"` // devices that /run/udev/data describes
}

// Job is the SLURM job that the process is part of.
type Job struct {
	ID        string `json:"id"`
	Partition string `json:"partition"`
	GPUs      string `json:"gpus"` // as SLURM numbers them; "" if it was given none
}

// environ returns the process's environment, or the recorded one of a recorded machine.
func (r Root) environ() map[string]string {
	env := variablesOf(os.Environ())
	if !r.Live() {
		env = variables(r, "/proc/self/environ")
	}
	r.recordEnviron(env)
	return env
}

// variables returns the environment of a process, or nothing if it belongs to another user.
func variables(r Root, name string) map[string]string {
	r.keep = nil // others' variables are not kept
	b, err := r.read(name)
	if err != nil {
		return map[string]string{}
	}
	return variablesOf(strings.Split(string(b), "\x00"))
}

func variablesOf(list []string) map[string]string {
	m := map[string]string{}
	for _, v := range list {
		if name, value, ok := strings.Cut(v, "="); ok {
			m[name] = value
		}
	}
	return m
}

func (r Root) container(env map[string]string) Container {
	c := Container{}
	c.Kind, c.By = r.containerKind(env)
	if names, err := r.entries("/run/udev/data"); err != nil {
		c.Udev = Fact[int]{Reason: why("/run/udev/data", err)}
	} else {
		c.Udev = known(len(names))
	}
	return c
}

// containerKind checks the most reliable signs first: the files and variables that a container runtime itself leaves.
func (r Root) containerKind(env map[string]string) (kind, by string) {
	for _, v := range []string{"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"} {
		if env[v] != "" {
			return "apptainer", "environment variable " + v
		}
	}
	if env["KUBERNETES_SERVICE_HOST"] != "" {
		return "kubernetes", "environment variable KUBERNETES_SERVICE_HOST"
	}
	for _, sign := range [][2]string{
		{"/.singularity.d", "apptainer"},
		{"/run/secrets/kubernetes.io", "kubernetes"},
		{"/var/run/secrets/kubernetes.io", "kubernetes"},
		{"/.dockerenv", "docker"},
		{"/run/.containerenv", "podman"},
	} {
		if r.exists(sign[0]) {
			return sign[1], sign[0]
		}
	}
	if b, err := r.read("/run/systemd/container"); err == nil {
		if word := strings.TrimSpace(string(b)); word != "" && word != "wsl" {
			return word, "/run/systemd/container"
		}
	}
	// Programs that start containers set this variable for the first process; people use its name for other things.
	for _, sign := range []struct {
		env map[string]string
		by  string
	}{{env, "environment variable container"}, {variables(r, "/proc/1/environ"), "environment variable container of process 1"}} {
		if v := sign.env["container"]; slices.Contains([]string{"apptainer", "docker", "lxc", "lxc-libvirt", "oci", "podman", "systemd-nspawn"}, v) {
			return v, sign.by
		}
	}
	for _, file := range []string{"/proc/1/cgroup", "/proc/self/cgroup"} {
		b, err := r.read(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			for _, sign := range [][2]string{{"/kubepods", "kubernetes"}, {"/docker", "docker"}, {"/libpod", "podman"}, {"/lxc", "lxc"}} {
				if parts := strings.SplitN(line, ":", 3); len(parts) == 3 && strings.Contains(parts[2], sign[0]) {
					return sign[1], file
				}
			}
		}
	}
	if mounts, err := r.mounts(); err == nil {
		if m := mountOf(mounts, "/"); m != nil && m.Type == "overlay" {
			return "container", "the root folder is an overlay"
		}
	}
	return "", ""
}

func job(env map[string]string) *Job {
	if env["SLURM_JOB_ID"] == "" {
		return nil
	}
	j := &Job{ID: env["SLURM_JOB_ID"], Partition: env["SLURM_JOB_PARTITION"]}
	for _, v := range []string{"SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "GPU_DEVICE_ORDINAL"} {
		if j.GPUs == "" {
			j.GPUs = env[v]
		}
	}
	return j
}
