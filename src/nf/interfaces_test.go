package nf

import (
	"slices"
	"testing"
)

// TestCheckInterfaces lists names and interfaces that a region cannot have.
func TestCheckInterfaces(t *testing.T) {
	t.Parallel()
	v := CheckInterfaces("interfaces", map[string]string{"oam": "eth1", "OAM": "eth1", "lan": "", "wan": "a/b", "long": "abcdefghijklmnop"})
	var fields []string
	for _, one := range v {
		fields = append(fields, one.Field)
	}
	if want := []string{"interfaces.OAM", "interfaces.lan", "interfaces.long", "interfaces.wan"}; !slices.Equal(fields, want) {
		t.Errorf("violations of %v, want %v", fields, want)
	}
}
