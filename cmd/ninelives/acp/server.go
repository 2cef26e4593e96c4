package acp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// server is the agent's side of one connection.
type server struct {
	cfg  Config
	conn *conn
	base context.Context // of the turns; it outlives the requests

	mu       sync.Mutex // guards what follows
	hello    bool       // initialize was called
	sessions map[string]*session
	over     bool
}

// admit takes a message; see the type of this name.
func (s *server) admit(name string, params []byte) (run handler, cancel func(), err error) {
	s.mu.Lock()
	hello := s.hello
	s.hello = hello || name == sdk.AgentMethodInitialize
	s.mu.Unlock()
	if !hello && name != sdk.AgentMethodInitialize && s.known(name) {
		return nil, nil, &sdk.RequestError{Code: -32600, Message: "call initialize first"}
	}
	switch name {
	case sdk.AgentMethodSessionPrompt:
		p, err := decode[sdk.PromptRequest](params)
		if err != nil {
			return nil, nil, err
		}
		one, err := s.find(p.SessionId)
		if err != nil {
			return nil, nil, err
		}
		return one.admit(p)
	case sdk.AgentMethodSessionCancel:
		p, err := decode[sdk.CancelNotification](params)
		if err != nil {
			return nil, nil, err
		}
		one, err := s.find(p.SessionId)
		if err != nil {
			return nil, nil, err
		}
		one.cancel()
		return nil, nil, nil
	}
	m, ok := s.methods()[name]
	if !ok {
		return nil, nil, sdk.NewMethodNotFound(oneLine(name))
	}
	return func(ctx context.Context) (any, func(), error) { return m(ctx, params) }, nil, nil
}

func (s *server) known(name string) bool {
	_, ok := s.methods()[name]
	return ok || name == sdk.AgentMethodSessionPrompt || name == sdk.AgentMethodSessionCancel
}

type method func(ctx context.Context, params []byte) (any, func(), error)

// methods are those that can wait.
func (s *server) methods() map[string]method {
	all := map[string]method{
		sdk.AgentMethodInitialize:             of(s.initialize),
		sdk.AgentMethodAuthenticate:           of(s.authenticate),
		sdk.AgentMethodSessionNew:             of(s.newSession),
		sdk.AgentMethodSessionClose:           of(s.closeSession),
		sdk.AgentMethodSessionSetMode:         of(s.setMode),
		sdk.AgentMethodSessionSetModel:        of(s.setModel),
		sdk.AgentMethodSessionSetConfigOption: of(s.setOption),
	}
	if s.cfg.Resume != nil {
		all[sdk.AgentMethodSessionLoad] = of(s.loadSession)
		all[sdk.AgentMethodSessionResume] = of(s.resumeSession)
	}
	if s.cfg.Sessions != nil {
		all[sdk.AgentMethodSessionList] = of(s.listSessions)
	}
	return all
}

// of makes a method of a function of its parameters.
func of[P any](f func(context.Context, P) (any, func(), error)) method {
	return func(ctx context.Context, params []byte) (any, func(), error) {
		p, err := decode[P](params)
		if err != nil {
			return nil, nil, err
		}
		return f(ctx, p)
	}
}

// decode reads parameters and checks them.
func decode[P any](params []byte) (p P, err error) {
	if len(params) == 0 {
		params = []byte("{}")
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return p, invalid("the parameters cannot be read: %s", oneLine(err.Error()))
	}
	if v, ok := any(&p).(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return p, invalid("%s", oneLine(err.Error()))
		}
	}
	return p, nil
}

