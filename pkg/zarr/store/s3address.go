package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"gopkg.in/ini.v1"

	"strata/pkg/address"
)

// place locates the objects of a bucket and holds the settings to reach them.
type place struct {
	bucket, prefix string
	endpoint       string // "" is Amazon's
	region         string // "" is not known
	credentials    func(client *http.Client, region string) aws.CredentialsProvider
}

// parseS3 reads an address s3://bucket/prefix?query, the environment and the
// profile.
func parseS3(s string) (*place, error) {
	a := address.Address(s)
	u, err := a.Parse()
	if err != nil {
		return nil, err
	}
	shown := "s3://" + u.Host + u.Path
	if u.User != nil {
		return nil, fmt.Errorf("%s: no credentials in an address: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile", a)
	}
	if err := checkBucket(u.Host); err != nil {
		return nil, fmt.Errorf("%s: %q is not the name of a bucket: want s3://bucket/path: %w", shown, u.Host, err)
	}
	p := &place{bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	if p.prefix != "" {
		if err := checkKey(p.prefix); err != nil {
			return nil, fmt.Errorf("%s: %w", shown, err)
		}
		p.prefix += "/"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("%s: its query does not parse: want name=value&name=value, other characters than letters and digits percent-encoded", a)
	}
	anonymous := false
	for name, values := range query {
		value := values[len(values)-1]
		switch name {
		case "endpoint", "region", "profile":
		case "anonymous":
			if anonymous, err = strconv.ParseBool(cmp.Or(value, "true")); err != nil {
				return nil, fmt.Errorf("%s: anonymous: want true or false", shown)
			}
		default:
			if value == "" {
				name = "without a value" // it may be one
			}
			return nil, fmt.Errorf("%s: unknown parameter %s: want endpoint, region, profile or anonymous", shown, name)
		}
	}
	named := cmp.Or(query.Get("profile"), os.Getenv("AWS_PROFILE"))
	profile, err := readProfile(cmp.Or(named, "default"), named != "")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown, err)
	}
	p.region = cmp.Or(query.Get("region"), os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), profile["region"])
	if p.region != "" && !validRegion(p.region) {
		return nil, fmt.Errorf("%s: %q is not the name of a region, such as eu-west-2", shown, p.region)
	}
	p.endpoint = cmp.Or(query.Get("endpoint"), os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"), profile["endpoint_url"])
	if p.endpoint != "" {
		if p.endpoint, err = checkEndpoint(p.endpoint); err != nil {
			return nil, fmt.Errorf("%s: %w", shown, err)
		}
	}
	p.credentials = findCredentials(anonymous, query.Get("profile") != "", profile)
	return p, nil
}

// checkEndpoint returns a server's address, scheme://host[:port]; the default scheme is https.
func checkEndpoint(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		return "", fmt.Errorf("endpoint %q: want http://host:port or https://host", address.Address(text))
	}
	return u.Scheme + "://" + u.Host, nil
}

// readProfile returns the settings of a profile in the files of Amazon's tools. A missing profile is an error
// only if the user named it.
func readProfile(name string, asked bool) (map[string]string, error) {
	values := map[string]string{}
	home, _ := os.UserHomeDir() // without one, the files have to be named
	found := false
	for _, f := range []struct{ variable, file, section string }{
		{"AWS_CONFIG_FILE", "config", "profile " + name},
		{"AWS_SHARED_CREDENTIALS_FILE", "credentials", name},
	} {
		path := os.Getenv(f.variable)
		if path == "" && home == "" {
			continue
		}
		path = cmp.Or(path, filepath.Join(home, ".aws", f.file))
		if _, err := os.Stat(path); err != nil && os.Getenv(f.variable) == "" {
			continue
		}
		file, err := ini.LoadSources(ini.LoadOptions{SkipUnrecognizableLines: true, AllowNestedValues: true}, path)
		var system *fs.PathError
		switch {
		case errors.As(err, &system):
			return nil, fmt.Errorf("%s: %w", path, system.Err)
		case err != nil: // its text quotes the line, which may be the one with the secret
			return nil, fmt.Errorf("%s: does not parse: want lines of name = value below [sections]", path)
		}
		section := f.section
		if name == "default" && !file.HasSection(section) {
			section = name
		}
		if !file.HasSection(section) {
			continue
		}
		found = true
		for _, k := range file.Section(section).Keys() {
			values[k.Name()] = strings.TrimSpace(k.Value())
		}
	}
	if asked && !found {
		return nil, fmt.Errorf("there is no profile %q in ~/.aws/credentials or ~/.aws/config", name)
	}
	return values, nil
}

func (p *place) amazon() bool { return p.endpoint == "" }

// address returns the server's address.
func (p *place) address() *url.URL {
	text := p.endpoint
	if text == "" {
		text = "https://s3." + p.region + ".amazonaws.com"
		if strings.HasPrefix(p.region, "cn-") {
			text += ".cn"
		}
	}
	u, err := url.Parse(text)
	if err != nil { // an odd region: the request will fail, and say the host's name
		return &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	}
	return u
}

// virtualHost reports whether the bucket is part of the host's name, as Amazon wants it; a bucket with a dot
// would not match the server's certificate.
func (p *place) virtualHost() bool { return p.amazon() && !strings.Contains(p.bucket, ".") }
