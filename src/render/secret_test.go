package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/render"
)

func TestSecretNames(t *testing.T) {
	type object = map[string]any
	cases := map[string]struct {
		reason  string
		decided render.SecretNames
		in      nf.Inputs
		want    []string
	}{
		"nothing":    {"nothing is given", nil, nf.Inputs{}, nil},
		"decided":    {"what the package says is secret is named whether it is given or not", render.SecretNames{"pin": true, "port": false}, nf.Inputs{}, []string{"pin"}},
		"words":      {"any of the words, however it is spelled", nil, nf.Inputs{Parameters: object{"DB_Password": "a", "passwd": "a", "x-pass-phrase": "a", "clientSecret": "a", "accessToken": 1, "PRIVATE_KEY": "a", "api-key": "a", "accessKeyID": "a", "credentials": object{"a": "b"}, "client-key": "a", "kubeconfig": "a", "port": 1, "key": "a"}}, []string{"DB_Password", "PRIVATE_KEY", "accessKeyID", "accessToken", "api-key", "client-key", "clientSecret", "credentials", "kubeconfig", "passwd", "x-pass-phrase"}},
		"deep":       {"at any depth", nil, nf.Inputs{Parameters: object{"a": []any{object{"b": object{"token": "x"}}}}}, []string{"token"}},
		"everywhere": {"from any source", nil, nf.Inputs{OOF: []object{{"site_password": "a"}}, Network: object{"vpn": object{"passphrase": "a"}}}, []string{"passphrase", "site_password"}},
		"exempt":     {"the package knows better", render.SecretNames{"token_count": false}, nf.Inputs{Parameters: object{"token_count": 1, "a": object{"token_count": 2}}, Overrides: map[string]string{"b.token_count": "3"}}, nil},
		"no secret":  {"a truth and nothing cannot be secret", nil, nf.Inputs{Parameters: object{"createSecret": true, "token": nil, "password": "", "secrets": []any{}, "credentials": object{}}, Overrides: map[string]string{"useToken": "false", "a.password": ""}}, nil},
		"said so":    {"unless the package says so", render.SecretNames{"useToken": true}, nf.Inputs{Parameters: object{"useToken": true}}, []string{"useToken"}},
		"references": {"the name of a Secret is not what it holds", nil, nf.Inputs{Parameters: object{"existingSecret": "a", "existingSecretPasswordKey": "a", "tls_secret_name": "a", "imagePullSecrets": []any{object{"name": "a"}}, "passwordSecretRef": "a", "secretKeyRef": object{"name": "a", "token": "b"}}}, []string{"token"}},
		"overrides":  {"every step of a path is a name", nil, nf.Inputs{Overrides: map[string]string{"db.password": "a", "users[0].apiKey": "b", `a\.token`: "c", "tokens.x": "d", "image.tag": "e", "imagePullSecrets[0].name": "f"}}, []string{"apiKey", "password", "token", "tokens"}},
		"assigned":   {"behind a comma another value is set", nil, nf.Inputs{Overrides: map[string]string{"image": "a,db.password=b", "args": "{x,--token=b}", "text": `a\,password=b`, "on": "a,useToken=true"}}, []string{"args", "image"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.decided.In(tc.in)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSecretNamesMask(t *testing.T) {
	value := map[string]any{"user": "admin", "password": "a", "none": map[string]any{"password": ""}, "list": []any{map[string]any{"pin": 1, "token": "b", "useToken": true}}}
	got := render.SecretNames{"pin": true, "token": false}.Mask(value)
	want := map[string]any{"user": "admin", "password": nf.Masked, "none": map[string]any{"password": nf.Masked}, "list": []any{map[string]any{"pin": nf.Masked, "token": "b", "useToken": true}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if value["password"] != "a" {
		t.Error("masking has changed the value")
	}
}
