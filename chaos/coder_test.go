package chaos

import (
	"reflect"
	"testing"
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
