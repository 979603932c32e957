// Package krb5 proves who we are by Kerberos: tickets from a keytab or a ticket
// cache, and the GSSAPI mechanism of SASL (RFC 4121, RFC 4752) on top of them.
// HDFS, Kafka and the Hive Metastore share it, its configuration and its words.
//
//	Identity ──► Tickets ──► Handshake ──► Layer
//	  options     login      who are you?   messages, sealed where the server wants it
//
// Invariants:
//
//   - KR1: a new connection gets a ticket that is good for it: the login is made
//     anew, from the keytab or cache as it is then, when less than half of the
//     ticket's life is left or after Forget.
//   - KR2: every wait ends with its context; what the library does behind it
//     ends by itself, within ten seconds for each KDC.
//   - KR3: a server is believed only after it has shown that it has the key of
//     its principal (mutual authentication).
//   - KR4: of the protections that the server offers the weakest is taken, which
//     is what the server's administrator asked for at least. In a protected
//     stream no message is taken twice, out of order, or changed.
//   - KR5: an error names the option below Identity.At, and has class config
//     when waiting does not mend it.
//
// Nothing runs in the background: the library's own renewal is not used, whose
// goroutines end with the process only.
package krb5
