package tool

import (
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// The floor is what no mode, profile, rule or person lifts: what cannot be
// taken back (disks, system directories, the home directory, the machine's
// running), what runs text that nobody has read, and what gives credentials
// away. This file has the places, floor_command.go the commands.

// floorPath says why a place must not be touched in this way; empty if it may.
// Kinds other than reading, writing and deleting are nothing to it.
func (p Permissions) floorPath(kind NeedKind, l place) string {
	name := shown(l.show())
	switch kind {
	case NeedRead:
		if p.credential(l) {
			return "it reads credentials (" + name + ")"
		}
	case NeedWrite, NeedDelete:
		switch {
		case p.own(l):
			return "it changes what this program itself goes by (" + name + ")"
		case p.credential(l) || p.keys(l):
			return "it changes credentials or who may log in (" + name + ")"
		case device(l.path):
			return "it writes to a disk or the memory of the machine (" + name + ")"
		case system(l.path):
			return "it changes what the system goes by (" + name + ")"
		case kind == NeedDelete:
			return p.floorRemoval(l, true)
		}
	}
	return ""
}

// homeSecrets are what holds credentials under a home directory. A directory
// (ending in /**) counts with all that is in it.
var homeSecrets = []string{
	".ssh/id_*", ".ssh/identity", ".ssh/*.pem", ".ssh/*.key", ".ssh/*_rsa", ".ssh/*_ed25519", ".ssh/*_ecdsa",
	".gnupg/**", ".password-store/**", ".local/share/keyrings/**", ".config/op/**", ".config/Bitwarden CLI/**",
	".aws/credentials", ".aws/sso/**", ".aws/cli/cache/**", ".config/gcloud/**", ".azure/**", ".oci/**",
	".kube/config", ".docker/config.json", ".config/containers/auth.json",
	".netrc", "_netrc", ".git-credentials", ".config/git/credentials", ".config/gh/hosts.yml", ".config/hub",
	".config/glab-cli/**", ".config/tea/**", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".gem/credentials",
	".cargo/credentials", ".cargo/credentials.toml", ".composer/auth.json", ".m2/settings.xml", ".gradle/gradle.properties",
	".terraform.d/credentials.tfrc.json", ".vault-token", ".config/rclone/rclone.conf", ".s3cfg", ".boto",
	".pgpass", ".my.cnf", ".mylogin.cnf", ".databrickscfg", ".kaggle/kaggle.json", ".config/doctl/**", ".fly/config.yml",
	".config/stripe/**", ".config/heroku/**", ".config/netlify/**", ".config/sops/**", ".config/age/**",
	".huggingface/token", ".cache/huggingface/token", ".cache/huggingface/stored_tokens",
	".claude/.credentials.json", ".claude.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
	".config/github-copilot/**", ".config/anthropic/**", ".config/openai/**",
	".config/ninelives/*.yaml", ".config/ninelives/*.yml", ".config/ninelives/credentials*",
	".mozilla/**", ".thunderbird/**", ".config/google-chrome/**", ".config/google-chrome-beta/**", ".config/chromium/**",
	".config/BraveSoftware/**", ".config/microsoft-edge/**", ".config/vivaldi/**", ".config/opera/**",
	"snap/firefox/common/.mozilla/**", "snap/chromium/common/**",
	"Library/Keychains/**", "Library/Cookies/**", "Library/Application Support/Google/Chrome/**",
	"Library/Application Support/Firefox/**", "Library/Application Support/BraveSoftware/**",
	"Library/Application Support/Microsoft Edge/**", "Library/Application Support/com.apple.TCC/**",
	".bitcoin/**", ".ethereum/keystore/**", ".electrum/wallets/**", ".config/solana/id.json",
}

// systemSecrets are what holds credentials of the machine.
var systemSecrets = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/master.passwd", "/etc/security/opasswd",
	"/etc/ssh/ssh_host_*_key", "/etc/krb5.keytab", "/etc/ssl/private/**", "/etc/NetworkManager/system-connections/**",
	"/etc/wpa_supplicant/**", "/etc/kubernetes/**", "/run/secrets/**", "/var/run/secrets/**", "/var/lib/sss/secrets/**",
	"/proc/*/environ", "/proc/*/mem", "/proc/kcore", "/dev/mem", "/dev/kmem",
}

var homes = regexp.MustCompile(`^(?:/root|/home/[^/]+|/Users/[^/]+|~[^/]*)(?:/|$)`)

