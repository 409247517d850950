package store

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// s3Client sends the requests of the protocol that make and remove objects. Reading and listing use [HTTPStore].
//
// Reference: https://docs.aws.amazon.com/AmazonS3/latest/API/.
type s3Client struct {
	http *http.Client
	*signature
	root   string // address of the bucket, ending in "/"
	bucket string
	plain  bool // requests are not encrypted: signatures cover bodies
}

// s3Error is an error in the server's words.
type s3Error struct {
	Code, Message, Region string
	StatusCode            int `xml:"-"`
}

// Error returns the message, or else the code.
func (e *s3Error) Error() string {
	if e.Message != "" {
		return e.Message
	}
	return e.Code
}

const (
	// emptyHash is the SHA-256 of nothing.
	emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	// unsignedBody stands for the SHA-256 of a body that only the encryption protects.
	unsignedBody = "UNSIGNED-PAYLOAD"
)

// signature signs requests (AWS Signature Version 4) for a region.
type signature struct {
	credentials aws.CredentialsProvider // nil: requests are not signed
	region      string
	signer      *v4.Signer // it remembers keys by their names: one for all would take another store's secret
}

func newSignature(who aws.CredentialsProvider, region string) *signature {
	escaped := func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true } // paths are signed as they are sent
	return &signature{who, region, v4.NewSigner(escaped)}
}

// sign adds the signature to a request whose body has this SHA-256, unless requests are not signed.
func (s *signature) sign(req *http.Request, hash string) error {
	if s.credentials == nil {
		return nil
	}
	value, err := s.credentials.Retrieve(req.Context())
	if err != nil {
		return permanent(fmt.Errorf("no credentials for S3: %w", foreignError{err}))
	}
	req.Header.Set("X-Amz-Content-Sha256", hash)
	// servers on the way change this one
	accepted, asked := req.Header["Accept-Encoding"]
	delete(req.Header, "Accept-Encoding")
	err = s.signer.SignHTTP(req.Context(), value, req, hash, "s3", s.region, time.Now().UTC())
	if asked {
		req.Header["Accept-Encoding"] = accepted
	}
	if err != nil {
		return permanent(err)
	}
	return nil
}

// send sends a request and returns the body of its answer, which is limited to [maxAnswer]. An answer that is not a
// success is an [*s3Error]. body may be nil.
func (c *s3Client) send(ctx context.Context, method, key string, query url.Values, header http.Header, body io.ReadSeeker) (http.Header, []byte, error) {
	address := c.root + encodeKey(key)
	if len(query) > 0 {
		address += "?" + strings.ReplaceAll(query.Encode(), "+", "%20")
	}
	size, hash, err := c.measure(body)
	if err != nil {
		return nil, nil, err
	}
	var sent io.Reader
	if size > 0 {
		sent = io.NopCloser(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, sent)
	if err != nil {
		return nil, nil, permanent(err)
	}
	req.ContentLength = size
	for name, values := range header {
		req.Header[name] = values
	}
	if err := c.sign(req, hash); err != nil {
		return nil, nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, nil, c.failure(resp, answer)
	}
	return resp.Header, answer, nil
}

// measure returns a body's size and the hash to sign, and rewinds it.
func (c *s3Client) measure(body io.ReadSeeker) (size int64, hash string, err error) {
	if body == nil {
		return 0, emptyHash, nil
	}
	if c.plain {
		sum := sha256.New()
		if size, err = io.Copy(sum, body); err != nil {
			return 0, "", permanent(withoutPath(err))
		}
		hash = hex.EncodeToString(sum.Sum(nil))
	} else {
		hash = unsignedBody
		if size, err = body.Seek(0, io.SeekEnd); err != nil {
			return 0, "", permanent(err)
		}
	}
	_, err = body.Seek(0, io.SeekStart)
	return size, hash, err
}

// failure returns the error that an answer describes.
func (c *s3Client) failure(resp *http.Response, answer []byte) error {
	e := parseS3Error(bytes.NewReader(answer))
	if e.StatusCode = resp.StatusCode; e.Code == "" {
		e.Code, e.Message = resp.Status, resp.Status
		if resp.StatusCode == http.StatusNotFound && resp.Request != nil && resp.Request.Method == http.MethodDelete {
			e.Code = "NoSuchKey"
		}
	}
	if e.Region == "" {
		e.Region = resp.Header.Get("X-Amz-Bucket-Region")
	}
	return e
}

// parseS3Error reads an Error document; what is none has no code.
func parseS3Error(r io.Reader) *s3Error {
	e := new(s3Error)
	if xml.NewDecoder(r).Decode(e) != nil {
		return new(s3Error)
	}
	return e
}

// late returns the error that a server sends in the body of a success: it had begun to answer.
func late(answer []byte) error {
	if e := parseS3Error(bytes.NewReader(answer)); e.Code != "" {
		e.StatusCode = http.StatusInternalServerError
		return e
	}
	return nil
}

// put makes an object; with onlyNew an existing one is an error of the status 412 or 409.
func (c *s3Client) put(ctx context.Context, key string, body []byte, onlyNew bool) error {
	header := http.Header{"Content-Type": {"application/octet-stream"}}
	if onlyNew {
		header.Set("If-None-Match", "*")
	}
	_, _, err := c.send(ctx, http.MethodPut, key, nil, header, bytes.NewReader(body))
	return err
}

// begin begins an object in parts and returns the upload's name.
func (c *s3Client) begin(ctx context.Context, key string) (id string, err error) {
	_, answer, err := c.send(ctx, http.MethodPost, key, url.Values{"uploads": {""}}, http.Header{"Content-Type": {"application/octet-stream"}}, nil)
	if err != nil {
		return "", err
	}
	var begun struct {
		ID string `xml:"UploadId"`
	}
	if err := xml.Unmarshal(answer, &begun); err != nil || begun.ID == "" {
		return "", permanent(fmt.Errorf("the server's answer names no upload: %s", foreign(string(answer[:min(len(answer), 80)]))))
	}
	return begun.ID, nil
}

func partQuery(id string, number int) url.Values {
	return url.Values{"uploadId": {id}, "partNumber": {strconv.Itoa(number)}}
}

// putPart sends a part, counted from 1, and returns its tag.
func (c *s3Client) putPart(ctx context.Context, key, id string, number int, body io.ReadSeeker) (tag string, err error) {
	header, _, err := c.send(ctx, http.MethodPut, key, partQuery(id, number), nil, body)
	if err != nil {
		return "", err
	}
	return strings.Trim(header.Get("Etag"), `"`), nil
}

// part is a part of an object whose upload is completed.
type part struct {
	Number int    `xml:"PartNumber"`
	Tag    string `xml:"ETag"`
}

// complete makes the object of the parts.
func (c *s3Client) complete(ctx context.Context, key, id string, parts []part) error {
	body, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Parts   []part   `xml:"Part"`
	}{Parts: parts})
	if err != nil {
		return permanent(err)
	}
	_, answer, err := c.send(ctx, http.MethodPost, key, url.Values{"uploadId": {id}}, http.Header{"Content-Type": {"application/xml"}}, bytes.NewReader(body))
	if err != nil {
		return err
	}
	return late(answer)
}

