package onap

// Wire returns the wire types of what clients send and get back, by the name of
// the object.
func Wire() map[string]any {
	return map[string]any{
		"definition": definition{}, "profile": profile{}, "connection": connection{}, "instance": instanceRequest{},
		"configuration": configRequest{}, "subscription": subscriptionRequest{},
	}
}
