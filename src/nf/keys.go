package nf

// KeyStatus lists the keys that encrypt the store: names of keys, never keys.
type KeyStatus struct {
	Primary string         // the key that encrypts new records
	Records map[string]int // number of records encrypted with each key
}
