package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// client is the least that an agent is: it sends the conversation, runs the
// tools on files in memory, and goes on until there is nothing to call.
type client struct {
	t      *testing.T
	srv    *Server
	p      protocol
	stream bool
	files  map[string]string
	tools  []string // offered

	history []string          // messages in the protocol's words
	calls   []string          // "name arguments" in order
	beside  []string          // what was said beside calls
	answers map[string]string // by tool: what it answers instead
	barred  bool              // no tool may be called
}

var clientTools = map[string]string{
	"read_file":   `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`,
	"list_dir":    `{"type":"object","properties":{"path":{"type":"string"}}}`,
	"write_file":  `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"}}}`,
	"edit_file":   `{"type":"object","properties":{"path":{"type":"string"},"old_text":{"type":"string"},"new_text":{"type":"string"},"replace_all":{"type":"boolean"}}}`,
	"delete_file": `{"type":"object","properties":{"path":{"type":"string"}}}`,
	"grep":        `{"type":"object","properties":{"pattern":{"type":"string"},"path":{"type":"string"}}}`,
	"run_command": `{"type":"object","properties":{"command":{"type":"string"}}}`,
}

// run plays a tool, with the words of such tools.
func (c *client) run(name, args string) string {
	if s, ok := c.answers[name]; ok {
		return s
	}
	var a struct {
		Path, Content, Old, New, Pattern, Command string
		All                                       bool `json:"replace_all"`
	}
	var raw map[string]any
	json.Unmarshal([]byte(args), &raw)
	json.Unmarshal([]byte(args), &a)
	a.Old, a.New = text(raw["old_text"]), text(raw["new_text"])
	content, there := c.files[a.Path]
	switch name {
	case "list_dir":
		var b strings.Builder
		for _, f := range slices.Sorted(maps.Keys(c.files)) {
			if path.Dir(f) == path.Clean(a.Path) {
				fmt.Fprintf(&b, "%s  %d bytes\n", path.Base(f), len(c.files[f]))
			}
		}
		return b.String()
	case "write_file":
		c.files[a.Path] = a.Content
		return "Created " + a.Path + "."
	case "grep":
		re := regexp.MustCompile(a.Pattern)
		for f, s := range c.files {
			if re.MatchString(s) {
				return f + ":1: found"
			}
		}
		return "Nothing matches."
	case "run_command":
		return "exit code 0\n" + a.Command + " ran"
	}
	if !there {
		hint := ""
		for f := range c.files {
			if path.Base(f) == path.Base(a.Path) {
				hint = fmt.Sprintf("; did you mean %q?", f)
			}
		}
		return "Error: " + a.Path + " does not exist" + hint
	}
	switch name {
	case "read_file":
		var b strings.Builder
		for i, l := range strings.Split(strings.TrimSuffix(content, "\n"), "\n") {
			fmt.Fprintf(&b, "%6d\t%s\n", i+1, l)
		}
		return b.String()
	case "delete_file":
		delete(c.files, a.Path)
		return "Deleted " + a.Path + "."
	case "edit_file":
		n := strings.Count(content, a.Old)
		switch {
		case n == 0:
			return "Error: old_text does not stand in " + a.Path
		case n > 1 && !a.All:
			return fmt.Sprintf("Error: old_text stands %d times in %s", n, a.Path)
		}
		c.files[a.Path] = strings.ReplaceAll(content, a.Old, a.New)
		return fmt.Sprintf("Edited %s: %d replacement(s).", a.Path, n)
	}
	return "Error: no such tool"
}

func (c *client) body() (string, string) {
	conversation := strings.Join(c.history, ",")
	var tools []string
	for _, name := range c.tools {
		schema := clientTools[name]
		tools = append(tools, map[protocol]string{
			chat:      `{"type":"function","function":{"name":"` + name + `","parameters":` + schema + `}}`,
			responses: `{"type":"function","name":"` + name + `","parameters":` + schema + `}`,
			messages:  `{"name":"` + name + `","input_schema":` + schema + `}`,
			gemini:    `{"name":"` + name + `","parametersJsonSchema":` + schema + `}`,
		}[c.p])
	}
	offered := strings.Join(tools, ",")
	url, body := request(c.p, "coder", c.stream, "")
	stream := fmt.Sprintf(`{"model":"coder","stream":%v,`, c.stream)
	none := ""
	if c.barred {
		none = map[protocol]string{
			chat:      `"tool_choice":"none",`,
			responses: `"tool_choice":"none",`,
			messages:  `"tool_choice":{"type":"none"},`,
			gemini:    `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},`,
		}[c.p]
	}
	stream += none
	switch c.p {
	case chat:
		body = stream + `"tools":[` + offered + `],"messages":[{"role":"system","content":"You are an agent."},` + conversation + `]}`
	case responses:
		body = stream + `"instructions":"You are an agent.","tools":[` + offered + `],"input":[` + conversation + `]}`
	case messages:
		body = stream + `"max_tokens":4096,"system":"You are an agent.","tools":[` + offered + `],"messages":[` + conversation + `]}`
	case gemini:
		body = `{` + none + `"tools":[{"functionDeclarations":[` + offered + `]}],"contents":[` + conversation + `]}`
	}
	return url, body
}

