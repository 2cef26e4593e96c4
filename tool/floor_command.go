package tool

import (
	"path"
	"regexp"
	"strings"
)

// floorStart says why a command must never be started; empty if it may.
func (p Permissions) floorStart(st start) string {
	args := make([]string, len(st.args))
	for i, a := range st.args {
		args[i] = unmarked(a)
	}
	name := program(args[0])
	for _, judge := range []func(string, []string, start) string{
		p.floorDeletion, p.floorDisk, p.floorMachine, p.floorCode, p.floorSecrets, p.floorTargets,
	} {
		if why := judge(name, args, st); why != "" {
			return why
		}
	}
	return ""
}

// floorAssign judges what is put into a variable of a command's environment.
func (p Permissions) floorAssign(name, value string) string {
	switch name {
	case "PAGER", "GIT_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "PROMPT_COMMAND", "LESSOPEN", "BROWSER", "MANPAGER":
		return p.readScript(unmarked(value), "").floor
	}
	return ""
}

func (p Permissions) at(name, dir string) place { return p.place(name, dir) }

// option reports a short option, alone or in a cluster, or a long one or what
// GNU tools take for it: an unambiguous beginning.
func option(args []string, short string, long string) bool {
	for _, a := range args[1:] {
		if a == "--" {
			return false
		}
		if len(a) > 2 && strings.HasPrefix(a, "--") {
			name, _, _ := strings.Cut(a[2:], "=")
			if long != "" && len(name) > 0 && strings.HasPrefix(long, name) {
				return true
			}
		} else if len(a) > 1 && a[0] == '-' && strings.ContainsAny(a[1:], short) {
			return true
		}
	}
	return false
}

// floorDeletion: removing, or changing throughout, what cannot be had again.
func (p Permissions) floorDeletion(name string, args []string, st start) string {
	each := func(files []string, whole bool) string {
		for _, file := range files {
			if file == "" {
				continue // an unset variable in quotes: no file has this name
			}
			if why := p.floorRemoval(p.at(file, st.dir), whole); why != "" {
				return why
			}
		}
		return ""
	}
	operands := func([]string) []string { return operands(st.args) } // with their marks
	switch name {
	case "rm", "grm", "srm", "trash", "rimraf", "del", "rd", "erase", "remove-item":
		for _, a := range args[1:] {
			if len(a) > 6 && strings.HasPrefix("--no-preserve-root", a) && strings.HasPrefix(a, "--no-p") {
				return "it removes without preserving the root"
			}
		}
		if name == "rm" || name == "grm" {
			if !option(args, "rR", "recursive") {
				return ""
			}
		}
		return each(operands(args), true)
	case "shred", "wipe", "sdelete":
		return "it destroys files beyond recovery (" + name + ")"
	case "find", "gfind":
		deletes := index(args, "-delete") >= 0
		if !deletes {
			return ""
		}
		for _, root := range findRoots(args) {
			if root == "" {
				continue
			}
			if why := p.floorRemoval(p.at(root, st.dir), !filtered(args)); why != "" {
				return why
			}
		}
	case "rsync":
		files := operands(args)
		if strings.Contains(strings.Join(args, " "), "--delete") && len(files) > 0 {
			return each(files[len(files)-1:], true)
		}
	case "mv":
		if files := operands(args); len(files) > 1 {
			return each(files[:len(files)-1], false)
		}
	case "chmod", "chown", "chgrp", "setfacl", "chattr", "chcon":
		files := operands(args)
		if len(files) == 0 {
			return ""
		}
		for _, a := range args {
			if len(a) > 6 && strings.HasPrefix("--no-preserve-root", a) {
				return "it changes without preserving the root"
			}
		}
		if option(args, "R", "recursive") {
			return each(files, false)
		}
		for _, file := range files {
			if l := p.at(file, st.dir); l.path == "/" {
				return "it changes the root directory"
			}
		}
	case "git":
		if index(args, "clean") < 0 {
			return ""
		}
		if i := index(args, "-C"); i > 0 && i+1 < len(args) {
			return each(args[i+1:i+2], false)
		}
	}
	return ""
}

