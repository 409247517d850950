package sif

import (
	"encoding/json"
	"io/fs"
	"strings"
)

// MountPoints lists the folders that every image has, so that runtimes can mount something there or users can bind
// their data.
var MountPoints = []string{"/data", "/dev", "/etc", "/home", "/proc", "/root", "/scratch", "/sys", "/tmp", "/var/tmp"}

// Files of /.singularity.d, where runtimes look for them.
const (
	metaDir         = "/.singularity.d"
	environmentFile = metaDir + "/env/90-environment.sh"
	baseFile        = metaDir + "/env/99-base.sh"
	labelsFile      = metaDir + "/labels.json"
	runscriptFile   = metaDir + "/runscript"
	startscriptFile = metaDir + "/startscript"
	testFile        = metaDir + "/test"
	helpFile        = metaDir + "/runscript.help"
	definitionFile  = metaDir + "/Singularity"
	libsDir         = metaDir + "/libs"
)

// skeleton creates the mount points, and the files that runtimes expect in /etc.
func skeleton(r *Root) error {
	for _, dir := range MountPoints {
		perm := fs.FileMode(0o755)
		if strings.HasSuffix(dir, "tmp") {
			perm = 0o777 | fs.ModeSticky
		}
		if err := r.Mkdir(dir, perm); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"/etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"/etc/group":  "root:x:0:\nnogroup:x:65534:\n",
		// Runtimes mount the machine's own over them.
		"/etc/hosts":       "127.0.0.1\tlocalhost\n::1\tlocalhost\n",
		"/etc/resolv.conf": "",
	} {
		if r.Exists(name) {
			continue
		}
		if err := r.WriteText(name, 0o644, text); err != nil {
			return err
		}
	}
	return nil
}

// describe makes /.singularity.d: scripts, environment, labels, definition.
func describe(r *Root, d *Definition, labels map[string]string) error {
	for _, dir := range []string{metaDir, metaDir + "/actions", metaDir + "/env", libsDir} {
		if err := r.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	text, err := json.MarshalIndent(labels, "", "  ")
	if err != nil {
		return err
	}
	const load = "#!/bin/sh\nfor file in " + metaDir + "/env/*.sh; do\n    . \"$file\"\ndone\n"
	type file struct {
		name string
		perm fs.FileMode
		text string
	}
	files := []file{
		{environmentFile, 0o755, "#!/bin/sh\n" + d.Script("environment")},
		{baseFile, 0o755, "#!/bin/sh\nexport LD_LIBRARY_PATH=\"${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}" + libsDir + "\"\n"},
		{labelsFile, 0o644, string(text) + "\n"},
		{definitionFile, 0o644, d.Text},
		{metaDir + "/actions/exec", 0o755, load + "exec \"$@\"\n"},
		{metaDir + "/actions/run", 0o755, load + "[ -x " + runscriptFile + " ] || exec /bin/sh \"$@\"\nexec " + runscriptFile + " \"$@\"\n"},
		{metaDir + "/actions/shell", 0o755, load + "[ -x /bin/bash ] && exec /bin/bash --norc \"$@\"\nexec /bin/sh \"$@\"\n"},
		{metaDir + "/actions/test", 0o755, load + "[ -x " + testFile + " ] || exit 0\nexec " + testFile + " \"$@\"\n"},
	}
	for section, name := range map[string]string{"runscript": runscriptFile, "startscript": startscriptFile, "test": testFile} {
		if script := d.Script(section); script != "" {
			if !strings.HasPrefix(script, "#!") {
				script = "#!/bin/sh\n" + script
			}
			files = append(files, file{name, 0o755, script})
		}
	}
	if help := d.Script("help"); help != "" {
		files = append(files, file{helpFile, 0o644, help})
	}
	for _, f := range files {
		if err := r.WriteText(f.name, f.perm, f.text); err != nil {
			return err
		}
	}
	for link, target := range map[string]string{
		"/.exec": ".singularity.d/actions/exec", "/.run": ".singularity.d/actions/run",
		"/.shell": ".singularity.d/actions/shell", "/.test": ".singularity.d/actions/test",
		"/environment": ".singularity.d/env/90-environment.sh", "/singularity": ".singularity.d/runscript",
	} {
		if err := r.Symlink(target, link); err != nil {
			return err
		}
	}
	return nil
}
