package tacker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSecretsOfExtra shows VIMs whose extra data have a password, which the world looks for in
// each answer.
func TestSecretsOfExtra(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.vim("a VIM is registered", "POST", all, body("text", `extra={"area": "a", "db_password": "s3cret", "helm_info": "{'masternode_password':'s3cret'}"}`))
	at := all + "/" + made["id"].(string)
	want := map[string]any{"area": "a", "db_password": "***", "helm_info": "***"}
	for reason, got := range map[string]map[string]any{
		"registered": made, "shown": w.vim("it is shown", "GET", at, ""),
		"changed": w.vim("it is changed", "PUT", at, `{"vim": {"description": "the east"}}`),
	} {
		if d := cmp.Diff(want, got["extra"]); d != "" {
			t.Errorf("%s: -want +got:\n%s", reason, d)
		}
	}
	w.ask("GET", all, "")
	if kept := w.region("text").VIM.Extra["db_password"]; kept != "s3cret" {
		t.Errorf("the password is stored as %q", kept)
	}
	made = w.vim("a VIM with a dictionary", "POST", all, body("dictionary", `extra={"helm_info": {"masternode_ip": ["192.0.2.1"], "masternode_username": "u", "masternode_password": "s3cret"}}`))
	want = map[string]any{"helm_info": map[string]any{"masternode_ip": []any{"192.0.2.1"}, "masternode_username": "u", "masternode_password": "***"}}
	for _, got := range []map[string]any{made, w.vim("it is shown", "GET", all+"/"+made["id"].(string), "")} {
		if d := cmp.Diff(want, got["extra"]); d != "" {
			t.Errorf("a dictionary: -want +got:\n%s", d)
		}
	}
}
