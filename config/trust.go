package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/goccy/go-yaml"

	"github.com/ninelives-ai/ninelives/provider"
)

// ErrUntrusted is the cause of a problem about a setting of a project's file
// that was left out because its user has not said that the file is trusted.
var ErrUntrusted = errors.New("the file is not trusted")

// IsProject reports that a file is a project's: it comes with what was cloned,
// and not from its user. Its name says so, wherever it lies.
func IsProject(path string) bool { return filepath.Base(path) == projectFile }

// Read gives the text of a configuration file, for its user to look at before
// trusting it.
func Read(path string) ([]byte, error) { return readText(path) }

// Trust records that the user trusts a project's file as it was shown (text;
// nil takes it as it is now). It holds for this file at this place until one
// byte of it changes. The record is a file of its own in the user's directory
// ($XDG_CONFIG_HOME/ninelives/trusted, else ~/.config/ninelives/trusted).
func Trust(path string, text []byte, env provider.Env) error {
	if text == nil {
		var err error
		if text, err = readText(path); err != nil {
			return err
		}
	}
	record, place, err := recordOf(path, env)
	if err != nil {
		return err
	}
	content, err := yaml.Marshal(trustRecord{Path: place, SHA256: hashOf(text)})
	if err != nil {
		return fmt.Errorf("%s cannot be trusted: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(record), 0o700); err != nil {
		return fmt.Errorf("%s cannot be trusted: %w", path, err)
	}
	if err := replace(record, content); err != nil {
		return fmt.Errorf("%s cannot be trusted: %w", path, err)
	}
	return nil
}

// replace writes a file so that whoever reads it finds the old or the new one.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // for the user alone
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// Distrust takes the user's trust in a file back. It is no error if there was none.
func Distrust(path string, env provider.Env) error {
	record, _, err := recordOf(path, env)
	if err != nil {
		return err
	}
	if err := os.Remove(record); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the trust in %s cannot be taken back: %w", path, err)
	}
	return nil
}

// IsTrusted reports that the user trusts a project's file with this text.
func IsTrusted(path string, text []byte, env provider.Env) bool {
	record, place, err := recordOf(path, env)
	if err != nil {
		return false
	}
	t, err := readRecord(record)
	return err == nil && t.Path == place && t.SHA256 == hashOf(text)
}

// trustRecord is a file that the user trusts, as its record has it.
type trustRecord struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

const trustedDir = "trusted"

func readRecord(path string) (trustRecord, error) {
	var t trustRecord
	content, err := readText(path)
	if err != nil {
		return t, err
	}
	return t, yaml.Unmarshal(content, &t)
}

// recordOf gives the file that records the trust in another, and where that
// one really is.
func recordOf(path string, env provider.Env) (record, place string, err error) {
	dir := UserDir(env)
	if dir == "" {
		return "", "", errors.New("there is no directory for your own settings: set HOME or XDG_CONFIG_HOME to an absolute path")
	}
	place, err = filepath.Abs(path)
	if err == nil {
		place, err = filepath.EvalSymlinks(place)
	}
	if err != nil {
		return "", "", fmt.Errorf("%s cannot be found: %w", path, err)
	}
	return filepath.Join(dir, trustedDir, hashOf([]byte(place))[:32]+".yaml"), place, nil
}

func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
