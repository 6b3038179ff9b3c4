package deploy

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bmqelect/bmqelect/internal/testkit/nodes"
)

// Each script says what its shell offers at the end of each line of TYPED, after that line.
const bashTab = `
source /usr/share/bash-completion/bash_completion
source <(bmqnode completion bash)
compopt() { :; } # bash has it while somebody types
while IFS= read -r COMP_LINE; do
  COMP_POINT=${#COMP_LINE} COMPREPLY=()
  read -ra COMP_WORDS <<<"$COMP_LINE"
  [[ $COMP_LINE != *' ' ]] || COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  __start_bmqnode
  printf '%s\n' "$COMP_LINE" "${COMPREPLY[@]}"
done <<<"$TYPED"`

const fishTab = `
bmqnode completion fish | source
for line in (string split \n -- $TYPED)
  echo $line
  complete -C "$line"
end`

// zshTab types into a zsh of its own, which shows what is typed. A line after each tells
// that zsh has dealt with it. What is typed before zsh is ready would only be echoed.
const zshTab = `
zmodload zsh/zpty
zpty shell "PS1='ready> ' zsh -f -i"
zpty -w shell 'autoload -U compinit && compinit -u -D; source <(bmqnode completion zsh)'
zpty -w shell 'bindkey "^I" list-choices; echo st""art'
zpty -r shell screen '*start*ready> *'
while IFS= read -r line; do
  zpty -n -w shell "$line"$'\t\x15'
  zpty -w shell 'echo en""d'
  zpty -r shell screen '*end*ready> *'
  print -r -- "$screen"
done <<<"$TYPED"`

// TestTheShellsOfferNames types tabs into the real shells.
func TestTheShellsOfferNames(t *testing.T) {
	t.Parallel()
	s, _ := nodes.Elected(t, 3)
	at := " --admin " + s.Nodes()[0].AdminAddr
	lines := [][2]string{
		{"bmqnode trans", `transfer\b`},
		{"bmqnode transfer" + at + " ", `n1\s+n2\s+n3\b`},
		{"bmqnode transfer" + at + " --to ", `n1\s+n2\s+n3\b`},
		{"bmqnode run --profile ", `article\s+blazingmq\b`},
		{"bmqnode mesh --profile bl", `blazingmq\b`},
		{"bmqnode run --log-format ", `human\s+json\b`},
	}
	var typed []string
	for _, l := range lines {
		typed = append(typed, l[0])
	}
	env := append(os.Environ(), "TYPED="+strings.Join(typed, "\n"), "TERM=xterm",
		"PATH="+filepath.Dir(nodes.Binary)+":"+os.Getenv("PATH"))
	for shell, script := range map[string]string{"bash": bashTab, "fish": fishTab, "zsh": zshTab} {
		t.Run(shell, func(t *testing.T) {
			_, err := exec.LookPath(shell)
			if _, none := os.Stat("/usr/share/bash-completion/bash_completion"); shell == "bash" {
				err = none
			}
			if err != nil {
				t.Skipf("%v; on Debian: apt-get install -y bash-completion zsh fish", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), nodes.Patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, shell, "-c", script)
			cmd.Env = append(env, "HOME="+t.TempDir())
			offered, stderr, _ := nodes.Ended(t, cmd)
			for i, l := range lines {
				_, after, found := strings.Cut(offered, l[0])
				require.True(t, found, "%s: %q\n%s", l[0], offered, stderr)
				if i+1 < len(lines) {
					after, _, _ = strings.Cut(after, lines[i+1][0])
				}
				require.Regexp(t, l[1], after, "%s\n%s", l[0], stderr)
			}
		})
	}
}
