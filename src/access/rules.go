package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/reload"
)

// Config says which file holds the rules. File is required.
type Config struct {
	File     string           // access.yaml
	Keystone Keystone         // validates the tokens of X-Auth-Token; nil: Keystone is not used
	Clock    func() time.Time // default time.Now
	Logger   *slog.Logger     // default: discard
}

// Keystone validates tokens of OpenStack's identity service.
type Keystone interface {
	// Known returns the identity of a token that was validated just now. It sends nothing.
	Known(token string) (nf.Identity, bool)
	// Identity validates a token. It returns nf.Unauthenticated for a wrong one, and
	// nf.Unreachable if it cannot be validated.
	Identity(ctx context.Context, token string) (nf.Identity, error)
}

func (c *Config) complete() error {
	if c.File == "" {
		return errors.New("cannot create access rules: File is required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Rules holds the content of access.yaml and the files that it names, and
// follows their changes. It is safe for concurrent use.
type Rules struct {
	cfg   Config
	files *reload.Value[*snapshot]
}

// New reads the rules. It fails with nf.Invalid, and one violation with file,
// line and field for each error.
func New(cfg Config) (*Rules, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	files, err := reload.New(reload.Config[*snapshot]{
		What: "the access rules in " + cfg.File, Clock: cfg.Clock, Logger: cfg.Logger,
		Load: func(read func(name string) ([]byte, error)) (*snapshot, error) { return load(cfg.File, read) },
	})
	if err != nil {
		return nil, err
	}
	return &Rules{cfg: cfg, files: files}, nil
}

// Broken returns how many new versions were invalid.
func (r *Rules) Broken() int64 { return r.files.Broken() }

func (r *Rules) current(ctx context.Context) *snapshot { return r.files.Current(ctx) }

// tokenPrefix starts every service token, so that people and secret scanners
// recognize it.
const tokenPrefix = "k8spt_"

// NewToken returns a new service token of 256 random bits, and its SHA-256 for
// access.yaml.
func NewToken() (token, sum string) {
	var bits [32]byte
	_, _ = rand.Read(bits[:]) // never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(bits[:])
	return token, sumOf(token)
}

func sumOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
