package journal

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
)

var errPassphrase = errors.New("the passphrase for its contents is too short")

// ErrSealed: the content is encrypted, and the key for it was not given.
var ErrSealed = errors.New("its content is encrypted, and the key was not given or is another one")

const (
	// rounds of PBKDF2 with SHA-256 make a passphrase dear to guess.
	rounds = 600_000
	// minPassphrase is the length of the shortest passphrase in bytes.
	minPassphrase = 12
	keySize       = 32
	proofText     = "ninelives journal"
)

// sealer seals contents with one key.
type sealer struct {
	id   string
	aead cipher.AEAD // AES-256-GCM, which puts a random nonce before the text
}

// keyring finds the keys that contents of this journal are sealed with.
type keyring struct {
	db      *sql.DB
	secrets []string

	mu    sync.Mutex
	known map[string]*sealer // nil: none of the secrets is its key
}

// seal is a row about a key.
type seal struct {
	id     string
	rounds int
	salt   []byte
	proof  []byte
}

// secretKey reads a key of 32 bytes in hexadecimal or base64; what is neither
// is a passphrase.
func secretKey(secret string) (key []byte, isKey bool) {
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString, base64.StdEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(strings.TrimSpace(secret)); err == nil && len(key) == keySize {
			return key, true
		}
	}
	return nil, false
}

// derive makes the key of this journal of a secret.
func (s seal) derive(secret string) (*sealer, error) {
	key, isKey := secretKey(secret)
	var err error
	switch {
	case isKey && s.rounds == 0:
		key, err = hkdf.Key(sha256.New, key, s.salt, proofText, keySize)
	case !isKey && s.rounds > 0:
		key, err = pbkdf2.Key(sha256.New, secret, s.salt, s.rounds, keySize)
	default:
		return nil, ErrSealed
	}
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &sealer{id: s.id, aead: aead}, err
}

// fits gives the sealer if the secret is the one of the row.
func (s seal) fits(secret string) (*sealer, bool) {
	sealer, err := s.derive(secret)
	if err != nil {
		return nil, false
	}
	text, err := sealer.aead.Open(nil, nil, s.proof, []byte(s.id))
	return sealer, err == nil && string(text) == proofText
}

// find gives the key of that name: ErrSealed if none of the secrets is it.
func (k *keyring) find(id string) (cipher.AEAD, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, known := k.known[id]
	if !known {
		row := seal{id: id}
		err := k.db.QueryRow(`SELECT rounds, salt, proof FROM seals WHERE id = ?`, id).Scan(&row.rounds, &row.salt, &row.proof)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		for _, secret := range k.secrets {
			if got, fits := row.fits(secret); err == nil && fits {
				s = got
				break
			}
		}
		k.known[id] = s
	}
	if s == nil {
		return nil, ErrSealed
	}
	return s.aead, nil
}

// own gives the sealer of the first secret, and makes it known to the journal
// where it is not.
func (k *keyring) own(ctx context.Context, db *sql.DB) (*sealer, error) {
	secret := k.secrets[0]
	_, isKey := secretKey(secret)
	if !isKey && len(secret) < minPassphrase {
		return nil, errPassphrase
	}
	rows, err := k.rows(ctx, isKey)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if s, fits := row.fits(secret); fits {
			k.known[s.id] = s
			return s, nil
		}
	}
	row := seal{id: strings.ToLower(rand.Text())[:8], salt: make([]byte, keySize)}
	if !isKey {
		row.rounds = rounds
	}
	_, _ = rand.Read(row.salt) // never fails
	s, err := row.derive(secret)
	if err != nil {
		return nil, err
	}
	row.proof = s.aead.Seal(nil, nil, []byte(proofText), []byte(row.id))
	if _, err := db.ExecContext(ctx, `INSERT INTO seals (id, rounds, salt, proof) VALUES (?, ?, ?, ?)`, row.id, row.rounds, row.salt, row.proof); err != nil {
		return nil, err
	}
	k.known[s.id] = s
	return s, nil
}

// rows are the newest keys of a sort.
func (k *keyring) rows(ctx context.Context, isKey bool) (all []seal, err error) {
	rows, err := k.db.QueryContext(ctx, `SELECT id, rounds, salt, proof FROM seals WHERE (rounds = 0) = ? ORDER BY rowid DESC LIMIT 16`, isKey)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var s seal
		if err := rows.Scan(&s.id, &s.rounds, &s.salt, &s.proof); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}
