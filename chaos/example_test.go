package chaos_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ninelives-ai/ninelives/chaos"
)

// A server whose first answer is cut and whose second is whole.
func Example() {
	srv := chaos.New(chaos.Scenario{Steps: []chaos.Step{{After: 10, End: chaos.Cut}, {}}})
	defer srv.Close()
	for range 2 {
		resp, err := http.Post(srv.URL()+"/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"any","stream":true,"messages":[{"role":"user","content":"Hi"}]}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		fmt.Println(err)
	}
	srv.Wait()
	for _, e := range srv.Log() {
		fmt.Println(e.Attempt, e.Did)
	}
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// unexpected EOF
	// <nil>
	// 1 200 stream, cut after 10 tokens
	// 2 200 stream
}

// The 429 asks for an hour; the log says when the client came back.
func ExampleServer_Log() {
	srv := chaos.New(chaos.Scenario{Steps: []chaos.Step{{Error: chaos.RateLimit, Hint: chaos.HintSeconds, Wait: time.Hour}, {}}})
	defer srv.Close()
	post := func() {
		resp, err := srv.Client().Post(chaos.MemoryURL+"/v1/messages", "application/json",
			strings.NewReader(`{"model":"any","max_tokens":99,"messages":[]}`))
		if err == nil {
			resp.Body.Close()
		}
	}
	post()
	post()
	srv.Wait()
	log := srv.Log()
	fmt.Println(log[0].Status, log[1].Status, log[1].At.Sub(log[0].At) < time.Hour)
	// Output: 429 200 true
}
