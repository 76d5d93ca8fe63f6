import type { CompletionCommand, CompletionOption } from './completion-words.ts';

/** A script for bash: `eval "$(trawl completion bash)"`. */
export function bashCompletion(commands: readonly CompletionCommand[]): string {
  return [
    '# bash completion of trawl, made by `trawl completion bash`',
    '_trawl_files() {',
    // Names may have spaces. The bash of macOS has no compopt.
    "  local IFS=$'\\n'",
    '  compopt -o filenames 2>/dev/null',
    '  COMPREPLY=($(compgen -f -- "$word"))',
    '}',
    '_trawl() {',
    // Without bash-completion's helpers; "=" is among the separators, so `--name=value` is completed as `--name value`.
    `  local word=${wordAt('COMP_CWORD')} before=${wordAt('COMP_CWORD-1')} command=${wordAt('1')}`,
    '  local options= words= values=',
    '  [ "$word" = "=" ] && word=',
    `  [ "$before" = "=" ] && before=${wordAt('COMP_CWORD-2')}`,
    '  COMPREPLY=()',
    '  if [ "$COMP_CWORD" -eq 1 ]; then',
    `    COMPREPLY=($(compgen -W '${[...commands.map(({ name }) => name), 'help', '--help', '--version'].join(' ')}' -- "$word"))`,
    '    return',
    '  fi',
    '  case $command in',
    ...commands.flatMap(commandLines),
    `    help) words='${commands.map(({ name }) => name).join(' ')}' ;;`,
    '    *) return ;;',
    '  esac',
    '  if [ -n "$values" ]; then',
    '    case $values in',
    '      path) _trawl_files ;;',
    '      text) ;;',
    '      *) COMPREPLY=($(compgen -W "$values" -- "$word")) ;;',
    '    esac',
    '    return',
    '  fi',
    '  case $word in',
    '    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;',
    '    *)',
    '      if [ "$COMP_CWORD" -eq 2 ] && [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$word"))',
    '      else _trawl_files; fi',
    '      ;;',
    '  esac',
    '}',
    'complete -F _trawl trawl',
  ].join('\n');
}

function commandLines({ name, options, words }: CompletionCommand): string[] {
  const valued = options.filter(({ value }) => value !== 'none');
  return [
    `    ${name})`,
    `      options='${options.map((option) => `--${option.name}`).join(' ')}'`,
    ...(words.length === 0 ? [] : [`      words='${words.join(' ')}'`]),
    '      case $before in',
    ...valued.map((option) => `        --${option.name}) values='${valueWords(option)}' ;;`),
    '      esac',
    '      ;;',
  ];
}

/** A word of the command line that is completed, as the shell names it. */
function wordAt(place: string): string {
  return `\${COMP_WORDS[${place}]}`;
}

function valueWords({ value }: CompletionOption): string {
  return typeof value === 'string' ? value : value.join(' ');
}
