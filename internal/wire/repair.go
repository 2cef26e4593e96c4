package wire

import ninelives "github.com/ninelives-ai/ninelives"

func findRepairs(a Answer, c *complaint) []ninelives.Repair { return nil }

func affordable(c *complaint) []ninelives.Repair { return nil }
