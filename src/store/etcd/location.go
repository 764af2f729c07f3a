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
// User, password and options are percent-encoded as in any URL. The default
// port is 2379. The connection is encrypted if one of the options is given: ca
// is the authority that signed the nodes' certificates, cert and key are the
// client's certificate, and tls=true alone trusts the authorities of the
// system. It returns nf.Invalid if the location is wrong. The message repeats
// no part of the location, because an unencoded password may be anywhere in it.
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
			return Config{}, fmt.Errorf("node %d must be host or host:port", i+1)
		}
		config.Endpoints = append(config.Endpoints, scheme+"://"+host)
	}
	return config, nil
}

// parseUser parses the part before the @.
func (c *Config) parseUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	user, err1 := url.PathUnescape(user)
	password, err2 := url.PathUnescape(password)
	switch {
	case err1 != nil || err2 != nil || strings.Contains(text, "/"):
		return errors.New("the user or the password is not percent-encoded")
	case user == "" || password == "":
		return errors.New("the part before the @ must be user:password")
	}
	c.User, c.Password = user, nf.Secret(password)
	return nil
}

// parseOptions parses the part after the question mark, and reports whether the
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
			return false, errors.New("tls must be true, or omitted")
		case !known:
			return false, errors.New("options are ca, cert, key and tls; write a ? in the user or the password as %3F")
		case given[0] == "":
			return false, errors.New("an option has no file name")
		default:
			*file = given[0]
		}
	}
	return len(values) > 0, nil
}

// withPort returns host:port, with the default port if host has none.
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
