package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/telemetry"
)

const (
	hidden  = "aHVzaC1odXNoLWh1c2g"
	pemKey  = "-----BEGIN EC PRIVATE KEY-----\n" + hidden + "\n-----END EC PRIVATE KEY-----"
	webKey  = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJodXNoIn0." + hidden
	pem64   = "LS0tLS1CRUdJTi" + hidden
	innocen = "cannot apply Deployment blue/web: it belongs to VNF instance 0123 (see https://example.org/a@b)"
)

// exposed is a value that handlers write as JSON or by fmt.
type exposed struct {
	Name     string
	Password string
	Nested   []map[string]any
	inner    string
}

// lazy is a value that says what it is when it is asked.
type lazy struct{ slog.Value }

func (l lazy) LogValue() slog.Value { return l.Value }

// word is a text that slog does not know.
type word string

// broken fails when it is written.
type broken struct{}

func (*broken) Error() string { panic("broken") }

func TestRedacted(t *testing.T) {
	cases := map[string]struct {
		reason string
		attr   slog.Attr
		want   string // as JSON
	}{
		"Password":      {"a password is called one", slog.String("password", hidden), `{"password":"********"}`},
		"Spelling":      {"however it is spelt", slog.String("DB-Admin_PassWord.2", hidden), `{"DB-Admin_PassWord.2":"********"}`},
		"Key":           {"key material has many names", slog.String("clientKeyData", hidden), `{"clientKeyData":"********"}`},
		"Kubeconfig":    {"a kubeconfig is one whole secret", slog.Any("kubeconfig", []byte(hidden)), `{"kubeconfig":"********"}`},
		"Header":        {"headers that authenticate have names", slog.Any("headers", http.Header{"Authorization": {"Basic " + hidden}, "Accept": {"*/*"}}), `{"headers":{"Accept":["*/*"],"Authorization":"********"}}`},
		"Group":         {"a group that is called a secret is one", slog.Group("credentials", slog.String("user", hidden), slog.Int("n", 1)), `{"credentials":{"user":"********","n":1}}`},
		"InGroup":       {"a secret may lie in a group", slog.Group("region", slog.String("id", "east"), slog.Group("user", slog.String("token", hidden))), `{"region":{"id":"east","user":{"token":"********"}}}`},
		"Expiry":        {"when a secret expires is none", slog.Group("credential", slog.Time("expires", time.Unix(0, 0).UTC()), slog.Int("tokens", 3), slog.Bool("secret", true)), `{"credential":{"expires":"1970-01-01T00:00:00Z","tokens":3,"secret":true}}`},
		"Empty":         {"nor is one that is not there", slog.Group("g", slog.String("token", ""), slog.Any("secret", nil)), `{"g":{"token":"","secret":null}}`},
		"StoreKey":      {"a key of the store is no secret", slog.String("key", "instances/0123"), `{"key":"instances/0123"}`},
		"PEM":           {"a private key is known by its look", slog.String("file", "it says "+pemKey+" and so on"), `{"file":"it says ******** and so on"}`},
		"PEMCut":        {"even without its end", slog.String("file", "it says -----BEGIN PRIVATE KEY-----\n"+hidden), `{"file":"it says ********"}`},
		"Certificate":   {"a certificate is for everybody", slog.String("file", "-----BEGIN CERTIFICATE-----\nMIIB"), `{"file":"-----BEGIN CERTIFICATE-----\nMIIB"}`},
		"PEMEncoded":    {"so is one in base64", slog.String("value", "client-key: "+pem64), `{"value":"client-key: ********"}`},
		"WebToken":      {"and a web token", slog.String("value", "got "+webKey+"."), `{"value":"got ********"}`},
		"Bearer":        {"and a bearer's", slog.String("value", "sent bEARER  "+hidden+", got 401"), `{"value":"sent bEARER  ********, got 401"}`},
		"BearerProse":   {"a word about bearers is none", slog.String("value", "the bearer token is missing"), `{"value":"the bearer token is missing"}`},
		"Authorization": {"a header in a text is a header", slog.String("value", "authorization: Basic "+hidden), `{"value":"authorization: ********"}`},
		"URL":           {"a URL may have a password", slog.String("value", "dial etcd://root:"+hidden+"@db:2379: refused"), `{"value":"dial etcd://root:********@db:2379: refused"}`},
		"URLValue":      {"in every form", slog.Any("value", &url.URL{Scheme: "https", Host: "db", User: url.UserPassword("root", hidden)}), `{"value":"https://root:********@db"}`},
		"JSON":          {"a document may have one", slog.String("body", `{"user":"a","access_token" : "`+hidden+`\"x"}`), `{"body":"{\"user\":\"a\",\"access_token\" : \"********\"}"}`},
		"Error":         {"errors quote what they got", slog.Any("error", fmt.Errorf("refused: %w", errors.New("Bearer "+hidden))), `{"error":"refused: Bearer ********"}`},
		"Word":          {"a text of another type is a text", slog.Any("value", word("Bearer "+hidden)), `{"value":"Bearer ********"}`},
		"Kind":          {"a kind says its own name", slog.Any("kind", nf.TooManyRequests), `{"kind":"rate-limited"}`},
		"Bytes":         {"bytes are a text", slog.Any("value", []byte("Bearer "+hidden)), `{"value":"Bearer ********"}`},
		"Struct":        {"a member is named like an attribute", slog.Any("value", exposed{Name: "n", Password: hidden}), `{"value":{"Name":"n","Nested":null,"Password":"********"}}`},
		"Nested":        {"at any depth", slog.Any("value", exposed{Nested: []map[string]any{{"a": []string{"b", "Bearer " + hidden}}}}), `{"value":{"Name":"","Nested":[{"a":["b","Bearer ********"]}],"Password":""}}`},
		"Members":       {"under a name, too", slog.Any("value", []any{map[string]any{"api_key": hidden, "n": 1}}), `{"value":[{"api_key":"********","n":1}]}`},
		"Unexported":    {"and where only fmt looks", slog.Any("value", exposed{inner: "Bearer " + hidden}), `{"value":"{Name: Password: Nested:[] inner:Bearer ********}"}`},
		"Pointer":       {"behind a pointer", slog.Any("value", &exposed{Password: hidden}), `{"value":{"Name":"","Nested":null,"Password":"********"}}`},
		"Lazy":          {"a value that is made late is looked at", slog.Any("value", lazy{slog.StringValue("Bearer " + hidden)}), `{"value":"Bearer ********"}`},
		"LazyGroup":     {"a group, too", slog.Any("value", lazy{slog.GroupValue(slog.String("password", hidden))}), `{"value":{"password":"********"}}`},
		"Secret":        {"what masks itself stays as it is", slog.Any("kubeconfig", nf.Secret(hidden)), `{"kubeconfig":"********"}`},
		"Panic":         {"a value that fails does no harm", slog.Any("error", &broken{}), `{"error":"!PANIC in *telemetry_test.broken"}`},
		"Channel":       {"what nobody can write is the handler's to say", slog.Any("value", make(chan int)), `{"value":"!ERROR:json: unsupported type: chan int"}`},
		"Innocent":      {"prose stays as it is", slog.String("error", innocen), `{"error":"` + innocen + `"}`},
		"Numbers":       {"numbers are numbers", slog.Group("g", slog.Int("a", 1), slog.Duration("b", 1), slog.Any("c", []int{1}), slog.Any("d", map[string]int{"x": 1})), `{"g":{"a":1,"b":1,"c":[1],"d":{"x":1}}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for way, log := range map[string]func(*slog.Logger){
				"in the record":     func(l *slog.Logger) { l.LogAttrs(t.Context(), slog.LevelInfo, "", slog.Int("n", 0), tc.attr) },
				"before the record": func(l *slog.Logger) { l.With("n", 0).With(tc.attr).InfoContext(t.Context(), "") },
			} {
				var out bytes.Buffer
				log(slog.New(telemetry.Redacted(jsonHandler(&out))))
				want := `{"n":0,` + strings.TrimPrefix(tc.want, "{")
				if diff := cmp.Diff(want, strings.TrimSpace(out.String())); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", way, tc.reason, diff)
				}
				var text bytes.Buffer
				log(slog.New(telemetry.Redacted(slog.NewTextHandler(&text, nil))))
				if strings.Contains(text.String(), hidden) {
					t.Errorf("%s, as text: %s: %s", way, tc.reason, text.String())
				}
			}
		})
	}
}

func TestRedactedElsewhere(t *testing.T) {
	cases := map[string]struct {
		reason string
		log    func(*slog.Logger)
		want   string
	}{
		"Message": {"a message is a text", func(l *slog.Logger) { l.InfoContext(t.Context(), "got Bearer "+hidden, "a", 1) }, `{"msg":"got Bearer ********","a":1}`},
		"Group": {"what comes after a group of that name is in it", func(l *slog.Logger) {
			l.WithGroup("secrets").With("a", hidden).WithGroup("g").InfoContext(t.Context(), "", "b", hidden, "c", 1)
		}, `{"secrets":{"a":"********","g":{"b":"********","c":1}}}`},
		"Beside": {"a group of another name is another", func(l *slog.Logger) {
			l.WithGroup("request").InfoContext(t.Context(), "", "b", "plain")
		}, `{"request":{"b":"plain"}}`},
		"Level": {"what is not wanted is not logged", func(l *slog.Logger) { l.DebugContext(t.Context(), "x") }, ``},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tc.log(slog.New(telemetry.Redacted(jsonHandler(&out))))
			if diff := cmp.Diff(tc.want, strings.TrimSpace(out.String())); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRedactedLeavesTheCaller checks that what is hidden in the log stays as it
// is where it came from.
func TestRedactedLeavesTheCaller(t *testing.T) {
	document := map[string]any{"password": hidden, "list": []any{"Bearer " + hidden}}
	attrs := []slog.Attr{slog.String("token", hidden), slog.Group("g", slog.String("token", hidden))}
	before, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(telemetry.Redacted(slog.NewJSONHandler(io.Discard, nil)).WithAttrs(attrs))
	log.InfoContext(t.Context(), "m", "document", document, slog.Attr{Key: "g", Value: slog.GroupValue(attrs...)})
	after, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the caller's document was changed (-want +got):\n%s", diff)
	}
	if attrs[0].Value.String() != hidden || attrs[1].Value.Group()[0].Value.String() != hidden {
		t.Errorf("the caller's attributes were changed: %v", attrs)
	}
}

func TestRedactedCuts(t *testing.T) {
	cases := map[string]struct {
		reason string
		attr   slog.Attr
	}{
		"Text":  {"a text is cut", slog.String("a", strings.Repeat("x", 1<<20)+hidden)},
		"Error": {"an error is", slog.Any("a", errors.New(strings.Repeat("x", 1<<20)+hidden))},
		"Value": {"a value is", slog.Any("a", []string{strings.Repeat("x", 1<<20) + hidden})},
		"Many":  {"so is one of many parts", slog.Any("a", make([]struct{ A, B, C, D, E, F, G, H, I int }, 5000))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			slog.New(telemetry.Redacted(jsonHandler(&out))).LogAttrs(t.Context(), slog.LevelInfo, "", tc.attr)
			if out.Len() > 70_000 || strings.Contains(out.String(), hidden) {
				t.Errorf("%s: the line has %d bytes, want no more than 64 KiB of the text", tc.reason, out.Len())
			}
		})
	}
}

func jsonHandler(w io.Writer) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey && a.Value.String() == "") {
			return slog.Attr{}
		}
		return a
	}})
}

// FuzzRedacted checks that a secret is hidden whatever surrounds it.
func FuzzRedacted(f *testing.F) {
	f.Add("dial ", ": refused")
	f.Add("-----BEGIN ", "-----END PRIVATE KEY-----")
	f.Add("-----BEGIN PRIVATE KEY-----", "")
	f.Add("https://a:b", "@c")
	f.Add(`{"token":"`, `"}`)
	f.Add("Authorization: Bearer ", "eyJ")
	f.Add("eyJ", "LS0tLS1CRUdJTi")
	f.Fuzz(func(t *testing.T, before, after string) {
		if strings.Contains(before+after, hidden) || len(before)+len(after) > 32<<10 {
			return
		}
		for _, secret := range []string{pemKey, webKey, pem64, "Bearer " + hidden, "://root:" + hidden + "@db"} {
			var out bytes.Buffer
			log := slog.New(telemetry.Redacted(slog.NewTextHandler(&out, nil)))
			log.InfoContext(t.Context(), before+secret+after, "value", before+secret+after)
			if strings.Contains(out.String(), hidden) {
				t.Errorf("%q is not hidden in %q", secret, out.String())
			}
		}
	})
}
