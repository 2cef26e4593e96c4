package chaos

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// signer proves that reasoning comes from this server, as providers do with
// their signatures and encrypted contents: one of another server, of another
// protocol, or (Messages) over another text is none.
type signer [32]byte

func newSigner() signer {
	var k signer
	rand.Read(k[:])
	return k
}

// sign proves a text that was said in a protocol. The nonce tells apart what
// has no text, and travels inside.
func (k signer) sign(p protocol, nonce, text string) string {
	return base64.StdEncoding.EncodeToString([]byte("sim." + nonce + "." + string(k.mac(p, nonce, text))))
}

// verify reports whether sign made the signature.
func (k signer) verify(p protocol, text, signature string) bool {
	data, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	rest, ok := strings.CutPrefix(string(data), "sim.")
	nonce, mac, found := strings.Cut(rest, ".")
	return ok && found && hmac.Equal([]byte(mac), k.mac(p, nonce, text))
}

func (k signer) mac(p protocol, nonce, text string) []byte {
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte(string(p) + "\x00" + nonce + "\x00" + text))
	return h.Sum(nil)[:18]
}
