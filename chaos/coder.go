package chaos

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The scripted coder plays an agent's model: it reads plain sentences of the
// user, works through them with the tools of the request, one call an answer,
// and ends with what the tools really answered. It keeps nothing between two
// requests: each time it goes through its orders again, with the results that
// the conversation holds, up to the first call that has none yet. So the same
// conversation always gets the same answer.

const coderIs = "I am the simulator's scripted coder, not an AI: I do what plain sentences say and nothing else."

const coderCan = `I understand, one after the other or joined by "then":
- replace "old" with "new" in FILE
- create FILE with "text", write "text" to FILE, append "text" to FILE, delete FILE
- run COMMAND
- read FILE, explain FILE
- list DIRECTORY, what is in this project
- find "text"`

// coder is one answer in the making.
type coder struct {
	ask   *ask
	past  []*exchange
	asked []string // what the user has said since the last answer
	all   []string // what the user has ever said

	before []string // what was asked before the last answer
	since  int      // the calls that were made before what is asked
	prior  int      // the same before the last answer

	// What comes of it: the call to make now with what is said beside it, or
	// what is to be reported of each order.
	call   *Call
	aside  string
	report []string
	failed bool
}

// exchange is a call of the conversation and what came of it.
type exchange struct {
	id, name, arguments string
	result              string
	answered, failed    bool
	used                bool
}

// code answers a request as the scripted coder.
func code(a *ask) (said string, calls []Call) {
	c := &coder{ask: a}
	c.recall()
	if len(a.tools) == 0 || a.barred {
		if a.barred || len(c.past) > 0 || len(c.all) > 1 {
			return c.summary(), nil
		}
		return coderIs + " This request offers no tools to work with. With tools to read, write and run, " + lowerFirst(coderCan), nil
	}
	orders, unknown := c.orders()
	if len(orders) == 0 {
		heard := "nothing that I could take for an order"
		if len(unknown) > 0 {
			heard = "“" + shorten(unknown[len(unknown)-1], 120) + "”"
		}
		return coderIs + "\n\nI read: " + heard + ". That is beyond me.\n\n" + coderCan, nil
	}
	for _, o := range orders {
		if !c.carryOut(o) {
			call := *c.call
			call.ID = c.nextID(call)
			return c.aside, []Call{call}
		}
	}
	return c.closing(unknown), nil
}

// recall reads the conversation: what was asked, and which calls were made.
func (c *coder) recall() {
	byID := map[string]*exchange{}
	all := c.ask.conversation()
	for i, m := range all {
		if m.role == "system" || m.role == "developer" {
			continue
		}
		calls := m.of(partCall)
		for _, p := range calls {
			e := &exchange{id: p.id, name: p.name, arguments: canonical(p.arguments)}
			c.past = append(c.past, e)
			byID[p.id] = e
		}
		for _, p := range m.of(partResult) {
			e := byID[p.id]
			if p.id == "" || e == nil { // Gemini may leave ids out: the first open call of the name
				if i := slices.IndexFunc(c.past, func(e *exchange) bool { return !e.answered && (e.name == p.name || p.name == "") }); i >= 0 {
					e = c.past[i]
				}
			}
			if e != nil {
				e.answered, e.result, e.failed = true, p.text, p.failed || isFailure(p.text)
			}
		}
		said := m.said()
		switch {
		case strings.TrimSpace(said) == "":
		case m.role == "user":
			c.asked, c.all = append(c.asked, said), append(c.all, said)
		case m.role != "tool" && len(calls) == 0 && !(c.ask.protocol == responses && i+1 < len(all) && all[i+1].count(partCall) > 0):
			// An answer. (In Responses what is said beside calls is an item of its
			// own before them.)
			c.before, c.asked, c.prior, c.since = c.asked, nil, c.since, len(c.past)
		}
	}
	// An answer that is asked for again, or to go on with, is given once more:
	// what was said of it already is left out later.
	if now := withoutGoOn(c.asked); len(now) > 0 || len(c.before) == 0 {
		c.asked = now
	} else {
		c.asked, c.since = withoutGoOn(c.before), c.prior
	}
	for _, e := range c.past[:c.since] {
		e.used = true
	}
}

func withoutGoOn(said []string) []string {
	return slices.DeleteFunc(slices.Clone(said), func(s string) bool {
		orders, _ := parseOrders(s)
		return len(orders) == 0 && goesOn.MatchString(s)
	})
}

var goesOn = regexp.MustCompile(`(?i)^\W*(please\s+)?(continue|go on|proceed|resume|carry on|keep going|try again|retry)\b`)

// orders reads what is to be done.
func (c *coder) orders() (orders []order, unknown []string) {
	for _, s := range c.asked {
		o, u := parseOrders(s)
		orders = append(orders, o...)
		if !strings.HasPrefix(s, "[") && !strings.HasPrefix(s, "<") { // notes of the client
			unknown = append(unknown, slices.DeleteFunc(u, goesOn.MatchString)...)
		}
	}
	return orders, unknown
}

// closing reports what came of the orders, in the tools' own words.
func (c *coder) closing(unknown []string) string {
	var b strings.Builder
	if c.failed {
		b.WriteString("Not all of it was done:\n")
	} else {
		b.WriteString("Done:\n")
	}
	for _, r := range c.report {
		b.WriteString("- " + r + "\n")
	}
	for _, u := range unknown {
		if len(u) <= 200 {
			b.WriteString("- I did not understand “" + u + "” and left it alone.\n")
		}
	}
	b.WriteString("\n" + coderIs)
	return b.String()
}

