# Completion of windowstat for bash: . windowstat.bash, or a copy in /usr/share/bash-completion/completions/windowstat.
_windowstat() {
	local word=${COMP_WORDS[COMP_CWORD]} words=("${COMP_WORDS[@]:0:COMP_CWORD}")
	if [[ $word == -* ]]; then
		words+=("$word") # windowstat lists the flags that begin so
	fi
	# shellcheck disable=SC2207 # no word has a space
	COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$word"))
}
complete -o default -F _windowstat windowstat
