package view

import (
	"encoding/json"
	"net/url"
)

// neuroglancer is the origin of a page that shows Zarr from any address.
const neuroglancer = "https://neuroglancer-demo.appspot.com"

// inNeuroglancer returns the address that shows an image in Neuroglancer. The state lies in the fragment, which
// browsers do not send.
func inNeuroglancer(image, name string) string {
	state, err := json.Marshal(map[string]any{"layers": []map[string]string{{"type": "image", "source": "zarr://" + image, "name": name}}})
	if err != nil {
		panic(err) // of strings
	}
	return neuroglancer + "/#!" + url.PathEscape(string(state))
}