// floorDisk: formatting, partitioning, writing to raw devices.
func (p Permissions) floorDisk(name string, args []string, st start) string {
	has := func(words ...string) bool {
		for _, word := range words {
			if index(args, word) > 0 {
				return true
			}
		}
		return false
	}
	destroys := "it formats or repartitions a disk (" + name + ")"
	switch {
	case name == "mkfs" || strings.HasPrefix(name, "mkfs.") || name == "mke2fs" || name == "mkswap" || strings.HasPrefix(name, "newfs"),
		name == "blkdiscard", name == "mkdosfs", name == "mkntfs", name == "mkudffs", name == "mkisofs" && has("/dev/"):
		return destroys
	}
	switch name {
	case "wipefs":
		if option(args, "ao", "all") {
			return destroys
		}
	case "fdisk", "gdisk", "cfdisk", "sfdisk", "sgdisk", "cgdisk":
		if !option(args, "lpdvVhx", "list") && !has("--dump", "--print", "--version", "--help") && len(args) > 1 {
			return destroys
		}
	case "parted":
		if !has("print", "-l", "--list", "unit", "align-check", "--version", "--help") || has("mklabel", "mktable", "mkpart", "rm", "resizepart", "set") {
			return destroys
		}
	case "format", "format.com", "diskpart":
		return destroys
	case "diskutil":
		for _, a := range args[1:] {
			a = strings.ToLower(a)
			if strings.HasPrefix(a, "erase") || strings.HasPrefix(a, "partition") || a == "zerodisk" || a == "secureerase" || a == "reformat" || a == "deletecontainer" || a == "deletevolume" {
				return destroys
			}
		}
	case "cryptsetup":
		if has("luksFormat", "erase", "luksErase", "reencrypt") {
			return destroys
		}
	case "pvremove", "vgremove", "lvremove", "pvcreate":
		return destroys
	case "zpool", "zfs":
		if has("destroy", "labelclear") {
			return destroys
		}
	case "mdadm":
		if has("--zero-superblock", "--create", "-C") {
			return destroys
		}
	case "hdparm":
		if strings.Contains(strings.Join(args, " "), "security-erase") || has("--trim-sector-ranges", "--write-sector") {
			return destroys
		}
	case "nvme":
		if has("format", "sanitize", "write-zeroes", "write") {
			return destroys
		}
	}
	return ""
}

