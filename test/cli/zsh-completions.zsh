# What zsh offers for the last word of a line: `zsh -f zsh-completions.zsh SCRIPT LINE`, one offer a line. The completion runs in a terminal
# of its own, where `compadd`, by which every completion function makes its offers, prints them.
zmodload zsh/zpty || exit 9
setopt extendedglob
script=$1 line=$2
setup=$(mktemp)
cat > $setup <<'SETUP'
PROMPT=
stty -echo
autoload -Uz compinit
compinit -u -D
zstyle ':completion:*' insert-tab false
mark() { print -r - '=====' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
bindkey '^I' complete-word
compadd() {
  # With these options it only filters.
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
    builtin compadd "$@"
    return
  fi
  local -a offers
  builtin compadd -A offers "$@"
  local offer
  for offer in $offers; do print -r - "offer $IPREFIX$offer"; done
}
SETUP
print -r - "source ${(q)script}; print ready" >> $setup
zpty shell zsh -f -i
zpty -w shell "source $setup"
until [[ $answer == *ready* ]]; do zpty -r shell answer || exit 8; done
zpty -n -w shell "$line"$'\t'
while zpty -r shell answer; do
  answer=${answer%%[[:space:]]#}
  [[ $answer == *'offer '* ]] && print -r - "${answer##*offer }"
done
rm -f $setup
exit 0
