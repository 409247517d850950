package settings_test

import (
	"fmt"

	"strata/pkg/settings"
)

// Settings come from the environment, ours before KvikIO's, and can be changed before a
// pool is made.
func ExampleFromEnv() {
	variables := map[string]string{"KVIKIO_TASK_SIZE": "8MiB", "KVIKIO_NTHREADS": "16", "STRATA_COMPAT_MODE": "off"}
	s, err := settings.FromEnv(func(name string) (string, bool) { v, set := variables[name]; return v, set })
	if err != nil {
		fmt.Println(err)
		return
	}
	s.DirectRead = true
	fmt.Println(s.Compat, s.Threads, s.TaskSize, s.DirectRead)
	// Output:
	// off 16 8388608 true
}
