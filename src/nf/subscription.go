package nf

import (
	"encoding/json"
	"time"
)

// Subscription is a request for notifications of changes to an instance's
// objects.
type Subscription struct {
	Instance    string          `json:"instance"` // the id in ONAP's API
	Name        string          `json:"name"`     // unique for the instance
	Callback    string          `json:"callback"`
	MinInterval time.Duration   `json:"min_interval"`     // between two notifications
	Metadata    json.RawMessage `json:"metadata"`         // a JSON object that each notification repeats
	Secret      Secret          `json:"secret,omitempty"` // key that signs the notifications; empty: unsigned
	Created     time.Time       `json:"created"`
	LastUpdate  time.Time       `json:"last_update"` // when a change was last found
	LastNotify  time.Time       `json:"last_notify"` // when a notification was last posted, whether or not it was delivered
	LastStatus  int             `json:"last_status"` // HTTP status of the last post; 500 if there was no response, 0 before the first
}
