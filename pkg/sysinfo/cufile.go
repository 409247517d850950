package sysinfo

import (
	"encoding/json"
	"path"
	"strings"
)

// cuFileProperties holds settings of environment variables and, after these, of the section "properties" of the file;
// null means the default.
type cuFileProperties struct {
	AllowCompat  *bool    `json:"allow_compat_mode"`
	ForceCompat  *bool    `json:"force_compat_mode"`
	P2PDMA       *bool    `json:"use_pci_p2pdma"`
	PollMode     *bool    `json:"use_poll_mode"`
	MaxDirectKiB *int64   `json:"max_direct_io_size_kb"`
	RDMA         []string `json:"rdma_dev_addr_list"`
	PeerType     string   `json:"rdma_peer_type"` // "dmabuf": RDMA without nvidia_peermem
}

// CuFile holds cuFile's configuration.
type CuFile struct {
	File   string `json:"file"`   // the file in force; "" if there is none and the built-in defaults apply
	From   string `json:"from"`   // what names it: the variable CUFILE_ENV_PATH_JSON, or "" for a usual place
	Reason string `json:"reason"` // why the file cannot be used, with its line
	// Library is the path of the library in one of the places where packages install it, or "".
	Library string `json:"library"`

	cuFileProperties
	// BlockP2PDMA holds use_pci_p2pdma by kind of drive ("nvme", "nvmeof", "raid"), since GDS 1.16.
	BlockP2PDMA     map[string]bool `json:"block_use_pci_p2pdma"`
	DenyMounts      []string        `json:"deny_mounts"`
	DenyFileSystems []string        `json:"deny_filesystems"`
	DenyDevices     []string        `json:"deny_devices"`
}

// On reports whether a setting that is off by default is on.
func On(setting *bool) bool { return setting != nil && *setting }

// CuFile returns cuFile's configuration.
func (r Root) CuFile() CuFile { return r.cuFile(r.environ()) }

func (r Root) cuFile(env map[string]string) CuFile {
	c := CuFile{BlockP2PDMA: map[string]bool{}}
	c.Library = r.cuFileLibrary(env)
	if name := env["CUFILE_ENV_PATH_JSON"]; name != "" {
		c.File, c.From = name, "CUFILE_ENV_PATH_JSON"
	} else {
		c.File = r.first("/etc/cufile.json", "/usr/local/cuda/gds/cufile.json")
	}
	if c.File != "" {
		b, err := r.read(c.File)
		if err == nil {
			err = c.parse(b)
			if err != nil {
				c.Reason = c.File + ": " + err.Error()
			}
		} else {
			c.Reason = why(c.File, err)
		}
	}
	for name, to := range map[string]**bool{"CUFILE_ALLOW_COMPAT_MODE": &c.AllowCompat, "CUFILE_FORCE_COMPAT_MODE": &c.ForceCompat, "CUFILE_USE_PCIP2PDMA": &c.P2PDMA} {
		switch strings.ToLower(env[name]) {
		case "true", "1":
			v := true
			*to = &v
		case "false", "0":
			v := false
			*to = &v
		}
	}
	for _, list := range []*[]string{&c.RDMA, &c.DenyMounts, &c.DenyFileSystems, &c.DenyDevices} {
		if *list == nil {
			*list = []string{}
		}
	}
	return c
}

// parse reads a cufile.json. Like cuFile, it ignores unknown settings.
func (c *CuFile) parse(text []byte) error {
	c.BlockP2PDMA = map[string]bool{}
	var f struct {
		Properties cuFileProperties `json:"properties"`
		Block      map[string]struct {
			P2PDMA *bool `json:"use_pci_p2pdma"`
		} `json:"block"`
		DenyList map[string]json.RawMessage `json:"denylist"`
		Old      map[string]json.RawMessage `json:"blacklist"` // until GDS 1.0
	}
	if err := decodeCommented(text, &f); err != nil {
		return err
	}
	c.cuFileProperties = f.Properties
	for kind, b := range f.Block {
		if b.P2PDMA != nil {
			c.BlockP2PDMA[kind] = *b.P2PDMA
		}
	}
	for _, list := range []map[string]json.RawMessage{f.DenyList, f.Old} {
		for name, to := range map[string]*[]string{"mounts": &c.DenyMounts, "filesystems": &c.DenyFileSystems, "devices": &c.DenyDevices} {
			var words []string
			if json.Unmarshal(list[name], &words) == nil {
				*to = append(*to, words...)
			}
		}
	}
	return nil
}

// cuFileLibrary looks where CUDA's packages and distributions put the library, and in LD_LIBRARY_PATH.
func (r Root) cuFileLibrary(env map[string]string) string {
	dirs := strings.Split(env["LD_LIBRARY_PATH"], ":")
	dirs = append(dirs, "/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib", "/usr/local/cuda/targets/sbsa-linux/lib",
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
	for _, d := range dirs {
		if name := path.Join(d, "libcufile.so.0"); path.IsAbs(name) && r.exists(name) {
			return name
		}
	}
	return ""
}
