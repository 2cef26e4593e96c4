package tool

import (
	"encoding/base64"
	"encoding/hex"
	"path"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// output is what a command writes, as far as that is known.
func (w *walk) output(name string, st start) string {
	args := st.args
	mixed := unknownMark + tints(w.in)
	switch name {
	case "echo":
		words, escapes, end := args[1:], false, "\n"
		for len(words) > 0 && len(words[0]) > 1 && words[0][0] == '-' && strings.Trim(words[0][1:], "neE") == "" {
			escapes = escapes || strings.Contains(words[0], "e")
			if strings.Contains(words[0], "n") {
				end = ""
			}
			words = words[1:]
		}
		text := strings.Join(words, " ") + end
		if escapes {
			if out, _, err := expand.Format(w.config(), strings.ReplaceAll(text, "%", "%%"), nil); err == nil {
				text = out
			}
		}
		return loosened(text, st)
	case "printf":
		words := args[1:]
		if len(words) > 1 && words[0] == "-v" {
			w.set(words[1], unknownMark+tints(strings.Join(words, "")), true)
			return ""
		}
		if len(words) == 0 {
			return ""
		}
		if words[0] == "--" && len(words) > 1 {
			words = words[1:]
		}
		text, rest := "", words[1:]
		for range walkItems {
			out, n, err := expand.Format(w.config(), words[0], rest)
			if err != nil {
				return unknownMark + tints(strings.Join(words, ""))
			}
			text += out
			if n == 0 || n >= len(rest) {
				break
			}
			rest = rest[n:]
		}
		return loosened(text, st)
	case "cat", "tac", "head", "tail", "less", "more", "nl", "sponge", "pv", "tee", "buffer", "unbuffer":
		files := operands(args)
		if len(files) == 0 || name == "tee" || len(files) == 1 && files[0] == "-" {
			if name == "cat" || name == "tee" || name == "pv" || name == "sponge" {
				return w.in
			}
			return mixed
		}
		var text string
		for _, file := range files {
			text += w.content(w.place(file))
		}
		return text
	case "pwd":
		dir, _ := w.special("PWD")
		return dir + "\n"
	case "true", ":", "false", "cd", "pushd", "popd", "test", "[", "exit", "return", "break", "continue", "sleep", "wait", "mkdir", "touch", "rm", "cp", "mv", "chmod", "set", "unset", "shift", "export", "read":
		return ""
	case "curl", "wget", "http", "https", "xh", "aria2c", "axel", "fetch", "lynx", "w3m", "links", "nc", "ncat", "netcat", "socat", "ftp", "tftp", "telnet", "aws", "gsutil":
		return unknownMark + fetchedMark
	case "base64", "base32", "basenc", "uudecode", "xxd", "rev", "tr", "openssl", "zcat", "gunzip", "gzip", "xz", "bzip2", "gpg", "ascii2uni", "iconv":
		return w.decoded(name, st)
	}
	for _, a := range args {
		mixed += tints(a)
	}
	if isInterpreter(name) {
		for _, a := range args[1:] {
			if strings.Contains(a, "b64decode") || strings.Contains(a, "fromhex") || strings.Contains(a, "decode_base64") || strings.Contains(a, "unhexlify") {
				mixed += decodedMark
			}
			if strings.Contains(a, "urlopen") || strings.Contains(a, "http://") || strings.Contains(a, "https://") {
				mixed += fetchedMark
			}
		}
	}
	return mixed
}

func loosened(text string, st start) string {
	if st.loose && known(text) {
		return text + unknownMark
	}
	return text
}

// decoded is the output of what turns text into other text.
func (w *walk) decoded(name string, st start) string {
	hidden := unknownMark + tints(w.in) + decodedMark
	has := func(options ...string) bool {
		for _, a := range st.args[1:] {
			for _, o := range options {
				if a == o || len(o) == 2 && len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, o[1:]) {
					return true
				}
			}
		}
		return false
	}
	switch name {
	case "base64", "base32", "basenc":
		if !has("-d", "-D", "--decode") {
			return unknownMark + tints(w.in)
		}
		if text, err := base64.StdEncoding.DecodeString(strings.TrimSpace(w.in)); err == nil && name == "base64" {
			return string(text) + decodedMark
		}
		return hidden
	case "xxd":
		if !has("-r") {
			return unknownMark + tints(w.in)
		}
		if text, err := hex.DecodeString(strings.TrimSpace(w.in)); err == nil {
			return string(text) + decodedMark
		}
		return hidden
	case "openssl":
		if has("-d") {
			return hidden
		}
		return unknownMark + tints(w.in)
	case "uudecode", "rev":
		return hidden
	case "tr":
		// Deleting and squeezing hide nothing; turning letters into others does.
		if has("-d", "-s") || strings.Contains(strings.Join(st.args[1:], " "), `\n`) {
			return unknownMark + tints(w.in)
		}
		return hidden
	}
	return unknownMark + tints(w.in)
}