func (c *client) add(m string) { c.history = append(c.history, m) }

// say gives the user's words and works until the model has answered.
func (c *client) say(words string) string {
	c.t.Helper()
	c.hear(words)
	return c.goOn()
}

func (c *client) hear(words string) {
	switch c.p {
	case gemini:
		c.add(geminiSays("user", said(words)))
	default:
		c.add(chatSays("user", words))
	}
}

func (c *client) goOn() string {
	c.t.Helper()
	for range 30 {
		h := c.once()
		if len(h.Calls) == 0 {
			switch c.p {
			case gemini:
				c.add(geminiSays("model", said(h.Text)))
			default:
				c.add(chatSays("assistant", h.Text))
			}
			return h.Text
		}
		c.answer(h)
	}
	c.t.Fatal("the coder calls for ever")
	return ""
}

func (c *client) once() heard {
	c.t.Helper()
	url, body := c.body()
	if !json.Valid([]byte(body)) {
		c.t.Fatalf("no JSON: %s", body)
	}
	resp, got, err := post(c.t, c.srv, url, body)
	if err != nil || resp.StatusCode != 200 {
		c.t.Fatalf("%v %s", err, got)
	}
	return listen(c.t, c.p, c.stream, got)
}

// answer runs the calls and puts them and their results into the conversation.
func (c *client) answer(h heard) {
	c.beside = append(c.beside, h.Text)
	for _, call := range h.Calls {
		c.calls = append(c.calls, call.Name+" "+call.Args)
		result := c.run(call.Name, call.Args)
		switch c.p {
		case chat:
			c.add(`{"role":"assistant","content":` + quote(h.Text) + `,"tool_calls":[{"id":` + quote(call.ID) + `,"type":"function","function":{"name":` + quote(call.Name) + `,"arguments":` + quote(call.Args) + `}}]}`)
			c.add(`{"role":"tool","tool_call_id":` + quote(call.ID) + `,"content":` + quote(result) + `}`)
		case responses:
			c.add(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":` + quote(h.Text) + `}]}`)
			c.add(`{"type":"function_call","call_id":` + quote(call.ID) + `,"name":` + quote(call.Name) + `,"arguments":` + quote(call.Args) + `}`)
			c.add(`{"type":"function_call_output","call_id":` + quote(call.ID) + `,"output":` + quote(result) + `}`)
		case messages:
			c.add(claudeSays("assistant", block(h.Text), `{"type":"tool_use","id":`+quote(call.ID)+`,"name":`+quote(call.Name)+`,"input":`+call.Args+`}`))
			c.add(claudeSays("user", `{"type":"tool_result","tool_use_id":`+quote(call.ID)+`,"content":`+quote(result)+`}`))
		case gemini:
			c.add(geminiSays("model", said(h.Text), `{"functionCall":{"name":`+quote(call.Name)+`,"args":`+call.Args+`}}`))
			c.add(geminiSays("user", `{"functionResponse":{"name":`+quote(call.Name)+`,"response":{"output":`+quote(result)+`}}}`))
		}
	}
}

// eachWay runs a test with a client of each protocol, streamed and whole, that
// also minds the history.
func eachWay(t *testing.T, files map[string]string, test func(t *testing.T, c *client)) {
	t.Helper()
	for _, p := range everyProtocol {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s stream=%v", p, stream), func(t *testing.T) {
				strict := Scenario{Name: "coder", Steps: []Step{{Coder: true, Reject: []Check{History}}}}
				inBubble(t, []Scenario{strict}, func(t *testing.T, srv *Server) {
					began := time.Now()
					test(t, &client{t: t, srv: srv, p: p, stream: stream, files: maps.Clone(files), tools: slices.Sorted(maps.Keys(clientTools))})
					if took := time.Since(began); took != 0 {
						t.Errorf("it took %s of virtual time", took)
					}
				})
			})
		}
	}
}

