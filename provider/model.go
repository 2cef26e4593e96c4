package provider

import "time"

const linger = 2 * time.Second
