package tool

import (
	"context"
	"fmt"
	"strings"

	"github.com/ninelives-ai/ninelives/internal/visible"
)

// TaskStatus is how far a task of the model's list is.
type TaskStatus string

// The statuses of a task.
const (
	TaskPending    TaskStatus = "pending"
	TaskInProgress TaskStatus = "in_progress"
	TaskCompleted  TaskStatus = "completed"
)

// Task is an entry of the list that the model keeps for itself.
type Task struct {
	Content string     `json:"content" jsonschema:"what is to be done, in one line"`
	Status  TaskStatus `json:"status" jsonschema:"pending, in_progress or completed"`
}

type todoArguments struct {
	Todos []Task `json:"todos" jsonschema:"the whole list in order; it replaces the one before"`
}

// Tasks reads the list off the arguments of a call of todo. An error tells the
// model what is wrong with it.
func Tasks(args []byte) ([]Task, error) {
	list, err := arguments[todoArguments](args)
	if err != nil {
		return nil, err
	}
	running := 0
	for i, t := range list.Todos {
		switch {
		case strings.TrimSpace(t.Content) == "":
			return nil, fmt.Errorf("todos[%d] has no content", i)
		case t.Status == TaskInProgress:
			running++
		case t.Status != TaskPending && t.Status != TaskCompleted:
			return nil, fmt.Errorf("todos[%d] has the status %q; the statuses are pending, in_progress and completed", i, t.Status)
		}
	}
	if running > 1 {
		return nil, fmt.Errorf("%d tasks are in_progress; at most one may be", running)
	}
	return list.Todos, nil
}

// Todo is the tool todo: the model's own list of tasks. The list is nowhere but
// in the arguments and the result of the last call, so that it lives as long
// as the journal, and whoever compacts the conversation can give it back.
func Todo() Tool {
	return &typed[todoArguments]{
		spec: Spec{
			Tool: describe[todoArguments]("todo", "Keeps your list of tasks for work of several steps. "+
				"Give the whole list each time; it replaces the one before. Have at most one task in_progress, "+
				"and set a task to completed as soon as it is. An empty list clears it."),
			ReadOnly: true,
		},
		run: func(_ context.Context, call *Call, _ todoArguments) Result {
			tasks, err := Tasks(call.Arguments)
			if err != nil {
				return ErrorResult(err.Error())
			}
			r := TextResult(taskList(tasks))
			r.Summary = taskSummary(tasks)
			return r
		},
		needs: func(todoArguments) ([]Need, error) { return nil, nil },
	}
}

func taskList(tasks []Task) string {
	if len(tasks) == 0 {
		return "The list is empty."
	}
	marks := map[TaskStatus]string{TaskPending: "[ ]", TaskInProgress: "[>]", TaskCompleted: "[x]"}
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "%s %s\n", marks[t.Status], strings.Join(strings.Fields(t.Content), " "))
	}
	return b.String()
}

func taskSummary(tasks []Task) string {
	done, now := 0, ""
	for _, t := range tasks {
		switch t.Status {
		case TaskCompleted:
			done++
		case TaskInProgress:
			now = ": " + visible.EscapedLine(t.Content)
		}
	}
	return fmt.Sprintf("%d of %s done%s", done, plural(len(tasks), "task"), now)
}
