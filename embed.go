package ninelives

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
)

// Embedder turns texts into vectors.
type Embedder interface {
	// Name is "provider/model" of a single candidate, or a chain's own name.
	Name() string
	// Embed makes one call. The error is a *Fault, found with errors.As. The
	// answer has one vector for each input, in the order of the inputs.
	Embed(ctx context.Context, req *EmbedRequest) (*EmbedResponse, error)
}

// EmbedderOf finds what embeds with a Model, looking through wrappers; for a
// chain it is the first one. It reports false if there is none.
func EmbedderOf(m Model) (Embedder, bool) {
	for m != nil {
		if e, ok := m.(Embedder); ok {
			return e, true
		}
		switch u := m.(type) {
		case interface{ Unwrap() Model }:
			m = u.Unwrap()
		case interface{ Unwrap() []Model }:
			models := u.Unwrap()
			if len(models) == 0 {
				return nil, false
			}
			m = models[0]
		default:
			return nil, false
		}
	}
	return nil, false
}

// The encodings of vectors; the empty one is the provider's default, which is
// EncodingFloat.
const (
	EncodingFloat  = "float"  // an array of numbers
	EncodingBase64 = "base64" // of little-endian 32-bit floats
)

// EmbedRequest asks for the vectors of some inputs. The zero value of every
// field means "the provider's default". An Embedder never changes the request
// it is given.
type EmbedRequest struct {
	// Model is the model name that the caller asked for; a single provider model
	// sends its own name regardless.
	Model string
	// Texts are the inputs, or Tokens are: each a list of the model's own tokens.
	Texts  []string
	Tokens [][]int
	// Dimensions is the wanted length of a vector, where the model has a choice.
	Dimensions int
	// Encoding is the wanted form of the vectors.
	Encoding string
	// User is the caller's own id of its end user.
	User string
	// Extra holds the top-level wire fields that have no word here.
	Extra Extra
	// Raw is the request as a client of a wire protocol sent it; nil where it was
	// made here. Its Protocol is OpenAIChat for OpenAI's embeddings. An embedder of
	// the same family sends the bytes on as they are, but for the model's name.
	Raw *Raw
	// Attempt is set by a healing driver for one attempt; callers leave it nil.
	Attempt *Attempt
}

// Inputs is the number of vectors that are asked for.
func (r *EmbedRequest) Inputs() int { return len(r.Texts) + len(r.Tokens) }

// EmbedResponse is the answer to an EmbedRequest.
type EmbedResponse struct {
	// Vectors are JSON values, one for each input: an array of numbers or a
	// base64 string, verbatim as the provider wrote it. See Floats.
	Vectors [][]byte
	// Model is the model name as the provider reports it.
	Model string
	Usage Usage
	// Candidate is the name of the candidate that served.
	Candidate string
	// IsFallback says that it was not the first candidate of the chain.
	IsFallback bool
	// Attempts is the number of requests that were made for this call.
	Attempts int
	// Raw is the whole answer in the provider's bytes where the request's Raw was
	// sent as it is; else nil.
	Raw []byte
}

// Floats is vector i in numbers, whatever its encoding.
func (r *EmbedResponse) Floats(i int) ([]float32, error) {
	if i < 0 || i >= len(r.Vectors) {
		return nil, fmt.Errorf("there is no vector %d: the answer has %d", i, len(r.Vectors))
	}
	v := r.Vectors[i]
	if len(v) == 0 || v[0] != '"' {
		var floats []float32
		if err := json.Unmarshal(v, &floats); err != nil {
			return nil, fmt.Errorf("vector %d is no list of numbers: %w", i, err)
		}
		return floats, nil
	}
	var text string
	if err := json.Unmarshal(v, &text); err != nil {
		return nil, fmt.Errorf("vector %d is no string: %w", i, err)
	}
	bytes, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(bytes)%4 != 0 {
		return nil, fmt.Errorf("vector %d is not base64 of 32-bit floats", i)
	}
	floats := make([]float32, len(bytes)/4)
	for k := range floats {
		floats[k] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*k:]))
	}
	return floats, nil
}
