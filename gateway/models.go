package gateway

import (
	"net/http"
	"slices"

	ninelives "github.com/ninelives-ai/ninelives"
	"github.com/ninelives-ai/ninelives/internal/wire"
	"github.com/ninelives-ai/ninelives/internal/wire/anthropic"
	"github.com/ninelives-ai/ninelives/internal/wire/gemini"
	"github.com/ninelives-ai/ninelives/internal/wire/openai"
)

// listed are the names that a client can ask for: the routes, and the models in
// them with and without their provider's name. None stands twice.
func listed(routes []Route, who *client) []wire.ModelInfo {
	var list []wire.ModelInfo
	seen := map[string]bool{}
	add := func(info wire.ModelInfo) {
		if !seen[info.ID] {
			seen[info.ID] = true
			list = append(list, info)
		}
	}
	for i := range routes {
		r := &routes[i]
		if len(r.Targets) == 0 || !who.may(r.Name) {
			continue
		}
		info := infoOf(r.Targets[0].Model)
		info.ID, info.Name, info.Owner = r.Name, "", "ninelives"
		add(info)
	}
	for i := range routes {
		for _, t := range routes[i].Targets {
			info := infoOf(t.Model)
			for _, name := range []string{info.ID, nameOf(t.Model)} {
				if who.may(routes[i].Name) || who.may(name) {
					info.ID = name
					add(info)
				}
			}
		}
	}
	return list
}

// infoOf is what is known of a model, under its bare name.
func infoOf(m ninelives.Model) wire.ModelInfo {
	c, ok := ninelives.CandidateOf(m)
	if !ok {
		return wire.ModelInfo{ID: m.Name(), Owner: "ninelives"}
	}
	return wire.ModelInfo{ID: c.Model, Owner: c.Provider, Window: c.Window, MaxOutput: c.MaxOutput}
}

// models is GET /v1/models and /v1/models/{id}, in the words of the caller's
// protocol.
func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	who, ok := s.known(w, r)
	if !ok {
		return
	}
	list := listed(s.plan.Load().Routes, who)
	c := protocolOf(r)
	if id := r.PathValue("id"); id != "" {
		i := slices.IndexFunc(list, func(m wire.ModelInfo) bool { return m.ID == id })
		if i < 0 {
			s.refuse(w, r, &refused{Trouble: troubleNoModel, Param: "model", Text: "There is no model " + shownName(id) + ". GET /v1/models lists those there are."})
			return
		}
		switch c {
		case messages:
			sendJSON(w, anthropic.EncodeModel(list[i]))
		case generate:
			sendJSON(w, gemini.EncodeModel(list[i]))
		default:
			sendJSON(w, openai.EncodeModel(list[i]))
		}
		return
	}
	switch c {
	case messages:
		sendJSON(w, anthropic.EncodeModels(after(list, r.URL.Query().Get("after_id"))))
	case generate:
		sendJSON(w, gemini.EncodeModels(list))
	default:
		sendJSON(w, openai.EncodeModels(list))
	}
}

// after is what of the list comes behind the model that a client of Anthropic's
// has named as the last it knows. The list is short and comes whole: a limit
// would only make them ask again.
func after(list []wire.ModelInfo, id string) []wire.ModelInfo {
	i := slices.IndexFunc(list, func(m wire.ModelInfo) bool { return m.ID == id })
	return list[i+1:]
}