// summary tells the conversation, for a request that gives no tools: what was
// asked, what was called, and what the tools answered.
func (c *coder) summary() string {
	var b strings.Builder
	b.WriteString("Summary by the simulator's scripted coder, which only counts and quotes.\nThe user said:\n")
	for _, s := range c.all[max(0, len(c.all)-10):] {
		b.WriteString("- “" + shorten(s, 200) + "”\n")
	}
	if len(c.past) > 0 {
		fmt.Fprintf(&b, "Of %d tool calls the last were:\n", len(c.past))
	}
	for _, e := range c.past[max(0, len(c.past)-10):] {
		answer := "has no result"
		if e.answered {
			answer = "answered “" + shorten(e.result, 120) + "”"
		}
		b.WriteString("- " + e.name + " " + shorten(e.arguments, 120) + " " + answer + "\n")
	}
	return b.String()
}

// nextID names a call so that none of the conversation has the same name, also
// where a server was started anew in between.
func (c *coder) nextID(call Call) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s\x00%s\x00%s", len(c.past), len(c.all), call.Name, call.Arguments, strings.Join(c.all, "\x00")))
	id := "call_" + hex.EncodeToString(sum[:6])
	for n := 2; slices.ContainsFunc(c.past, func(e *exchange) bool { return strings.HasSuffix(e.id, id) }); n++ {
		id = fmt.Sprintf("call_%s%d", hex.EncodeToString(sum[:6]), n)
	}
	return id
}

// The tools that the coder knows, by the names that agents give them.
var toolNames = map[string][]string{
	"read":   {"read_file", "read", "view"},
	"edit":   {"edit_file", "edit", "str_replace", "replace"},
	"write":  {"write_file", "write", "create_file"},
	"delete": {"delete_file", "remove_file"},
	"list":   {"list_dir", "list_directory", "ls", "list", "list_files"},
	"grep":   {"grep", "search_files", "grep_search", "search"},
	"run":    {"run_command", "bash", "shell", "run_terminal_command", "run_shell_command", "exec_command"},
}

// The parameters of these tools, likewise; the first is taken where the schema
// says nothing.
var parameterNames = map[string][]string{
	"path":    {"path", "file_path", "filePath", "filename", "file", "target_file", "dir", "directory", "dir_path"},
	"content": {"content", "contents", "text", "file_text"},
	"old":     {"old_text", "old_string", "oldString", "old_str", "old", "search", "find"},
	"new":     {"new_text", "new_string", "newString", "new_str", "new", "replacement", "replace"},
	"all":     {"replace_all", "replaceAll", "all"},
	"pattern": {"pattern", "query", "regex"},
	"command": {"command", "cmd", "script"},
}

// tool finds the request's tool of a kind.
func (c *coder) tool(kind string) (tool, bool) {
	for _, name := range toolNames[kind] {
		for _, t := range c.ask.tools {
			if strings.EqualFold(t.name, name) {
				return t, true
			}
		}
	}
	return tool{}, false
}

// has reports whether a tool knows a parameter, and what it calls it.
func (t tool) has(parameter string) (string, bool) {
	properties := object(t.schema["properties"])
	for _, name := range parameterNames[parameter] {
		if _, ok := properties[name]; ok {
			return name, true
		}
	}
	return parameterNames[parameter][0], false
}

// reply is what a tool answered.
type reply struct {
	tool   string
	text   string
	failed bool
}

// quoted gives the reply in a line, as the tool's own words; a diff after them
// is left out.
func (r reply) quoted() string {
	said, _, _ := strings.Cut(r.text, "\n--- ")
	return r.tool + " answered “" + shorten(said, 160) + "”"
}

// use calls a tool, or gives what it answered if it was called so before. ok
// is false if the call has to be made now; aside is said beside it.
func (c *coder) use(kind, aside string, arguments map[string]any) (r reply, ok bool) {
	t, found := c.tool(kind)
	if !found {
		return reply{tool: toolNames[kind][0], text: "this request offers no such tool", failed: true}, true
	}
	named := map[string]any{}
	for parameter, v := range arguments {
		name, _ := t.has(parameter)
		named[name] = v
	}
	args := canonical(valueJSON(named))
	for _, e := range c.past {
		if !e.used && e.answered && e.name == t.name && e.arguments == args {
			e.used = true
			return reply{t.name, e.result, e.failed}, true
		}
	}
	c.call, c.aside = &Call{Name: t.name, Arguments: args}, aside
	return reply{}, false
}

// canonical writes a JSON text in one form: keys in order, no space.
func canonical(s string) string {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return s
	}
	return valueJSON(v)
}

var failure = regexp.MustCompile(`(?i)^\W*(error\b|failed\b|denied\b)|^[^\s\d].{0,40}\binterrupted\b`)

// isFailure reports whether a result says that the call failed; only two of
// the protocols have a mark for it.
func isFailure(s string) bool {
	line, _, _ := strings.Cut(s, "\n")
	return failure.MatchString(line)
}

// shorten makes one line of a text, of at most n bytes or so.
func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= n {
		return s
	}
	for i := range s {
		if i > n-3 {
			return s[:i] + "…"
		}
	}
	return s
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }
