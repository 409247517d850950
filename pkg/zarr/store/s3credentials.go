package store

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"

	"strata/pkg/address"
)

// findCredentials returns the credentials that sign requests, or nil for requests without signature. A profile named in
// the address precedes the environment. client asks for those of the machine's role; region is where.
func findCredentials(anonymous, profileFirst bool, profile map[string]string) func(client *http.Client, region string) aws.CredentialsProvider {
	key, secret, token := os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")
	if key == "" || secret == "" || profileFirst {
		if k, s := profile["aws_access_key_id"], profile["aws_secret_access_key"]; k != "" && s != "" {
			key, secret, token = k, s, profile["aws_session_token"]
		}
	}
	switch {
	case anonymous:
	case key != "" && secret != "":
		address.Hide(secret, token) // a server may quote what it was sent
		return func(*http.Client, string) aws.CredentialsProvider {
			return credentials.NewStaticCredentialsProvider(key, secret, token)
		}
	case os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		return func(client *http.Client, region string) aws.CredentialsProvider {
			return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
				return assumeRole(ctx, client, region)
			}))
		}
	default:
		if at := containerAddress(); at != "" {
			return func(client *http.Client, _ string) aws.CredentialsProvider {
				return aws.NewCredentialsCache(endpointcreds.New(at, func(o *endpointcreds.Options) {
					o.HTTPClient, o.AuthorizationTokenProvider = client, endpointcreds.TokenProviderFunc(containerToken)
				}))
			}
		}
	}
	return func(*http.Client, string) aws.CredentialsProvider { return nil }
}

// containerAddress returns where a container asks for the credentials of its role; "" if nowhere.
func containerAddress() string {
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return "http://169.254.170.2" + path
	}
	return os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
}

// containerToken returns the token with which a container asks, "" for none.
func containerToken() (string, error) {
	file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
	if file == "" {
		return os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN"), nil
	}
	return readToken(file)
}

// mostToken is the most bytes of a file with a token.
const mostToken = 64 << 10

func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostToken+1))
	if err == nil && len(b) > mostToken {
		err = fmt.Errorf("%s: a token of more than %d bytes", path, mostToken)
	}
	return strings.TrimSpace(string(b)), err
}

// assumeRole asks Amazon's token service for credentials of the role AWS_ROLE_ARN in exchange for the token in
// AWS_WEB_IDENTITY_TOKEN_FILE.
//
// Reference: https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html.
func assumeRole(ctx context.Context, client *http.Client, region string) (none aws.Credentials, err error) {
	token, err := readToken(os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE"))
	if err != nil {
		return none, err
	}
	role := os.Getenv("AWS_ROLE_ARN")
	if role == "" {
		return none, errors.New("AWS_WEB_IDENTITY_TOKEN_FILE needs AWS_ROLE_ARN")
	}
	host := "https://sts." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	host = cmp.Or(os.Getenv("AWS_ENDPOINT_URL_STS"), host)
	form := url.Values{"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {role}, "WebIdentityToken": {token},
		"RoleSessionName": {cmp.Or(os.Getenv("AWS_ROLE_SESSION_NAME"), "strata")}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, host, strings.NewReader(form.Encode()))
	if err != nil {
		return none, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return none, err
	}
	defer resp.Body.Close()
	var answer struct {
		Result struct {
			Key     string    `xml:"AccessKeyId"`
			Secret  string    `xml:"SecretAccessKey"`
			Token   string    `xml:"SessionToken"`
			Expires time.Time `xml:"Expiration"`
		} `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
		Code string `xml:"Error>Code"`
	}
	err = xml.NewDecoder(resp.Body).Decode(&answer)
	if r := answer.Result; err == nil && resp.StatusCode == http.StatusOK && r.Key != "" && r.Secret != "" {
		address.Hide(r.Secret, r.Token)
		return aws.Credentials{AccessKeyID: r.Key, SecretAccessKey: r.Secret, SessionToken: r.Token, CanExpire: !r.Expires.IsZero(), Expires: r.Expires}, nil
	}
	return none, fmt.Errorf("the token service answers %s", foreign(cmp.Or(answer.Code, resp.Status)))
}
