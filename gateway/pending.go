package gateway

import "net/http"

func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) { s.nothing(w, r) }
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request)  { s.nothing(w, r) }
func (s *Server) models(w http.ResponseWriter, r *http.Request)      { s.nothing(w, r) }