func (c *client) wants(calls ...string) {
	c.t.Helper()
	for i, call := range calls {
		name, args, _ := strings.Cut(call, " ")
		if i >= len(c.calls) {
			c.t.Errorf("call %d is missing: %s", i+1, call)
			continue
		}
		gotName, gotArgs, _ := strings.Cut(c.calls[i], " ")
		if gotName != name || !sameJSON(gotArgs, args) {
			c.t.Errorf("call %d: got %s, want %s", i+1, c.calls[i], call)
		}
	}
	if len(c.calls) > len(calls) {
		c.t.Errorf("more was called: %q", c.calls[len(calls):])
	}
	c.calls = nil
}

func says(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("%q is missing in:\n%s", p, got)
		}
	}
}

func TestTheCoderWorksThroughSentences(t *testing.T) {
	files := map[string]string{"main.go": "package main\n\nfunc main() { println(\"Hi\") }\n", "notes.txt": "one\n"}
	eachWay(t, files, func(t *testing.T, c *client) {
		got := c.say(`Replace "Hi" with "Hello" in main.go, then create a.txt with "first", append "two" to notes.txt and run go build ./... then delete notes.txt`)
		c.wants(
			`read_file {"path":"main.go"}`, `edit_file {"path":"main.go","old_text":"Hi","new_text":"Hello"}`,
			`list_dir {"path":"."}`, `write_file {"path":"a.txt","content":"first\n"}`,
			`read_file {"path":"notes.txt"}`, `edit_file {"path":"notes.txt","old_text":"one","new_text":"one\ntwo"}`,
			`run_command {"command":"go build ./..."}`, `delete_file {"path":"notes.txt"}`,
		)
		says(t, got, "Done:\n", "edit_file answered “Edited main.go: 1 replacement(s).”", "write_file answered “Created a.txt.”",
			"run_command answered “exit code 0 go build ./... ran”", "delete_file answered “Deleted notes.txt.”", coderIs)
		if c.files["main.go"] != "package main\n\nfunc main() { println(\"Hello\") }\n" || c.files["a.txt"] != "first\n" || len(c.files) != 2 {
			t.Errorf("files: %q", c.files)
		}
		if c.beside[0] != "I read main.go first." {
			t.Errorf("beside the calls: %q", c.beside)
		}
		// The next turn does only what is asked in it.
		got = c.say("What is in this project?")
		c.wants(`list_dir {"path":"."}`)
		says(t, got, "This is what is in .", "main.go  47 bytes")
	})
}

func TestTheCoderSaysWhatWentWrong(t *testing.T) {
	files := map[string]string{"cmd/main.go": "a a\n", "b.txt": "b\n"}
	eachWay(t, files, func(t *testing.T, c *client) {
		got := c.say(`replace "a" with "c" in main.go`) // a better name is known: tried once
		c.wants(`read_file {"path":"main.go"}`, `read_file {"path":"cmd/main.go"}`,
			`edit_file {"path":"cmd/main.go","old_text":"a","new_text":"c","replace_all":true}`)
		says(t, got, "Done:\n", "2 replacement(s)")

		got = c.say(`replace "x" with "y" in b.txt; create b.txt with "new"; read missing.txt`)
		c.wants(`read_file {"path":"b.txt"}`, `list_dir {"path":"."}`, `read_file {"path":"b.txt"}`, `read_file {"path":"missing.txt"}`)
		says(t, got, "Not all of it was done:\n", "“x” does not stand in b.txt; I changed nothing.",
			"b.txt is there already, so I left it alone.", "read_file answered “Error: missing.txt does not exist”")
		if c.files["b.txt"] != "b\n" {
			t.Errorf("b.txt is %q", c.files["b.txt"])
		}

		c.answers = map[string]string{"run_command": "Error: denied: commands are not allowed in plan mode"}
		got = c.say("run rm -rf build")
		c.wants(`run_command {"command":"rm -rf build"}`)
		says(t, got, "Not all of it was done:\n", "could not run `rm -rf build`: run_command answered “Error: denied: commands are not allowed in plan mode”")

		c.tools = []string{"read_file"}
		got = c.say(`delete b.txt`)
		c.wants()
		says(t, got, "could not delete b.txt: delete_file answered “this request offers no such tool”")
	})
}

func TestTheCoderSaysWhatItIs(t *testing.T) {
	eachWay(t, nil, func(t *testing.T, c *client) {
		got := c.say("Why do cats land on their feet?")
		c.wants()
		says(t, got, coderIs, "I read: “Why do cats land on their feet?”", coderCan)
		c.tools = nil
		says(t, (&client{t: t, srv: c.srv, p: c.p, stream: c.stream}).say("Hi"), coderIs, "offers no tools")
	})
}

