package sysinfo

import (
	"path"
	"path/filepath"
)

// Path describes where a file or folder lies.
type Path struct {
	Name    string     `json:"name"`   // absolute, without symbolic links
	Reason  string     `json:"reason"` // why no more is known
	Mount   Mount      `json:"mount"`
	Support Support    `json:"support"`
	Direct  Fact[bool] `json:"direct"` // whether files can be read past the page cache (O_DIRECT)
	Block   *Block     `json:"block"`  // null for file systems without a device
	NoBlock string     `json:"no_block"`
}

func (r Root) path(name string) *Path {
	p := &Path{Name: name, Mount: Mount{Options: []string{}}}
	if r.Live() {
		if abs, err := filepath.Abs(name); err == nil {
			name = abs
		}
	}
	name = path.Clean("/" + name)
	p.Name = name
	// What does not exist yet will lie where the nearest folder above it does.
	for at := name; ; at = path.Dir(at) {
		real, err := r.resolve(at)
		if err == nil {
			p.Name = path.Join(real, name[len(at):])
			if at == "/" {
				p.Name = name
			}
			break
		}
		if at == "/" {
			break
		}
	}
	if r.Live() && !r.exists(p.Name) {
		p.Reason = "there is no " + name
		p.Direct = unknown[bool]("%s", p.Reason)
		return p
	}
	mounts, err := r.mounts()
	if err != nil {
		p.Reason = why("/proc/self/mountinfo", err)
		p.Direct = unknown[bool]("%s", p.Reason)
		return p
	}
	m := mountOf(mounts, p.Name)
	if m == nil {
		p.Reason = "/proc/self/mountinfo has no mount for " + p.Name
		p.Direct = unknown[bool]("%s", p.Reason)
		return p
	}
	p.Mount, p.Support = *m, supportOf(*m)
	p.Block, p.NoBlock = r.blockOf(*m)
	p.Direct = hasDirect(m.Type)
	if r.Live() {
		if tried := tryDirect(p.Name); tried.Known() {
			p.Direct = tried
		}
	}
	return p
}
