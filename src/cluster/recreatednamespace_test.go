package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRemoveNamespaceThatIsRecreated has another client that creates the namespace again
// before the region is watched.
func TestRemoveNamespaceThatIsRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		uid, deletions := "first", 0
		_, c, _ := alone(t, func(req *http.Request) (*http.Response, error) {
			object := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns","uid":%q,"resourceVersion":"1","labels":{"k8splugin.io/created-by":"k8splugin"}}}`, uid)
			switch {
			case req.Method == http.MethodDelete:
				uid = "second"
				deletions++
				return answer(200, object)
			case req.URL.Path == "/api/v1/namespaces/ns":
				return answer(200, object)
			case strings.HasSuffix(req.URL.Path, "/namespaces") && req.URL.Query().Get("watch") == "":
				return answer(200, `{"apiVersion":"v1","kind":"NamespaceList","metadata":{"resourceVersion":"1"},"items":[`+object+`]}`)
			}
			return served(req)
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if kept, err := c.RemoveNamespace(ctx, "ns"); err != nil || len(kept) > 0 || deletions != 1 {
			t.Errorf("the namespace that was deleted is gone: kept %v, %d deletions, %v", kept, deletions, err)
		}
	})
}
