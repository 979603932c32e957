package tlsopt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/config"
)

// issue makes a certificate that signs itself, and its key.
func issue(t *testing.T, serial int64, until time.Time) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "sink"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// shown is the serial number of what a server is shown that asks for a
// certificate.
func shown(t *testing.T, server tls.Certificate, client *tls.Config) int64 {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	done := make(chan error, 1)
	go func() { done <- tls.Client(a, client).Handshake() }()
	s := tls.Server(b, &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequestClientCert, MaxVersion: tls.VersionTLS12})
	if err := s.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	peers := s.ConnectionState().PeerCertificates
	if len(peers) == 0 {
		return 0
	}
	return peers[0].SerialNumber.Int64()
}

// TestRenewed: the next handshake shows the certificate that the files have then,
// and the one before while they do not fit.
func TestRenewed(t *testing.T) {
	cert, key := issue(t, 9, time.Now().Add(time.Hour))
	server, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &config.TLS{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "cert.pem"), ServerName: "localhost"}
	c.Key.File = filepath.Join(dir, "key.pem")
	put(t, c.CA, cert)
	put(t, c.Cert, nil)
	put(t, c.Key.File, nil)
	if _, err := Client("x.tls", c); err == nil || !strings.Contains(err.Error(), "x.tls.") {
		t.Fatalf("empty files: %v", err)
	}
	cert, key = issue(t, 1, time.Now().Add(-time.Hour))
	put(t, c.Cert, cert)
	put(t, c.Key.File, key)
	if _, err := Client("x.tls", c); err == nil || !strings.Contains(err.Error(), "x.tls.cert") || !strings.Contains(err.Error(), "expired") {
		t.Fatalf("an expired certificate: %v", err)
	}
	cert, key = issue(t, 2, time.Now().Add(time.Hour))
	put(t, c.Cert, cert)
	put(t, c.Key.File, key)
	client, err := Client("x.tls", c)
	if err != nil {
		t.Fatal(err)
	}
	client = client.Clone() // as libraries do
	if n := shown(t, server, client); n != 2 {
		t.Fatalf("certificate %d is shown", n)
	}
	cert, key = issue(t, 3, time.Now().Add(time.Hour))
	put(t, c.Cert, cert)
	if n := shown(t, server, client); n != 2 {
		t.Fatalf("certificate %d is shown while the key is the old one", n)
	}
	put(t, c.Key.File, key)
	if n := shown(t, server, client); n != 3 {
		t.Fatalf("certificate %d is shown after the renewal", n)
	}
	if err := os.Remove(c.Cert); err != nil {
		t.Fatal(err)
	}
	if n := shown(t, server, client); n != 3 {
		t.Fatalf("certificate %d is shown after its file was removed", n)
	}
}
