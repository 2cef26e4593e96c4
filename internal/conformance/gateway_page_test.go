package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

var updatePage = flag.Bool("update", false, "write the tables of docs/gateway-faults.md")

const page = "../../docs/gateway-faults.md"

// The page that tells users what becomes of each fault says what the tests hold,
// row by row, and no test is missing from it.
func TestThePageOfFaultsSaysWhatTheTestsHold(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for name, acts := range map[string][]act{"measured": measuredActs, "public": publicActs, "twenty": twentyActs} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		got, after, ended := strings.Cut(rest, end)
		if !ok || !ended {
			t.Fatalf("the page has no place for the table %q", name)
		}
		if want := tableOf(acts); got != want {
			if !*updatePage {
				t.Errorf("the table %q is\n%s\nand the tests hold\n%s\nWrite it with -update.", name, got, want)
			}
			text = before + begin + want + end + after
		}
	}
	if *updatePage && text != string(raw) {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// What else it names are tests elsewhere.
	for _, m := range regexp.MustCompile("`(Test\\w+)`\\s+in\\s+`([\\w/.]+)`").FindAllStringSubmatch(text, -1) {
		if code, err := os.ReadFile("../../" + m[2]); err != nil || !strings.Contains(string(code), "func "+m[1]+"(t *testing.T)") {
			t.Errorf("the page names %s in %s, which is not there (%v)", m[1], m[2], err)
		}
	}
	for _, name := range []string{"TestMeasuredFaultsThroughTheGateway", "TestPublicScenariosThroughTheGateway", "TestTwentyFaultsThroughTheGateway", "TestTheDefaultProfileThroughTheGateway"} {
		if !strings.Contains(text, "`"+name) {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// tableOf writes acts as a table.
func tableOf(acts []act) string {
	var b strings.Builder
	b.WriteString("| test | what the provider does | what your client sees | how long it costs | calls to the first, the second |\n|---|---|---|---|---|\n")
	for _, a := range acts {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", a.name, a.does, a.outcome(), a.cost(), a.count())
	}
	return b.String()
}

// outcome says what the client sees.
func (a *act) outcome() string {
	who := []string{"the first", "the second"}
	switch {
	case a.sees != "":
		return a.sees
	case a.fails:
		return "an error in its own words: 503 `server_is_overloaded` (chat, Responses), 529 `overloaded_error` (Messages), 503 `UNAVAILABLE` (Gemini)"
	case a.begun && a.stream.served == 1:
		return "the whole answer; in a stream the second goes on where the first broke off"
	case a.piece != course{} && a.piece.served != a.stream.served:
		return "the whole answer, from " + who[a.stream.served] + "; in one piece from " + who[a.piece.served]
	}
	return "the whole answer, from " + who[a.stream.served]
}

// cost says how much longer the call takes than the answer alone.
func (a *act) cost() string {
	if a.after != "" {
		return a.after
	}
	of := func(c course) string { return span(c.least, c.most) }
	whole := a.piece
	switch {
	case whole == course{}:
		whole = a.again
	case a.again != course{}:
		whole.least, whole.most = min(whole.least, a.again.least), max(whole.most, a.again.most)
	}
	if a.only != "" || whole == (course{}) || of(whole) == of(a.stream) {
		if a.only == "piece" && whole != (course{}) {
			whole.least, whole.most = min(whole.least, a.stream.least), max(whole.most, a.stream.most)
			return of(whole)
		}
		return of(a.stream)
	}
	return of(a.stream) + "; in one piece " + of(whole)
}

// count says how often each provider is asked.
func (a *act) count() string {
	if a.calls != "" {
		return a.calls
	}
	said := fmt.Sprintf("%d, %d", a.stream.asked[0], a.stream.asked[1])
	if a.piece.asked != [2]int{} && a.piece.asked != a.stream.asked {
		said += fmt.Sprintf("; in one piece %d, %d", a.piece.asked[0], a.piece.asked[1])
	}
	if a.again.asked != [2]int{} && a.again.asked != a.stream.asked {
		said += fmt.Sprintf("; translated %d, %d", a.again.asked[0], a.again.asked[1])
	}
	return said
}

// span writes a range of times to a tenth of a second.
func span(least, most time.Duration) string {
	tenths := func(d time.Duration) string {
		return strconv.FormatFloat(max(0, d.Round(100*time.Millisecond).Seconds()), 'f', -1, 64)
	}
	from, to := tenths(least), tenths(most)
	switch {
	case to == "0":
		return "none"
	case from == "0":
		return "up to " + to + " s"
	case from == to:
		return to + " s"
	}
	return from + " to " + to + " s"
}