func (s *server) initialize(context.Context, sdk.InitializeRequest) (any, func(), error) {
	can := sdk.AgentCapabilities{
		LoadSession:        s.cfg.Resume != nil,
		McpCapabilities:    sdk.McpCapabilities{Http: true},
		PromptCapabilities: sdk.PromptCapabilities{EmbeddedContext: true, Image: s.cfg.Images},
	}
	can.SessionCapabilities.Close = &sdk.SessionCloseCapabilities{}
	if s.cfg.Resume != nil {
		can.SessionCapabilities.Resume = &sdk.SessionResumeCapabilities{}
	}
	if s.cfg.Sessions != nil {
		can.SessionCapabilities.List = &sdk.SessionListCapabilities{}
	}
	// There is one version; an editor that does not speak it hangs up.
	return sdk.InitializeResponse{
		ProtocolVersion:   sdk.ProtocolVersionNumber,
		AgentCapabilities: can,
		AgentInfo:         &sdk.Implementation{Name: "ninelives", Title: sdk.Ptr("Nine Lives"), Version: s.cfg.Version},
		AuthMethods:       []sdk.AuthMethod{},
	}, nil, nil
}

func (s *server) authenticate(context.Context, sdk.AuthenticateRequest) (any, func(), error) {
	return nil, nil, invalid("there is nothing to sign in to: the keys of the providers are in the environment or in the configuration")
}

func (s *server) newSession(ctx context.Context, p sdk.NewSessionRequest) (any, func(), error) {
	one, err := s.open(ctx, "", p.Cwd, p.AdditionalDirectories, p.McpServers)
	if err != nil {
		return nil, nil, err
	}
	modes, models, options := one.choices()
	return sdk.NewSessionResponse{SessionId: one.id, Modes: modes, Models: models, ConfigOptions: options}, one.offer, nil
}

func (s *server) loadSession(ctx context.Context, p sdk.LoadSessionRequest) (any, func(), error) {
	one, err := s.takeUp(ctx, p.SessionId, p.Cwd, p.AdditionalDirectories, p.McpServers)
	if err != nil {
		return nil, nil, err
	}
	if err := one.replay(ctx); err != nil {
		return nil, nil, err
	}
	modes, models, options := one.choices()
	return sdk.LoadSessionResponse{Modes: modes, Models: models, ConfigOptions: options}, one.offer, nil
}

func (s *server) resumeSession(ctx context.Context, p sdk.ResumeSessionRequest) (any, func(), error) {
	one, err := s.takeUp(ctx, p.SessionId, p.Cwd, p.AdditionalDirectories, p.McpServers)
	if err != nil {
		return nil, nil, err
	}
	modes, models, options := one.choices()
	return sdk.ResumeSessionResponse{Modes: modes, Models: models, ConfigOptions: options}, one.offer, nil
}

// takeUp gives a session that is recorded, or open already.
func (s *server) takeUp(ctx context.Context, id sdk.SessionId, cwd string, more []string, servers []sdk.McpServer) (*session, error) {
	if id == "" {
		return nil, invalid("sessionId is required")
	}
	if one, err := s.find(id); err == nil {
		return one, nil
	}
	return s.open(ctx, string(id), cwd, more, servers)
}

// open opens a session: a new one, or the one with the id.
func (s *server) open(ctx context.Context, id, cwd string, more []string, servers []sdk.McpServer) (*session, error) {
	if !filepath.IsAbs(cwd) {
		return nil, invalid("cwd must be an absolute path, which %q is not", cwd)
	}
	if len(more) > 0 {
		return nil, invalid("additionalDirectories are not supported: a session has one workspace")
	}
	one := &session{server: s, calls: map[string]bool{}}
	o := Opening{Directory: filepath.Clean(cwd), Approve: one.approve}
	var err error
	if o.Servers, err = mcpServers(servers); err != nil {
		return nil, err
	}
	if id == "" {
		one.Handle, err = s.cfg.Open(ctx, o)
	} else {
		one.Handle, err = s.cfg.Resume(ctx, id, o)
	}
	if err != nil {
		return nil, err
	}
	one.id = sdk.SessionId(one.Session.ID())
	one.dir = one.Session.Status().Directory
	one.model = one.Model
	one.notices = one.Notices
	if id != "" && id != string(one.id) { // an id's beginning is not an id
		one.close()
		return nil, ErrNoSession
	}
	s.mu.Lock()
	over := s.over
	if !over {
		s.sessions[string(one.id)] = one
	}
	s.mu.Unlock()
	if over {
		one.close()
		return nil, errOver
	}
	return one, nil
}

