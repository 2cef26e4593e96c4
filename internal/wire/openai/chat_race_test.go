//go:build race

package openai_test

func init() { chatRace = true }
