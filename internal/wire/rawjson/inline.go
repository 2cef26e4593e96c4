package rawjson

import (
	"encoding/base64"
	"strings"
)

// DataURL reads a base64 data URL. It reports false for any other URL, and for
// a spelling that AppendDataURL would not give back, so that such a one can be
// kept as it is.
func DataURL(url string) (mediaType string, data []byte, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", nil, false
	}
	mediaType, text, ok := strings.Cut(rest, ";base64,")
	if !ok || mediaType == "" || strings.ContainsAny(mediaType, ",") {
		return "", nil, false
	}
	data, ok = Base64(text)
	return mediaType, data, ok
}

// AppendDataURL appends a base64 data URL to dst.
func AppendDataURL(dst []byte, mediaType string, data []byte) []byte {
	dst = append(dst, "data:"...)
	dst = append(dst, mediaType...)
	dst = append(dst, ";base64,"...)
	return base64.StdEncoding.AppendEncode(dst, data)
}

// Base64 reads standard base64 in its canonical spelling; it reports false for
// any other, and for nothing.
func Base64(text string) ([]byte, bool) {
	if text == "" || len(text)%4 != 0 || strings.ContainsAny(text, "\r\n") {
		return nil, false
	}
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	return data, err == nil
}

// EncodeBase64 writes standard base64.
func EncodeBase64(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
