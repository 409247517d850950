package cudaemu

// Clock is what a run took on the virtual clock, as the double writes it to the file that CUEMU_CLOCK names when
// the device's context is released.
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
	Work    map[string]ClockSum `json:"work"`    // by what it is: up, down, kernels, zstd_decode, jit, pin …
	Kernels map[string]ClockSum `json:"kernels"` // by name
}

// ClockSum is all work of a kind.
type ClockSum struct {
	Calls   int64   `json:"calls"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}
