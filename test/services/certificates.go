package services

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// MakeCertificates fills a directory with a throw-away authority (ca.pem), and
// for server, client and expired a certificate (NAME.pem), its key (NAME.key),
// and both in one file (NAME.both). The server's and the expired one are for a
// host and for loopback.
func MakeCertificates(dir, host string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	now := time.Now()
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &key.PublicKey, key)
	if err != nil {
		return err
	}
	for i, name := range []string{"server", "client", "expired"} {
		cert := &x509.Certificate{SerialNumber: big.NewInt(int64(i) + 2), Subject: pkix.Name{CommonName: name},
			NotBefore: now.Add(-2 * time.Hour), NotAfter: now.AddDate(10, 0, 0), KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
		if name != "client" {
			cert.DNSNames, cert.IPAddresses = []string{host}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		}
		if name == "expired" {
			cert.NotAfter = now.Add(-time.Hour)
		}
		if err := issue(filepath.Join(dir, name), cert, authority, key); err != nil {
			return err
		}
	}
	// Last, for it says that all are there.
	return os.WriteFile(filepath.Join(dir, "ca.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644)
}

func issue(path string, cert, authority *x509.Certificate, by *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, authority, &key.PublicKey, by)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	certText := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyText := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	for suffix, text := range map[string][]byte{".pem": certText, ".key": keyText, ".both": append(keyText[:len(keyText):len(keyText)], certText...)} {
		if err := os.WriteFile(path+suffix, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
