package services

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Service is a set of daemons that are of use together only.
type Service struct {
	Name    string
	About   string
	Default bool // part of `up` without names
	// Needs are the services that must be up before.
	Needs []string
	// Up starts the daemons and returns when the service answers; what runs
	// already is left alone (V2).
	Up func(h *Home) error
	// Prefix of the names of its daemons, with which `down` finds them.
	Prefix string
	// Down does what stopping the daemons and removing data/NAME does not.
	Down func(h *Home) error
}

var all []Service

// register is called by the file of each service, at init.
func register(s Service) {
	if s.Prefix == "" {
		s.Prefix = s.Name
	}
	all = append(all, s)
}

// All are the services, sorted by name.
func All() []Service {
	slices.SortFunc(all, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// find is a service by its name.
func find(name string) (*Service, error) {
	names := make([]string, 0, len(all))
	for i := range All() {
		if all[i].Name == name {
			return &all[i], nil
		}
		names = append(names, all[i].Name)
	}
	return nil, fmt.Errorf("no service %q; there are: %s", name, strings.Join(names, ", "))
}

// chosen are the named services, or the default ones, each after what it needs.
func chosen(names []string) ([]*Service, error) {
	if len(names) == 0 {
		for _, s := range All() {
			if s.Default {
				names = append(names, s.Name)
			}
		}
	}
	var out []*Service
	var add func(names []string) error
	add = func(names []string) error {
		for _, name := range names {
			s, err := find(name)
			if err != nil {
				return err
			}
			if slices.Contains(out, s) {
				continue
			}
			if err := add(s.Needs); err != nil {
				return err
			}
			out = append(out, s)
		}
		return nil
	}
	return out, add(names)
}

// Up starts services and what they need, one after the other, and tells say of
// each.
func (h *Home) Up(say func(string), names ...string) error {
	services, err := chosen(names)
	if err != nil {
		return err
	}
	for _, s := range services {
		say(s.Name + ": " + s.About)
		if err := s.Up(h); err != nil {
			return fmt.Errorf("service %s: %w", s.Name, err)
		}
	}
	return nil
}

// Down stops services (all that ever ran when none is named) and removes their
// data; downloads stay.
func (h *Home) Down(names ...string) error {
	if len(names) == 0 {
		for _, s := range All() {
			names = append(names, s.Name)
		}
	}
	for _, name := range names {
		s, err := find(name)
		if err != nil {
			return err
		}
		if err := h.down(s); err != nil {
			return fmt.Errorf("service %s: %w", name, err)
		}
	}
	return nil
}

func (h *Home) down(s *Service) error {
	daemons, err := h.Daemons()
	if err != nil {
		return err
	}
	for _, d := range daemons {
		if d != s.Prefix && !strings.HasPrefix(d, s.Prefix+"-") {
			continue
		}
		// Its data goes too, so there is nothing it has to finish.
		if err := h.Kill(d); err != nil {
			return err
		}
		if err := os.Remove(h.note(d)); err != nil {
			return err
		}
		if err := os.RemoveAll(h.log(d)); err != nil {
			return err
		}
	}
	if s.Down != nil {
		if err := s.Down(h); err != nil {
			return err
		}
	}
	return os.RemoveAll(h.Path("data", s.Name))
}