// floorMachine: stopping the machine or everything that runs on it.
func (p Permissions) floorMachine(name string, args []string, st start) string {
	rest := args[1:]
	stops := "it stops the machine (" + shown(strings.Join(args, " ")) + ")"
	asksOnly := func() bool {
		return len(rest) > 0 && (rest[0] == "--help" || rest[0] == "--version" || rest[0] == "-c")
	}
	switch name {
	case "shutdown", "reboot", "halt", "poweroff", "stop-computer", "restart-computer":
		if !asksOnly() {
			return stops
		}
	case "init", "telinit":
		if len(rest) > 0 && (strings.ContainsAny(rest[0], "0156sS") && len(rest[0]) == 1) {
			return stops
		}
	case "systemctl", "loginctl":
		for _, a := range rest {
			a = strings.TrimSuffix(a, ".target")
			switch a {
			case "poweroff", "reboot", "halt", "kexec", "rescue", "emergency", "soft-reboot", "suspend", "hibernate", "hybrid-sleep", "exit":
				return stops
			}
		}
	case "kill":
		for i, a := range rest {
			switch {
			case a == "-1" && i > 0, a == "-1" && len(rest) == 1:
				return "it kills every process"
			case i > 0 && a == "1":
				return "it kills the first process of the machine"
			}
		}
	case "killall5":
		return "it kills every process"
	case "killall", "pkill":
		if index(rest, "-u") >= 0 && len(operands(args)) <= 1 {
			return "it kills every process of a user"
		}
		for _, a := range operands(args) {
			if a == "." || a == ".*" || a == "" || a == "init" || a == "systemd" {
				return "it kills every process"
			}
		}
	case "crontab":
		if option(args, "r", "") {
			return "it removes all scheduled jobs (crontab -r)"
		}
	case "ps":
		// What ps adds with BSD's e is the environment of other processes: keys.
		for _, a := range rest {
			if a != "" && a[0] != '-' && strings.Trim(a, "aAcCefgHhjlmnrSsTuvwxXLZ") == "" && strings.Contains(a, "e") {
				return "it reads the environment of other processes (ps " + shown(a) + ")"
			}
		}
	case "bash", "sh":
		for i, a := range rest {
			if a == "$0" || a == "-i" && i+1 < len(rest) && strings.Contains(rest[i+1], "/dev/tcp/") {
				return "it starts itself over and over"
			}
		}
	case "nc", "ncat", "netcat":
		if option(args, "ec", "exec") || index(args, "--sh-exec") > 0 {
			return "it gives a shell to another machine (" + name + ")"
		}
	case "socat":
		if text := strings.ToLower(strings.Join(rest, " ")); strings.Contains(text, "exec:") && (strings.Contains(text, "sh") || strings.Contains(text, "cmd")) && strings.Contains(text, "tcp") {
			return "it gives a shell to another machine (socat)"
		}
	case "sysctl":
		if strings.Contains(strings.Join(rest, " "), "kernel.sysrq") {
			return stops
		}
	}
	return ""
}

var (
	forking   = regexp.MustCompile(`(?s)\bfork\s+while\s+fork\b|while\s*\(?\s*(?:1|True|true|:)\s*\)?[\s:{]*.{0,40}?\bfork\b|\bfork\b.{0,20}\bredo\b|loop\s*\{\s*fork`)
	treeing   = regexp.MustCompile(`(?:rmtree|rmSync|rmdirSync|rm_rf|remove_tree|removeAll|FileUtils\.rm_r[a-z]*|fs\.rm|rimraf|deltree)[ (\["'\\]*\s*(?:(?:os\.path\.)?expanduser\(\s*)?["'\x60](/|~|~/|\.\.|/\*|/etc|/usr|/var|/home|/bin|/lib|/boot|/root|\$HOME)/?["'\x60]`)
	literalRE = regexp.MustCompile(`"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|\x60([^\x60]*)\x60|q[qx]?[({]([^)}]*)[)}]`)
	fetches   = regexp.MustCompile(`(?s)(?:\bexec|\beval|\bcompile|instance_eval|new Function|\bload)\b\s*\(?.{0,80}(?:urlopen|requests\.get|urllib|http\.get|fetch\(|LWP|Net::HTTP|open\(["']https?:|file_get_contents\(["']http)`)
	decodes   = regexp.MustCompile(`(?s)(?:\bexec|\beval|os\.system|subprocess|\bsystem)\b\s*\(?.{0,80}(?:b64decode|decode_base64|fromhex|unhexlify|atob\(|Buffer\.from|base64_decode|codecs\.decode|unpack\()`)
)