// mcpServers reads the editor's servers.
func mcpServers(list []sdk.McpServer) (servers []Server, err error) {
	for _, m := range list {
		switch {
		case m.Stdio != nil:
			s := Server{Name: m.Stdio.Name, Command: m.Stdio.Command, Args: m.Stdio.Args}
			for _, v := range m.Stdio.Env {
				if s.Env == nil {
					s.Env = map[string]string{}
				}
				s.Env[v.Name] = v.Value
			}
			servers = append(servers, s)
		case m.Http != nil:
			s := Server{Name: m.Http.Name, URL: m.Http.Url}
			for _, h := range m.Http.Headers {
				if s.Headers == nil {
					s.Headers = map[string]string{}
				}
				s.Headers[h.Name] = h.Value
			}
			servers = append(servers, s)
		default:
			return nil, invalid("an MCP server of this kind is not supported: use stdio or http")
		}
	}
	return servers, nil
}

// find gives an open session.
func (s *server) find(id sdk.SessionId) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.sessions[string(id)]; one != nil {
		return one, nil
	}
	return nil, &sdk.RequestError{Code: -32002, Message: "the session " + quoted(string(id)) + " is not open here: load it, or begin a new one"}
}

func (s *server) closeSession(ctx context.Context, p sdk.CloseSessionRequest) (any, func(), error) {
	one, err := s.find(p.SessionId)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	delete(s.sessions, string(p.SessionId))
	s.mu.Unlock()
	if err := one.close(); err != nil {
		return nil, nil, err
	}
	return sdk.CloseSessionResponse{}, nil, nil
}

// page is how many sessions are listed at once.
const page = 50

func (s *server) listSessions(ctx context.Context, p sdk.ListSessionsRequest) (any, func(), error) {
	dir := ""
	if p.Cwd != nil && *p.Cwd != "" {
		if dir = *p.Cwd; !filepath.IsAbs(dir) {
			return nil, nil, invalid("cwd must be an absolute path, which %q is not", dir)
		}
		dir = filepath.Clean(dir)
	}
	list, err := s.cfg.Sessions(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	// The cursor is the last session of the page before, so that sessions that
	// are new by then repeat nothing.
	if p.Cursor != nil {
		at := slices.IndexFunc(list, func(l Listed) bool { return l.ID == *p.Cursor })
		if at < 0 {
			return nil, nil, invalid("the cursor is not known any more: list again from the beginning")
		}
		list = list[at+1:]
	}
	r := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	for i, l := range list {
		if i == page {
			r.NextCursor = sdk.Ptr(list[page-1].ID)
			break
		}
		info := sdk.SessionInfo{SessionId: sdk.SessionId(l.ID), Cwd: l.Directory}
		if l.Title != "" {
			info.Title = sdk.Ptr(oneLine(l.Title))
		}
		if !l.Updated.IsZero() {
			info.UpdatedAt = sdk.Ptr(l.Updated.UTC().Format(time.RFC3339))
		}
		r.Sessions = append(r.Sessions, info)
	}
	return r, nil, nil
}

// update tells the editor what happens in a session.
func (s *session) update(u sdk.SessionUpdate) {
	s.server.conn.notify(sdk.ClientMethodSessionUpdate, sdk.SessionNotification{SessionId: s.id, Update: u})
}

// think shows something that the program says, and not the model: the protocol
// has no place of its own for it.
func (s *session) think(text string) {
	s.update(sdk.UpdateAgentThoughtText("\n\n(" + oneLine(text) + ")\n\n"))
}
