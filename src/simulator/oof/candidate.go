package oof

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const maxBody = 32 << 20 // bytes of a response

// candidate is a cloud region that may be chosen.
type candidate struct {
	owner, id string
	region    regionDocument
	choices   []Choice
	step      Step // that rejects it
	reason    string
}

func (c *candidate) reject(step Step, format string, args ...any) {
	c.step, c.reason = step, fmt.Sprintf(format, args...)
}

// score returns the sum of the scores of its flavors.
func (c *candidate) score() (sum int) {
	for _, choice := range c.choices {
		sum += choice.score
	}
	return sum
}

// regionDocument is a cloud-region of A&AI.
type regionDocument struct {
	Owner   string `json:"cloud-owner"`
	ID      string `json:"cloud-region-id"`
	Version string `json:"cloud-region-version"`
	Edges   struct {
		Edges []struct {
			To   string `json:"related-to"`
			Link string `json:"related-link"`
		} `json:"relationship"`
	} `json:"relationship-list"`
}

// candidates returns the regions of A&AI.
func (s *Simulator) candidates(ctx context.Context) (out []*candidate, err error) {
	var list struct {
		Regions []regionDocument `json:"cloud-region"`
	}
	if _, err := s.read(ctx, "/cloud-infrastructure/cloud-regions/?depth=0", &list); err != nil {
		return nil, err
	}
	for _, r := range list.Regions {
		if s.cfg.Allow(r.Owner, r.ID) {
			out = append(out, &candidate{owner: r.Owner, id: r.ID, region: r})
		}
	}
	return out, nil
}

// checkRegion rejects a region that HAS does not consider.
func (s *Simulator) checkRegion(ctx context.Context, c *candidate, _ Demand) error {
	if c.region.Version == "" || c.id == "" {
		c.reject(StepRegion, "it has no cloud-region-version")
		return nil
	}
	var links []string
	for _, e := range c.region.Edges.Edges {
		if e.To == "complex" {
			links = append(links, e.Link)
		}
	}
	if len(links) != 1 {
		c.reject(StepRegion, "it has %d complexes, and must have one", len(links))
		return nil
	}
	_, link, found := strings.Cut(links[0], fmt.Sprintf("/aai/v%d", s.cfg.Version)) // HAS cuts it so
	if !found {
		s.violate("the link %q has not the version of the request", links[0])
	}
	site := map[string]any{}
	if exists, err := s.read(ctx, link, &site); err != nil || !exists {
		c.reject(StepRegion, "its complex does not exist")
		return err
	}
	for _, name := range []string{"latitude", "longitude", "city", "country", "complex-name"} {
		if text, _ := site[name].(string); text == "" {
			c.reject(StepRegion, "its complex has no %s", name)
			return nil
		}
	}
	return nil
}

// read reads a path of A&AI below its version, and reports whether it exists.
func (s *Simulator) read(ctx context.Context, path string, into any) (exists bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/aai/v%d%s", s.cfg.AAI, s.cfg.Version, path), nil)
	if err != nil {
		return false, fmt.Errorf("cannot read %s of A&AI: %w", path, err)
	}
	req.SetBasicAuth(s.cfg.User, s.cfg.Password)
	status, err := s.send(req, into)
	switch {
	case err != nil:
		return false, fmt.Errorf("cannot read %s of A&AI: %w", path, err)
	case status == http.StatusNotFound: // also of an empty collection
		return false, nil
	case status != http.StatusOK:
		return false, fmt.Errorf("cannot read %s of A&AI: status %d", path, status)
	}
	return true, nil
}

// send sends a request with the headers of HAS, and decodes the response of one that
// succeeded.
func (s *Simulator) send(req *http.Request, into any) (status int, err error) {
	for name, value := range map[string]string{"X-FromAppId": appID, "X-TransactionId": rand.Text(), "Accept": "application/json"} {
		req.Header.Set(name, value)
	}
	resp, err := s.cfg.Client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp.StatusCode, err
	}
	return resp.StatusCode, json.NewDecoder(bytes.NewReader(body)).Decode(into)
}

// join returns a path from keys, which are escaped.
func join(path string, keys ...string) string {
	for _, key := range keys {
		path += "/" + url.PathEscape(key)
	}
	return path
}