// floorCode: code for another interpreter, as far as its text tells; and
// interpreters that are fed with what nobody has read.
func (p Permissions) floorCode(name string, args []string, st start) string {
	if name == "git" || name == "tar" || name == "rsync" || name == "ssh" || name == "scp" || name == "vim" || name == "vi" || name == "ex" || name == "make" || name == "go" {
		return p.floorHelper(name, args)
	}
	if !isInterpreter(name) {
		return ""
	}
	if isShell(name) {
		return ""
	}
	short := strings.TrimRight(name, "0123456789.")
	awk := strings.HasSuffix(short, "awk")
	inline, file, module := "", "", false
	for i := 1; i < len(args); i++ {
		a := args[i]
		isCode := a == "-c" || a == "-e" || a == "-E" || a == "--eval" || a == "-r" && short == "php" || a == "-p" || a == "--print" || a == "eval" && (short == "deno" || short == "bun") ||
			short == "perl" && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "e") ||
			short == "ruby" && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "e") ||
			short == "python" && len(a) > 2 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, "c")
		switch {
		case isCode && i+1 < len(args):
			inline += args[i+1] + "\n"
			if why := unread(st.args[i+1]); why != "" {
				return why
			}
			i++
		case a == "-m":
			module = true
		case awk && a == "-f", awk && a == "-v", awk && a == "-F":
			i++
		case strings.HasPrefix(a, "-") && a != "-":
		case awk && inline == "":
			inline = a
		case file == "" && inline == "":
			file = a
		}
		if module {
			break
		}
	}
	if inline == "" && !module && (file == "" || file == "-" || file == "/dev/stdin") && st.piped && !awk {
		if why := unread(st.in); why != "" {
			return why
		}
		inline = unmarked(st.in)
	}
	if inline == "" {
		return ""
	}
	switch {
	case forking.MatchString(inline):
		return "it is a fork bomb (" + name + ")"
	case treeing.MatchString(inline):
		return "its code removes a system or home directory (" + name + ")"
	case fetches.MatchString(inline):
		return "its code runs what came over the network, unread (" + name + ")"
	case decodes.MatchString(inline):
		return "its code runs what was decoded, unread (" + name + ")"
	}
	var words []string
	for _, m := range literalRE.FindAllStringSubmatch(inline, -1) {
		text := m[1] + m[2] + m[3] + m[4]
		words = append(words, text)
		if strings.Contains(text, " ") {
			if why := p.readScript(strings.ReplaceAll(text, `\n`, "\n"), st.dir).floor; why != "" {
				return why
			}
		}
		if p.credential(p.at(text, st.dir)) {
			return "its code touches credentials (" + shown(text) + ")"
		}
	}
	if len(words) > 1 && len(words) < walkItems && (strings.Contains(inline, "[") || strings.Contains(inline, ",")) {
		// subprocess.run(["rm", "-rf", "/"])
		for i := range words {
			if w := words[i]; w == "rm" || w == "shred" || w == "mkfs" || w == "dd" || w == "shutdown" || w == "reboot" {
				quoted := make([]string, 0, len(words)-i)
				for _, x := range words[i:] {
					quoted = append(quoted, "'"+strings.ReplaceAll(x, "'", "")+"'")
				}
				if why := p.readScript(strings.Join(quoted, " "), st.dir).floor; why != "" {
					return why
				}
			}
		}
	}
	for _, piece := range strings.FieldsFunc(inline, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`(),;<>|&{}[]", r) }) {
		if strings.ContainsAny(piece, "/~") && p.credential(p.at(piece, st.dir)) {
			return "its code touches credentials (" + shown(piece) + ")"
		}
	}
	return ""
}

// unread says why code must not be run that nobody has read.
func unread(code string) string {
	switch {
	case strings.Contains(code, fetchedMark):
		return "it runs what came over the network, unread"
	case strings.Contains(code, decodedMark):
		return "it runs what was decoded, unread"
	}
	return ""
}

// floorHelper looks into the commands that options of harmless programs start.
func (p Permissions) floorHelper(name string, args []string) string {
	for i, a := range args[1:] {
		text := ""
		switch {
		case name == "git" && strings.Contains(a, "!"):
			_, text, _ = strings.Cut(a, "!")
		case name == "git" && strings.Contains(a, "=") && (strings.HasPrefix(a, "core.") || strings.HasPrefix(a, "alias.") || strings.HasPrefix(a, "diff.") || strings.HasPrefix(a, "pager.")):
			_, text, _ = strings.Cut(a, "=")
		case name == "git" && i > 0 && (strings.HasPrefix(args[i], "core.") || args[i] == "-x" || args[i] == "--exec" || args[i] == "run"):
			text = a
		case name == "tar" && (strings.HasPrefix(a, "--to-command=") || strings.HasPrefix(a, "--checkpoint-action=exec=") || strings.HasPrefix(a, "--use-compress-program=")):
			text = a[strings.LastIndex(a, "=")+1:]
		case (name == "ssh" || name == "scp" || name == "rsync") && strings.Contains(a, "ProxyCommand="):
			_, text, _ = strings.Cut(a, "ProxyCommand=")
		case (name == "vim" || name == "vi" || name == "ex") && strings.Contains(a, "!"):
			_, text, _ = strings.Cut(a, "!")
		case name == "go" && (strings.HasPrefix(a, "-exec=") || strings.HasPrefix(a, "-toolexec=")):
			_, text, _ = strings.Cut(a, "=")
		case name == "go" && i > 0 && (args[i] == "-exec" || args[i] == "-toolexec"):
			text = a
		case name == "make" && strings.HasPrefix(a, "--eval="):
			_, text, _ = strings.Cut(strings.TrimPrefix(a, "--eval="), "(shell ")
			text = strings.TrimSuffix(text, ")")
		}
		if strings.Contains(text, " ") {
			if why := p.readScript(text, "").floor; why != "" {
				return why
			}
		}
	}
	return ""
}

// harmlessWithKeys are programs that use a key file for what it is for, or only
// look at names.
var harmlessWithKeys = map[string]bool{
	"ls": true, "ll": true, "stat": true, "test": true, "[": true, "[[": true, "echo": true, "printf": true, "file": true, "which": true, "type": true,
	"realpath": true, "readlink": true, "basename": true, "dirname": true, "mkdir": true, "ssh": true, "ssh-add": true, "ssh-keygen": true, "ssh-copy-id": true,
	"kubectl": true, "helm": true, "k9s": true, "cd": true, "pushd": true, "true": true, ":": true, "exit": true, "du": true, "df": true, "rmdir": true,
	"export": true, "man": true, "help": true,
}

// recursive are programs that read whatever is in a directory.
func readsTrees(name string, args []string) bool {
	switch name {
	case "tar", "zip", "7z", "rsync", "rg", "ag", "ack", "restic", "borg":
		return true
	case "cp", "grep", "egrep", "scp":
		return option(args, "rRa", "recursive") || option(args, "a", "archive")
	}
	return false
}

// floorSecrets: reading, copying or sending credentials.
func (p Permissions) floorSecrets(name string, args []string, st start) string {
	if harmlessWithKeys[name] || st.code {
		return ""
	}
	if name == "find" || name == "fd" || name == "chmod" || name == "chown" {
		return ""
	}
	for i, a := range args[1:] {
		if (name == "scp" || name == "sftp" || name == "rsync" || name == "git") && i > 0 && args[i] == "-i" {
			continue
		}
		for _, piece := range pieces(a) {
			l := p.at(piece, st.dir)
			if p.credential(l) {
				return "it touches credentials (" + shown(l.show()) + ")"
			}
			if readsTrees(name, args) && p.holdsCredentials(l) {
				return "it reads a directory with credentials (" + shown(l.show()) + ")"
			}
		}
	}
	if name == "security" && (index(args, "find-generic-password") > 0 || index(args, "find-internet-password") > 0 || index(args, "dump-keychain") > 0 || index(args, "export") > 0) {
		return "it reads the key chain"
	}
	if name == "gh" && index(args, "auth") == 1 && index(args, "token") == 2 || name == "gh" && index(args, "--show-token") > 0 {
		return "it shows a token (gh auth)"
	}
	if name == "gcloud" && index(args, "auth") > 0 && (index(args, "print-access-token") > 0 || index(args, "print-identity-token") > 0) {
		return "it shows a token (gcloud auth)"
	}
	if (name == "gpg" || name == "gpg2") && (index(args, "--export-secret-keys") > 0 || index(args, "--export-secret-subkeys") > 0) {
		return "it exports secret keys"
	}
	if name == "git" && index(args, "credential") == 1 && index(args, "fill") == 2 {
		return "it shows credentials (git credential fill)"
	}
	if name == "secret-tool" && index(args, "lookup") > 0 || name == "pass" && index(args, "show") == 1 || name == "kwallet-query" {
		return "it reads the key chain"
	}
	return ""
}

// pieces are what of an argument may be a path: file=@~/x, -T/root/x, host:x.
func pieces(arg string) []string {
	out := []string{arg}
	for i, r := range arg {
		if strings.ContainsRune("=@:,", r) && i+1 < len(arg) {
			out = append(out, arg[i+1:])
		}
	}
	if len(arg) > 2 && arg[0] == '-' && arg[1] != '-' && strings.ContainsAny(arg[2:3], "/~.") {
		out = append(out, arg[2:])
	}
	if strings.HasPrefix(arg, "file://") {
		out = append(out, strings.TrimPrefix(arg, "file://"))
	}
	return out
}

// floorTargets: writing by commands that write to files that they are given.
func (p Permissions) floorTargets(name string, args []string, st start) string {
	for _, file := range targets(name, args) {
		l := p.at(file, st.dir)
		if why := p.floorPath(NeedWrite, l); why != "" {
			return why
		}
	}
	if name == "dd" {
		for _, a := range args[1:] {
			if file, ok := strings.CutPrefix(a, "if="); ok {
				if why := p.floorPath(NeedRead, p.at(file, st.dir)); why != "" {
					return why
				}
			}
		}
	}
	return ""
}

// targets are the files that a command would write.
func targets(name string, args []string) []string {
	files := operands(args)
	switch name {
	case "tee", "touch", "truncate", "rm", "unlink", "vi", "vim", "nvim", "nano", "ed", "ex", "emacs", "sponge", "chattr", "mkdir", "rmdir", "patch", "mkfifo", "mknod", "visudo", "vipw":
		return files
	case "cp", "mv", "install", "ln", "rsync", "scp", "gcp", "gmv":
		out := valued(args, "t", "target-directory")
		if len(files) > 1 {
			to := files[len(files)-1]
			out = append(out, to)
			for _, from := range files[:len(files)-1] {
				out = append(out, path.Join(to, path.Base(from)))
			}
		}
		if name == "mv" && len(files) > 1 {
			out = append(out, files[:len(files)-1]...)
		}
		return out
	case "chmod", "chown", "chgrp", "setfacl":
		if len(files) > 1 {
			return files[1:]
		}
	case "dd":
		for _, a := range args[1:] {
			if file, ok := strings.CutPrefix(a, "of="); ok {
				return []string{file}
			}
		}
	case "sed", "gsed", "perl":
		if option(args, "i", "in-place") {
			return files
		}
	case "curl":
		return append(valued(args, "o", "output"), valued(args, "D", "dump-header")...)
	case "wget":
		return append(valued(args, "O", "output-document"), valued(args, "o", "output-file")...)
	case "sort":
		return valued(args, "o", "output")
	case "crontab":
		return nil
	}
	return nil
}

// valued are the values of an option: -o x, -ox, --output x, --output=x.
func valued(args []string, short, long string) []string {
	var out []string
	for i, a := range args[1:] {
		switch {
		case a == "--"+long || len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.HasSuffix(a, short):
			if i+2 < len(args) {
				out = append(out, args[i+2])
			}
		case strings.HasPrefix(a, "--"+long+"="):
			out = append(out, a[len(long)+3:])
		case strings.HasPrefix(a, "-"+short) && len(a) > 2:
			out = append(out, a[2:])
		}
	}
	return out
}
