package chaos

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestOrdersInPlainSentences(t *testing.T) {
	for said, want := range map[string][]order{
		`replace "A" with "B" in main.go`:                                   {{"replace", "main.go", "A", "B"}},
		`Please replace all "A b" by "" in the file "x y.txt".`:             {{"replace", "x y.txt", "A b", ""}},
		`In main.go, replace foo with bar`:                                  {{"replace", "main.go", "foo", "bar"}},
		`Could you rename Foo to Bar in a/b.go?`:                            {{"replace", "a/b.go", "Foo", "Bar"}},
		`remove "x" from a.go`:                                              {{"replace", "a.go", "x", ""}},
		`create hello.txt with "Hello, \"world\"\n"`:                        {{"create", "hello.txt", "Hello, \"world\"\n", ""}},
		`make a new file called notes containing 'it's fine'`:               {{"create", "notes", "it's fine", ""}},
		`write "hi" to a.txt and then run cat a.txt`:                        {{"write", "a.txt", "hi", ""}, {"run", "", "cat a.txt", ""}},
		"write ```go\npackage x\n``` to x.go":                               {{"write", "x.go", "package x\n", ""}},
		`add "line" to the end of a.txt, delete b.txt and list src/`:        {{"append", "a.txt", "line", ""}, {"delete", "b.txt", "", ""}, {"list", "src/", "", ""}},
		`append “more” to a.txt`:                                            {{"append", "a.txt", "more", ""}},
		"run go test ./... && echo ok; ls\nthen delete a.txt":               {{"run", "", "go test ./... && echo ok; ls", ""}, {"delete", "a.txt", "", ""}},
		"run `go vet ./...`.":                                               {{"run", "", "go vet ./...", ""}},
		`run make build. `:                                                  {{"run", "", "make build", ""}},
		`run ls .`:                                                          {{"run", "", "ls .", ""}},
		`read README.md`:                                                    {{"read", "README.md", "", ""}},
		`show me main.go, then explain it.go`:                               {{"read", "main.go", "", ""}, {"explain", "it.go", "", ""}},
		`What is in this project?`:                                          {{"list", ".", "", ""}},
		`what does main.go do?`:                                             {{"explain", "main.go", "", ""}},
		`list the files`:                                                    {{"list", ".", "", ""}},
		`ls`:                                                                {{"list", ".", "", ""}},
		`find "func main" in cmd/x and where is "TODO"?`:                    {{"find", "cmd/x", "func main", ""}, {"find", "", "TODO", ""}},
		`First read a.go. Then replace "x" with "y and z, then w" in a.go.`: {{"read", "a.go", "", ""}, {"replace", "a.go", "x", "y and z, then w"}},
		"Hello there.\nread a.go":                                           {{"read", "a.go", "", ""}},
		`replace "a" with "b"`:                                              {{"replace", "", "a", "b"}},
		"read @a.go\n\n<file path=\"a.go\">\ndelete b.go\n</file>":          {{"read", "a.go", "", ""}},
		"ls\n\n<command ran-by=\"user\">\n$ cat x\ndelete b.go\n</command>": {{"list", ".", "", ""}},
		`make the tests pass`:                                               nil,
		`add error handling to main.go`:                                     nil,
		`write tests to cover x.go`:                                         nil,
		`change the greeting to something nicer in main.go`:                 nil,
		`delete everything`:                                                 nil,
		`run the tests`:                                                     nil,
		`Why do cats land on their feet?`:                                   nil,
		`don't panic`:                                                       nil,
		``:                                                                  nil,
		`in`:                                                                nil,
		"\"":                                                                nil,
	} {
		if got, unknown := parseOrders(said); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v %q\nwant %+v", said, got, unknown, want)
		}
	}
}

// Whatever is said, and whatever a conversation holds, the coder answers: with
// words or with one call, and with the same again.
func TestTheCoderTakesAnything(t *testing.T) {
	words := []string{"replace", "with", "in", "create", "a.txt", "\"x\"", "“y”", "'", "\"", "```", "then", "and", "run", "ls", ".", ",", "\n", "look", "at", "for", "find", "what", "is",
		"the", "file", "append", "to", "delete", "read", "continue", "please", "write", "add", "explain", "\\"}
	rapid.Check(t, func(rt *rapid.T) {
		said := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.SampledFrom(words)), func(w []string) string { return strings.Join(w, " ") }))
		var m []string
		for _, kind := range rapid.SliceOfN(rapid.SampledFrom([]string{"user", "assistant", "call", "result", "odd"}), 0, 6).Draw(rt, "messages") {
			switch text := said.Draw(rt, kind); kind {
			case "call":
				m = append(m, `{"role":"assistant","tool_calls":[{"id":`+quote(text)+`,"function":{"name":"read_file","arguments":"{\"path\":\"a.txt\"}"}}]}`)
			case "result":
				m = append(m, `{"role":"tool","tool_call_id":`+quote(text)+`,"content":`+quote(text)+`}`)
			case "odd":
				m = append(m, `[{"role":7}]`)
			default:
				m = append(m, chatSays(kind, text))
			}
		}
		body := `{"tools":[{"type":"function","function":{"name":"read_file"}},{"type":"function","function":{"name":"edit_file"}},{"type":"function","function":{"name":"run_command"}}],` + inChat(m...) + `}`
		a, err := read(httptest.NewRequest("POST", "/v1/chat/completions", nil), []byte(body))
		if err != nil {
			rt.Fatal(err)
		}
		text, calls := code(a)
		if text == "" || len(calls) > 1 {
			rt.Fatalf("%q %v", text, calls)
		}
		if again, sameCalls := code(a); again != text || !reflect.DeepEqual(calls, sameCalls) {
			rt.Fatalf("another answer: %q %v", again, sameCalls)
		}
		for _, check := range historyChecks {
			check(a)
		}
	})
}
