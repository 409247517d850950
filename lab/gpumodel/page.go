package main

import (
	"fmt"
	"strings"
)

// write returns the regions of the page, and by how much the worst choice is worse than the better machine.
func write(all []measured, rows []row) (texts map[string]string, worst float64) {
	var b strings.Builder
	gpu := ""
	var size int64
	for _, r := range rows {
		if r.gpu != gpu || r.size != size {
			gpu, size = r.gpu, r.size
			fmt.Fprintf(&b, "\n### %s, %d GB\n\n| | %s |\n|---|%s\n", gpu, size/1e9, strings.Join(headings(), " | "), strings.Repeat("--:|", 3*len(cores)))
		}
		fmt.Fprintf(&b, "| %s, %s |", r.of.Stage, r.of.Level)
		for _, c := range r.cells {
			chosen := "CPU"
			if c.chosen.GPU {
				chosen = strings.TrimSpace("GPU " + how(r.of.Codec, c.chosen.DeviceDecodes, c.chosen.DeviceEncodes))
			}
			fmt.Fprintf(&b, " %.1f %s | %.1f %s %s | %s |", c.host, c.hostLimit, c.gpu, c.gpuLimit, how(r.of.Codec, c.deviceDecodes, c.codes), chosen)
			worst = max(worst, c.worse)
		}
		b.WriteString("\n")
	}
	var counts strings.Builder
	counts.WriteString("| | host | with GPU | reads | up | down | kernels move | decoded | streams | encoded | streams | kernels | clock |\n|---|" + strings.Repeat("--:|", 12) + "\n")
	for _, m := range all {
		fmt.Fprintf(&counts, "| %s, %s | %.2f | %.2f | %.2f | %.3f | %.3f | %.1f | %.2f | %.0f | %.2f | %.0f | %d | %.2f |\n", m.Stage, m.Level, m.Host, m.Beside, m.Reads, m.Up, m.Down,
			m.Traffic, m.Decoded, m.DecodeStreams*region, m.Encoded, m.EncodeStreams*region, m.Kernels, m.Clock)
	}
	var chosen, total int
	for _, r := range rows {
		for _, c := range r.cells {
			total++
			if c.chosen.GPU {
				chosen++
			}
		}
	}
	said := fmt.Sprintf("The GPU is chosen in %d of %d cells. The worst choice takes %.0f %% longer than the better machine would; up to 10 %% is accepted.\n", chosen, total, 100*(worst-1))
	return map[string]string{"choices": said, "seconds": b.String() + "\n", "counts": counts.String()}, worst
}

func headings() (out []string) {
	for _, n := range cores {
		out = append(out, fmt.Sprintf("%d cores", n), "GPU", "chosen")
	}
	return out
}
