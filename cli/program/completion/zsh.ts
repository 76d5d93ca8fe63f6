import type { CompletionCommand, CompletionOption } from './completion-words.ts';

/** A script for zsh: a file `_trawl` in a folder of `$fpath`, or `eval "$(trawl completion zsh)"` after compinit. */
export function zshCompletion(commands: readonly CompletionCommand[]): string {
  return [
    '#compdef trawl',
    '# zsh completion of trawl, made by `trawl completion zsh`',
    '_trawl() {',
    '  local -a commands',
    '  commands=(',
    ...commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`),
    '  )',
    '  if (( CURRENT == 2 )); then',
    "    _describe 'command' commands",
    '    return',
    '  fi',
    '  shift words',
    '  (( CURRENT-- ))',
    '  case $words[1] in',
    ...commands.flatMap(commandLines),
    "    help) _describe 'command' commands ;;",
    '  esac',
    '}',
    'if [ "$funcstack[1]" = _trawl ]; then _trawl "$@"; else compdef _trawl trawl; fi',
  ].join('\n');
}

function commandLines({ name, options, words }: CompletionCommand): string[] {
  const first = words.length === 0 ? '' : ` ${quoted(`1:action:(${words.join(' ')})`)}`;
  return [
    `    ${name})`,
    `      _arguments -S${first} '*:file:_files' \\`,
    ...options.map((option, i) => `        ${argument(option)}${i === options.length - 1 ? '' : ' \\'}`),
    '      ;;',
  ];
}

function argument({ name, summary, value }: CompletionOption): string {
  const text = `*--${name}${value === 'none' ? '' : '='}[${summary.replaceAll(/[[\]\\]/g, '\\$&')}]`;
  if (value === 'none') return quoted(text);
  if (value === 'path') return quoted(`${text}:path:_files`);
  return quoted(value === 'text' ? `${text}:value: ` : `${text}:value:(${value.join(' ')})`);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
