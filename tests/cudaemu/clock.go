package cudaemu

// Clock is the virtual duration of a run, as the double writes it to the file named by CUEMU_CLOCK when the
// device's context is released.
type Clock struct {
	GPU     string  `json:"gpu"`
	Seconds float64 `json:"seconds"`
	Host    struct {
		Worked  float64 `json:"worked"` // processor time of the process while no thread was in a call
		Waited  float64 `json:"waited"`
		Calls   int64   `json:"calls"`
		Streams int64   `json:"streams"`
	} `json:"host"`
	Busy struct {
		Up      float64 `json:"up"`
		Down    float64 `json:"down"`
		Kernels float64 `json:"kernels"`
	} `json:"busy"`
	Work    map[string]ClockSum `json:"work"`    // by kind: up, down, kernels, zstd_decode, jit, pin …
	Kernels map[string]ClockSum `json:"kernels"` // by name
}

// ClockSum sums up all work of a kind.
type ClockSum struct {
	Calls   int64   `json:"calls"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}
