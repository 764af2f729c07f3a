package etcd

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/multicloud-k8s/k8splugin/src/nf"
)

const defaultPort = "2379"

// ParseLocation reads where an outside cluster is:
//
//	[user:password@]host[:port][,host[:port]…][?ca=FILE&cert=FILE&key=FILE&tls=true]
//
// User, password and options are percent-encoded as in any URL, and the port is
// 2379 when it is left out. The connection is encrypted when one of the options
// is there: ca is the authority that vouches for the nodes, cert and key are
// what the client shows them, and tls=true alone trusts the authorities of the
// system. What is wrong is nf.Invalid, in words that repeat nothing of the
// location: a password that is not encoded may be anywhere in it.
func ParseLocation(location string) (Config, error) {
	config, err := parseLocation(location)
	if err == nil {
		err = config.check()
	}
	if err != nil {
		return Config{}, nf.E(nf.Invalid, "read", "the location of etcd", err)
	}
	return config, nil
}

func parseLocation(location string) (Config, error) {
	var config Config
	hosts, options, _ := strings.Cut(location, "?")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		if err := config.parseUser(hosts[:at]); err != nil {
			return Config{}, err
		}
		hosts = hosts[at+1:]
	}
	encrypted, err := config.parseOptions(options)
	if err != nil {
		return Config{}, err
	}
	scheme := "http"
	if encrypted {
		scheme = "https"
	}
	for i, host := range strings.Split(strings.TrimSuffix(hosts, "/"), ",") {
		host, ok := withPort(host)
		if !ok {
			return Config{}, fmt.Errorf("node %d is not written as host or host:port", i+1)
		}
		config.Endpoints = append(config.Endpoints, scheme+"://"+host)
	}
	return config, nil
}

// parseUser reads what stands before the @.
func (c *Config) parseUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	user, err1 := url.PathUnescape(user)
	password, err2 := url.PathUnescape(password)
	switch {
	case err1 != nil || err2 != nil || strings.Contains(text, "/"):
		return errors.New("the user or the password is not percent-encoded")
	case user == "" || password == "":
		return errors.New("before the @ there are a user, a colon and a password")
	}
	c.User, c.Password = user, nf.Secret(password)
	return nil
}

// parseOptions reads what follows the question mark, and tells whether the
// connection is encrypted.
func (c *Config) parseOptions(options string) (encrypted bool, err error) {
	values, err := url.ParseQuery(options)
	if err != nil {
		return false, errors.New("the options are not percent-encoded")
	}
	files := map[string]*string{"ca": &c.CA, "cert": &c.Cert, "key": &c.Key}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		file, known := files[name]
		given := values[name]
		switch {
		case len(given) != 1:
			return false, errors.New("an option is given twice")
		case name == "tls" && given[0] == "true":
		case name == "tls":
			return false, errors.New("tls is true or left out")
		case !known:
			return false, errors.New("the options are ca, cert, key and tls; a ? before them is written %3F")
		case given[0] == "":
			return false, errors.New("an option names no file")
		default:
			*file = given[0]
		}
	}
	return len(values) > 0, nil
}

// withPort returns host:port for a host that may have none.
func withPort(host string) (string, bool) {
	u, err := url.Parse("//" + host)
	if err != nil || u.Host != host || u.Hostname() == "" {
		return "", false
	}
	port := u.Port()
	if strings.HasSuffix(host, ":") {
		return "", false
	}
	if port == "" {
		port = defaultPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", false
	}
	return net.JoinHostPort(u.Hostname(), strconv.FormatUint(n, 10)), true
}
