package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strata/tests/race"
	"strata/tests/s3emu"
)

// listing is the store of a server whose every answer write writes; sent counts its bytes.
func listing(t *testing.T, write func(w io.Writer, r *http.Request)) (s *S3Store, sent *atomic.Int64) {
	t.Helper()
	server := &s3emu.Server{}
	server.Use(t)
	sent = new(atomic.Int64)
	endpoint := between(t, server, func(w http.ResponseWriter, r *http.Request) bool {
		write(writerFunc(func(p []byte) (int, error) {
			n, err := w.Write(p)
			sent.Add(int64(n))
			return n, err
		}), r)
		return true
	})
	return newS3(t, "s3://bucket/x?endpoint="+endpoint, Retry(1, time.Millisecond)), sent
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// endlessly repeats a text until the client has gone.
func endlessly(begin, text string) func(w io.Writer, r *http.Request) {
	many := []byte(strings.Repeat(text, 64<<10/len(text)+1))
	return func(w io.Writer, _ *http.Request) {
		_, err := io.WriteString(w, begin)
		for err == nil {
			_, err = w.Write(many)
		}
	}
}

// onTheWay is what a server may send before it sees that nobody reads any more.
const onTheWay = 16 << 20

// A page of a listing without an end is an error before it fills the memory, whatever it is made of.
func TestS3EndlessPage(t *testing.T) {
	race.Leave(t)
	for name, c := range map[string]struct{ text, want string }{
		"names":    {"<Contents><Key>x/1</Key><Size>1</Size></Contents>", "a page of the server's listing has more than 8388608 bytes"},
		"one name": {"x", "a page of the server's listing has more than 8388608 bytes"},
		"depth":    {"<a>", "elements lie too deep"},
		"nothing":  {" ", "a page of the server's listing has more than 8388608 bytes"},
	} {
		begin := "<ListBucketResult>"
		if name == "one name" {
			begin += "<Contents><Key>"
		}
		s, sent := listing(t, endlessly(begin, c.text))
		if _, err := s.List(bg, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if n := sent.Load(); n > pageBytes+onTheWay {
			t.Errorf("%s: the server sent %d bytes", name, n)
		}
	}
}

// The same of the answers that the protocol's library reads.
func TestS3EndlessAnswers(t *testing.T) {
	race.Leave(t)
	for _, begin := range []string{"", "<Error><Code>", "<CopyObjectResult>", "<InitiateMultipartUploadResult>", "<DeleteResult>"} {
		s, sent := listing(t, endlessly(begin, "<a>x</a>"))
		for name, err := range map[string]error{
			"copy":   s.copyFrom(bg, "b", listed{key: "x/a"}),
			"parts":  s.Put(bg, "a", make([]byte, partSize+1)),
			"delete": s.deleteObjects(bg, s.prefix, []string{"a"}),
		} {
			if err == nil {
				t.Errorf("%s, %s: no error", begin, name)
			}
		}
		s.giveUpParts(bg)
		if n := sent.Load(); n > 8*maxAnswer+8*onTheWay {
			t.Errorf("%s: the server sent %d bytes", begin, n)
		}
	}
}

// A listing whose pages do not end is one of too many names, one that goes on with nothing or does not
// say where is another error; each ends with its context.
func TestS3EndlessListing(t *testing.T) {
	race.Leave(t)
	n := 0
	pageOf := func(names int) func(w io.Writer, r *http.Request) {
		return func(w io.Writer, _ *http.Request) {
			n++
			fmt.Fprintf(w, "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>%d</NextContinuationToken>", n)
			for i := range names {
				fmt.Fprintf(w, "<Contents><Key>x/%d-%d-%s</Key><Size>1</Size></Contents>", n, i, strings.Repeat("y", 900))
			}
			_, _ = io.WriteString(w, "</ListBucketResult>")
		}
	}
	s, _ := listing(t, pageOf(1000))
	if _, err := s.List(bg, ""); !errors.Is(err, ErrTooLarge) || n > listBytes/900_000+2 {
		t.Errorf("%d pages, %v", n, err)
	}
	n = 0
	s, _ = listing(t, pageOf(0))
	if _, err := s.List(bg, ""); err == nil || !strings.Contains(err.Error(), "lists nothing") || n > emptyPages+2 {
		t.Errorf("%d empty pages, %v", n, err)
	}
	for _, token := range []string{"", "<NextContinuationToken>1</NextContinuationToken>"} {
		s, _ = listing(t, func(w io.Writer, _ *http.Request) {
			_, _ = io.WriteString(w, "<ListBucketResult><IsTruncated>true</IsTruncated>"+token+"</ListBucketResult>")
		})
		if _, err := s.List(bg, ""); err == nil || !strings.Contains(err.Error(), "goes on, and not where") {
			t.Errorf("%q: %v", token, err)
		}
	}
	for name, write := range map[string]func(w io.Writer, r *http.Request){
		"pages": pageOf(1),
		"a page that comes slowly": func(w io.Writer, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				time.Sleep(time.Millisecond)
			}
		},
	} {
		ctx, cancel := context.WithCancel(bg)
		s, sent := listing(t, write)
		go func() {
			for sent.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if err := s.remove(ctx, "", func(string) bool { return true }); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is listed may be deleted: a server that lists something else is not believed.
func TestS3ListingOfSomethingElse(t *testing.T) {
	deleted := false
	s, _ := listing(t, func(w io.Writer, r *http.Request) {
		deleted = deleted || r.Method != http.MethodGet
		_, _ = io.WriteString(w, "<ListBucketResult><Contents><Key>y/a</Key><Size>1</Size></Contents></ListBucketResult>")
	})
	if err := s.remove(bg, "", nil); err == nil || !strings.Contains(err.Error(), "the server lists y/a, which was not asked for") || deleted {
		t.Errorf("%v", err)
	}
}

// An image is not replaced where a listing has no order: what is to be deleted would be a guess.
func TestS3ListingWithoutOrder(t *testing.T) {
	deleted := false
	s, _ := listing(t, func(w io.Writer, r *http.Request) {
		deleted = deleted || r.Method != http.MethodGet
		prefix := r.URL.Query().Get("prefix")
		fmt.Fprintf(w, "<ListBucketResult><Contents><Key>%s2</Key><Size>1</Size></Contents><Contents><Key>%[1]s1</Key><Size>1</Size></Contents></ListBucketResult>", prefix)
	})
	if err := s.deleteOthers(bg, besideName+"x"); err == nil || !strings.Contains(err.Error(), "the server lists 1 after 2") || deleted {
		t.Errorf("%v", err)
	}
}

// Names are escaped as the server says, and what lies hidden below a node is not listed.
func TestS3ListingNames(t *testing.T) {
	s, _ := listing(t, func(w io.Writer, _ *http.Request) {
		_, _ = io.WriteString(w, `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url</EncodingType>
			<Contents><Key>x/</Key><Size>0</Size></Contents>
			<Contents><Key>x/.strata-incomplete</Key><Size>3</Size></Contents>
			<Contents><Key>x/a%2Bb+c</Key><Size>12</Size><Owner><ID>x</ID></Owner></Contents>
			<CommonPrefixes><Prefix>x/.strata-new-1/</Prefix></CommonPrefixes>
			<CommonPrefixes><Prefix>x/0/</Prefix></CommonPrefixes></ListBucketResult>`)
	})
	list, err := s.List(bg, "")
	if err != nil || len(list) != 2 || list[0] != (Entry{"0", true, 0, false}) || list[1] != (Entry{"a+b c", false, 12, false}) {
		t.Errorf("%v, %v", list, err)
	}
}

func FuzzParsePage(f *testing.F) {
	f.Add("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken><EncodingType>url</EncodingType><Contents><Key>a%2F</Key><Size>1</Size></Contents><CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes></ListBucketResult>")
	f.Add("<Error><Code>SlowDown</Code></Error>")
	f.Add("<a><b></a>")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePage(strings.NewReader(text))
		for _, o := range p.entries {
			if err == nil && o.size < 0 {
				t.Errorf("%+v", o)
			}
		}
		if err != nil {
			checkPrintable(t, "page", (&S3Store{web: HTTP("")}).meaning(err))
		}
	})
}

func FuzzParseMark(f *testing.F) {
	m := newMark("process 7 on host")
	m.Beside, m.Replacing = besideName+"x", true
	f.Add(m.encode())
	f.Add([]byte("process 7 on host"))
	f.Add([]byte(`{"run":"r","beside":".strata-new-/../../x"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := parseMark(text)
		if m.Beside != "" && (checkKey(m.Beside) != nil || strings.Contains(m.Beside, "/") || !strings.HasPrefix(m.Beside, besideName)) || m.Replacing && m.Beside == "" {
			t.Errorf("%+v", m)
		}
	})
}

// Callers that wait for an upload's queue end with their context, whatever the server does.
func TestS3UploadWaitsEndWithTheirContext(t *testing.T) {
	server := s3emu.Start(t)
	server.Use(t)
	release := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	defer goOn()
	endpoint := between(t, server, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/c/slow") {
			_, _ = io.Copy(io.Discard, r.Body)
			<-release
		}
		return false
	})
	s := newS3(t, "s3://"+s3emu.Bucket+"/waits?endpoint="+endpoint, AtOnce(1))
	u, err := s.Begin(bg, "me", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bg)
	other, err := u.Create(ctx, "c/slow")
	if err != nil {
		t.Fatal(err)
	}
	if err := u.Put(bg, "c/slow", []byte("x")); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"Put":       func() error { return u.Put(ctx, "c/2", []byte("x")) },
		"large Put": func() error { return u.Put(ctx, "c/slow", make([]byte, partSize+1)) },
		"Get":       func() error { _, err := u.Get(ctx, "c/slow", nil, -1); return err },
		"Open":      func() error { _, err := u.Open(ctx, "c/slow"); return err },
		"Expect":    func() error { _, err := u.Expect(ctx, "c/slow", 1); return err },
		"Create":    func() error { _, err := u.Create(ctx, "c/slow"); return err },
		"Commit":    other.Commit,
		"the end":   func() error { return u.Commit(ctx) },
		"List":      func() error { _, err := u.List(ctx, ""); return err },
		"Delete":    func() error { return u.Delete(ctx, "c/slow") },
	}
	type ended struct {
		name string
		err  error
	}
	ends := make(chan ended)
	for name, call := range calls {
		go func() { ends <- ended{name, call()} }()
	}
	select {
	case e := <-ends:
		t.Errorf("%s: %v before its context ended", e.name, e.err)
	case <-time.After(50 * time.Millisecond):
	}
	cancel()
	for range calls {
		select {
		case e := <-ends:
			if !errors.Is(e.err, context.Canceled) {
				t.Errorf("%s: %v", e.name, e.err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("a call waits for ever")
		}
	}
	goOn()
	if err := u.Abort(bg); err != nil {
		t.Error(err)
	}
}
