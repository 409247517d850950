package sif

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// metadataName is the descriptor that inspect reads: without it, Apptainer
// starts the image to find out.
const metadataName = "inspect-metadata.json"

// Metadata holds the metadata of an image.
type Metadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Definition  string            `json:"deffile,omitempty"`
	Runscript   string            `json:"runscript,omitempty"`
	Startscript string            `json:"startscript,omitempty"`
	Test        string            `json:"test,omitempty"`
	Help        string            `json:"helpfile,omitempty"`
	Environment map[string]string `json:"environment,omitempty"` // scripts by their paths
}

// inspected is the JSON around it.
type inspected struct {
	Type string `json:"type"`
	Data struct {
		Attributes Metadata `json:"attributes"`
	} `json:"data"`
}

// JSON returns the document that Apptainer's inspect --json prints.
func (m *Metadata) JSON() ([]byte, error) {
	d := inspected{Type: "container"}
	d.Data.Attributes = *m
	return json.Marshal(d)
}

func parseMetadata(text []byte) (*Metadata, error) {
	var d inspected
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", metadataName, err)
	}
	return &d.Data.Attributes, nil
}

// readMetadata gathers the metadata from the files of a root.
func readMetadata(read func(name string) ([]byte, error)) (*Metadata, error) {
	m := &Metadata{}
	var labels, environment string
	for _, f := range []struct {
		name string
		to   *string
	}{
		{labelsFile, &labels}, {environmentFile, &environment}, {runscriptFile, &m.Runscript}, {startscriptFile, &m.Startscript},
		{testFile, &m.Test}, {helpFile, &m.Help}, {definitionFile, &m.Definition},
	} {
		text, err := read(f.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		*f.to = string(text)
	}
	if environment != "" {
		m.Environment = map[string]string{environmentFile: environment}
	}
	if labels != "" {
		if err := json.Unmarshal([]byte(labels), &m.Labels); err != nil {
			return nil, fmt.Errorf("%s: %w", labelsFile, err)
		}
	}
	return m, nil
}

func inspectJSON(root *Root, d *Definition) ([]byte, error) {
	m, err := readMetadata(root.Read)
	if err != nil {
		return nil, err
	}
	m.Definition = d.Text
	return m.JSON()
}
