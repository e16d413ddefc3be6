package keyring

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"time"
)

// CertificateYears is how long certificates hold.
const CertificateYears = 10

// makeAuthorities makes the rack's certificate authority and the servers' certificates.
func (r *Ring) makeAuthorities(hosts []string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ca, err := template("proofrack authority")
	if err != nil {
		return err
	}
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	if err := r.addPair("tls/ca", ca, ca, key, key); err != nil {
		return err
	}
	for _, name := range []string{"nats", "redis"} {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return err
		}
		leaf, err := template(name)
		if err != nil {
			return err
		}
		leaf.KeyUsage = x509.KeyUsageDigitalSignature
		// NATS servers of one rack are clients of each other.
		leaf.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
		for _, host := range hosts {
			if ip := net.ParseIP(host); ip != nil {
				leaf.IPAddresses = append(leaf.IPAddresses, ip)
			} else {
				leaf.DNSNames = append(leaf.DNSNames, host)
			}
		}
		if err := r.addPair("tls/"+name, leaf, ca, own, key); err != nil {
			return err
		}
	}
	return nil
}

func template(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: []string{"proofrack"}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(CertificateYears, 0, 0),
	}, nil
}

// addPair writes a certificate and its key.
func (r *Ring) addPair(name string, c, parent *x509.Certificate, own, signer *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &own.PublicKey, signer)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		return err
	}
	return errors.Join(
		r.add(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), publicMode),
		r.add(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), secretMode))
}