// fetchedFiles are the files that a download writes.
func fetchedFiles(name string, args []string) []string {
	var out []string
	last := func(url string) string {
		url, _, _ = strings.Cut(url, "?")
		return path.Base(url)
	}
	remote := name == "wget" || name == "aria2c" || name == "axel"
	for i := 1; i < len(args); i++ {
		a := args[i]
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case a == "-o" && name != "wget" || a == "--output" || a == "-O" && name != "curl" || a == "--output-document" || a == "--out":
			out = append(out, next)
			remote = false
			i++
		case strings.HasPrefix(a, "--output=") || strings.HasPrefix(a, "--output-document=") || strings.HasPrefix(a, "--out="):
			_, value, _ := strings.Cut(a, "=")
			out, remote = append(out, value), false
		case name == "curl" && len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "o"):
			out = append(out, next)
			i++
		case name == "curl" && len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, "O") || a == "--remote-name":
			remote = true
		case name == "wget" && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "O"):
			out, remote = append(out, next), false
			i++
		}
	}
	if remote {
		for _, a := range args[1:] {
			if strings.Contains(a, "/") && !strings.HasPrefix(a, "-") {
				out = append(out, last(a))
			}
		}
	}
	if name == "scp" {
		if files := operands(args); len(files) > 1 && strings.Contains(files[0], ":") {
			to := files[len(files)-1]
			out = append(out, to, path.Join(to, last(files[0])))
		}
	}
	return out
}

// effects follows what a command does to the shell or to files that matter later.
func (w *walk) effects(name string, st start) {
	args := st.args
	switch name {
	case "cd", "pushd", "chdir":
		for _, a := range args[1:] {
			if len(a) > 1 && a[0] == '-' {
				continue
			}
			if a == "-" || !known(a) || st.loose {
				if l := w.place(unmarked(a)); a != "-" && unmarked(a) != "" && path.IsAbs(unmarked(a)) {
					w.dir = l.path
					return
				}
				w.dir = "/" + unknownMark
				return
			}
			w.dir = w.place(a).path
			return
		}
		if len(args) == 1 {
			w.dir = w.place("~").path
		}
	case "popd":
		w.dir = "/" + unknownMark
	case "read", "mapfile", "readarray", "getopts":
		for _, a := range args[1:] {
			if !strings.HasPrefix(a, "-") {
				w.set(a, unknownMark+tints(w.in), true)
			}
		}
		w.set("REPLY", unknownMark+tints(w.in), true)
	case "set":
		if i := index(args, "--"); i >= 0 {
			w.params, w.knownParams = args[i+1:], !st.loose
		}
	case "unset":
		for _, a := range args[1:] {
			delete(w.vars, a)
		}
	case "export", "readonly", "local", "declare", "typeset":
		for _, a := range args[1:] {
			if n, v, ok := strings.Cut(a, "="); ok {
				w.set(n, v, st.loose)
			}
		}
	case "tee":
		for _, a := range args[1:] {
			if !strings.HasPrefix(a, "-") {
				w.writes(w.place(a), st.loose, w.in, false)
			}
		}
	case "curl", "wget", "aria2c", "http", "https", "xh", "axel", "fetch", "scp", "sftp", "ftp", "gh":
		for _, file := range fetchedFiles(name, args) {
			w.files[w.place(file).path] = unknownMark + fetchedMark
		}
	case "cp", "mv", "ln", "install":
		if files := operands(args); len(files) == 2 {
			from, to := w.place(files[0]), w.place(files[1])
			if text, ok := w.files[from.path]; ok {
				w.files[to.path] = text
				w.files[path.Join(to.path, path.Base(from.path))] = text
			}
		}
	case "base64", "openssl", "xxd", "gunzip", "gzip", "gpg", "unzip", "tar":
		// Their output files are as unread as their input.
		for i, a := range args {
			if (a == "-o" || a == "-out" || a == "--output") && i+1 < len(args) {
				w.files[w.place(args[i+1]).path] = unknownMark + decodedMark
			}
		}
	}
	if isInterpreter(name) {
		for _, a := range args[1:] {
			if !strings.HasPrefix(a, "-") {
				if tints(w.files[w.place(a).path]) != "" {
					w.deny("it runs what came over the network or was decoded, unread (" + shown(a) + ")")
				}
				break
			}
		}
	}
	// A program that the command itself fetched.
	if strings.Contains(st.args[0], "/") {
		if tints(w.files[w.place(st.args[0]).path]) != "" {
			w.deny("it runs what came over the network or was decoded, unread (" + shown(st.args[0]) + ")")
		}
	}
}

// operands are the arguments that are not options.
func operands(args []string) []string {
	var out []string
	for i, a := range args[1:] {
		if a == "--" {
			return append(out, args[i+2:]...)
		}
		if len(a) < 2 || a[0] != '-' {
			out = append(out, a)
		}
	}
	return out
}