// underHome gives what follows the home directory in a path, of whomever it is.
func (p Permissions) underHome(name string) (rest string, ok bool) {
	if p.Home != "" && p.Home != "/" {
		if name == p.Home {
			return "", true
		}
		if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(p.Home, "/")+"/"); ok {
			return rest, true
		}
	}
	if m := homes.FindString(name); m != "" {
		return name[len(m):], true
	}
	return "", false
}

// absolute undoes what place did to paths of the workspace, where that can be told.
func (p Permissions) absolute(l place) string {
	if l.inside() && p.Workspace != "" {
		return path.Join(p.Workspace, l.path)
	}
	return l.path
}

// credential reports a place that holds credentials, or a pattern that takes
// such a place in.
func (p Permissions) credential(l place) bool {
	name := p.absolute(l)
	if name == "/proc/self/environ" || name == "/proc/thread-self/environ" {
		return false // its own, which has no secrets in it (environment.go)
	}
	if rest, ok := p.underHome(name); ok {
		if strings.HasSuffix(rest, ".pub") {
			return false
		}
		for _, secret := range homeSecrets {
			if meets(secret, rest) {
				return true
			}
		}
	}
	for _, secret := range systemSecrets {
		if meets(secret, name) {
			return true
		}
	}
	for _, private := range p.Private {
		if dir, base := path.Split(name); strings.HasPrefix(dir, strings.TrimSuffix(private, "/")+"/") && strings.HasPrefix(base, "config.y") {
			return true
		}
	}
	return false
}

// holdsCredentials reports a directory under which there are credentials.
func (p Permissions) holdsCredentials(l place) bool {
	name := p.absolute(l)
	if p.credential(place{path: path.Join(name, "x")}) {
		return true
	}
	rest, ok := p.underHome(name)
	if !ok || l.inside() {
		return false
	}
	if rest == "" {
		return true
	}
	for _, secret := range homeSecrets {
		if strings.HasPrefix(secret, rest+"/") {
			return true
		}
	}
	return false
}

// keys are who may log in.
func (p Permissions) keys(l place) bool {
	rest, ok := p.underHome(p.absolute(l))
	return ok && (strings.HasPrefix(rest, ".ssh/") || rest == ".ssh")
}

// meets reports that a name matches a pattern, or is itself a pattern (cat
// ~/.ssh/*) that such a name may match.
func meets(pattern, name string) bool {
	if ok, err := doublestar.Match(pattern, name); ok && err == nil {
		return true
	}
	if !strings.ContainsAny(name, "*?[") {
		return false
	}
	// Each part of one against the same part of the other.
	ps, ns := strings.Split(pattern, "/"), strings.Split(name, "/")
	for i, n := range ns {
		if i >= len(ps) {
			return false
		}
		if ps[i] == "**" {
			return true
		}
		if n == "**" {
			return true
		}
		example := strings.NewReplacer("*", "x").Replace(ps[i])
		a, _ := doublestar.Match(n, example)
		b, _ := doublestar.Match(ps[i], n)
		if !a && !b {
			return false
		}
	}
	return len(ps) == len(ns)
}

// own reports what this program goes by: its configuration, journal, list of
// trusted projects and hooks.
func (p Permissions) own(l place) bool {
	name := p.absolute(l)
	for _, private := range p.Private {
		private = path.Clean(private)
		if name == private || strings.HasPrefix(name, private+"/") {
			return true
		}
	}
	if l.path == "ninelives.yaml" || l.path == ".ninelives" || strings.HasPrefix(l.path, ".ninelives/") {
		return true
	}
	rest, ok := p.underHome(name)
	if !ok {
		return false
	}
	for _, dir := range []string{".config/ninelives", ".local/state/ninelives", ".local/share/ninelives"} {
		if rest == dir || strings.HasPrefix(rest, dir+"/") {
			return true
		}
	}
	return false
}

var devices = regexp.MustCompile(`^/dev/(?:sd[a-z*?]|hd[a-z*?]|vd[a-z*?]|xvd[a-z*?]|nvme|mmcblk|disk|rdisk|md\d|dm-|mapper/|loop\d|sg\d|sr\d|mem$|kmem$|port$|nbd|zd\d|zvol/|root$|block/|\*$)`)

// device reports a disk, or the memory of the machine.
func device(name string) bool { return devices.MatchString(name) }

