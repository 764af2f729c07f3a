package kafka_test

import (
	"strings"
	"testing"

	"github.com/multicloud-k8s/k8splugin/src/kafka"
	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const module = "org.apache.kafka.common.security.scram.ScramLoginModule required "

func TestParseJAAS(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, text, user, password string }{
		"Strimzi":     {"this is the form of a KafkaUser", module + `username="multicloud-k8s-ku" password="abc123";`, "multicloud-k8s-ku", "abc123"},
		"Escapes":     {"a backslash escapes", module + `username="a\"b" password="c\\d;= e" ;`, `a"b`, `c\d;= e`},
		"Other order": {"options have no order", module + "\n  password='p'\n  username='u' serviceName=\"kafka\";\n", "u", "p"},
		"No end":      {"the semicolon may be missing", module + `username="u" password="p"`, "u", "p"},
		"Empty":       {"there is no user", "", "", ""},
		"No password": {"a password is needed", module + `username="u";`, "", ""},
		"Unquoted":    {"values are quoted", module + `username=u password=s3cret;`, "", ""},
		"Unclosed":    {"quotes are closed", module + `username="u" password="s3cret`, "", ""},
		"Misplaced":   {"a wrong quote does not show the password", module + `username="u" s3cret=p password="x`, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			user, password, err := kafka.ParseJAAS([]byte(tc.text))
			if user != tc.user || string(password) != tc.password || (err == nil) != (tc.user != "") {
				t.Errorf("%s: got %q, %v", tc.reason, user, err)
			}
			if err != nil && (nf.KindOf(err) != nf.Invalid || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("%s: the error is %v", tc.reason, err)
			}
		})
	}
}

func FuzzParseJAAS(f *testing.F) {
	f.Add([]byte(module + `username="u" password="p\"";`))
	f.Add([]byte(`=`))
	f.Fuzz(func(t *testing.T, text []byte) {
		user, password, err := kafka.ParseJAAS(text)
		if (err == nil) != (user != "" && len(password) > 0) {
			t.Errorf("got %q, %v", user, err)
		}
		if err != nil && nf.KindOf(err) != nf.Invalid {
			t.Error(err)
		}
	})
}
