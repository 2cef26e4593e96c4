package tool

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-json-experiment/json"
	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// sandboxHere says what the kernel has.
func sandboxHere() Sandbox {
	abi, err := ll.LandlockGetABIVersion()
	switch {
	case err != nil || abi < 1:
		return Sandbox{Why: "no sandbox: this kernel has no Landlock, or it is switched off; commands may touch what you may"}
	case abi < 4:
		return Sandbox{On: true, Why: fmt.Sprintf("Landlock (version %d): files are confined; the network is not, which needs version 4 (Linux 6.7)", abi)}
	}
	return Sandbox{On: true, Network: true, Why: fmt.Sprintf("Landlock (version %d): files are confined, and the network in the restricted profile", abi)}
}

// confined shuts this process in and becomes the command.
func confined(args []string) int {
	in := os.NewFile(confineFD, "confinement")
	if len(args) == 0 || in == nil {
		return 2
	}
	text, err := io.ReadAll(in)
	in.Close()
	var c confinement
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the sandbox cannot be read:", err)
		return 126
	}
	if err := c.enter(); err != nil {
		fmt.Fprintln(os.Stderr, "the sandbox cannot be entered:", err)
		return 126
	}
	name, err := exec.LookPath(args[0])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127
	}
	err = syscall.Exec(name, args, os.Environ())
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	return 126
}

// enter confines this process for good.
func (c confinement) enter() error {
	// All rights to files up to version 5; of the scopes only signals: what is
	// inside cannot signal what is outside, its supervisor included.
	var files landlock.AccessFSSet = 1<<16 - 1
	parts := []any{files, landlock.ScopedSet(ll.ScopeSignal)}
	if c.NoConnect {
		parts = append(parts, landlock.AccessNetSet(ll.AccessNetConnectTCP))
	}
	config, err := landlock.NewConfig(parts...)
	if err != nil {
		return err
	}
	var rules []landlock.Rule
	add := func(paths []string, dirs, files func(...string) landlock.FSRule) {
		for _, path := range paths {
			info, err := os.Stat(path)
			switch {
			case err != nil: // gone meanwhile
			case info.IsDir():
				rules = append(rules, dirs(path).IgnoreIfMissing())
			default:
				rules = append(rules, files(path).IgnoreIfMissing())
			}
		}
	}
	add(c.Read, landlock.RODirs, func(p ...string) landlock.FSRule {
		// Programs are read and run.
		return landlock.PathAccess(ll.AccessFSExecute|ll.AccessFSReadFile, p...)
	})
	add(c.Write, func(p ...string) landlock.FSRule { return landlock.RWDirs(p...).WithRefer().WithIoctlDev() },
		func(p ...string) landlock.FSRule { return landlock.RWFiles(p...).WithIoctlDev() })
	return config.BestEffort().Restrict(rules...)
}

// readable are the trees that can be read without the credentials in them:
// everything, but where a credential lies its neighbours one by one.
func (p Permissions) readable() []string {
	var out []string
	var into func(dir string)
	into = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			switch {
			case e.Type()&os.ModeSymlink != 0:
				// What a link leads to is allowed where it lies, or not at all. In
				// the root links are part of the system (/bin).
				if dir == "/" {
					out = append(out, name)
				}
			case p.credential(place{path: name}):
			case e.IsDir() && p.coversCredentials(name):
				into(name)
			default:
				out = append(out, name)
			}
		}
	}
	into("/")
	return out
}

// coversCredentials reports a directory with credentials somewhere below it.
func (p Permissions) coversCredentials(dir string) bool {
	if dir == "/proc" || dir == "/dev" || dir == "/sys" {
		return false // what is private there, the kernel keeps from a confined process
	}
	if p.credential(place{path: filepath.Join(dir, "x")}) {
		return true
	}
	rest, under := p.underHome(dir)
	if under {
		if rest == "" || rest == ".ssh" {
			return true
		}
		for _, secret := range homeSecrets {
			if strings.HasPrefix(secret, rest+"/") {
				return true
			}
		}
		return false
	}
	for _, secret := range systemSecrets {
		if strings.HasPrefix(secret, dir+"/") {
			return true
		}
	}
	return dir == "/home" || dir == "/Users" || p.Home != "" && strings.HasPrefix(p.Home, dir+"/")
}