var systemFiles = regexp.MustCompile(`^(?:/private)?/etc/(?:passwd|shadow|group|gshadow|sudoers|sudoers\.d|ssh|pam\.d|pam\.conf|ld\.so\.preload|ld\.so\.conf|crontab|cron\.[^/]*|fstab|hosts\.equiv|profile|profile\.d|bash\.bashrc|environment|inittab|init\.d|rc\.local|security|selinux|polkit-1|systemd|master\.passwd|doas\.conf|nsswitch\.conf|resolv\.conf|hosts)[-~]?(?:/|$)` +
	`|^/proc/(?:sysrq-trigger|sys/|\d+/mem|self/mem)|^/sys/|^/boot/|^/var/spool/cron(?:/|$)|^/(?:usr/)?(?:s?bin|lib|lib64)/[^/]+$|^/(?:Library/)?Launch(?:Daemons|Agents)/|^/System/|^/root/\.ssh(?:/|$)`)

// system reports a file that the machine's safety or start hangs on.
func system(name string) bool { return systemFiles.MatchString(name) }

// roots are the directories whose loss is the loss of the machine or of what
// people have on it.
var roots = []string{
	"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt", "/proc", "/root",
	"/run", "/sbin", "/snap", "/srv", "/sys", "/usr", "/var", "/nix", "/data",
	"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local", "/usr/local/bin", "/usr/share", "/usr/include", "/usr/src",
	"/var/lib", "/var/log", "/var/spool", "/var/mail", "/var/db", "/var/www", "/var/backups", "/var/lib/docker", "/var/lib/postgresql", "/var/lib/mysql",
	"/System", "/Library", "/Applications", "/Users", "/Volumes", "/private", "/private/etc", "/private/var", "/cores",
	"/c", "/mnt/c", "/c/Windows", "/c/Users",
}

// homeRoots are the directories of a home that are as bad to lose as the whole.
var homeRoots = map[string]bool{
	"": true, "Documents": true, "Desktop": true, "Pictures": true, "Music": true, "Videos": true, "Movies": true, "Downloads": true,
	"Library": true, ".ssh": true, ".gnupg": true, ".config": true, ".local": true, ".local/share": true, ".aws": true, ".kube": true,
}

var allNames = regexp.MustCompile(`^(?:\*+|\.\*|\?\*|\*\?|\*\.\*|\.\?\*|\.\[[^]]*\]\*|\.\.\?\*|\[[!^][^]]*\]\*|\{.*\*.*\})$`)

// floorRemoval says why a place must not be removed with all that is in it, or
// changed throughout. whole: the workspace itself counts too.
func (p Permissions) floorRemoval(l place, whole bool) string {
	// What is unknown in it stands for some name.
	name := strings.NewReplacer(fetchedMark, "", decodedMark, "").Replace(l.path)
	// rm -rf x/* is rm -rf x.
	for base := path.Base(name); allNames.MatchString(base); base = path.Base(name) {
		name = path.Dir(name)
		if name == "." {
			name = ""
		}
	}
	bare := place{path: name}
	what := shown(l.show())
	switch {
	case name == "":
		if whole {
			return "it removes the whole workspace"
		}
		return ""
	case name == ".." || strings.HasPrefix(name, "../") && strings.Trim(name, "./") == "":
		return "it reaches everything beside and above the workspace (" + what + ")"
	case p.Workspace != "" && path.IsAbs(name) && strings.HasPrefix(p.Workspace+"/", strings.TrimSuffix(name, "/")+"/"):
		return "it reaches everything beside and above the workspace (" + what + ")"
	case p.own(bare) && whole:
		return "it removes what this program itself goes by (" + what + ")"
	}
	if strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") || strings.HasPrefix(name, "/sys/") || strings.HasPrefix(name, "/boot/") || strings.HasPrefix(name, "/etc/") {
		return "it reaches into the system (" + what + ")"
	}
	if path.Dir(name) == "/" && strings.Contains(name, unknownMark) {
		return "it reaches whatever is in the root directory (" + what + ")"
	}
	for _, root := range roots {
		if meets(name, root) || meets(root, name) {
			return "it reaches a system directory (" + what + ")"
		}
	}
	if rest, ok := p.underHome(name); ok && !bare.inside() && (homeRoots[strings.TrimSuffix(rest, "/")] || p.Home != "" && strings.HasPrefix(p.Home, name+"/")) {
		return "it reaches a home directory (" + what + ")"
	}
	if p.Home != "" && path.IsAbs(name) && (strings.HasPrefix(p.Home+"/", strings.TrimSuffix(name, "/")+"/") || strings.ContainsAny(name, "*?[") && meets(name, p.Home)) {
		return "it reaches a home directory (" + what + ")"
	}
	return ""
}