// abort gives up an upload; one that is not there is ignored.
func (c *s3Client) abort(ctx context.Context, key, id string) error {
	_, _, err := c.send(ctx, http.MethodDelete, key, url.Values{"uploadId": {id}}, nil, nil)
	if codeOf(err) == "NoSuchUpload" || codeOf(err) == "NoSuchKey" {
		return nil
	}
	return err
}

// copy makes the server copy an object of the bucket, or, with an upload's name, n bytes of it as part of another.
func (c *s3Client) copy(ctx context.Context, key, from string, query url.Values, at, n int64) (tag string, err error) {
	header := http.Header{"X-Amz-Copy-Source": {encodeKey(c.bucket + "/" + from)}}
	if query != nil {
		header.Set("X-Amz-Copy-Source-Range", fmt.Sprintf("bytes=%d-%d", at, at+n-1))
	}
	_, answer, err := c.send(ctx, http.MethodPut, key, query, header, nil)
	if err != nil {
		return "", err
	}
	if err := late(answer); err != nil {
		return "", err
	}
	var copied struct{ ETag string }
	if xml.Unmarshal(answer, &copied) != nil {
		return "", nil
	}
	return strings.Trim(copied.ETag, `"`), nil
}

// remove removes an object; one that is not there is ignored.
func (c *s3Client) remove(ctx context.Context, key string) error {
	_, _, err := c.send(ctx, http.MethodDelete, key, nil, nil, nil)
	if codeOf(err) == "NoSuchKey" {
		return nil
	}
	return err
}

// removeAll removes objects in one request; those that are not there are ignored.
func (c *s3Client) removeAll(ctx context.Context, keys []string) error {
	type object struct{ Key string }
	document := struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ Delete"`
		Quiet   bool
		Objects []object `xml:"Object"`
	}{Quiet: true}
	for _, key := range keys {
		document.Objects = append(document.Objects, object{key})
	}
	body, err := xml.Marshal(document)
	if err != nil {
		return permanent(err)
	}
	sum := md5.Sum(body)
	header := http.Header{"Content-Type": {"application/xml"}, "Content-Md5": {base64.StdEncoding.EncodeToString(sum[:])}}
	_, answer, err := c.send(ctx, http.MethodPost, "", url.Values{"delete": {""}}, header, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if err := late(answer); err != nil {
		return err
	}
	var result struct {
		Failed []struct{ Code, Message string } `xml:"Error"`
	}
	if err := xml.Unmarshal(answer, &result); err != nil {
		return fmt.Errorf("the server's answer to a deletion: %w", cut(err))
	}
	for _, f := range result.Failed {
		if f.Code != "NoSuchKey" {
			return &s3Error{Code: f.Code, Message: f.Message, StatusCode: http.StatusOK}
		}
	}
	return nil
}

// codeOf and statusOf return what a server's error says, "" and 0 for other errors.
func codeOf(err error) string {
	var e *s3Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func statusOf(err error) int {
	var e *s3Error
	if errors.As(err, &e) {
		return e.StatusCode
	}
	return 0
}
