package krb5

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
)

// The library hands on what a KDC says as text only.
func says(err error, any ...string) bool {
	for _, s := range any {
		if strings.Contains(err.Error(), s) {
			return true
		}
	}
	return false
}

// brief is the end of the library's chain of words, where it says what happened.
func brief(err error) error {
	text := err.Error()
	if i := strings.LastIndex(text, " < "); i >= 0 {
		text = text[i+len(" < "):]
	}
	for _, start := range []string{"KRB Error: ", "communication error", "failed to communicate", "clock skew", "error decrypting: "} {
		if i := strings.Index(text, start); i >= 0 {
			return errors.New(text[i:])
		}
	}
	return errors.New(text)
}

// loginError tells what the KDC has refused, which stays, from a KDC that is
// not there, which passes (KR5).
func (id *Identity) loginError(who string, err error) error {
	switch {
	case says(err, "KDC_ERR_C_PRINCIPAL_UNKNOWN"):
		return fault.Wrap(fault.Config, "check name and realm; kadmin's listprincs has all", fmt.Errorf("%s.principal: the KDC does not know %s: %w", id.At, who, brief(err)))
	case says(err, "KDC_ERR_PREAUTH_FAILED", "Decrypting_Error", "KRB_AP_ERR_BAD_INTEGRITY", "KDC_ERR_ETYPE_NOSUPP", "error getting key from credentials"):
		return fault.Wrap(fault.Config, "export the keytab again: it must have the newest key, of a type that the KDC uses",
			fmt.Errorf("%s.keytab: %s does not log in %s (%s.principal): %w", id.At, id.Keytab, who, id.At, brief(err)))
	case says(err, "KDC_ERR_CLIENT_REVOKED", "KDC_ERR_KEY_EXPIRED", "KDC_ERR_NAME_EXP"):
		return fault.Wrap(fault.Config, "have the realm's administrator unlock or renew it", fmt.Errorf("%s.principal: the KDC refuses %s: %w", id.At, who, brief(err)))
	}
	return id.kdcError("log in "+who, err)
}

// ticketError is about a ticket for a service.
func (id *Identity) ticketError(service string, err error) error {
	if says(err, "KDC_ERR_S_PRINCIPAL_UNKNOWN") {
		return fault.Wrap(fault.Config, "it is made of the service's name and the host of the address: call the server by the name that its own principal has",
			fmt.Errorf("%s.service: the KDC does not know the server as %s: %w", id.At, service, brief(err)))
	}
	return id.kdcError("a ticket for "+service, err)
}

// kdcError is about any question to a KDC.
func (id *Identity) kdcError(what string, err error) error {
	switch {
	case says(err, "KRB_AP_ERR_SKEW", "clock skew"):
		return fault.Wrap(fault.Config, "set the clock, by NTP best", fmt.Errorf("%s: the clocks of this host and of the KDC differ: %s: %w", id.At, what, brief(err)))
	case says(err, "no KDCs defined", "no KDC SRV records"):
		return id.confError(brief(err))
	case says(err, "communication error with KDC", "failed to communicate with KDC", "error sending to a KDC", "no KDC"):
		return fault.Wrap(fault.Retry, "is the KDC up, and is it the one that krb5.conf names for the realm?", fmt.Errorf("%s.krb5_conf: no KDC of %s answers: %s: %w", id.At, id.confPath(), what, brief(err)))
	}
	return fmt.Errorf("%s: %s: %w", id.At, what, err)
}

// confError is about a krb5.conf that says too little.
func (id *Identity) confError(err error) error {
	return fault.New(fault.Config, "add the realm's kdc there, or check the realm in "+id.At+".principal", "%s.krb5_conf: %s does not say where the KDCs are: %w", id.At, id.confPath(), err)
}

// waited is the error of a wait that its context has ended.
func (id *Identity) waited(err error) error {
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Wrap(fault.Retry, "is the KDC up, and is it the one that krb5.conf names for the realm?", fmt.Errorf("%s.krb5_conf: no KDC of %s answers in time: %w", id.At, id.confPath(), err))
}