// Where tools are offered and none may be called, the coder begins nothing more
// and says what was done.
func TestTheCoderCallsNothingWhereNoToolMayBeCalled(t *testing.T) {
	eachWay(t, map[string]string{"a.txt": "hello"}, func(t *testing.T, c *client) {
		c.hear(`replace "hello" with "bye" in a.txt`)
		c.answer(c.once())
		c.barred = true
		c.hear("Say now what was done and what remains to be done.")
		h := c.once()
		if len(h.Calls) > 0 {
			t.Errorf("it calls %v", h.Calls)
		}
		says(t, h.Text, "Of 1 tool calls the last were:", "read_file", "answered “")
	})
}

// A turn that broke off goes on where it was, and what the user adds in
// between is done as well.
func TestTheCoderGoesOn(t *testing.T) {
	files := map[string]string{"a.txt": "x\n", "b.txt": "y\n"}
	eachWay(t, files, func(t *testing.T, c *client) {
		words := func(s string) {
			if c.p == gemini {
				c.add(geminiSays("user", said(s)))
			} else {
				c.add(chatSays("user", s))
			}
		}
		words(`replace "x" with "z" in a.txt then run make`)
		c.answer(c.once()) // it has read a.txt
		words("also read b.txt")
		c.answer(c.once())
		words("continue")
		got := c.goOn()
		c.wants(`read_file {"path":"a.txt"}`, `edit_file {"path":"a.txt","old_text":"x","new_text":"z"}`, `run_command {"command":"make"}`, `read_file {"path":"b.txt"}`)
		says(t, got, "Done:\n", "replaced “x” with “z” in a.txt", "This is b.txt")

		// Asked for the last word, without tools, it tells what there was.
		c.tools = nil
		got = c.say("Say what was done and what remains.")
		c.wants()
		says(t, got, "Of 4 tool calls the last were:", `- run_command {"command":"make"} answered “exit code 0 make ran”`)
	})
}

// A finished edit that is ordered again is not made twice.
func TestTheCoderDoesNothingTwice(t *testing.T) {
	eachWay(t, map[string]string{"a.txt": "old\n"}, func(t *testing.T, c *client) {
		c.say(`replace "old" with "new" in a.txt and write "w" to w.txt`)
		c.calls = nil
		got := c.say(`replace "old" with "new" in a.txt and write "w" to w.txt`)
		c.wants(`read_file {"path":"a.txt"}`, `list_dir {"path":"."}`, `read_file {"path":"w.txt"}`)
		says(t, got, "a.txt has “new” already and no “old”; I changed nothing.", "w.txt has exactly this text already; I changed nothing.")
	})
}

// No two calls of a conversation have one id, also when another server goes on
// with it.
func TestTheCodersIDsAreUnique(t *testing.T) {
	for _, p := range []protocol{chat, responses, messages} {
		inBubble(t, nil, func(t *testing.T, srv *Server) {
			c := &client{t: t, srv: srv, p: p, files: map[string]string{"a": "x\n"}, tools: []string{"read_file", "run_command"}}
			seen := map[string]bool{}
			for range 3 {
				other := New()
				defer other.Close()
				c.srv = other
				c.add(chatSays("user", "run date"))
				h := c.once()
				if seen[h.Calls[0].ID] || h.Calls[0].ID == "" {
					t.Errorf("%s: the id %q comes again", p, h.Calls[0].ID)
				}
				seen[h.Calls[0].ID] = true
				c.answer(h)
				c.goOn()
			}
		})
	}
}

// An answer that a limit cut goes on where it ends.
func TestTheCoderGoesOnWithACutAnswer(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, srv *Server) {
		ask := func(limit string, m ...string) heard {
			_, got, _ := post(t, srv, "/v1/chat/completions", `{"model":"coder",`+limit+`"tools":[{"type":"function","function":{"name":"read_file"}}],`+inChat(m...)+`}`)
			return listen(t, chat, false, got)
		}
		hi := chatSays("user", "Hi")
		whole := ask("", hi).Text
		cut := ask(`"max_tokens":9,`, hi)
		if cut.Finish != "length" {
			t.Fatalf("%+v", cut)
		}
		for _, m := range [][]string{
			{hi, chatSays("assistant", cut.Text)},
			{hi, chatSays("assistant", cut.Text), chatSays("user", "Continue your last message exactly where it ends.")},
		} {
			if rest := ask("", m...).Text; cut.Text+rest != whole {
				t.Errorf("got  %q\nwant %q", cut.Text+rest, whole)
			}
		}
	})
}
