package nf

// KeyStatus is what the store is sealed with: names of keys, never keys.
type KeyStatus struct {
	Primary string         // the key that new records are sealed with
	Records map[string]int // how many records each key seals
}
